"""When another look at a cluster can be spared: rows ST-12 and ST-13, and what else ends it."""

from dataclasses import replace

import pytest

from nodeless.disruption import ConsolidationState, DisruptionPolicy, is_consolidated
from nodeless.model import events
from nodeless.model.disruption import Decisions, Verdict
from nodeless.model.pods import DaemonSet
from nodeless.state import apply
from tests.disruption.world import a_node_pool, a_provisioner
from tests.scheduling.factories import NOW, node, pods, running, snapshot

SEEN = snapshot(a_provisioner(), node("one"), running(pods(1)[0], "one"))
STILL = ConsolidationState(SEEN, NOW)


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
        events.DaemonSetSeen(DaemonSet("uid", "kube-system", "agent", pods(1)[0].shape)),
        events.GuardSeen(deleting=True),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_changes_the_cluster_ends_its_stillness(event):
    assert not STILL.holds(apply(SEEN, event), NOW)


def test_what_moves_do_not_depend_on_leaves_it_still():
    assert STILL.holds(apply(SEEN, events.Nominated("one", NOW + 20)), NOW)


def test_dn_01_a_cluster_that_a_budget_holds_is_looked_at_again():
    assert not is_consolidated(Decisions(verdicts={"one": Verdict("Budget", "0 of at most 0")}))


def test_a_still_cluster_is_looked_at_at_the_next_moment_at_which_time_changes_what_is_found():
    nominated = apply(SEEN, events.Nominated("one", NOW + 20))
    still = ConsolidationState.after(nominated, DisruptionPolicy(), NOW, at=1000.0)
    assert still.ends == 1020.0
    assert still.holds(nominated, 1019.9)
    assert not still.holds(nominated, 1020.0)
    assert ConsolidationState.after(SEEN, DisruptionPolicy(), NOW, at=1000.0).ends == 1300.0


def test_a_cluster_in_which_no_node_can_be_spared_is_left_alone():
    assert is_consolidated(
        Decisions(verdicts={"one": Verdict("Unconsolidatable", "its pods fit nowhere else")})
    )
