"""Classes of pods that are set aside: who comes first, and whom a refused claim is laid to."""

import asyncio
import time
from dataclasses import replace

import pytest

from nodeless.controllers.provisioning.deferred_pods import DeferredPods, is_refusal
from nodeless.controllers.provisioning.rejected_pods import culprits
from nodeless.explain.decisions import Situation
from nodeless.kube import ApiError
from nodeless.kube.event_recorder import Recorder
from nodeless.model.labels import ZONE
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.operator.metrics import Metrics
from nodeless.scheduling import Policy, pods_to_place
from tests.scheduling.factories import DEFAULT, FAMILY, NOW, pods, pool, snapshot

REFUSED = ApiError(422, "Invalid", "not in this cluster")


class Told(Recorder):
    def __init__(self):
        self.events = []

    def publish(self, event):
        self.events.append(event)
        return True


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def resting(told):
    return DeferredPods(Metrics(), told)


def keys(seen):
    return {pod.key for pod in pods_to_place(seen, 0.0)}


def test_a_class_that_was_set_aside_is_left_out_with_the_reason_and_comes_later_after_the_others(
    resting, told, monkeypatch
):
    bad, good = pods(2, name="bad", selector={ZONE: "z1"}), pods(3, name="good")
    seen = snapshot(bad, good, pool())
    assert resting.turns(seen, 0.0).first is seen
    resting.note_refusal(bad[0], REFUSED, seen)
    turns = resting.turns(seen, 0.0)
    assert keys(turns.first) == {pod.key for pod in good}
    assert turns.second is None
    assert {each.pod for each in turns.resting} == {pod.key for pod in bad}
    assert all("not in this cluster" in str(each) for each in turns.resting)
    changed = snapshot(bad, good, pool("default", labels={"team": "a"}))
    assert not resting.turns(changed, 0.0).resting
    assert [(each.name, each.reason) for each in told.events] == [("bad-0", "Quarantined")]
    later = time.monotonic() + 3600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    due = resting.turns(seen, 0.0)
    assert keys(due.first) == {pod.key for pod in good}
    assert keys(due.second) == keys(seen)
    assert due.late == {pod.key for pod in bad}
    resting.note(Plan(), seen, due.late)
    assert resting.turns(seen, 0.0).first is seen


def test_pods_that_took_too_long_rest_and_others_of_their_tenant_do_not(resting):
    slow, quick = pods(2, name="slow", selector={ZONE: "z1"}), pods(2, name="quick")
    seen = snapshot(slow, quick, pool())
    plan = Plan(
        refusals=tuple(Refusal(pod.key, RefusalCode.PLANNING_TOOK_TOO_LONG, (), "too long") for pod in slow)
    )
    resting.note(plan, seen, frozenset())
    assert keys(resting.turns(seen, 0.0).first) == {pod.key for pod in quick}


@pytest.mark.parametrize("number", [1, 3])
def test_a_refused_claim_is_laid_to_the_pods_because_of_which_it_is_refused(number):
    some = [pods(1, "100m", name=f"web-{each}") for each in range(number)]
    bad = pods(2, "100m", name="bad", selector={ZONE: "z1"})
    seen = snapshot(some, bad, pool())
    situation = Situation(seen, {DEFAULT: FAMILY}, Policy(packing="fewest-nodes"), NOW)
    (node,) = situation.plan().new_nodes

    async def offer(claim):
        if ZONE in claim.requirements:
            raise REFUSED

    found = asyncio.run(culprits(situation, node, REFUSED, offer))
    assert [pod.name for pod, _ in found] == ["bad-0"]


def test_where_no_class_is_refused_by_itself_the_one_that_asks_for_most_is_to_blame():
    some = pods(1, "100m", name="web")
    many = pods(1, "100m", name="many", selector={ZONE: "z1", "kubernetes.io/arch": "amd64"})
    seen = snapshot(some, many, pool())
    situation = Situation(seen, {DEFAULT: FAMILY}, Policy(packing="fewest-nodes"), NOW)
    (node,) = situation.plan().new_nodes

    async def offer(claim):
        pass

    ((pod, error),) = asyncio.run(culprits(situation, replace(node), REFUSED, offer))
    assert (pod.name, error) == ("many-0", REFUSED)


@pytest.mark.parametrize(("status", "refused"), [(422, True), (400, True), (403, False), (500, False)])
def test_only_what_a_claim_says_is_a_reason_to_set_pods_aside(status, refused):
    assert is_refusal(ApiError(status, "reason", "message")) is refused
