"""What `nodeless validate` and the webhook warn about in v1 objects."""

from __future__ import annotations

import pytest

from nodeless.api.validation import advice, warnings
from nodeless.api.validation_context import ValidationContext, context_warnings
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner, requirement

CAPACITY_TYPE, OS = "karpenter.sh/capacity-type", "kubernetes.io/os"


@pytest.mark.parametrize(("key", "value"), [(CAPACITY_TYPE, "reserved"), (OS, "windows")])
def test_reserved_capacity_and_windows_are_known_values_of_a_node_pool(key: str, value: str) -> None:
    wanted = [
        requirement(key, "In", value),
        requirement("node.kubernetes.io/instance-type", "In", "m5.large"),
    ]
    pool = node_pool(template={"requirements": wanted})

    assert warnings(pool) == []
    assert context_warnings(pool, ValidationContext(bundled_types())) == []


@pytest.mark.parametrize(("key", "value"), [(CAPACITY_TYPE, "reserved"), (OS, "windows")])
def test_a_provisioner_has_neither_reserved_capacity_nor_windows(key: str, value: str) -> None:
    (warning,) = warnings(provisioner(requirements=[requirement(key, "In", value)]))

    assert f'"{value}" is not a known value of {key}' in warning


@pytest.mark.parametrize(
    ("value", "placeholder"),
    [
        ("<<NAME>>", "<<NAME>>"),
        ("KarpenterNodeRole-<CLUSTER_NAME>", "<CLUSTER_NAME>"),
        ("<your-cluster>", "<your-cluster>"),
        ("node-${CLUSTER_NAME}-x", "${CLUSTER_NAME}"),
        ("{{ .Values.role }}", "{{ .Values.role }}"),
        ("node-$CLUSTER_NAME", "$CLUSTER_NAME"),
        ("%%CLUSTER%%", "%%CLUSTER%%"),
        ("__CLUSTER_NAME__", "__CLUSTER_NAME__"),
        ("YOUR-CLUSTER-NAME", "YOUR-CLUSTER-NAME"),
        ("role-YOUR_CLUSTER", "YOUR_CLUSTER"),
    ],
)
def test_a_placeholder_is_named_wherever_it_is(value: str, placeholder: str) -> None:
    node_class = ec2_node_class(
        instanceProfile=None,
        role=value,
        subnetSelectorTerms=[{"tags": {f"kubernetes.io/cluster/{value}": "*"}}],
    )
    template = node_template(subnetSelector={"karpenter.sh/discovery": value})
    pool = node_pool(
        template={"requirements": [requirement("team", "In", "a")]}, metadata={"annotations": {"a": value}}
    )

    for manifest, paths in (
        (node_class, {"spec.role", f'spec.subnetSelectorTerms[0].tags["kubernetes.io/cluster/{value}"]'}),
        (template, {'spec.subnetSelector["karpenter.sh/discovery"]'}),
        (pool, {"spec.template.metadata.annotations.a"}),
    ):
        found = [warning for warning in advice(manifest) if "placeholder" in warning.message]
        assert {warning.path for warning in found} == paths
        assert all(f"contains the placeholder {placeholder}, which" in warning.message for warning in found)


def test_user_data_may_have_variables_and_tags_of_its_own() -> None:
    script = "#!/bin/bash\necho ${HOME} <powershell> {{ x }}"

    assert warnings(ec2_node_class(userData=script)) == []
    assert warnings(node_template(userData=script)) == []


@pytest.mark.parametrize("kind", ["io1", "io2"])
def test_a_volume_that_ec2_makes_only_with_iops_is_warned_of_without_them(kind: str) -> None:
    def told(**figures: int) -> list[str]:
        ebs = {"volumeSize": "20Gi", "volumeType": kind, **figures}
        node_class = ec2_node_class(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": ebs}])
        return [each for each in warnings(node_class) if "ebs" in each]

    assert told(iops=3000) == []
    (warning,) = told()
    assert warning.startswith("spec.blockDeviceMappings[0].ebs: ")
    assert f"needs iops: EC2 refuses {kind} volumes without it; hint: for example iops: 3000" in warning
