"""The whole life of a cluster in a few acts, in which every instruction has its part."""

from __future__ import annotations

from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from tests.chaos.world import BOUNDED, ROLE, World
from tests.controllers.test_endings import a_guard
from tests.controllers.world import CLAIMS, NODES, POOLS
from tests.rights import allow_surges

DRAIN_SECONDS = 6
FENCE = "karpenter.sh/rebooting"


def whole_life(world: World) -> None:
    """From the first pod to the teardown; returns when nothing is left."""
    provision(world)
    delete_nodes(world)
    end_a_bounded_drain(world)
    lose_a_machine(world)
    leave_a_reservation(world)
    mend_by_a_reboot(world)
    command_for_money(world)
    tear_down(world)


def provision(world: World) -> None:
    """Pods of three kinds get their nodes."""
    world.api.create(a_guard(world.namespace))
    # Not consolidated before its time: pods would move between what the story sees and what it does.
    world.pools(consolidation={"enabled": False})
    world.bounded_pool(f"{DRAIN_SECONDS}s")
    world.deploy("web", 2, cpu="1100m", annotations={"nodeless.dev/checkpoint-grace": "2s"})
    world.guard("web")
    allow_surges(world.plane, world.namespace)
    world.deploy("shop", 1, annotations={"nodeless.dev/surge": "true"})
    world.deploy("stubborn", 1, **BOUNDED)
    world.guard("stubborn")
    world.runs(web=2, shop=1, stubborn=1)
    assert world.profiles() == [[ROLE]]


def delete_nodes(world: World) -> None:
    """Somebody deletes nodes by kubectl: the budget holds, and what surges is up before it leaves.

    Those that ask for time to save their work are told before they are evicted.
    """
    leaving = {
        name: node
        for name, node in world.nodes().items()
        if "karpenter.sh/provisioner-name" in node["metadata"]["labels"]
    }
    for node in leaving.values():
        world.api.delete(f"{NODES}/{node['metadata']['name']}")
    world.gone(*leaving)
    world.runs(web=2, shop=1)


def end_a_bounded_drain(world: World) -> None:
    """A claim is deleted whose pod's budget never yields: the pod leaves when the time is over."""
    bounded = [name for name, node in world.nodes().items() if _pool(node) == "default"]
    for name in bounded:
        world.api.delete(f"{CLAIMS}/{name}")
    world.gone(*bounded)
    world.runs(stubborn=1)


def lose_a_machine(world: World) -> None:
    """A machine dies without a word, and its claim is deleted while pods are still bound to it."""
    name, node = world.node_of("shop")
    instance = node["spec"]["providerID"].rpartition("/")[2]
    world.machines.silent.add(instance)
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance])
    unready = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    path = f"{NODES}/{node['metadata']['name']}"
    world.api.patch(path, unready, kind="strategic", subresource="status")
    world.api.delete(f"{CLAIMS}/{name}")
    world.gone(name)
    world.runs(web=2, shop=1)


def leave_a_reservation(world: World) -> None:
    """A claim says that its machine is in a capacity reservation, and EC2 says that it is not."""
    name, _ = world.node_of("shop")
    path, label = f"{CLAIMS}/{name}", "karpenter.sh/capacity-type"
    world.api.patch(path, {"metadata": {"labels": {label: "reserved"}}})
    world.until(
        lambda: world.api.get(path)["metadata"]["labels"][label] == "on-demand",
        "the claim says what EC2 charges",
    )


def mend_by_a_reboot(world: World) -> None:
    """A machine reports what a reboot clears: it is fenced, drained, rebooted, and used again."""
    name, node = world.node_of("shop")
    instance = node["spec"]["providerID"].rpartition("/")[2]
    path = f"{NODES}/{node['metadata']['name']}"
    ill = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "NvidiaXID95Error"}
    world.api.patch(path, {"status": {"conditions": [ill]}}, kind="strategic", subresource="status")
    world.until(lambda: world.aws.reboots().get(instance), f"{instance} is rebooted")
    well = {**ill, "status": "True", "reason": "NvidiaReady"}
    world.api.patch(path, {"status": {"conditions": [well]}}, kind="strategic", subresource="status")

    def back() -> bool:
        claim = world.api.get(f"{CLAIMS}/{name}")
        conditions = {each["type"]: each["status"] for each in claim["status"]["conditions"]}
        fenced = any(taint["key"] == FENCE for taint in world.api.get(path)["spec"].get("taints", ()))
        return (conditions["Rebooting"], conditions["Initialized"]) == ("False", "True") and not fenced

    world.until(back, f"claim {name} is back from its reboot")
    world.runs(web=2, shop=1)


def command_for_money(world: World) -> None:
    """The load shrinks: what is left moves to fewer or cheaper nodes."""

    def price() -> int:
        kinds = {"m5.large": 1, "m5.xlarge": 2}
        labels = [node["metadata"]["labels"] for node in world.nodes().values() if _pool(node) != "default"]
        return sum(kinds[each["node.kubernetes.io/instance-type"]] for each in labels)

    world.api.patch(f"{POOLS}/default", {"spec": {"consolidation": {"enabled": True}}})
    # With one replica left the budget would allow no eviction at all.
    world.api.delete(f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/web")
    world.scale("web", 1)
    world.until(lambda: len(world.nodes()) > 0 and price() == 1, "one m5.large holds what is left")
    world.runs(web=1, shop=1, stubborn=1)


def tear_down(world: World) -> None:
    """The stack is destroyed: pools, claims, nodes, instances and launch templates go, then the guard."""
    for name in ("web", "shop", "stubborn"):
        world.scale(name, 0)
    guard = f"/api/v1/namespaces/{world.namespace}/configmaps/{GUARD_NAME}"
    world.api.delete(guard)
    world.until(lambda: world.api.find(guard) is None, "the guard is released")
    assert world.api.list(POOLS) == world.api.list(CLAIMS) == []
    assert not world.nodes()
    assert not world.observer.instances()
    assert world.profiles() == []


def _pool(node: dict[str, dict[str, dict[str, str]]]) -> str:
    return node["metadata"]["labels"].get("karpenter.sh/nodepool", "")
