"""Relaxation: the acceptance rows RX-01 to RX-09, each with its identifier."""

import pytest

from nodeless.model.labels import ARCH, HOSTNAME, ZONE
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy
from tests.scheduling.factories import beside, domains, needs, pods, pool, spread, term
from tests.scheduling.passes import after_pass, planned, skew, template, waiting, with_more

EMPTY = Snapshot()


def in_zone(zone):
    return term(needs(ZONE, "In", zone))


def test_rx_01_alternatives_are_tried_in_order():
    terms = tuple(in_zone(zone) for zone in ("nowhere", "neither", "z1", "z2"))
    assert domains(after_pass(EMPTY, pods(1, required_terms=terms)), ZONE) == {"z1": 1}


def test_rx_02_the_last_alternative_is_never_given_up():
    assert waiting(after_pass(EMPTY, pods(1, required_terms=(in_zone("nowhere"),)))) == ["web-0"]


def test_rx_03_the_heaviest_preference_that_can_be_met_wins():
    wishes = ((1, in_zone("z1")), (100, in_zone("nowhere")), (50, in_zone("z2")))
    own = template("default", needs(ZONE, "In", "z1", "z2"))
    assert domains(after_pass(EMPTY, own, pods(1, preferred_terms=wishes)), ZONE) == {"z2": 1}


def test_of_several_preferences_the_lightest_is_given_up_first():
    """Limits let nobody have both; the heavier pool offers the light wish alone, or none."""
    team = "example.com/team"
    wishes = ((1, term(needs(team, "In", "b"))), (100, in_zone("z1")))
    pools = [
        pool("both", needs(ZONE, "In", "z1"), labels={team: "b"}, limits={"cpu": "0"}),
        pool("zone", needs(ZONE, "In", "z1")),
        pool("team", needs(ZONE, "In", "z2"), labels={team: "b"}, weight=50),
    ]
    assert domains(after_pass(EMPTY, pools, pods(1, preferred_terms=wishes)), ZONE) == {"z1": 1}


def test_of_preferred_neighbors_the_lightest_is_kept_last():
    """The heaviest preferred pod affinity is given up first, as in Karpenter."""
    crowds = [
        *pods(1, "1", name="one", selector={ZONE: "z1"}),
        *pods(1, "1", name="two", selector={ZONE: "z2"}),
    ]
    wishes = (beside(ZONE, "one", weight=90), beside(ZONE, "two", weight=5))
    seen = after_pass(after_pass(EMPTY, crowds), pods(1, affinity=wishes))
    assert domains(seen, ZONE) == {"z2": 1}


def test_rx_04_impossible_preferences_keep_no_pod_pending():
    wishes = ((1, in_zone("nowhere")), (100, in_zone("neither")))
    assert not waiting(after_pass(EMPTY, pods(1, preferred_terms=wishes)))


def test_rx_05_a_preferred_neighbor_that_does_not_exist_keeps_no_pod_pending():
    assert not waiting(after_pass(EMPTY, pods(1, affinity=(beside(HOSTNAME, "nobody", weight=50),))))


def test_rx_06_a_preference_for_company_gives_way_to_a_spread():
    constraints = (spread(HOSTNAME),)
    wish = (beside(HOSTNAME, "target", weight=50),)
    seen = after_pass(EMPTY, pods(1, name="target"), pods(3, affinity=wish, spread=constraints))
    assert not waiting(seen)
    assert skew(seen, HOSTNAME) == (1, 1, 1)


def test_rx_07_a_preference_for_distance_keeps_no_pod_pending():
    crowd = pods(3, name="crowd", spread=(spread(ZONE, "crowd"),))
    seen = after_pass(EMPTY, crowd, pods(10, anti_affinity=(beside(ZONE, "crowd", weight=10),)))
    assert not waiting(seen)
    assert skew(seen, ZONE, "crowd") == (1, 1, 1)


def test_rx_08_the_pod_itself_stays_as_it_is():
    before = with_more(EMPTY, template(), pods(1, preferred_terms=((1, in_zone("nowhere")),)))
    asked = dict(before.pods)
    planned(before)
    assert dict(before.pods) == asked


WISHES = {
    "node": {"preferred_terms": ((50, in_zone("z2")),)},
    "affinity": {"affinity": (beside(ZONE, "crowd", weight=50),)},
    "anti-affinity": {"anti_affinity": (beside(ZONE, "web", weight=50),)},
    "spread": {"spread": (spread(ZONE, soft=True),)},
}


@pytest.mark.parametrize("wish", WISHES)
def test_rx_09_ignored_preferences_have_no_influence(wish):
    def plan_of(*, ignored, **fields):
        crowd = pods(1, "2", name="crowd", selector={ZONE: "z3"})
        own = template("default", needs(ARCH, "In", "amd64"))
        before = with_more(EMPTY, own, crowd, pods(3, "1900m", "1Gi", **fields))
        return planned(before, policy=Policy(ignore_preferences=ignored))

    plain = plan_of(ignored=True)
    assert plan_of(ignored=True, **WISHES[wish]) == plain
    assert plan_of(ignored=False, **WISHES[wish]) != plain


def test_rx_09_what_is_required_still_holds():
    policy = Policy(ignore_preferences=True)
    seen = after_pass(EMPTY, pods(3, spread=(spread(HOSTNAME),)), policy=policy)
    assert skew(seen, HOSTNAME) == (1, 1, 1)
