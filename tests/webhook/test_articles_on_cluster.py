"""The samples of the source articles and of the upstream documents, asked of the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from tests.api.manifests import article, article_corrected, inline, node_template, provisioner, requirement
from tests.webhook.asking import asked_to_apply, asked_to_create
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

PROFILE = {"instanceProfile": "KarpenterNodeInstanceProfile-eks-karpenter-demo"}
#: One defect at a time: row, object, where it is told of, in which words.
DEFECTS = [
    (
        "8.1-2 no operator",
        provisioner(requirements=[{"key": "kubernetes.io/arch", "values": ["arm64", "amd64"]}]),
        "spec.requirements[0].operator: is required",
        "values are given, so In is probably meant",
    ),
    (
        "8.1-3 blank before the key",
        provisioner(requirements=[requirement(" karpenter.sh/capacity-type", "In", "spot", "on-demand")]),
        'spec.requirements[0].key: " karpenter.sh/capacity-type" has blanks around it',
        "remove the blanks: karpenter.sh/capacity-type",
    ),
    (
        "8.1-4 inline provider without subnets",
        provisioner(providerRef=None, provider=PROFILE),
        "spec.provider.subnetSelector: is required",
        "select by the discovery tag",
    ),
    (
        "8.1-4 inline provider without groups",
        provisioner(providerRef=None, provider=PROFILE),
        "spec.provider.securityGroupSelector: is required",
        "select by the discovery tag",
    ),
    (
        "8.4 empty selector value",
        node_template(subnetSelector={"karpenter.sh/discovery": ""}),
        'spec.subnetSelector["karpenter.sh/discovery"]: "" must not be empty',
        "use * for any value",
    ),
    (
        "8.4 consolidation with ttlSecondsAfterEmpty",
        provisioner(consolidation={"enabled": True}),
        "spec.ttlSecondsAfterEmpty: 30 cannot go together with spec.consolidation.enabled",
        "leave ttlSecondsAfterEmpty out",
    ),
    (
        "8.4 taint value true",
        provisioner(taints=[{"key": "a", "value": True, "effect": "NoSchedule"}]),
        "spec.taints[0].value: true must be a string",
        'put it in quotes: "true"',
    ),
    (
        "8.4 securityGroupSelector with launchTemplate",
        node_template(launchTemplate="mine"),
        "spec.securityGroupSelector: cannot go together with spec.launchTemplate",
        "",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "fault", "hint"), [row[1:] for row in DEFECTS], ids=[row[0] for row in DEFECTS]
)
def test_a_defect_is_refused_with_what_was_meant(
    api: KubernetesApi, admission: Serving, manifest: dict[str, Any], fault: str, hint: str
) -> None:
    told = asked_to_create(api, manifest).refusal

    assert fault in told
    assert hint in told


#: Accepted as v0.27.3 accepts it, with a warning: row, object, its beginning, what it says.
DOUBTS = [
    (
        "8.1-1 instance-type in a domain of nobody",
        provisioner(requirements=[requirement("node.k8s.aws/instance-type", "In", "m5.large")]),
        "spec.requirements[0].key: ",
        "did you mean node.kubernetes.io/instance-type?",
    ),
    (
        "8.1-7 arm64 beside types that are amd64",
        article_corrected(),
        "spec.requirements[2].values: ",
        "no instance type that meets the other requirements has arm64",
    ),
    (
        "8.3 nothing ever removes a node",
        provisioner(ttlSecondsAfterEmpty=None),
        "spec: ",
        "has no setting that removes nodes",
    ),
    (
        "8.3 placeholder in a selector",
        node_template(subnetSelector={"karpenter.sh/discovery": "${CLUSTER_NAME}"}),
        'spec.subnetSelector["karpenter.sh/discovery"]: ',
        "contains the placeholder ${CLUSTER_NAME}, which nothing has replaced",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "path", "words"), [row[1:] for row in DOUBTS], ids=[row[0] for row in DOUBTS]
)
def test_a_doubt_is_a_warning(
    api: KubernetesApi, admission: Serving, manifest: dict[str, Any], path: str, words: str
) -> None:
    verdict = asked_to_create(api, manifest)

    assert verdict.refusal == ""
    assert [text for text in verdict.warnings if text.startswith(path) and words in text], verdict.warnings


def test_8_1_5_the_provisioner_as_printed_gets_one_complete_list(
    api: KubernetesApi, admission: Serving
) -> None:
    told = asked_to_apply(api, article()).refusal

    for row in DEFECTS[:4]:
        fault = row[2].replace(
            "requirements[0]", "requirements[2]" if "operator" in row[2] else "requirements[3]"
        )
        assert fault in told
    assert "did you mean node.kubernetes.io/instance-type?" in told


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
def test_8_1_6_there_are_six_operators(api: KubernetesApi, admission: Serving, operator: str) -> None:
    values = {"In": ["1"], "NotIn": ["1"], "Gt": ["1"], "Lt": ["1"]}.get(operator, [])

    assert (
        asked_to_create(api, provisioner(requirements=[requirement("team", operator, *values)])).refusal == ""
    )


@pytest.mark.parametrize(
    "manifest",
    [
        provisioner(ttlSecondsAfterEmpty=30),
        article_corrected(),
        inline(**PROFILE),
        node_template(launchTemplate="mine", securityGroupSelector=None),
    ],
    ids=[
        "8.1-8 ttlSecondsAfterEmpty",
        "8.1 corrected",
        "8.1 whole provider",
        "8.4 group selector not always needed",
    ],
)
def test_what_is_right_is_accepted(api: KubernetesApi, admission: Serving, manifest: dict[str, Any]) -> None:
    assert asked_to_create(api, manifest).refusal == ""


def test_8_3_the_default_pool_gets_the_defaults_of_v0_27_3(api: KubernetesApi, admission: Serving) -> None:
    given = [
        requirement("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"),
        requirement("karpenter.k8s.aws/instance-generation", "Gt", "2"),
    ]

    stored = asked_to_create(api, provisioner(requirements=given, ttlSecondsAfterEmpty=None)).stored

    assert stored["spec"]["requirements"] == [
        *given,
        requirement("kubernetes.io/os", "In", "linux"),
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement("karpenter.sh/capacity-type", "In", "on-demand"),
    ]
