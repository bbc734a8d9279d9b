"""Which pods keep their node from being disrupted."""

from dataclasses import replace

import pytest

from nodeless.disruption.blocking import Blocking
from nodeless.model import events
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.pods import Owner
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import DISRUPTED, Toleration
from nodeless.nodeclaim.draining import CORDON
from nodeless.state import apply
from tests.disruption.world import BORN, a_budget, on


def blocking(*budgets):
    seen = Snapshot()
    for budget in budgets:
        seen = apply(seen, events.PodDisruptionBudgetSeen(budget))
    return Blocking(seen)


def test_a_pod_whose_budget_allows_no_eviction_blocks():
    verdict = blocking(a_budget("app-a")).first_blocker(on("a"), BORN)
    assert verdict is not None
    assert verdict.code == "BudgetExhausted"


def test_a_static_pod_blocks_nothing_whatever_budget_selects_it():
    """Its kubelet made it, and it ends with its node: nobody evicts it."""
    budgets = blocking(a_budget("app-a"), a_budget("app-a", name="another"))
    mirrors = [replace(pod, mirror=True) for pod in on("a")]
    owned = [replace(pod, owners=(Owner("v1", "Node", "node-a"),)) for pod in on("a")]
    assert budgets.first_blocker([*mirrors, *owned], BORN) is None


@pytest.mark.parametrize(
    ("always", "ready", "blocks"),
    [(True, False, False), (True, True, True), (False, False, True), (False, True, True)],
)
def test_a_pod_that_is_not_ready_blocks_unless_its_budget_always_allows_the_eviction_of_such(
    always, ready, blocks
):
    """The API server evicts those always: `unhealthyPodEvictionPolicy: AlwaysAllow`."""
    budget = replace(a_budget("app-a"), always_evicts_unhealthy=always)
    verdict = blocking(budget).first_blocker(on("a", ready=ready), BORN)
    assert (verdict is not None) == blocks


def test_two_budgets_block_a_pod_that_is_not_ready_whatever_they_say_of_such():
    budgets = [replace(a_budget("app-a", name=name), always_evicts_unhealthy=True) for name in ("one", "two")]
    verdict = blocking(*budgets).first_blocker(on("a", ready=False), BORN)
    assert verdict is not None
    assert verdict.code == "SeveralBudgets"


@pytest.mark.parametrize("budgets", [("one",), ("one", "two")])
@pytest.mark.parametrize(
    ("key", "taint", "blocks"),
    [
        ("", DISRUPTED, False),
        (DISRUPTED.key, DISRUPTED, False),
        (CORDON.key, DISRUPTED, True),
        ("", None, True),
    ],
)
def test_a_pod_that_the_drain_leaves_alone_blocks_nothing_whatever_budgets_select_it(
    budgets, key, taint, blocks
):
    guards = blocking(*(a_budget("app-a", name=name) for name in budgets))
    daemons = on("a", shape={"tolerations": (Toleration(key, "Exists"),)})
    assert (guards.first_blocker(daemons, BORN, taint) is not None) == blocks


def test_an_annotation_protects_a_pod_that_the_drain_leaves_alone_all_the_same():
    shape = {"tolerations": (Toleration("", "Exists"),)}
    (pod,) = on("a", shape=shape, annotations={DO_NOT_DISRUPT: "true"})
    verdict = blocking().first_blocker([pod], BORN, DISRUPTED)
    assert verdict is not None
    assert verdict.code == "PodProtected"


def test_two_budgets_on_a_pod_block_for_the_api_server_refuses_such_evictions():
    verdict = blocking(a_budget("app-a", 1), a_budget("app-a", 1, name="another")).first_blocker(
        on("a"), BORN
    )
    assert verdict is not None
    assert verdict.code == "SeveralBudgets"
