"""What pods ask of the label `kubernetes.io/hostname`, which every node gets, and nobody knows before."""

from random import Random

import pytest

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import FAMILY, codes, needs, node, plan, pods, pool, term
from tests.scheduling.many_passes import World

BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])


@BOTH
@pytest.mark.parametrize(("operator", "values"), [("Exists", ()), ("NotIn", ("a", "b"))])
def test_a_new_node_bears_a_hostname_that_is_none_of_those_known(packing, operator, values):
    made = World({"Provisioner/default": pool()}, FAMILY, packing, Random(7))
    made.add(pods(2, required_terms=(term(needs(HOSTNAME, operator, *values)),)))
    made.add(pods(1, name="plain"))
    first = made.look()
    assert not first.refusals
    assert not any(HOSTNAME in planned.requirements for planned in first.new_nodes)
    assert not made.look().new_nodes
    bought = made.bought
    for name in made.unlaunched():
        made.launch(name, 0)
        assert not made.look().new_nodes
    made.settle(as_planned=True)
    assert not made.pending
    assert made.bought == bought


@BOTH
@pytest.mark.parametrize(("operator", "values"), [("DoesNotExist", ()), ("Gt", ("5",)), ("In", ("a",))])
def test_no_node_is_bought_for_a_hostname_that_a_new_node_will_not_have(packing, operator, values):
    wanted = pods(1, required_terms=(term(needs(HOSTNAME, operator, *values)),))
    result = plan(wanted, node("b"), policy=Policy(packing=packing))
    assert not result.new_nodes
    assert not result.placements
    assert codes(result) == ["RequirementsConflict"]
    assert HOSTNAME in str(result.refusals[0])


@BOTH
def test_a_node_that_is_there_is_taken_by_its_hostname(packing):
    wanted = pods(1, required_terms=(term(needs(HOSTNAME, "Exists"), needs(HOSTNAME, "NotIn", "a")),))
    result = plan(wanted, node("a"), node("b"), policy=Policy(packing=packing))
    assert dict(result.placements) == {"default/web-0": "b"}
