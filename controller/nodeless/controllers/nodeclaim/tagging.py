"""The loop that tags instances once their nodes have joined, one after the other (Karpenter v1).

CreateTags shares its allowance of requests with what launches need: at most one is sent in a second.
"""

import asyncio

from nodeless.cloudprovider import CloudProvider
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube.cluster import Cluster
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model.events import ClaimGone, ClaimSeen, Event
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.tagging import is_taggable, note_tagged
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing


class TaggingLoop:
    """Tags the instance of every claim that says by its annotations that it is not tagged yet."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        metrics: Metrics,
        timing: Timing = TIMING,
    ) -> None:
        self._timing = timing
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._boundary = ErrorBoundary("instance's tags", metrics)
        self._queue = KeyedQueue()
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, _before: Snapshot, _after: Snapshot) -> None:
        match event:
            case ClaimSeen(claim) if is_taggable(claim):
                self._queue.add(claim.name)
            case ClaimGone(name):
                self._boundary.record_success(name)

    async def run(self) -> None:
        """Tag until cancelled."""
        while True:
            name = await self._queue.get()
            try:
                asked = await self._try(name)
            finally:
                self._queue.done(name)
            if asked:
                await asyncio.sleep(self._timing.tagging)

    async def _try(self, name: str) -> bool:
        """Whether a request was sent that counts against the allowance; a failure is tried again later."""
        rest = self._boundary.seconds_to_rest(name)
        if rest:
            self._queue.add_in(name, rest)
            return False
        try:
            asked = await self.tag(name)
        except ProcessMustEnd:
            raise
        except Exception as error:
            self._queue.add_in(name, self._boundary.record_failure(name, error))
            return True
        self._boundary.record_success(name)
        return asked

    async def tag(self, name: str) -> bool:
        """Tag the claim's instance where it lacks tags, and note that it bears them; whether it lacked any.

        Raises:
            NotLeadingError: The lease is lost.
            CloudError, ApiError, ApiUnavailable: It is not done; try again later.
        """
        claim = self._cluster.snapshot.claims.get(name)
        if claim is None or not is_taggable(claim):
            return False
        self._executor.assert_leading()
        asked = await self._cloud.tag(claim)
        await self._executor.carry_out((note_tagged(claim),))
        return asked
