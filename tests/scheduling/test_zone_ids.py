"""Given pods and pools that name zones by their ids, nodes come to the zones that have them."""

from dataclasses import replace

import pytest

from nodeless.model.labels import ZONE, ZONE_ID
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import (
    FAMILY,
    carried_out,
    codes,
    domains,
    needs,
    node,
    plan,
    pods,
    pool,
    snapshot,
    spread,
    term,
)

IDS = {"use1-az4": "z1", "use1-az6": "z2", "use1-az1": "z3"}
ZONES_KNOWN = Policy(
    subnets={
        pool().key: tuple(SubnetRoom(f"subnet-{name}", name, 1000, zone_id) for zone_id, name in IDS.items())
    }
)


def zones(result):
    """Zones that each planned node may be in."""
    assert not result.refusals
    return [
        {zone for zone in IDS.values() if each.requirements[ZONE].allows(zone)} for each in result.new_nodes
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"selector": {ZONE_ID: "use1-az6"}}, {"z2"}),
        ({"required_terms": (term(needs(ZONE_ID, "In", "use1-az6", "use1-az1")),)}, {"z2", "z3"}),
        ({"required_terms": (term(needs(ZONE_ID, "NotIn", "use1-az6", "use1-az1")),)}, {"z1"}),
        (
            {"selector": {ZONE_ID: "use1-az6"}, "required_terms": (term(needs(ZONE, "In", "z1", "z2")),)},
            {"z2"},
        ),
        ({"preferred_terms": ((5, term(needs(ZONE_ID, "In", "use1-az1"))),)}, {"z3"}),
    ],
)
def test_a_pod_may_name_zones_by_their_ids(asked, expected):
    (found,) = zones(plan(pool(), pods(1, **asked), policy=ZONES_KNOWN))
    assert found
    assert found <= expected


def test_a_pool_may_name_zones_by_their_ids():
    own = pool("default", needs(ZONE_ID, "In", "use1-az1"))
    (found,) = zones(plan(own, pods(1), policy=ZONES_KNOWN))
    assert found == {"z3"}


def test_name_and_id_of_different_zones_contradict_each_other():
    both = {ZONE_ID: "use1-az6", ZONE: "z1"}
    assert codes(plan(pool(), pods(1, selector=both), policy=ZONES_KNOWN))


def test_an_id_that_no_zone_here_has_is_told():
    result = plan(pool(), pods(1, selector={ZONE_ID: "euw1-az1"}), policy=ZONES_KNOWN)
    (refusal,) = result.refusals
    assert "euw1-az1" in refusal.reasons[0].message


def test_pods_are_spread_over_ids_as_over_names():
    wanted = {"spread": (spread(ZONE_ID),)}
    seen = snapshot(pool(), pods(6, labels={"app": "web"}, **wanted))
    result = solve(seen, {pool().key: FAMILY}, ZONES_KNOWN)
    assert domains(carried_out(seen, result), ZONE) == {"z1": 2, "z2": 2, "z3": 2}


def test_nodes_tell_the_ids_of_their_zones_where_no_subnet_does():
    there = node("n1", cpu="0")
    there = replace(there, labels={**there.labels, ZONE: "z2", ZONE_ID: "use1-az6"})
    (found,) = zones(plan(pool(), there, pods(1, selector={ZONE_ID: "use1-az6"})))
    assert found == {"z2"}
