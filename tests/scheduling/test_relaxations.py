"""What pods gave up for their place is part of the plan, with the reason."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from nodeless.model.requirements import Requirement
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import (
    beside,
    needs,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)
from tests.scheduling.worlds import (
    TYPES,
    existing_things,
    labels_allowed,
    labels_when_bought,
    pools_of,
    workloads,
)

BY_NAME = {kind.name: kind for kind in TYPES}
ONE_ZONE = pool("default", needs(ZONE, "In", "z1"))
SOFT = Taint("quiet", "PreferNoSchedule")


def in_zone(zone):
    return term(needs(ZONE, "In", zone))


def told(*things, **fields):
    """Codes, messages and numbers of pods of all that was given up."""
    made = plan(*things, **fields)
    assert not made.refusals
    return [(each.code, each.message, len(each.pods)) for each in made.relaxations]


def test_what_holds_is_not_told():
    wishes = {
        "preferred_terms": ((10, in_zone("z1")),),
        "affinity": (beside(ZONE, "web", weight=50),),
        "anti_affinity": (beside(HOSTNAME, "db", weight=50),),
        "spread": (spread(HOSTNAME, soft=True),),
    }
    assert told(ONE_ZONE, pods(3, **wishes)) == []


def test_a_preferred_zone_that_no_pool_has():
    assert told(ONE_ZONE, pods(2, preferred_terms=((7, in_zone("z2")),))) == [
        (
            "PreferredNodeAffinity",
            f"preferred node affinity {ZONE} In [z2] (weight 7): no pool can make such a node",
            2,
        )
    ]


def test_a_lighter_preference_that_contradicts_a_heavier_one():
    own = pool("default", needs(ZONE, "In", "z1", "z2"))
    ((_, message, number),) = told(own, pods(1, preferred_terms=((1, in_zone("z1")), (9, in_zone("z2")))))
    assert message.endswith("z1] (weight 1): it does not go together with what else holds there")
    assert number == 1


def test_a_preference_that_limits_leave_no_room_for():
    pools = [
        pool("near", needs(ZONE, "In", "z1"), limits={"cpu": "2"}),
        pool("far", needs(ZONE, "In", "z2")),
    ]
    ((_, message, number),) = told(pools, pods(3, preferred_terms=((9, in_zone("z1")),)))
    assert message.endswith("z1] (weight 9): no such node has room or can be made")
    assert number == 2


@pytest.mark.parametrize(
    ("wish", "code", "message"),
    [
        (
            {"affinity": (beside(ZONE, "nobody", weight=50),)},
            "PreferredPodAffinity",
            f"preferred podAffinity on {ZONE} (weight 50): no node where it holds has room or can be made",
        ),
        (
            {"anti_affinity": (beside(ZONE, "web", weight=5),)},
            "PreferredPodAntiAffinity",
            f"preferred podAntiAffinity on {ZONE} (weight 5): no node where it holds has room or can be made",
        ),
        (
            {"spread": (spread(ZONE, soft=True, min_domains=5),)},
            "ScheduleAnyway",
            f"topologySpreadConstraints on {ZONE} (ScheduleAnyway, maxSkew 1): "
            "the pods cannot be spread so evenly",
        ),
    ],
)
def test_a_rule_between_pods_that_cannot_hold(wish, code, message):
    ((found, text, number),) = told(ONE_ZONE, pods(4, **wish))
    assert (found, text) == (code, message)
    assert 0 < number <= 4


def test_a_taint_that_only_asks():
    assert told(pool("default", taints=(SOFT,)), pods(2)) == [
        ("PreferNoSchedule", "taint quiet:PreferNoSchedule is not tolerated: no other pool takes the pod", 2)
    ]


def test_room_on_a_node_that_stands_goes_before_wishes():
    there = node("n1", taints=(SOFT,))
    found = told(
        pool(),
        there,
        running(pods(1, "100m", name="old")[0], "n1"),
        pods(1, preferred_terms=((3, in_zone("nowhere")),)),
    )
    assert [code for code, *_ in found] == ["PreferNoSchedule", "PreferredNodeAffinity"]
    assert all(message.endswith("existing nodes are used first") for _, message, _ in found)


def test_a_minimum_of_values_that_was_lowered():
    own = pool("default", Requirement.of(INSTANCE_TYPE, "Exists", min_values=9))
    ((code, message, number),) = told(own, pods(1), policy=Policy(min_values="BestEffort"))
    assert (code, number) == ("MinValuesLowered", 1)
    assert f"minValues of {INSTANCE_TYPE} in Provisioner/default lowered from 9 to " in message


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.builds(snapshot, workloads(), pools_of(), existing_things()))
def test_what_is_not_told_holds_on_every_type_that_may_be_bought(seen):
    made = solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(time_box=0))
    given_up = made.relaxed_preferences()

    assert not set(given_up) & {refusal.pod for refusal in made.refusals}
    for planned in made.new_nodes:
        outcomes = [
            labels_when_bought(seen, planned, BY_NAME[one.instance_type], one.offering)
            for one in planned.alternatives
        ]
        for key in planned.pods:
            told = " ".join(given_up.get(key, ()))
            for weight, wish in seen.pods[key].shape.preferred_terms:
                wanted = " and ".join(map(str, wish.expressions))
                if f"preferred node affinity {wanted} (weight {weight})" not in told:
                    assert all(labels_allowed(wish.expressions, labels) for labels in outcomes), (key, wanted)


def test_nothing_is_wished_where_preferences_are_ignored():
    wanted = pods(2, preferred_terms=((7, in_zone("z2")),), spread=(spread(ZONE, soft=True, min_domains=5),))
    assert told(ONE_ZONE, wanted, policy=Policy(ignore_preferences=True)) == []
