"""Given a plan, what did it come to when its pods were bound?"""

from dataclasses import replace

import pytest

from nodeless.explain.realizing import SETTLES_WITHIN, Realizing
from nodeless.model import events
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, PLANNED_PODS
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy, solve
from nodeless.state import apply
from nodeless.state.expected import uid_digest
from tests.disruption.world import a_provisioner, cluster, node_of, on
from tests.scheduling.factories import FAMILY, NOW, needs, pods

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
OLD = (node_of(POOL, "old", "large"), on("old", 3, cpu="1300m", memory="1Gi"))
CATALOG = {POOL.key: FAMILY}


def planned(number=2):
    """A plan, just made, for pods that fill a large node each; twice the size costs twice as much."""
    seen = cluster(POOL, *OLD, pods(number, "3500m", "1Gi"))
    plan = solve(seen, CATALOG, Policy(time_box=0.0))
    return seen, plan, Realizing().planned(plan, seen, CATALOG, Policy(), NOW)


def bound(seen, *names, kind="large"):
    """Each waiting pod on a new node; names beyond the pods are nodes without any."""
    waiting = sorted(key for key, pod in seen.pods.items() if not pod.node_name)
    for number, name in enumerate(names):
        claim, node = node_of(POOL, name, kind, created_at=NOW + 5)
        seen = apply(apply(seen, events.ClaimSeen(claim)), events.NodeSeen(node))
        if number < len(waiting):
            pod = replace(
                seen.pods[waiting[number]], node_name=node.name, phase="Running", unschedulable=False
            )
            seen = apply(seen, events.PodSeen(pod))
    return seen


@pytest.mark.parametrize(("names", "ratio"), [("ab", 1.0), ("abc", 2 / 3), ("abcd", 1 / 2)])
def test_a_plan_that_is_kept_is_one_and_each_node_beyond_it_takes_its_part(names, ratio):
    seen, _, realizing = planned()
    rest, ratios = realizing.measure(bound(seen, *names), NOW + SETTLES_WITHIN)
    assert ratios == (pytest.approx(ratio),)
    assert rest == Realizing()


def test_a_node_on_its_way_for_pods_of_a_later_plan_is_none_of_this_one():
    seen, _, realizing = planned()
    seen = bound(seen, "a", "b")
    (pod,) = pods(1, "3500m", "1Gi", name="later")
    claim, _ = node_of(POOL, "c", "large", created_at=NOW + 30)
    claim = replace(claim, annotations={PLANNED_PODS: uid_digest(pod.uid)})
    seen = apply(apply(seen, events.PodSeen(pod)), events.ClaimSeen(claim))
    assert realizing.measure(seen, NOW + SETTLES_WITHIN)[1] == (pytest.approx(1.0),)


def test_nothing_is_told_before_the_minute_is_over():
    seen, _, realizing = planned()
    assert realizing.measure(bound(seen, "a", "b"), NOW + SETTLES_WITHIN - 1) == (realizing, ())


def test_what_is_planned_again_for_the_same_pods_is_part_of_the_first_plan():
    seen, plan, realizing = planned(2)
    again = replace(plan, new_nodes=plan.new_nodes[:1])
    assert realizing.planned(again, seen, CATALOG, Policy(), NOW + 10) == realizing


def test_a_plan_of_which_nothing_came_says_nothing():
    seen, _, realizing = planned()
    assert realizing.measure(seen, NOW + SETTLES_WITHIN)[1] == ()
