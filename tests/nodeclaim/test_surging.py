"""Given a single replica on a node that ends, does its successor come first?"""

from dataclasses import replace

import pytest

from nodeless.model.events import GuardSeen, PodSeen
from nodeless.model.instructions import EvictPod, RestartDeployment
from nodeless.model.labels import SURGE, SURGED_FOR
from nodeless.model.pods import Owner
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import ClaimView, step
from nodeless.nodeclaim.surging import SURGE_PATIENCE, surge_pending, surge_started
from nodeless.state import apply
from tests.factories import NOW, a_node, a_pod, an_initialized_claim

HERE, ELSEWHERE = "node-default-abcde", "node-other"
DELETED = an_initialized_claim(deletion_timestamp=NOW)
NODE = a_node(deletion_timestamp=NOW)


def a_replica(name="shop-1", node=HERE, *, kind="ReplicaSet", surge="true", **fields):
    owner = Owner("apps/v1", kind, "shop-5d9" if kind == "ReplicaSet" else "shop", controller=True)
    return replace(
        a_pod(name, phase="Running", ready=True, node_name=node, owners=(owner,)),
        annotations={SURGE: surge},
        labels={"pod-template-hash": "5d9"},
        **fields,
    )


def asked(*pods, now=NOW, before=()):
    snapshot = Snapshot()
    for event in before:
        snapshot = apply(snapshot, event)
    for pod in pods:
        snapshot = apply(snapshot, PodSeen(pod))
    here = tuple(pod for pod in pods if pod.node_name == HERE)
    view = ClaimView(
        DELETED,
        NODE,
        here,
        surge_pending=surge_pending(snapshot, here),
        surge_started=surge_started(snapshot, here),
    )
    instructions = step(view, now).instructions
    return [
        instruction for instruction in instructions if isinstance(instruction, EvictPod | RestartDeployment)
    ]


def test_a_single_replica_that_asks_for_it_gets_a_successor_instead_of_an_eviction():
    (restart,) = asked(a_replica())
    assert restart == RestartDeployment(
        "claim:default-abcde", "default", "shop", "shop-1", "uid-shop-1", HERE
    )


def test_in_a_teardown_which_makes_no_node_for_a_successor_the_pod_leaves():
    assert isinstance(asked(a_replica(), before=[GuardSeen(deleting=False)])[0], RestartDeployment)
    assert isinstance(asked(a_replica(), before=[GuardSeen(deleting=True)])[0], EvictPod)


def test_once_a_successor_is_ready_elsewhere_the_pod_leaves():
    coming = a_replica("shop-2", ELSEWHERE)
    assert isinstance(asked(a_replica(), replace(coming, ready=False))[0], RestartDeployment)
    assert isinstance(asked(a_replica(), coming)[0], EvictPod)


def test_a_successor_that_comes_is_waited_for_and_not_asked_for_again_by_the_next_leader():
    coming = replace(a_replica("shop-2", ""), ready=False, phase="Pending")
    marked = replace(coming, annotations={SURGE: "true", SURGED_FOR: "uid-shop-1"})
    assert asked(a_replica(), marked) == []
    for_another = replace(coming, annotations={SURGE: "true", SURGED_FOR: "uid-shop-0"})
    assert isinstance(asked(a_replica(), for_another)[0], RestartDeployment)
    ended = replace(marked, deletion_timestamp=NOW)
    assert isinstance(asked(a_replica(), ended)[0], RestartDeployment)


@pytest.mark.parametrize(
    "pod",
    [
        a_replica(surge="false"),
        a_replica(kind="StatefulSet"),
        replace(a_replica(), owners=()),
    ],
    ids=["not asked for", "a StatefulSet cannot", "without owner"],
)
def test_other_pods_are_evicted_at_once(pod):
    assert [type(each) for each in asked(pod)] == [EvictPod]


def test_a_successor_that_never_gets_ready_is_not_waited_for_beyond_ten_minutes():
    assert isinstance(asked(a_replica(), now=NOW + SURGE_PATIENCE - 1)[0], RestartDeployment)
    assert isinstance(asked(a_replica(), now=NOW + SURGE_PATIENCE)[0], EvictPod)


def test_pods_of_other_workloads_stand_in_for_nobody():
    stranger = replace(
        a_replica("db-1", ELSEWHERE), owners=(Owner("apps/v1", "ReplicaSet", "db-5d9", controller=True),)
    )
    assert isinstance(asked(a_replica(), stranger)[0], RestartDeployment)
