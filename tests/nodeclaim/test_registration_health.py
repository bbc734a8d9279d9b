"""Given the launches of a NodePool, what does its condition NodeRegistrationHealthy say?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.conditions import Condition
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION
from nodeless.model.pools import NodeClass, Pool, Reference
from nodeless.nodeclaim.deadlines import DEADLINES
from nodeless.nodeclaim.registration_health import (
    NODE_REGISTRATION_HEALTHY,
    RegistrationHealth,
    launch_outcome,
)
from tests.factories import NOW, a_claim, a_launched_claim, conditions

CLASS = NodeClass(Reference("EC2NodeClass", "default"), generation=3)
POOL = Pool(Reference("NodePool", "default"), CLASS.reference, generation=2, status_node_class_generation=3)
FRESH = RegistrationHealth.of(POOL, CLASS)


def status(*joined, start=FRESH, pool=POOL):
    health = start
    for each in joined:
        health = health.after(each)
    return health.condition(pool, NOW).status


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ((), "Unknown"),
        ((True,), "True"),
        ((False,), "True"),
        ((False, False), "False"),
        ((True, False, True, False), "False"),
        ((False, True, True, True, False), "True"),
        ((False, False, True, True), "False"),
        ((False, False, True, True, True), "True"),
    ],
)
def test_mc_14_two_failures_among_the_last_four_launches_are_unhealthy(joined, expected):
    assert status(*joined) == expected


@given(st.lists(st.booleans(), max_size=12))
def test_nothing_but_the_last_four_launches_counts(joined):
    assert status(*joined) == status(*joined[-4:])


def told(condition, **fields):
    """A pool that says so of launches that this process has not seen."""
    known = Condition(NODE_REGISTRATION_HEALTHY, condition, "", "", NOW - 60, fields.pop("seen", 2))
    return replace(POOL, conditions=(known,), **fields)


def test_a_new_leader_goes_on_from_what_the_condition_says():
    bad = told("False")
    assert status(pool=bad, start=RegistrationHealth.of(bad, CLASS)) == "False"
    assert RegistrationHealth.of(bad, CLASS).condition(bad, NOW).last_transition_time == NOW - 60
    good = told("True")
    assert status(pool=good, start=RegistrationHealth.of(good, CLASS)) == "True"
    assert status(False, pool=good, start=RegistrationHealth.of(good, CLASS)) == "True"


@pytest.mark.parametrize(
    ("pool", "node_class"),
    [(told("False", seen=1), CLASS), (told("False"), replace(CLASS, generation=4))],
    ids=["pool", "node class"],
)
def test_a_change_of_the_pool_or_its_class_makes_a_new_beginning(pool, node_class):
    assert status(pool=pool, start=RegistrationHealth.of(pool, node_class)) == "Unknown"


LAUNCHING = a_claim()
BOOTING = a_launched_claim()
JOINED = a_launched_claim(conditions=conditions(LAUNCHED, REGISTERED_CONDITION))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (BOOTING, JOINED, True),
        (JOINED, replace(JOINED, deletion_timestamp=NOW + 9999), None),
        (None, JOINED, None),
        (replace(BOOTING, uid="another"), JOINED, None),
        (BOOTING, BOOTING, None),
        (BOOTING, replace(BOOTING, deletion_timestamp=NOW + DEADLINES.registration), False),
        (BOOTING, replace(BOOTING, deletion_timestamp=NOW + DEADLINES.registration - 1), None),
        (LAUNCHING, replace(LAUNCHING, deletion_timestamp=NOW + DEADLINES.launch), False),
        (LAUNCHING, replace(LAUNCHING, deletion_timestamp=NOW + DEADLINES.launch - 1), None),
        (
            replace(LAUNCHING, deletion_timestamp=NOW + 1),
            replace(LAUNCHING, deletion_timestamp=NOW + 1e4),
            None,
        ),
    ],
    ids=[
        "joined",
        "ended later",
        "joined before this process began",
        "another claim of the name",
        "boots",
        "not joined in time",
        "deleted while it boots",
        "no instance in time",
        "no capacity",
        "deleted already",
    ],
)
def test_mc_14_a_launch_fails_when_its_time_is_over_and_succeeds_once(before, after, expected):
    assert launch_outcome(before, after) is expected
