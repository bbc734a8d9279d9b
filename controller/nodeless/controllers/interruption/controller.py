"""The loop over the cloud's warnings about instances: nodes are drained before their machine goes.

A message is deleted once it is handled, also when it cannot be read; one whose handling
failed comes again. What keeps the queue from being read is said once for each cause, and
tried again: nodes are still made and unmade meanwhile.
"""

import asyncio

from nodeless.cloudprovider import CloudError, CloudProvider
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.model.interruptions import Interruption
from nodeless.model.nodes import NodeClaim
from nodeless.nodeclaim.interruption import claims_by_instance, react_to_warning
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing
from nodeless.operator.work_metrics import INTERRUPTION


class InterruptionLoop:
    """Reads warnings and carries out what follows."""

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
        self._metrics = metrics
        self._boundary = ErrorBoundary("message", metrics)
        self._said = ""
        self._delay = self._timing.interruption_retry
        self._log = logger("interruption")

    async def run(self) -> None:
        """Work until cancelled; without a queue there is nothing to do."""
        if not self._cloud.has_interruption_queue:
            self._log.info(
                "interruption warnings are not read: spot instances are terminated without a drain; "
                "hint: set aws.interruptionQueueName"
            )
        while self._cloud.has_interruption_queue:
            try:
                with self._metrics.work.measure_reconciliation(INTERRUPTION):
                    await self.handle_once()
            except CloudError as error:
                if str(error) != self._said:
                    self._said = str(error)
                    self._log.error(f"interruption messages cannot be read: {error}")
                await asyncio.sleep(self._delay)
                self._delay = min(2 * self._delay, self._timing.interruption_longest_retry)
                continue
            if self._said:
                self._log.info("interruption messages can be read again")
            self._said, self._delay = "", self._timing.interruption_retry

    async def handle_once(self) -> None:
        """Wait for messages, handle and delete them.

        Raises:
            CloudError: The queue cannot be used.
            NotLeadingError: The lease is lost; this process must end.
        """
        messages = await self._cloud.interruptions()
        if not messages:
            return
        claims = claims_by_instance(self._cluster.snapshot)
        handled = await asyncio.gather(*(self._handle(message, claims) for message in messages))
        done = [message for message, ok in zip(messages, handled, strict=True) if ok]
        if done:
            deleted = await self._cloud.forget_interruptions(done)
            self._metrics.interruption_deleted.inc(deleted)

    async def _handle(self, message: Interruption, claims: dict[str, NodeClaim]) -> bool:
        """Whether the message may be deleted: it is handled, or nobody could ever handle it."""
        try:
            return await self._handle_one(message, claims)
        except (ApiError, ApiUnavailable, CloudError) as error:
            self._log.warning(f"interruption not handled, the queue delivers it again: {error}")
            return False
        except ProcessMustEnd:
            raise
        except Exception as error:  # a defect; what the message is about is asked of EC2 as well
            self._boundary.record_failure(f"{message.kind.value} {' '.join(message.instance_ids)}", error)
            return False

    async def _handle_one(self, message: Interruption, claims: dict[str, NodeClaim]) -> bool:
        self._metrics.interruption_received.labels(message.kind.value).inc()
        if message.problem:
            self._log.warning(f"message dropped: {message.problem}")
        if message.sent_at is not None:
            self._metrics.interruption_latency.observe(max(0.0, self._timing.wall_clock() - message.sent_at))
        reaction = react_to_warning(self._cluster.snapshot, claims, message)
        # First, and whether or not the rest succeeds: no replacement may go to the pool that runs dry.
        self._cloud.mark_unavailable(reaction.offerings, reaction.reservations)
        if reaction.instructions:
            ids = ", ".join(message.instance_ids)
            self._log.info("interruption", kind=message.kind.value, instances=ids, draining=reaction.drained)
        await self._executor.carry_out(reaction.instructions)
        self._metrics.interruption_actions.labels("CordonAndDrain").inc(reaction.drained)
        self._metrics.interruption_actions.labels("NoAction").inc(reaction.ignored)
        return True
