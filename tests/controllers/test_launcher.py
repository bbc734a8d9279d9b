"""What becomes of a claim whose launch cannot go on, and of its pods."""

import asyncio

import pytest

from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.controllers.nodeclaim.launcher import Launcher
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.instructions import DeleteClaim, PublishEvent
from nodeless.model.pools import NodeClass
from nodeless.operator.metrics import Metrics
from tests.factories import TEMPLATE, a_claim, a_pending_pod, a_pool

MISSING = "AWSNodeTemplate/default does not exist"


class Executor:
    """Takes instructions, and keeps those that are no events."""

    def __init__(self):
        self.claims = self
        self.carried_out = []

    def failpoint(self, *_):
        pass

    def assert_leading(self):
        pass

    def first_try(self, _name):
        return True

    async def carry_out(self, instructions):
        self.carried_out += instructions


class NoClass:
    """A cloud in which the node class selects no subnet."""

    async def launch(self, claim, *_, **__):
        raise NodeClassUnresolved(claim.node_class, "subnetSelector", "selects no subnets")


def launched(*seen):
    """What is carried out, and what the pod is told, when a claim cannot be launched by its class."""
    cluster, executor, told = Cluster(), Executor(), []
    recorder = type("Recorder", (), {"publish": lambda _self, event: told.append(event)})()
    claim = a_claim()
    for each in (events.ClaimSeen(claim), events.PodSeen(a_pending_pod("web")), *seen):
        cluster.handle(each)
    launcher = Launcher(executor, NoClass(), cluster, recorder, Metrics(), lambda _: ("default/web",))
    asyncio.run(launcher.launch(claim))
    return claim, executor.carried_out, told


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ([events.PoolSeen(a_pool(), None)], MISSING),
        (
            [events.PoolSeen(a_pool(), None), events.NodeClassSeen(NodeClass(TEMPLATE))],
            "selects no subnets",
        ),
    ],
    ids=["class-is-missing", "class-cannot-be-used"],
)
def test_a_claim_whose_class_is_not_ready_is_deleted_so_that_its_pods_are_planned_again(seen, message):
    claim, carried_out, told = launched(*seen)
    said, deleted = carried_out
    assert isinstance(said, PublishEvent)
    assert (said.kind, said.reason) == ("NodeClaim", "NodeClassNotReady")
    assert message in said.message
    assert isinstance(deleted, DeleteClaim)
    assert (deleted.name, deleted.reason) == (claim.name, "nodeclass_not_ready")
    (event,) = told
    assert (event.kind, event.reason) == ("Pod", "FailedLaunch")
    assert message in event.message
    assert "other capacity is being planned" in event.message
