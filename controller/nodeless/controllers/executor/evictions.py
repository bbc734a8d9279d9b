"""What a drain asks for its pods: several at a time, each that is refused again after a growing while.

A disruption budget refuses an eviction with 429; several budgets on one pod make the API server answer
500, which is no failure of the server's. Webhooks refuse with any status, evictions as well as what comes
before them. Each waits 0.1 s at first, twice as long each time, ten seconds at most (Karpenter's eviction
queue), pod by pod: one budget that never yields, or one webhook that fails, keeps no other pod waiting.
What was granted is not asked for again while it cannot be seen yet: the API server would grant it once
more, and every eviction counts.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeless.controllers.error_boundary import cause_of
from nodeless.controllers.executor.checkpoints import Checkpoints
from nodeless.controllers.executor.failed_checks import FailedChecks
from nodeless.controllers.executor.surges import Surges
from nodeless.kube import ApiClient, ApiError
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import (
    DeletePod,
    EvictPod,
    PublishEvent,
    ReportFailedCheck,
    RequestCheckpoint,
    RestartDeployment,
)
from nodeless.nodeclaim.consistency import TERMINATION
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING

#: What is asked for a pod that must leave its node.
PodRequest = EvictPod | DeletePod | RequestCheckpoint | RestartDeployment

_AT_ONCE = 50
_FIRST_WAIT = 0.1
_MOST_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the API server answered to the last request for a pod."""

    #: When the next request is due (the event loop's clock).
    due: float
    #: Seconds from a refusal until then; zero: it was granted.
    wait: float = 0.0


class Evictions:
    """Carries out what is asked for pods that must leave."""

    def __init__(
        self,
        client: ApiClient,
        recorder: Recorder,
        metrics: Metrics,
        failed_checks: FailedChecks,
        assert_leading: Callable[[], None],
        longest_wait: float = TIMING.longest_eviction_wait,
    ) -> None:
        """`assert_leading` raises when this replica may not act any more."""
        self._assert_leading = assert_leading
        self._longest_wait = longest_wait
        self.surges = Surges(client, recorder)
        self.checkpoints = Checkpoints(client, recorder)
        self._client = client
        self._recorder = recorder
        self._failed_checks = failed_checks
        self._requests = metrics.nodes.eviction_requests
        self._failures = metrics.unit_failures
        self._room = asyncio.Semaphore(_AT_ONCE)
        #: By the kind of the request and the pod's uid.
        self._answers: dict[tuple[type[PodRequest], str], _Answer] = {}
        self._log = logger("evictions")

    async def carry_out(self, instructions: Sequence[PodRequest]) -> None:
        """Ask all at the same time, as long as this replica leads.

        What the API server refuses concerns its pod alone, whatever the status.

        Raises:
            ProcessMustEnd, ApiUnavailable: The first failure that is no refusal, once all have ended.
        """
        outcomes = await asyncio.gather(*(self._one(each) for each in instructions), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def is_refused(self, uid: str) -> bool:
        """Whether the last eviction of a pod was refused."""
        answer = self._answers.get((EvictPod, uid))
        return answer is not None and answer.wait > 0

    async def _one(self, request: PodRequest) -> None:
        async with self._room:
            # The wait for room may have been longer than the lease.
            self._assert_leading()
            answer = self._answers.get(_key(request))
            if answer is not None and self._now() < answer.due:
                return
            try:
                await self._ask(request)
            except ApiError as error:
                self._record_refusal(request, error)

    async def _ask(self, request: PodRequest) -> None:
        match request:
            case EvictPod():
                await self._evict(request)
            case DeletePod():
                await self._delete(request)
            case RequestCheckpoint():
                await self.checkpoints.carry_out(request)
            case RestartDeployment():
                await self.surges.carry_out(request)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _note(self, request: PodRequest, refused_for: float = 0.0) -> None:
        """Remember that a request was granted, or for how long it is refused."""
        if len(self._answers) >= _MOST_REMEMBERED:
            self._answers.clear()
        due = self._now() + (refused_for or self._longest_wait)
        self._answers[_key(request)] = _Answer(due, refused_for)

    async def _evict(self, eviction: EvictPod) -> None:
        path = f"/api/v1/namespaces/{eviction.namespace}/pods/{eviction.name}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": eviction.name, "namespace": eviction.namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        }
        try:
            await self._client.create(path, body)
        except ApiError as error:
            self._requests.labels(str(error.status)).inc()
            if error.status not in (404, 409):
                raise
            self._answers.pop(_key(eviction), None)
            return
        self._requests.labels("201").inc()
        self._note(eviction)
        self._log.info("evicted pod", pod=f"{eviction.namespace}/{eviction.name}", node=eviction.node_name)
        self._tell(eviction, "Evicted", f"evicted from node {eviction.node_name}")

    def _record_refusal(self, request: PodRequest, error: ApiError) -> None:
        answer = self._answers.get(_key(request))
        before = answer.wait if answer is not None else 0.0
        wait = min(2 * before, self._longest_wait) if before else _FIRST_WAIT
        self._note(request, wait)
        by_budget = isinstance(request, EvictPod) and _is_of_budgets(error)
        message = f"cannot {_what(request)}: {_budget(error) if by_budget else cause_of(error)}"
        event = PublishEvent(request.cause, "Node", request.node_name, "Warning", "FailedDraining", message)
        new = self._recorder.publish(event)
        if not by_budget:
            self._failures.labels("pod's drain").inc()
            if new:
                self._log.warning(message, node=request.node_name)
        if wait < self._longest_wait:
            return
        if isinstance(request, RequestCheckpoint):
            self.checkpoints.give_up(request.uid)
        else:
            what = f"the node does not terminate: {message}"
            self._failed_checks.report(ReportFailedCheck(request.cause, TERMINATION, request.node_name, what))

    async def _delete(self, deletion: DeletePod) -> None:
        path = f"/api/v1/namespaces/{deletion.namespace}/pods/{deletion.name}"
        try:
            await self._client.delete(path, uid=deletion.uid, grace_seconds=deletion.grace_seconds)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        self._note(deletion)
        self._log.info(
            "deleted pod: terminationGracePeriod is over",
            pod=f"{deletion.namespace}/{deletion.name}",
            node=deletion.node_name,
        )
        message = f"deleted from node {deletion.node_name}: its terminationGracePeriod is over"
        self._tell(deletion, "Disrupted", message)

    def _tell(self, instruction: EvictPod | DeletePod, reason: str, message: str) -> None:
        self._recorder.publish(
            PublishEvent(
                instruction.cause,
                "Pod",
                instruction.name,
                "Normal",
                reason,
                message,
                instruction.namespace,
                instruction.uid,
            )
        )


def _key(request: PodRequest) -> tuple[type[PodRequest], str]:
    return type(request), request.pod_uid if isinstance(request, RestartDeployment) else request.uid


def _what(request: PodRequest) -> str:
    """What a request asks for, and for which pod."""
    match request:
        case EvictPod(_, namespace, name):
            return f"evict pod {namespace}/{name}"
        case DeletePod(_, namespace, name):
            return f"delete pod {namespace}/{name}"
        case RequestCheckpoint(_, namespace, name):
            return f"notify pod {namespace}/{name} to save its work"
        case RestartDeployment(_, namespace, deployment, name):
            return f"restart Deployment {namespace}/{deployment} before its pod {name} is evicted"


def _is_of_budgets(refusal: ApiError) -> bool:
    """Whether budgets refuse an eviction: unlike an internal error, what several answer has no reason."""
    return refusal.status == 429 or (refusal.status == 500 and not refusal.reason)


def _budget(refusal: ApiError) -> str:
    causes = refusal.details.get("causes") or [{}]
    return causes[0].get("message") or refusal.message
