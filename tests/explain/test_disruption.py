"""Why a node was, or was not, disrupted: one reason, with the figures."""

from dataclasses import replace

import pytest

from nodeless.disruption import begin
from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation, read, write
from nodeless.explain.disruption import judged
from nodeless.explain.overview import overview
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_EVICT, ON_DEMAND
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.model.requirements import Requirements
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import disruption_policy_of
from nodeless.scheduling import Policy
from tests.disruption.test_commands import carried_out
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
WASTEFUL = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))


def situation(snapshot):
    return Situation(snapshot, dict.fromkeys(snapshot.pools, FAMILY), Policy(), NOW)


@pytest.mark.parametrize("name", ["a", "node-a"])
def test_a_node_that_is_dear_for_its_pods_says_what_its_end_saves(name):
    found = judged(situation(WASTEFUL), name)
    assert (found.disrupted, found.code) == (True, "Underutilized")
    assert "USD/h now" in found.message


def test_a_node_that_stays_says_the_one_reason_with_the_figures():
    guarded = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", annotations={DO_NOT_EVICT: "true"}))
    found = judged(situation(guarded), "node-a")
    assert (found.disrupted, found.code) == (False, "PodProtected")
    tight = cluster(POOL, node_of(POOL, "a", "small"), on("a", cpu="800m"))
    assert "0.5295 USD/h at least against 0.5295 USD/h now" in judged(situation(tight), "node-a").message


def test_a_node_that_is_on_its_way_out_says_why_it_was_decided():
    """The reason stands on the claim until it is gone, whoever asks, and after any restart."""
    command = only_command(decide(WASTEFUL))
    begun = carried_out(WASTEFUL, begin(command, WASTEFUL, dict(WASTEFUL.pools), NOW))
    found = judged(situation(begun), "node-a")
    assert found == replace(found, disrupted=True, code="Underutilized", message=command.message)


def test_the_answer_on_a_node_ends_with_it_and_has_it_as_data():
    reported = answer(situation(WASTEFUL), situation(WASTEFUL).plan(), "node-a")
    assert reported.lines[-1].startswith("is disrupted: ")
    assert reported.lines[-1].endswith("[Underutilized]")
    assert reported.to_json()["disruption"]["code"] == "Underutilized"


@pytest.mark.parametrize("enabled", [False, True])
def test_the_settings_of_the_cluster_decide_whether_a_drifted_node_is_disrupted(enabled):
    """`why` and `top` said that such a node stays while the controller replaced it."""
    condition = Condition(DRIFTED, "True", "AMIDrift", "image ami-1 is not selected", NOW - 100)
    claim, node = node_of(POOL, "a", "small")
    claim = replace(claim, conditions=(*claim.conditions, condition))
    policy = disruption_policy_of(GlobalSettings("demo", drift_enabled=enabled))
    seen = replace(situation(cluster(POOL, claim, node, on("a", cpu="800m"))), disruption=policy)
    kept = read(write(seen, "test")).situation
    for there in (seen, kept):
        assert (judged(there, "node-a").code == "Drifted") is enabled
        (row,) = overview(there).rows
        assert (row.disrupted, row.code == "Drifted") == (enabled, enabled)


def test_nodes_of_others_have_no_such_reason():
    assert judged(situation(WASTEFUL), "somebody-elses") is None
