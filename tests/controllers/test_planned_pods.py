"""Claims under way name the pods that later passes put on them, so that another leader keeps these there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.provisioning.controller import Provisioning
from nodeless.kube import ApiError
from nodeless.model import events
from nodeless.model.instructions import AnnotateClaim
from nodeless.model.labels import PLANNED_PODS
from nodeless.operator.settings import GlobalSettings
from nodeless.state.expected import planned_for
from tests.controllers.living import Living
from tests.scheduling.factories import FAMILY, pods, pool, snapshot
from tests.virtual_time import run_in_virtual_time


class Written(Living):
    """A cluster that takes what passes write; `refuses`: it takes no notes."""

    refuses = False

    async def carry_out(self, instructions):
        asked = list(instructions)
        if self.refuses and any(isinstance(each, AnnotateClaim) for each in asked):
            raise ApiError(503, "ServiceUnavailable", "try again")
        await super().carry_out(asked)


@pytest.fixture
def written(monkeypatch):
    return Written(snapshot(pool()), FAMILY, patch=monkeypatch)


def a_leader(written):
    recorder = SimpleNamespace(publish=lambda event: True)
    return Provisioning(
        written.cluster,
        written,
        written,
        recorder,
        written.metrics,
        GlobalSettings("demo"),
    )


def come(written, some):
    for pod in some:
        written.cluster.handle(events.PodSeen(replace(pod, unschedulable=True)))


def named(written):
    """The pods that each claim names."""
    seen = written.snapshot
    return {name: {pod.name for pod in planned_for(seen, claim)[1]} for name, claim in seen.claims.items()}


def test_a_claim_names_pods_that_a_later_pass_put_on_it_and_the_next_leader_keeps_them(written):
    async def scenario():
        leader = a_leader(written)
        come(written, pods(1, "1100m", name="first"))
        await leader.plan_once()
        come(written, pods(1, "100m", name="second"))
        plan = await leader.plan_once()
        (claim,) = written.snapshot.claims
        assert plan.placements == {"default/first-0": claim, "default/second-0": claim}
        assert named(written) == {claim: {"first-0", "second-0"}}
        again = await a_leader(written).plan_once()
        assert again.placements == plan.placements
        assert not again.new_nodes

    run_in_virtual_time(scenario())


def test_a_note_that_cannot_be_written_holds_nothing_up_and_is_written_by_the_next_pass(written):
    async def scenario():
        leader = a_leader(written)
        come(written, pods(1, "1100m", name="first"))
        await leader.plan_once()
        (claim,) = written.snapshot.claims
        come(written, pods(1, "100m", name="second"))
        written.refuses = True
        plan = await leader.plan_once()
        assert plan.placements["default/second-0"] == claim
        assert named(written) == {claim: {"first-0"}}
        written.refuses = False
        await leader.plan_once()
        assert named(written) == {claim: {"first-0", "second-0"}}
        before = written.snapshot.claims[claim]
        await leader.plan_once()
        assert written.snapshot.claims[claim] is before, "nothing new is to be written"
        assert PLANNED_PODS in before.annotations

    run_in_virtual_time(scenario())
