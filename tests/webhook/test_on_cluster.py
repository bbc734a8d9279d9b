"""What a user of the real API server sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localenv.kubernetes import ApiError, KubernetesApi
from nodeless.api.kinds import AWS_NODE_TEMPLATE, NODE_CLAIM, PROVISIONER
from nodeless.api.reading import read_claim, read_pool
from nodeless.api.writing import claim_status, write_claim
from nodeless.model.nodes import Condition, NodeClaim
from nodeless.model.pools import Reference
from nodeless.model.requirements import Requirement, Requirements
from tests.api import provisioner_rows
from tests.api.manifests import (
    article,
    article_corrected,
    ec2_node_class,
    node_pool,
    node_template,
    provisioner,
    requirement,
)
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def clean(api: KubernetesApi, definitions: None) -> Iterator[None]:
    """No pool, template or claim outlives its test."""
    yield
    for kind in (PROVISIONER, AWS_NODE_TEMPLATE, NODE_CLAIM):
        for found in api.list(kind.path()):
            path = kind.path(found["metadata"]["name"])
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


def refusal(api: KubernetesApi, manifest: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as caught:
        api.apply(manifest)
    return str(caught.value)


def test_the_provisioner_as_printed_is_refused_with_every_fault_named(
    api: KubernetesApi, serving: Serving
) -> None:
    message = refusal(api, article())

    for expected in (
        "Provisioner/default is invalid",
        "spec.provider.securityGroupSelector: is required",
        "spec.provider.subnetSelector: is required",
        'spec.requirements[0].key: "node.k8s.aws/instance-type"',
        "did you mean node.kubernetes.io/instance-type?",
        "spec.requirements[2].operator: is required",
        'spec.requirements[3].key: " karpenter.sh/capacity-type" has blanks around it',
    ):
        assert expected in message
    assert api.find(PROVISIONER.path("default")) is None


def test_the_corrected_provisioner_is_accepted_and_gets_only_its_defaults(
    api: KubernetesApi, serving: Serving
) -> None:
    given = article_corrected()
    given["spec"]["limits"] = {"resources": {"cpu": 1000}}

    stored = api.apply(given)

    os = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    given["spec"]["requirements"].append(os)
    assert stored["spec"] == given["spec"]
    assert read_pool(stored)[0].requirements["kubernetes.io/os"].values == {"linux"}
    assert api.apply(article_corrected())["metadata"]["generation"] == 2  # only the limits went away
    assert api.apply(article_corrected())["metadata"]["generation"] == 2


def test_faults_of_schema_and_rules_come_together(api: KubernetesApi, serving: Serving) -> None:
    message = refusal(api, provisioner(weight=101, ttlSecondsUntilExpired=-1))

    assert "spec.weight: 101 must be from 1 to 100" in message
    assert "spec.ttlSecondsUntilExpired: -1 must not be negative" in message


def test_node_templates_are_checked_too(api: KubernetesApi, serving: Serving) -> None:
    message = refusal(api, node_template(amiFamily="al2", subnetSelector=None))

    assert "did you mean AL2?" in message
    assert "spec.subnetSelector: is required" in message
    assert api.apply(node_template())["spec"] == node_template()["spec"]


def test_faults_of_a_node_pool_beyond_the_schema_come_with_those_of_the_schema(
    api: KubernetesApi, serving: Serving
) -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    bad = {"taints": [taint], "startupTaints": [taint], "requirements": [requirement("a", "In")]}

    message = refusal(api, node_pool(template=bad, weight=101))

    assert "spec.weight: 101 must be from 1 to 100" in message
    assert "spec.template.spec.requirements[0]" in message
    assert "spec.template.spec.startupTaints[0]" in message
    message = refusal(api, ec2_node_class(kubelet={"evictionHard": {"memory.available": "lots"}}))
    assert 'spec.kubelet.evictionHard["memory.available"]: "lots" is neither a quantity' in message
    api.create(node_pool(template={"requirements": [requirement("team", "In", "a")]}), dry_run=True)


def test_9_3_an_object_that_became_invalid_still_gets_status_finalizers_and_its_end(
    api: KubernetesApi, serving: Serving
) -> None:
    path = PROVISIONER.path("default")
    with serving.switched_off(api):
        api.create(provisioner(requirements=[requirement("karpenter.sh/unknown", "In", "x")]))

    with pytest.raises(ApiError, match="is restricted"):
        api.patch(path, {"spec": {"weight": 5}})
    api.patch(path, {"status": {"resources": {"cpu": "1"}}}, subresource="status")
    api.patch(path, {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    api.delete(path)
    api.patch(path, {"metadata": {"finalizers": None}})
    api.wait_gone(path)


def test_without_webhooks_the_schema_still_refuses_a_requirement_without_operator(api: KubernetesApi) -> None:
    message = refusal(api, article())

    assert "spec.requirements[2].operator" in message


SCHEMA = [(row, manifest) for row, manifest, _ in provisioner_rows.REFUSED if row.startswith("3.3")]


@pytest.mark.parametrize("manifest", [row[1] for row in SCHEMA], ids=[row[0] for row in SCHEMA])
def test_the_schema_alone_refuses_what_its_rows_say(api: KubernetesApi, manifest: dict[str, Any]) -> None:
    assert refusal(api, manifest)


def test_3_7_a_template_that_is_referred_to_can_be_deleted_and_nodes_are_no_reason_to_refuse_an_update(
    api: KubernetesApi, serving: Serving
) -> None:
    api.create(node_template())
    api.create(provisioner())
    api.patch(PROVISIONER.path("default"), {"status": {"resources": {"cpu": "8"}}}, subresource="status")

    api.patch(PROVISIONER.path("default"), {"spec": {"limits": {"resources": {"cpu": "1"}}}})
    api.delete(AWS_NODE_TEMPLATE.path("default"))

    api.wait_gone(AWS_NODE_TEMPLATE.path("default"))
    assert api.get(PROVISIONER.path("default"))["spec"]["limits"] == {"resources": {"cpu": "1"}}


def test_3_8_no_webhook_is_asked_about_pods(api: KubernetesApi, serving: Serving, namespace: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "containers": [{"name": "web", "image": "web"}],
            "nodeSelector": {"karpenter.sh/provisioner-name": "nowhere", "node.k8s.aws/instance-type": "x"},
        },
    }

    assert api.create(pod, dry_run=True)["spec"]["nodeSelector"] == pod["spec"]["nodeSelector"]


def test_a_claim_is_stored_as_it_was_written_and_its_spec_never_changes(api: KubernetesApi) -> None:
    pool = api.create(provisioner())
    claim = NodeClaim(
        name="default-abcde",
        pool=Reference("Provisioner", "default", pool["metadata"]["uid"]),
        node_class=Reference("AWSNodeTemplate", "default"),
        requirements=Requirements(
            [Requirement.of("zone", "In", ["a"]), Requirement.of("cpu", "Gt", ["3"], min_values=2)]
        ),
        requests={"cpu": 1500, "memory": 2**30},
        conditions=(Condition("Launched", "True", "Launched", "", 1_682_942_400.0),),
        provider_id="aws:///us-east-1a/i-1",
        expire_after=3600,
    )

    api.create(write_claim(claim))
    stored = api.patch(NODE_CLAIM.path(claim.name), {"status": claim_status(claim)}, subresource="status")

    read = read_claim(stored)
    assert read.requirements == claim.requirements
    assert (read.requests, read.expire_after) == (claim.requests, 3600)
    assert (read.conditions, read.provider_id) == (claim.conditions, claim.provider_id)
    assert read.pool.uid == claim.pool.uid
    with pytest.raises(ApiError, match="spec is immutable"):
        api.patch(NODE_CLAIM.path(claim.name), {"spec": {"expireAfter": "Never"}})
