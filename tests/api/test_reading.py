"""Manifests read into the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodeless.api.errors import InvalidObject
from nodeless.api.reading import read_claim, read_node_class, read_pool
from nodeless.api.validation import validate
from nodeless.model.pools import BlockDevice, Kubelet, MetadataOptions, Reference, SelectorTerm
from nodeless.model.requirements import Requirement
from nodeless.model.taints import Taint
from tests.api.manifests import (
    ec2_node_class,
    inline,
    node_pool,
    node_template,
    provisioner,
    requirement,
)


def test_a_pool_carries_all_that_its_manifest_says() -> None:
    manifest = provisioner(
        labels={"team": "a"},
        annotations={"note": "x"},
        taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}],
        startupTaints=[{"key": "boot", "effect": "NoExecute"}],
        requirements=[requirement("karpenter.k8s.aws/instance-cpu", "Lt", "33")],
        kubeletConfiguration={"maxPods": 20, "kubeReserved": {"cpu": "0.1", "memory": "100Mi"}},
        limits={"resources": {"cpu": 1000, "memory": "1000Gi"}},
        weight=7,
        ttlSecondsUntilExpired=3600,
    )
    manifest["metadata"] |= {"uid": "u-1", "generation": 3, "finalizers": ["karpenter.sh/termination"]}
    manifest["status"] = {"resources": {"cpu": "1500m"}}

    pool, inline_class = read_pool(manifest)

    assert inline_class is None
    assert pool.reference == Reference("Provisioner", "default")
    assert pool.reference.uid == "u-1"
    assert pool.node_class == Reference("AWSNodeTemplate", "default")
    assert (pool.weight, pool.generation) == (7, 3)
    assert (pool.ttl_seconds_after_empty, pool.ttl_seconds_until_expired) == (30, 3600)
    assert pool.taints == (Taint("team", "NoSchedule", "a"),)
    assert pool.startup_taints == (Taint("boot", "NoExecute"),)
    assert pool.kubelet == Kubelet(max_pods=20, kube_reserved=(("cpu", "0.1"), ("memory", "100Mi")))
    assert pool.limits == {"cpu": 1_000_000, "memory": 1000 * 2**30}
    assert pool.status_resources == {"cpu": 1500}
    assert pool.requirements["team"] == Requirement.of("team", "In", ["a"])
    assert pool.requirements["karpenter.k8s.aws/instance-cpu"].maximum == 32
    assert pool.requirements["karpenter.sh/provisioner-name"].values == {"default"}


def test_a_pool_that_was_stored_without_the_webhook_means_the_same() -> None:
    pool, _ = read_pool(provisioner())

    assert pool.requirements["kubernetes.io/arch"].values == {"amd64"}
    assert pool.requirements["karpenter.sh/capacity-type"].values == {"on-demand"}
    assert pool.requirements["karpenter.k8s.aws/instance-generation"].minimum == 3


@pytest.mark.parametrize(
    ("read", "manifest"),
    [
        (read_pool, provisioner()),
        (read_pool, node_pool()),
        (read_node_class, node_template()),
        (read_node_class, ec2_node_class()),
    ],
    ids=["Provisioner", "NodePool", "AWSNodeTemplate", "EC2NodeClass"],
)
def test_a_field_that_does_not_exist_is_refused_though_it_is_null(
    read: Callable[[dict[str, Any]], object], manifest: dict[str, Any]
) -> None:
    """A known field that is null is absent; `kubectl apply` and `nodeless validate` refuse an unknown one."""
    read(manifest | {"status": None})

    with pytest.raises(InvalidObject, match="is not a known field"):
        read(manifest | {"spec": manifest["spec"] | {"nosuch": None}})


def test_what_a_newer_controller_writes_into_the_status_is_no_fault() -> None:
    """Karpenter v1.14 writes `interruptible`; a dump of its objects can be used."""
    found = {"id": "cr-1", "state": "active", "interruptible": False}
    stored = ec2_node_class() | {"status": {"capacityReservations": [found], "later": 1}}
    assert read_node_class(stored) == read_node_class(ec2_node_class())
    assert [fault for fault in validate(stored) if not fault.warning] == []

    with pytest.raises(InvalidObject, match=r"status.capacityReservations\[0\].id: is required"):
        read_node_class(ec2_node_class() | {"status": {"capacityReservations": [{}]}})


def test_absent_limits_are_no_limits() -> None:
    assert read_pool(provisioner())[0].limits is None
    assert read_pool(provisioner(limits={}))[0].limits is None
    assert read_pool(provisioner(limits={"resources": {}}))[0].limits == {}


def test_a_broken_pool_is_reported_with_all_of_its_faults() -> None:
    with pytest.raises(InvalidObject) as caught:
        read_pool(provisioner(weight=0, providerRef=None))

    assert [error.path for error in caught.value.errors] == ["spec.providerRef", "spec.weight"]
    assert str(caught.value).startswith("Provisioner/default is invalid:\n  spec.providerRef: ")


def test_a_manifest_of_another_kind_is_reported() -> None:
    with pytest.raises(InvalidObject, match="is not served here"):
        read_pool(node_template())


def test_an_inline_class_is_called_like_its_provisioner() -> None:
    pool, inline_class = read_pool(inline(tags={"b": "2", "a": "1"}, launchTemplate=None))

    assert inline_class is not None
    assert inline_class.reference == pool.reference == pool.node_class
    assert inline_class.key == "Provisioner/default"
    assert inline_class.tags == (("a", "1"), ("b", "2"))


def test_a_node_class_carries_all_that_its_manifest_says() -> None:
    node_class = read_node_class(
        node_template(
            subnetSelector={"aws-ids": "subnet-1, subnet-2", "zone": "a,b", "any": "*"},
            amiFamily="Bottlerocket",
            amiSelector={"aws::ids": "ami-1", "aws::owners": "self,amazon", "aws::name": "a,b", "tag": "x,y"},
            instanceProfile="profile",
            userData="data",
            context="context",
            detailedMonitoring=True,
            metadataOptions={"httpTokens": "required"},
            blockDeviceMappings=[
                {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "kmsKeyID": "k", "encrypted": True}}
            ],
        )
    )

    assert node_class.subnets == (
        SelectorTerm(tags=(("any", ("*",)), ("zone", ("a", "b"))), ids=("subnet-1", "subnet-2")),
    )
    assert node_class.images == (
        SelectorTerm(tags=(("tag", ("x,y",)),), ids=("ami-1",), names=("a,b",), owners=("self", "amazon")),
    )
    assert node_class.metadata_options == MetadataOptions(http_tokens="required")
    assert node_class.block_devices == (
        BlockDevice("/dev/xvda", volume_size=50 * 2**30, kms_key_id="k", encrypted=True),
    )
    assert (node_class.ami_family, node_class.instance_profile) == ("Bottlerocket", "profile")
    assert (node_class.user_data, node_class.context) == ("data", "context")
    assert node_class.detailed_monitoring


def test_an_absent_family_is_al2_and_an_empty_selector_selects_nothing() -> None:
    node_class = read_node_class(node_template(securityGroupSelector={}))

    assert node_class.ami_family == "AL2"
    assert node_class.security_groups == ()


def claim(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "default-abcde", "labels": {"karpenter.sh/provisioner-name": "default"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "default"},
            "requirements": [],
            **spec,
        },
    }


def test_a_claim_without_owner_knows_its_pool_by_label() -> None:
    assert read_claim(claim()).pool == Reference("Provisioner", "default")


def test_a_claim_lives_as_long_as_it_says() -> None:
    assert read_claim(claim()).expire_after == 720 * 3600
    assert read_claim(claim(expireAfter="1h30m")).expire_after == 5400
    assert read_claim(claim(expireAfter="Never")).expire_after is None


@pytest.mark.parametrize(
    "requirements",
    [
        [requirement("a", "Gt", "x")],
        [requirement("a", "Gt")],
        [{"key": "a"}],
        [requirement("a", "Equals", "x")],
    ],
)
def test_a_claim_that_makes_no_sense_is_reported(requirements: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidObject, match=r"spec\.requirements"):
        read_claim(claim(requirements=requirements))
