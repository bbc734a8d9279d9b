"""A warning whose handling fails stays in the queue; those beside it are handled and leave it."""

import asyncio
from types import SimpleNamespace

from nodeless.controllers.interruption.controller import InterruptionLoop
from nodeless.kube import ApiUnavailable
from nodeless.model.events import ClaimSeen
from nodeless.model.instructions import DeleteClaim
from nodeless.model.interruptions import Interruption, InterruptionKind
from nodeless.model.snapshot import Snapshot
from nodeless.operator.metrics import Metrics
from nodeless.state import apply
from tests.factories import a_launched_claim

GOOD = a_launched_claim("good", uid="1")
BAD = a_launched_claim("bad", uid="2")


class Queue:
    """Gives out what was not deleted, as SQS does once the visibility timeout is over."""

    def __init__(self, *messages):
        self.left = list(messages)
        self.avoided = []

    async def interruptions(self):
        return tuple(self.left)

    async def forget_interruptions(self, handled):
        self.left = [each for each in self.left if each not in handled]
        return len(handled)

    def mark_unavailable(self, offerings, _reservations):
        self.avoided += offerings


class RecordingExecutor:
    """The API server answers for all claims but those that are named."""

    def __init__(self, *refusing):
        self.refusing = set(refusing)
        self.deleted = []

    async def carry_out(self, instructions):
        for each in instructions:
            if isinstance(each, DeleteClaim):
                if each.name in self.refusing:
                    raise ApiUnavailable("the API server does not answer")
                self.deleted.append(each.name)


def test_aws_16_9_a_message_whose_handling_fails_stays_and_comes_again():
    snapshot = Snapshot()
    for claim in (GOOD, BAD):
        snapshot = apply(snapshot, ClaimSeen(claim))
    warnings = [
        Interruption(InterruptionKind.SCHEDULED_CHANGE, (name,), handle=name) for name in ("i-good", "i-bad")
    ]
    queue, executor = Queue(*warnings), RecordingExecutor("bad")
    loop = InterruptionLoop(SimpleNamespace(snapshot=snapshot), queue, executor, Metrics())

    asyncio.run(loop.handle_once())
    assert [each.handle for each in queue.left] == ["i-bad"]
    assert executor.deleted == ["good"]

    executor.refusing.clear()
    asyncio.run(loop.handle_once())
    assert queue.left == []
    assert executor.deleted == ["good", "bad"]
