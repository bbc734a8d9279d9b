"""What made a command wrong between two looks, in words: the object that changed, the nearest first."""

from dataclasses import replace

import pytest

from nodeless.disruption.changes import NO_OBJECT, what_changed
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.disruption import Command, DisruptionReason
from nodeless.model.labels import DISRUPTED_TAINT
from nodeless.model.taints import Taint
from nodeless.state import apply
from tests.disruption.world import a_budget, a_provisioner, cluster, node_of, on
from tests.scheduling.factories import NOW

POOL = a_provisioner()
BEFORE = cluster(POOL, node_of(POOL, "a"), node_of(POOL, "b"), on("a"), on("b"), a_budget("guarded"))
NODE, CLAIM = BEFORE.nodes["node-a"], BEFORE.claims["a"]
(POD,) = (pod for pod in BEFORE.pods.values() if pod.node_name == "node-a")
(OTHER,) = (pod for pod in BEFORE.pods.values() if pod.node_name == "node-b")
(BUDGET,) = BEFORE.disruption_budgets.values()
COMMAND = Command(DisruptionReason.UNDERUTILIZED, ("a",))


def seen(thing):
    kinds = {"Node": events.NodeSeen, "NodeClaim": events.ClaimSeen, "Pod": events.PodSeen}
    return kinds[type(thing).__name__](thing)


def told(*changes):
    after = BEFORE
    for event in changes:
        after = apply(after, event)
    return what_changed(BEFORE, after, COMMAND)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (events.PodGone(POD.key), f"pod {POD.key} has left node-a"),
        (seen(replace(POD, name="new", uid="new")), f"pod {POD.namespace}/new came, on node node-a"),
        (seen(replace(POD, uid="new")), f"pod {POD.key} came, on node node-a"),
        (
            seen(replace(POD, name="new", uid="new", node_name="")),
            f"pod {POD.namespace}/new came, without a node",
        ),
        (seen(replace(POD, node_name="node-b")), f"pod {POD.key} was bound to node node-b"),
        (seen(replace(POD, node_name="")), f"pod {POD.key} lost its node"),
        (seen(replace(POD, phase="Succeeded")), f"pod {POD.key} has ended, on node node-a"),
        (seen(replace(POD, deletion_timestamp=NOW)), f"pod {POD.key} is being deleted, on node node-a"),
        (seen(replace(POD, labels={"app": "other"})), f"pod {POD.key} was changed, on node node-a"),
        (seen(replace(POD, ready=not POD.ready)), NO_OBJECT),
        (events.NodeGone("node-a"), "node node-a is gone"),
        (seen(replace(NODE, name="new", provider_id="aws:///z/i-new")), "node new is new"),
        (seen(replace(NODE, deletion_timestamp=NOW)), "node node-a is being deleted"),
        (seen(replace(NODE, taints=(Taint(DISRUPTED_TAINT, "NoSchedule"),))), "node node-a has other taints"),
        (seen(replace(NODE, unschedulable=True)), "node node-a has other taints"),
        (seen(replace(NODE, ready=not NODE.ready)), "node node-a is not Ready"),
        (seen(replace(NODE, allocatable={"cpu": 1})), "node node-a reports other resources"),
        (
            seen(replace(NODE, labels={**NODE.labels, "team": "shop"})),
            "node node-a has other labels or annotations",
        ),
        (seen(replace(NODE, resource_version="7")), NO_OBJECT),
        (events.ClaimGone("a"), "claim a is gone"),
        (seen(replace(CLAIM, deletion_timestamp=NOW)), "claim a was changed"),
        (
            seen(replace(CLAIM, conditions=(*CLAIM.conditions, Condition("Drifted", "True")))),
            "claim a was changed",
        ),
        (seen(replace(CLAIM, resource_version="7")), NO_OBJECT),
        (
            events.PodDisruptionBudgetSeen(replace(BUDGET, disruptions_allowed=7)),
            f"PodDisruptionBudget {BUDGET.key} was changed",
        ),
        (events.PodDisruptionBudgetGone(BUDGET.key), f"PodDisruptionBudget {BUDGET.key} is gone"),
        (events.PoolGone(POOL.key), f"pool {POOL.key} is gone"),
    ],
)
def test_the_object_that_changed_is_named_with_what_happened_to_it(event, text):
    assert told(event) == text


def test_a_node_that_is_ready_again_is_said_to_be():
    before = apply(BEFORE, seen(replace(NODE, ready=False)))
    assert what_changed(before, BEFORE, COMMAND) == "node node-a is Ready"


def test_where_nothing_changed_it_is_prices_stock_or_the_time():
    assert told() == NO_OBJECT


def test_the_nearest_change_is_told():
    """The command's own pods, its own nodes, other pods, other nodes, and then the rules."""
    rule = events.PodDisruptionBudgetGone(BUDGET.key)
    other_node = seen(replace(BEFORE.nodes["node-b"], unschedulable=True))
    other_pod = events.PodGone(OTHER.key)
    own_node = seen(replace(NODE, unschedulable=True))
    own_pod = events.PodGone(POD.key)
    assert told(rule, other_node) == "node node-b has other taints"
    assert told(rule, other_node, other_pod) == f"pod {OTHER.key} has left node-b"
    assert told(rule, other_node, other_pod, own_node) == "node node-a has other taints"
    assert told(rule, other_node, other_pod, own_node, own_pod) == f"pod {POD.key} has left node-a"
