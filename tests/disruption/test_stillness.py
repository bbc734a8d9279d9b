"""When another look at a cluster can be spared: rows ST-12 and ST-13, and what else ends it."""

from dataclasses import replace

import pytest

from nodeless.disruption import Stillness, nothing_to_do
from nodeless.model import events
from nodeless.model.disruption import Decisions, Verdict
from nodeless.state import apply
from tests.disruption.world import a_node_pool, a_provisioner
from tests.solve.factories import NOW, node, pods, running, snapshot

SEEN = snapshot(a_provisioner(), node("one"), running(pods(1)[0], "one"))
STILL = Stillness(SEEN, NOW)


def test_st_12_a_cluster_that_stands_still_is_looked_at_again_after_five_minutes():
    assert STILL.holds(SEEN, NOW + 299)
    assert not STILL.holds(SEEN, NOW + 301)


def test_st_13_a_pool_that_is_edited_is_looked_at_at_once():
    edited = apply(SEEN, events.PoolSeen(replace(a_provisioner(), generation=2, consolidate_after=30)))
    assert not STILL.holds(edited, NOW)


@pytest.mark.parametrize(
    "event",
    [
        events.PodSeen(running(pods(1, name="new")[0], "one")),
        events.PodGone("default/web-0"),
        events.NodeSeen(node("two")),
        events.NodeGone("one"),
        events.PoolSeen(a_node_pool()),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_changes_the_cluster_ends_its_stillness(event):
    assert not STILL.holds(apply(SEEN, event), NOW)


def test_what_moves_do_not_depend_on_leaves_it_still():
    assert STILL.holds(apply(SEEN, events.Nominated("one", NOW + 20)), NOW)


@pytest.mark.parametrize("code", ["Nominated", "CoolingDown", "Budget", "NotQuiet"])
def test_a_node_that_is_left_alone_for_now_is_looked_at_again(code):
    assert not nothing_to_do(Decisions(verdicts={"one": Verdict(code, "for now")}))


def test_a_cluster_in_which_no_node_can_be_spared_is_left_alone():
    assert nothing_to_do(
        Decisions(verdicts={"one": Verdict("Unconsolidatable", "its pods fit nowhere else")})
    )
