"""Labels of a pool that it leaves open (`Exists`, `Gt`) as topology keys of rules between pods."""

from random import Random

import pytest

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.factories import FAMILY, beside, needs, pods, pool, spread, term
from tests.scheduling.many_passes import World

TEAM = "example.com/team"
BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])


def planned_in_teams(packing, *batch, operator="Exists", values=()):
    """Every pod's team once all run, after passes that bought nothing twice."""
    made = World(
        {"Provisioner/default": pool("default", needs(TEAM, operator, *values))}, FAMILY, packing, Random(5)
    )
    for some in batch:
        made.add(some)
    assert not made.look().refusals
    assert not made.look().new_nodes
    made.settle(as_planned=True)
    assert not made.pending
    return {name: made.nodes[pod.node_name].labels[TEAM] for name, pod in made.pods.items()}


@BOTH
@pytest.mark.parametrize(("operator", "values", "expected"), [("Exists", (), "0"), ("Gt", ("4",), "5")])
@pytest.mark.parametrize(
    "rule",
    [
        {"anti_affinity": (beside(TEAM, "nobody"),)},
        {"anti_affinity": (beside(TEAM),)},
        {"affinity": (beside(TEAM),)},
        {"spread": (spread(TEAM),)},
    ],
    ids=["apart-from-nobody", "apart", "together", "spread"],
)
def test_a_pod_with_a_rule_over_an_open_label_gets_the_value_that_is_always_chosen(
    packing, operator, values, expected, rule
):
    teams = planned_in_teams(packing, pods(1, **rule), operator=operator, values=values)
    assert teams == {"default/web-0": expected}


@BOTH
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"affinity": (beside(TEAM),)}, {"a"}),
        ({"anti_affinity": (beside(TEAM),)}, {"0"}),
        ({"affinity": (beside(HOSTNAME),), "anti_affinity": (beside(TEAM, "nobody"),)}, {"a"}),
    ],
    ids=["beside-them", "apart-from-them", "on-their-node"],
)
def test_a_rule_of_others_keeps_no_pods_from_the_team_that_they_name(packing, rule, expected):
    teams = planned_in_teams(packing, pods(2, selector={TEAM: "a"}), pods(1, name="other", **rule))
    assert teams.pop("default/other-0") in expected
    assert set(teams.values()) == {"a"}


@BOTH
def test_pods_are_spread_over_the_teams_that_they_name(packing):
    either = (term(needs(TEAM, "In", "a", "b")),)
    teams = planned_in_teams(packing, pods(4, required_terms=either, spread=(spread(TEAM),)))
    assert sorted(teams.values()) == ["a", "a", "b", "b"]
