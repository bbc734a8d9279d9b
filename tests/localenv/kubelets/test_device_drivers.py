"""Drivers of devices on simulated nodes: what they publish, and which pods the kubelets start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from localenv import device_drivers
from tests.localenv.kubelets.world import World, is_true

pytestmark = pytest.mark.cluster
DRA = "/apis/resource.k8s.io/v1"
GPU_TYPE = "g4dn.12xlarge"
#: What the controller says of such nodes; the daemons of the drivers go by it.
GPU_LABELS = "--node-labels=karpenter.k8s.aws/instance-gpu-manufacturer=nvidia"


@pytest.fixture(scope="module")
def drivers(world: World) -> Iterator[None]:
    """The classes and daemons that the drivers' charts install."""
    device_drivers.install(world.api)
    yield
    device_drivers.remove(world.api)


@pytest.fixture
def launch(world: World) -> Iterator[Callable[..., str]]:
    """Launches an instance; gives the name of its node, once that is Ready."""
    launched: list[dict[str, Any]] = []

    def launch_one(instance_type: str, labels: str = "", **options: Any) -> str:
        made = world.launch(world.bootstrap(labels), instance_type=instance_type, **options)
        launched.append(made)
        return str(world.ready_node(made)["metadata"]["name"])

    yield launch_one
    world.aws.client("ec2").terminate_instances(InstanceIds=[made["InstanceId"] for made in launched])
    for made in launched:
        world.api.wait_gone(f"/api/v1/nodes/{made['PrivateDnsName']}")


def slices(world: World, node: str, driver: str) -> list[dict[str, Any]]:
    found = world.api.list(f"{DRA}/resourceslices")
    return [one for one in found if (one["spec"].get("nodeName"), one["spec"]["driver"]) == (node, driver)]


def devices(world: World, node: str, driver: str, number: int) -> list[dict[str, Any]]:
    """The devices of a node, once its driver has published so many."""

    def published() -> list[dict[str, Any]]:
        return [device for one in slices(world, node, driver) for device in one["spec"].get("devices", ())]

    world.api.wait(lambda: len(published()) == number, what=f"{number} devices of {driver} on {node}")
    return published()


def a_claim_template(namespace: str, device_class: str, count: int = 1) -> dict[str, Any]:
    request = {"name": "some", "exactly": {"deviceClassName": device_class, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "some", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def a_pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"claims": [{"name": "some"}]}}
    claims = [{"name": "some", "resourceClaimTemplateName": "some"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [container],
            "resourceClaims": claims,
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }


def running(world: World, namespace: str, name: str) -> dict[str, Any]:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    found: dict[str, Any] = world.api.wait(path, lambda pod: is_true(pod, "Ready"))
    return found


def refusal(world: World, namespace: str, name: str) -> str:
    """What the kubelet says of a pod that it does not start."""

    def said() -> list[str]:
        return [
            event["message"]
            for event in world.api.events(namespace, name)
            if event["reason"] == "FailedPrepareDynamicResources"
        ]

    world.api.wait(lambda: bool(said()), what=f"a refusal of {name}")
    return said()[0]


def test_the_driver_of_gpus_publishes_those_of_its_node_and_pods_run_with_them(
    world: World, drivers: None, launch: Callable[..., str], namespace: str
) -> None:
    node = launch(GPU_TYPE, GPU_LABELS)

    found = devices(world, node, "gpu.nvidia.com", 4)

    assert {device["attributes"]["productName"]["string"] for device in found} == {"Tesla T4"}
    described = world.api.get(f"/api/v1/nodes/{node}")
    assert "nvidia.com/gpu" not in described["status"]["allocatable"], "no device plugin beside the driver"
    (one,) = slices(world, node, "gpu.nvidia.com")
    assert one["metadata"]["ownerReferences"][0]["uid"] == described["metadata"]["uid"]
    assert one["spec"]["pool"] == {"name": node, "generation": 1, "resourceSliceCount": 1}
    world.api.create(a_claim_template(namespace, "gpu.nvidia.com", 3))
    world.api.create(a_pod("trains", namespace))
    assert running(world, namespace, "trains")["spec"]["nodeName"] == node


def test_a_pod_that_was_bound_without_its_devices_does_not_start(
    world: World, drivers: None, launch: Callable[..., str], namespace: str
) -> None:
    """kube-scheduler would not bind it; a wrong hand does."""
    node = launch(GPU_TYPE, GPU_LABELS)
    devices(world, node, "gpu.nvidia.com", 4)
    world.api.create(a_claim_template(namespace, "gpu.nvidia.com"))

    world.api.create(a_pod("forced", namespace, nodeName=node))

    assert "Failed to prepare dynamic resources" in refusal(world, namespace, "forced")
    assert world.api.get(f"/api/v1/namespaces/{namespace}/pods/forced")["status"]["phase"] == "Pending"
    world.api.delete(f"/api/v1/namespaces/{namespace}/pods/forced")
    world.api.wait_gone(f"/api/v1/namespaces/{namespace}/pods/forced")


def test_slices_go_with_the_driver_and_no_pod_starts_without_it(
    world: World, drivers: None, launch: Callable[..., str], namespace: str
) -> None:
    node = launch(GPU_TYPE, GPU_LABELS)
    devices(world, node, "gpu.nvidia.com", 4)
    world.api.create(a_claim_template(namespace, "gpu.nvidia.com"))
    # Whoever takes the label off has the daemon leave the node.
    unlabeled = {"metadata": {"labels": {"karpenter.k8s.aws/instance-gpu-manufacturer": None}}}
    world.api.patch(f"/api/v1/nodes/{node}", unlabeled)

    world.api.wait(lambda: not slices(world, node, "gpu.nvidia.com"), what="the slices to go")

    labeled = {"metadata": {"labels": {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}}}
    world.api.patch(f"/api/v1/nodes/{node}", labeled)
    devices(world, node, "gpu.nvidia.com", 4)


def test_slices_go_with_their_node(world: World, drivers: None, launch: Callable[..., str]) -> None:
    node = launch(GPU_TYPE, GPU_LABELS)
    devices(world, node, "gpu.nvidia.com", 4)

    world.api.delete(f"/api/v1/nodes/{node}")

    world.api.wait(lambda: not slices(world, node, "gpu.nvidia.com"), what="the slices to go")


def test_a_node_has_the_efa_devices_with_which_it_was_launched(
    world: World, drivers: None, launch: Callable[..., str]
) -> None:
    cards = [
        {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa"} for card in range(2)
    ]
    cards[0]["SubnetId"] = cards[1]["SubnetId"] = world.subnets[0]
    node = launch("p4d.24xlarge", interfaces=cards)

    found = devices(world, node, "dra.net", 2)

    roots = [device["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for device in found]
    assert roots == ["pci0000:10", "pci0000:20"]
    assert not slices(world, node, "gpu.nvidia.com"), "its daemon is on nodes with the label of GPUs alone"


def test_devices_that_an_instance_has_lost_are_not_published(
    world: World, drivers: None, launch: Callable[..., str]
) -> None:
    world.aws.set_faults(boot=[{"instanceType": GPU_TYPE, "lostDevices": 3}])
    try:
        devices(world, launch(GPU_TYPE, GPU_LABELS), "gpu.nvidia.com", 1)
    finally:
        world.aws.set_faults()


def test_where_no_driver_is_installed_a_device_plugin_tells_of_the_devices(
    world: World, launch: Callable[..., str]
) -> None:
    device_drivers.remove(world.api)
    try:
        node = launch("trn1.2xlarge")
        allocatable = world.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]
    finally:
        device_drivers.install(world.api)
    assert allocatable["aws.amazon.com/neuron"] == "1"
