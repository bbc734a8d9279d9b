"""Nodes whose devices serve an extended resource are consolidated like any other."""

from dataclasses import replace

from immutables import Map

from nodeless.model.devices import AllocatedDevice, Allocation, ClaimedDevices, ResourceClaim
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.requirements import Requirements
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import needs
from tests.scheduling.test_devices import T4, T4_4
from tests.scheduling.test_extended_resources import CLASS, GPU, IMPLICIT, published

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
TYPES = {kind.name: kind for kind in (T4, T4_4)}


def with_devices(snapshot, **taken):
    """The snapshot with four devices on each node, and claims of kube-scheduler on what is taken of them."""
    slices, claims = [], []
    for name, number in taken.items():
        on_node = f"node-{name}"
        slices += published(on_node, 4 if snapshot.nodes[on_node].instance_type == T4_4.name else 1)
        there = NodeSelectorTerm((needs(HOSTNAME, "In", on_node),))
        for at in range(number):
            held = Allocation((AllocatedDevice("gpu.nvidia.com", on_node, f"gpu-{at}"),), (there,))
            claims.append(ResourceClaim("default", f"{name}-{at}", ClaimedDevices(), held, serves_pod="p"))
    return replace(
        snapshot,
        resource_slices=Map({each.name: each for each in slices}),
        resource_claims=Map({each.key: each for each in claims}),
        device_classes=Map({CLASS.name: CLASS}),
    )


def without_gpus(name, kind):
    has = {each: amount for each, amount in kind.allocatable.items() if each != GPU}
    return node_of(POOL, name, kind.name, types=TYPES, node={"allocatable": has, "capacity": has})


def gpus(number, resource=GPU):
    return {"shape": {"extra": {resource: str(number)}}}


def test_pods_move_to_the_devices_of_another_node():
    seen = cluster(
        POOL, without_gpus("a", T4_4), without_gpus("b", T4_4), on("a", 1, **gpus(1)), on("b", 2, **gpus(1))
    )
    decisions = decide(with_devices(seen, a=1, b=2), types=(T4_4,))
    command = only_command(decisions)
    assert len(command.claims) == 1
    assert not command.replacements
    full = cluster(
        POOL, without_gpus("a", T4_4), without_gpus("b", T4_4), on("a", 3, **gpus(1)), on("b", 3, **gpus(1))
    )
    assert not decide(with_devices(full, a=3, b=3), types=(T4_4,)).commands


def test_a_node_is_replaced_by_one_with_as_many_devices_as_its_pods_need():
    for resource in (GPU, IMPLICIT):
        seen = cluster(POOL, without_gpus("a", T4_4), on("a", 1, **gpus(1, resource)))
        command = only_command(decide(with_devices(seen, a=1), types=(T4, T4_4)))
        (new,) = command.replacements
        assert new.instance_type == T4.name


def test_other_pods_may_go_to_a_node_whose_devices_are_in_use():
    """What its pods have of a resource that it does not announce is no debt."""
    seen = cluster(POOL, without_gpus("a", T4_4), without_gpus("b", T4_4), on("a", 1), on("b", 4, **gpus(1)))
    command = only_command(decide(with_devices(seen, a=0, b=4), types=(T4_4,)))
    assert command.claims == ("a",)
    assert command.action == "delete"
