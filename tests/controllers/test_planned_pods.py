"""Claims under way name the pods that later passes put on them, so that another leader keeps these there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.provisioning.controller import Provisioning
from nodeless.kube import ApiError
from nodeless.model import events
from nodeless.model.instructions import AnnotateClaim
from nodeless.model.labels import INSTANCE_TYPE, PLANNED_PODS
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


class Opening:
    """Nominates nothing; `now`: whether nodes are being opened."""

    refused, now = "", True

    def expect(self, considered, places, waiting=()):
        """Nothing is remembered."""

    def is_opening(self):
        return self.now


SETTINGS = GlobalSettings("demo")


def a_leader(written, nominator=None, publish=lambda event: True, settings=SETTINGS):
    recorder = SimpleNamespace(publish=publish)
    return Provisioning(
        written.cluster,
        written,
        written,
        recorder,
        written.metrics,
        settings,
        nominator=nominator,
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


def loses_its_room(written, name):
    """The instance of a claim has less room than its pods need."""
    claim = written.snapshot.claims[name]
    small = replace(
        claim,
        provider_id="aws:///z1/i-0",
        labels={**claim.labels, INSTANCE_TYPE: "medium"},
        allocatable={"cpu": 100, "memory": 2**30, "pods": 5},
    )
    written.cluster.handle(events.ClaimSeen(small))


@pytest.mark.parametrize("opened", [True, False])
def test_no_node_is_bought_for_a_pod_that_lost_its_place_while_nodes_are_opened(written, opened):
    """kube-scheduler is binding pods; half way there the others are not where they were to go yet."""

    async def scenario():
        nominator = Opening()
        leader = a_leader(written, nominator)
        come(written, pods(1, "1100m", name="planned"))
        await leader.plan_once()
        (claim,) = written.snapshot.claims
        loses_its_room(written, claim)
        await leader.plan_once()
        assert list(written.snapshot.claims) == [claim]
        come(written, pods(1, "3", name="new"))
        await leader.plan_once()
        assert {"new-0"} in named(written).values(), "a pod that was never planned waits for nobody"
        assert len(written.snapshot.claims) == 2
        if opened:
            nominator.now = False
        else:
            leader._held_since["default/planned-0"] -= 16
        await leader.plan_once()
        assert len(written.snapshot.claims) == 3

    run_in_virtual_time(scenario())


def test_a_pod_whose_claim_is_gone_gets_another_one_though_nodes_are_opened(written):
    async def scenario():
        leader = a_leader(written, Opening())
        come(written, pods(1, "1100m", name="planned"))
        await leader.plan_once()
        (claim,) = written.snapshot.claims
        written.cluster.handle(events.ClaimGone(claim))
        await leader.plan_once()
        assert list(named(written).values()) == [{"planned-0"}]

    run_in_virtual_time(scenario())
