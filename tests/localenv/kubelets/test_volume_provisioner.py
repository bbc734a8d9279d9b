"""Claims on EBS volumes get one in the zone of the node that the scheduler selected, and give it back."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.localenv.kubelets.world import World

ZONE = "topology.ebs.csi.aws.com/zone"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NODES = "/api/v1/nodes"
pytestmark = pytest.mark.cluster


@pytest.fixture
def nodes(world: World) -> Iterator[dict[str, str]]:
    """Nodes without kubelets, by zone; the one without a zone lacks the driver."""
    zones = {"us-east-1b": "volumes-b", "us-east-1c": "volumes-c", "": "volumes-bare"}
    for zone, name in zones.items():
        labels = {ZONE: zone} if zone else {}
        world.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        if zone:
            driver = {"name": "ebs.csi.aws.com", "nodeID": f"i-{name}", "topologyKeys": [ZONE]}
            world.api.create(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": name},
                    "spec": {"drivers": [driver]},
                }
            )
    yield zones
    for name in zones.values():
        world.api.delete(f"{NODES}/{name}")
        world.api.delete(f"/apis/storage.k8s.io/v1/csinodes/{name}", missing_ok=True)


def storage_class(world: World, namespace: str, mode: str, **more: Any) -> str:
    world.api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": namespace},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": mode,
            **more,
        }
    )
    return namespace


def claim(world: World, namespace: str, name: str, node: str = "", size: str = "1500Mi") -> str:
    selected = {"volume.kubernetes.io/selected-node": node} if node else {}
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "annotations": selected},
            "spec": {
                "storageClassName": namespace,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
            },
        }
    )
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"


def bound(found: dict[str, Any] | None) -> bool:
    return found is not None and found.get("status", {}).get("phase") == "Bound"


def test_a_claim_gets_a_volume_in_the_zone_of_its_node_and_gives_it_back(
    world: World, namespace: str, nodes: dict[str, str]
) -> None:
    storage_class(world, namespace, "WaitForFirstConsumer")
    paths = {zone: claim(world, namespace, name, name) for zone, name in nodes.items()}
    handles = {}
    for zone in ("us-east-1b", "us-east-1c"):
        found = world.api.wait(paths[zone], bound)
        volume = world.api.get(f"/api/v1/persistentvolumes/{found['spec']['volumeName']}")
        (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": [zone]}]
        handles[zone] = volume["spec"]["csi"]["volumeHandle"]
    ec2 = world.aws.client("ec2")
    made = ec2.describe_volumes(VolumeIds=sorted(handles.values()))["Volumes"]
    assert {each["AvailabilityZone"]: (each["Size"], each["VolumeType"]) for each in made} == {
        "us-east-1b": (2, "gp3"),
        "us-east-1c": (2, "gp3"),
    }
    # Where no driver runs no volume is made, and the others have theirs all the same.
    assert not bound(world.api.get(paths[""]))

    volume_name = world.api.get(paths["us-east-1b"])["spec"]["volumeName"]
    world.api.delete(paths["us-east-1b"])
    world.api.wait_gone(f"/api/v1/persistentvolumes/{volume_name}")
    left = {volume["VolumeId"] for volume in ec2.describe_volumes()["Volumes"]}
    assert handles["us-east-1b"] not in left
    assert handles["us-east-1c"] in left


def test_a_claim_that_waits_for_nobody_gets_a_volume_where_its_class_allows(
    world: World, namespace: str, nodes: dict[str, str]
) -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-east-1c"]}]}]
    storage_class(world, namespace, "Immediate", allowedTopologies=allowed, reclaimPolicy="Retain")
    found = world.api.wait(claim(world, namespace, "data", size="3Gi"), bound)
    volume = world.api.get(f"/api/v1/persistentvolumes/{found['spec']['volumeName']}")
    handle = volume["spec"]["csi"]["volumeHandle"]
    (made,) = world.aws.client("ec2").describe_volumes(VolumeIds=[handle])["Volumes"]
    assert (made["AvailabilityZone"], made["Size"]) == ("us-east-1c", 3)
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
