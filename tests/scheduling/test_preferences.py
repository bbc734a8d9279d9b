"""Alternatives and wishes: node affinity terms, preferred terms, PreferNoSchedule taints."""

import pytest

from nodeless.model.labels import ZONE
from nodeless.model.taints import Taint
from tests.scheduling.factories import needs, node, plan, pods, pool, term

ZONES = pool("default", needs(ZONE, "In", "z1", "z2"))
SOFT = Taint("quiet", "PreferNoSchedule")


def in_zone(zone):
    return term(needs(ZONE, "In", zone))


def zones_of(result):
    return [planned.alternatives[0].offering.zone for planned in result.new_nodes]


def test_the_first_required_term_that_can_be_met_is_taken():
    wanted = pods(1, required_terms=(in_zone("nowhere"), in_zone("either"), in_zone("z2"), in_zone("z1")))
    assert zones_of(plan(ZONES, wanted)) == ["z2"]


def test_a_single_impossible_required_term_is_never_given_up():
    result = plan(ZONES, pods(1, required_terms=(in_zone("nowhere"),)))
    assert not result.new_nodes
    assert result.refusals[0].code == "RequirementsConflict"


def test_of_preferred_terms_the_heaviest_possible_is_honored():
    wanted = pods(1, preferred_terms=((1, in_zone("z1")), (100, in_zone("nowhere")), (50, in_zone("z2"))))
    assert zones_of(plan(ZONES, wanted)) == ["z2"]


def test_preferred_terms_that_go_together_are_all_honored():
    wanted = pods(
        1,
        preferred_terms=(
            (10, in_zone("z2")),
            (5, term(needs("karpenter.sh/capacity-type", "In", "on-demand"))),
        ),
    )
    (new,) = plan(ZONES, wanted).new_nodes
    assert (new.alternatives[0].offering.zone, new.alternatives[0].offering.capacity_type) == (
        "z2",
        "on-demand",
    )


def test_only_impossible_wishes_keep_no_pod_pending():
    assert plan(ZONES, pods(1, preferred_terms=((100, in_zone("nowhere")),))).new_nodes


def test_when_limits_forbid_the_wish_the_pod_is_placed_without_it():
    pools = [
        pool("full", needs(ZONE, "In", "z1"), limits={"cpu": "0"}),
        pool("open", needs(ZONE, "In", "z2")),
    ]
    assert zones_of(plan(pools, pods(1, preferred_terms=((100, in_zone("z1")),)))) == ["z2"]


def test_wishes_choose_among_existing_nodes_but_never_open_a_new_one():
    nodes = [node("a"), node("b", labels={**node("b").labels, ZONE: "z2"})]
    assert plan(nodes, pods(1, preferred_terms=((1, in_zone("z2")),))).placements == {"default/web-0": "b"}
    assert plan(nodes, pods(1, preferred_terms=((1, in_zone("z3")),))).placements == {"default/web-0": "a"}


def test_a_pool_that_prefers_to_be_left_alone_is_used_last():
    quiet, plain = pool("quiet", weight=10, taints=(SOFT,)), pool("plain")
    assert [new.pool.name for new in plan(quiet, plain, pods(1)).new_nodes] == ["plain"]
    assert [new.pool.name for new in plan(quiet, pods(1)).new_nodes] == ["quiet"]


def test_a_node_that_prefers_to_be_left_alone_is_used_after_the_others():
    nodes = [node("a", cpu="1", taints=(SOFT,)), node("b", cpu="1")]
    assert plan(nodes, pods(2)).placements == {"default/web-0": "b", "default/web-1": "a"}


@pytest.mark.parametrize("weight", [1, 100])
def test_an_empty_or_field_term_never_matches_as_requirement_and_never_hurts_as_wish(weight):
    assert plan(pods(1, required_terms=(term(),))).refusals[0].code == "MatchFieldsNotPlanned"
    assert plan(pods(1, preferred_terms=((weight, term()),))).new_nodes
