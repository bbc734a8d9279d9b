"""The manifests of the articles, as a user would meet our answers to them."""

from __future__ import annotations

from nodeless.api.defaulting import default
from nodeless.api.reading import read_pool
from nodeless.api.validation import validate, warnings
from tests.api.manifests import article, article_corrected, node_template, provisioner, requirement


def test_the_provisioner_as_printed_is_refused_with_every_fault_at_once() -> None:
    errors = validate(article())

    assert [error.path for error in errors] == [
        "spec.provider.securityGroupSelector",
        "spec.provider.subnetSelector",
        "spec.requirements[0].key",
        "spec.requirements[2].operator",
        "spec.requirements[3].key",
    ]
    lines = [str(error) for error in errors]
    assert "did you mean node.kubernetes.io/instance-type?" in lines[2]
    assert "is required" in lines[3]
    assert '" karpenter.sh/capacity-type" has blanks around it' in lines[4]


def test_a_doubtful_key_alone_is_a_warning() -> None:
    manifest = provisioner(requirements=[requirement("node.k8s.aws/instance-type", "In", "m5.large")])

    assert validate(manifest) == []
    (warning,) = warnings(manifest)
    assert warning.startswith("spec.requirements[0].key: ")
    assert warning.endswith("did you mean node.kubernetes.io/instance-type?")


def test_the_corrected_provisioner_is_accepted_and_advised_to_allow_more_types_for_spot() -> None:
    manifest = article_corrected()

    assert validate(manifest) == []
    (advice,) = warnings(manifest)
    assert advice.startswith("spec.requirements: leaves 2 instance types for spot (m5.2xlarge, m5.large)")
    added = default(manifest)["spec"]["requirements"][4:]
    assert added == [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]
    pool, inline_class = read_pool(manifest)
    assert inline_class is not None
    assert pool.node_class == inline_class.reference
    assert inline_class.instance_profile == "KarpenterNodeInstanceProfile-eks-karpenter-demo"


def test_a_placeholder_that_nobody_filled_in_is_a_warning() -> None:
    manifest = node_template(subnetSelector={"karpenter.sh/discovery": "${CLUSTER_NAME}"})

    assert validate(manifest) == []
    (warning,) = warnings(manifest)
    assert '"${CLUSTER_NAME}"' in warning


def test_a_pool_whose_nodes_nothing_removes_is_a_warning() -> None:
    (warning,) = warnings(provisioner(ttlSecondsAfterEmpty=None))

    assert "no setting that removes nodes" in warning
    assert warnings(provisioner(ttlSecondsAfterEmpty=None, consolidation={"enabled": True})) == []


def test_legal_nonsense_is_a_warning() -> None:
    manifest = provisioner(
        requirements=[
            requirement("karpenter.sh/capacity-type", "In", "Spot"),
            requirement("kubernetes.io/arch", "In", "x86_64"),
            requirement("team", "In", "a"),
            requirement("team", "In", "b"),
            requirement("tier", "Exists", "c"),
            requirement("kind", "NotIn"),
        ],
        limits={"resources": {"cpu": "-1"}},
    )

    assert validate(manifest) == []
    starts = [warning.split(": ")[0] for warning in warnings(manifest)]
    assert starts == [
        "spec.limits.resources.cpu",
        "spec.requirements[0].values[0]",
        "spec.requirements[1].values[0]",
        "spec.requirements[3]",
        "spec.requirements[4].values",
        "spec.requirements[5].values",
    ]
