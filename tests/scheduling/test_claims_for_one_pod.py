"""Claims with the access mode ReadWriteOncePod: no node is bought for a second pod that uses one."""

from dataclasses import replace
from random import Random

import pytest

from nodeless.model.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim, StorageClass, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import FAMILY, codes, node, plan, pods, pool, running
from tests.scheduling.many_passes import World

BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
BOUND = [
    Volume("pv-data"),
    PersistentVolumeClaim("default", "data", volume_name="pv-data", bound=True, phase="Bound", one_pod=True),
]
TO_BIND = [
    StorageClass("gp3", "ebs.csi.aws.com", binding_mode=WAIT_FOR_FIRST_CONSUMER),
    PersistentVolumeClaim("default", "data", "gp3", one_pod=True),
]


def users(number, name="web", cpu="1"):
    return pods(number, cpu, name=name, claims=("data",))


@BOTH
@pytest.mark.parametrize("claim", [BOUND, TO_BIND], ids=["bound", "to-bind"])
@pytest.mark.parametrize("terminating", [False, True], ids=["running", "terminating"])
def test_nothing_is_bought_while_another_pod_uses_the_claim(packing, claim, terminating):
    (first,) = users(1, "first")
    user = replace(running(first, "there"), deletion_timestamp=9.0 if terminating else None)
    full = node("there", "1")
    result = plan(user, full, users(1, "second"), claim, policy=Policy(packing=packing))
    assert not result.new_nodes
    assert not result.placements
    assert codes(result) == ["VolumeClaimInUse"]
    message = str(result.refusals[0])
    assert "default/data" in message
    assert "default/first-0" in message


@BOTH
def test_a_pod_that_has_ended_uses_no_claim(packing):
    (first,) = users(1, "first")
    ended = replace(running(first, "there"), phase="Succeeded")
    result = plan(ended, users(1, "second"), BOUND, policy=Policy(packing=packing))
    assert [new.pods for new in result.new_nodes] == [("default/second-0",)]


@BOTH
def test_a_pod_on_a_node_that_leaves_keeps_its_claim(packing):
    (first,) = users(1, "first")
    leaving = node("there", deletion_timestamp=9.0)
    result = plan(running(first, "there"), leaving, users(1, "second"), BOUND, policy=Policy(packing=packing))
    assert [new.pods for new in result.new_nodes] == [("default/first-0",)]
    assert codes(result) == ["VolumeClaimInUse"]


@BOTH
def test_of_pods_that_wait_the_one_is_planned_that_kube_scheduler_tries_first(packing):
    (low,), (old,), (young,) = users(1, "a"), users(1, "c", "2"), users(1, "b")
    wanted = [
        replace(low, created_at=1.0),
        replace(old, created_at=2.0, priority=5),
        replace(young, created_at=3.0, priority=5),
    ]
    result = plan(wanted, BOUND, policy=Policy(packing=packing))
    assert [new.pods for new in result.new_nodes] == [("default/c-0",)]
    assert codes(result) == ["VolumeClaimInUse"] * 2


@BOTH
def test_a_pod_that_cannot_be_planned_leaves_the_claim_to_the_next(packing):
    stuck = pods(1, name="a", claims=("data", "missing"))
    result = plan(stuck, users(1, "b"), BOUND, policy=Policy(packing=packing))
    assert [new.pods for new in result.new_nodes] == [("default/b-0",)]
    assert codes(result) == ["VolumeClaimNotFound"]


@BOTH
def test_the_next_pod_is_planned_once_the_first_is_gone(packing):
    made = World({"Provisioner/default": pool()}, FAMILY, packing, Random(3))
    made.volumes = list(BOUND)
    made.add(users(2))
    plans = [made.look(), made.look()]
    assert [codes(each) for each in plans] == [["VolumeClaimInUse"]] * 2
    assert made.bought == 1
    for name in made.unlaunched():
        made.launch(name, 0)
        made.register(name)
        made.ready(name)
    made.look()
    made.bind(as_planned=True)
    assert [pod.key for pod in made.pending] == ["default/web-1"]
    assert codes(made.look()) == ["VolumeClaimInUse"]
    made.remove(["default/web-0"])
    last = made.look()
    assert not last.refusals
    assert set(last.placements) == {"default/web-1"}
    assert made.bought == 1
