"""Claims and instances that lost each other, found by listing both.

Neither list is believed at once. Before an instance ends that no claim knows, the API server is asked for
all claims: our watch may lag. Before a claim ends, two lists of the cloud in a row lack its instance, and the
cloud was asked for that instance alone.
"""

import asyncio

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimSeen
from nodeless.model.instructions import Instruction
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.nodeclaim import end_unclaimed, end_vanished, unlisted_claims
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.work_metrics import CLAIM_COLLECTION
from nodeless.state import apply

#: So many rounds at first are eager.
_EAGER_ROUNDS = 20


class Collector:
    """The loop that lists and compares."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        executor: InstructionExecutor,
        metrics: Metrics,
        timing: Timing = TIMING,
    ) -> None:
        self._timing, self._now = timing, timing.wall_clock
        self._cluster = cluster
        self._cloud = cloud
        self._executor = executor
        self._metrics = metrics
        #: Claims (by name and uid) whose instance the last list did not show.
        self._missed: frozenset[tuple[str, str]] = frozenset()
        self._boundary = ErrorBoundary("instance or claim to collect", metrics)
        self._log = logger("collector")

    async def run(self) -> None:
        """Collect until cancelled."""
        rounds = 0
        said = ""
        while True:
            try:
                with self._metrics.work.measure_reconciliation(CLAIM_COLLECTION):
                    await self.collect_once()
                rounds += 1
                said = ""
            except (ApiError, ApiUnavailable, CloudError) as error:
                if str(error) != said:
                    said = str(error)
                    self._log.warning(f"garbage collection failed, trying again: {error}")
            eager = rounds < _EAGER_ROUNDS or self._missed
            await asyncio.sleep(self._timing.collection_eager if eager else self._timing.collection_calm)

    async def collect_once(self) -> None:
        """One round."""
        listed_at = self._now()
        instances = await self._cloud.instances()
        await self._carry_out(await self._end_unclaimed(instances))
        await self._carry_out(await self._end_vanished(instances, listed_at))

    async def _end_unclaimed(self, instances: tuple[Instance, ...]) -> tuple[Instruction, ...]:
        now = self._now()
        grace = self._timing.claims.instance_grace
        if not end_unclaimed(self._cluster.snapshot, instances, now, grace):
            return ()
        snapshot = self._cluster.snapshot
        for claim in await self._executor.claims.list_claims():
            snapshot = apply(snapshot, ClaimSeen(claim))
        return end_unclaimed(snapshot, instances, now, grace)

    async def _end_vanished(
        self, instances: tuple[Instance, ...], listed_at: float
    ) -> tuple[Instruction, ...]:
        snapshot, grace = self._cluster.snapshot, self._timing.claims.claim_grace
        lacking = unlisted_claims(snapshot, instances, listed_at, grace)
        missed = {name: snapshot.claims[name] for name in lacking}
        before, self._missed = self._missed, frozenset((name, each.uid) for name, each in missed.items())
        doubted = [each for name, each in missed.items() if (name, each.uid) in before]
        states = await asyncio.gather(*map(self._state, doubted))
        states_by_name = {
            each.name: state for each, state in zip(doubted, states, strict=True) if state is not None
        }
        return end_vanished(self._cluster.snapshot, states_by_name, self._now())

    async def _state(self, claim: NodeClaim) -> str | None:
        """What the cloud says of a claim's instance; None where it could not be asked."""
        cause = f"claim:{claim.name}"
        if not self._boundary.seconds_to_rest(cause):
            with self._boundary.around(cause):
                return await self._cloud.state_of(claim.instance_id)
        return None

    async def _carry_out(self, instructions: tuple[Instruction, ...]) -> None:
        for instruction in instructions:
            if self._boundary.seconds_to_rest(instruction.cause):
                continue
            with self._boundary.around(instruction.cause):
                self._log.info("collecting", cause=instruction.cause, what=type(instruction).__name__)
                await self._executor.carry_out((instruction,))
