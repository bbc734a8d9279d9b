"""Provisioning requests after a pass: their conditions, events, and when they are planned again.

What a request is answered is decided in `request_answers`; nothing is remembered here but pauses, so that
another replica, or this one started anew, goes on from the conditions.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from nodeless.api.writing import conditions_to_api
from nodeless.controllers.error_boundary import ErrorBoundary, Subject
from nodeless.controllers.provisioning.plan_shares import Share, shares_of
from nodeless.controllers.provisioning.request_answers import answer_to, missing_room
from nodeless.controllers.provisioning.status_writes import write_status
from nodeless.kube import ApiClient
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.provisioning_requests import collection_of
from nodeless.model.conditions import Condition, merged_conditions, same
from nodeless.model.instructions import PublishEvent
from nodeless.model.plan import Plan
from nodeless.model.provisioning_requests import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    CHECK_CAPACITY,
    FAILED,
    KIND,
    PROVISIONED,
    Phase,
    ProvisioningRequest,
)
from nodeless.model.snapshot import Snapshot
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing
from nodeless.scheduling import Policy, solve
from nodeless.scheduling.pods.requests import (
    consumers_of,
    invalid,
    is_pending,
    problem_of,
    request_of,
    with_one_more,
)

#: Seconds until a request that no plan holds whole is planned again, doubled each time, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 600.0
#: Requests whose room is looked for in one pass, as each takes a plan of its own.
_MOST_CHECKS = 10
#: Conditions that are told as events, with the type of the event.
_TOLD = {
    PROVISIONED: "Normal",
    BOOKING_EXPIRED: "Normal",
    FAILED: "Warning",
    CAPACITY_REVOKED: "Warning",
}


class Requests:
    """Answers the provisioning requests of a cluster."""

    def __init__(
        self,
        client: ApiClient,
        recorder: Recorder | None = None,
        metrics: Metrics | None = None,
        boundary: ErrorBoundary | None = None,
        timing: Timing = TIMING,
    ) -> None:
        self._client = client
        self._clock = timing.wall_clock
        self._recorder = recorder
        self._metrics = metrics
        self._boundary = boundary
        #: When a request is planned again, and the pause before that, by UID.
        self._pauses: dict[str, tuple[float, float]] = {}
        #: Since when booked room is missing, by UID.
        self._missing: dict[str, float] = {}
        self._log = logger("provisioning-requests")

    def waiting(self, snapshot: Snapshot) -> list[str]:
        """Keys of the requests for which passes are made."""
        return [key for key, each in snapshot.provisioning_requests.items() if each.is_open]

    def without_resting(self, snapshot: Snapshot, requests: Iterable[ProvisioningRequest]) -> Snapshot:
        """The snapshot without the placeholders of requests whose pause is not over."""
        now = self._clock()
        resting = {each.key for each in requests if self._rests(each, now)}
        if not resting:
            return snapshot
        pods = snapshot.pods
        for key in snapshot.pods:
            if is_pending(key) and request_of(key) in resting:
                pods = pods.delete(key)
        return replace(snapshot, pods=pods)

    async def tell(self, snapshot: Snapshot, plan: Plan, policy: Policy) -> frozenset[str]:
        """Write what is new about the requests of a snapshot that was planned for.

        Returns:
            Keys of those that are over by now: nothing is launched for them any more.
        """
        requests = [each for each in snapshot.provisioning_requests.values() if each.ours]
        requests.sort(key=lambda each: (each.created_at, each.key))
        uids = {each.uid for each in requests}
        for times in (self._pauses, self._missing):
            for uid in times.keys() - uids:
                del times[uid]
        self._count(requests)
        checks = 0
        consumers = consumers_of(snapshot) if requests else {}
        shares = shares_of(plan, request_of) if requests else {}
        # Those that check come last: room that is kept for the others is not theirs.
        for request in sorted(requests, key=_is_check):
            now, looked = self._clock(), True
            share = shares.get(request.key, Share())
            if _is_check(request) and not invalid(request) and not problem_of(snapshot, request):
                looked = checks < _MOST_CHECKS and not self._rests(request, now)
                if looked:
                    checks += 1
                    found = await asyncio.to_thread(solve, with_one_more(snapshot, request), {}, policy)
                    share = shares_of(found, request_of).get(request.key, Share())
            used = request.key in consumers
            looked = looked and not self._rests(request, now)
            if self._boundary is None:
                told = await self._tell_one(snapshot, request, share, now, used=used, looked=looked)
            elif not self._boundary.seconds_to_rest(request.key, str(request.generation)):
                subject = Subject(KIND, request.name, request.uid, request.namespace)
                told = request
                with self._boundary.around(request.key, str(request.generation), subject):
                    told = await self._tell_one(snapshot, request, share, now, used=used, looked=looked)
            else:
                continue
            answered = snapshot.provisioning_requests.set(request.key, told)
            snapshot = replace(snapshot, provisioning_requests=answered)
        known = snapshot.provisioning_requests
        return frozenset(each.key for each in requests if known[each.key].phase == Phase.OVER)

    async def _tell_one(
        self,
        snapshot: Snapshot,
        request: ProvisioningRequest,
        share: Share,
        now: float,
        *,
        used: bool,
        looked: bool,
    ) -> ProvisioningRequest:
        """The request as it is once it is answered."""
        if request.phase == Phase.BOOKED and missing_room(share):
            self._missing.setdefault(request.uid, now)
        else:
            self._missing.pop(request.uid, None)
        if not looked and not _is_over_due(request, snapshot, share, now):
            return request
        answer = answer_to(
            snapshot, request, share, now, used=used, missing_since=self._missing.get(request.uid)
        )
        if answer.incomplete:
            _, pause = self._pauses.get(request.uid, (0.0, _FIRST_PAUSE / 2))
            pause = min(2 * pause, _LONGEST_PAUSE)
            self._pauses[request.uid] = (now + pause, pause)
        conditions = merged_conditions(request.conditions, answer.conditions, now, request.generation)
        details = dict(request.details) | dict(answer.details)
        if same(request.conditions, conditions) and details == dict(request.details):
            return request
        status: dict[str, object] = {"conditions": conditions_to_api(conditions)}
        if answer.details:
            status["provisioningClassDetails"] = dict(answer.details)
        if not await write_status(self._client, collection_of(request), request, status, self._log):
            return request
        self._publish(request, conditions)
        return replace(request, conditions=conditions)

    def _publish(self, request: ProvisioningRequest, conditions: tuple[Condition, ...]) -> None:
        before = {each.type for each in request.conditions if each.status == "True"}
        for each in conditions:
            if self._recorder is None or each.status != "True" or each.type in before:
                continue
            if type_ := _TOLD.get(each.type):
                self._recorder.publish(
                    PublishEvent(
                        "pass",
                        KIND,
                        request.name,
                        type_,
                        each.type,
                        each.message,
                        request.namespace,
                        request.uid,
                    )
                )

    def _count(self, requests: Iterable[ProvisioningRequest]) -> None:
        if self._metrics is None:
            return
        for phase in Phase:
            number = sum(each.phase == phase for each in requests)
            self._metrics.provisioning_requests.labels(phase=phase.lower()).set(number)

    def _rests(self, request: ProvisioningRequest, now: float) -> bool:
        until, _ = self._pauses.get(request.uid, (0.0, 0.0))
        return now < until and request.phase == Phase.PENDING


def _is_check(request: ProvisioningRequest) -> bool:
    return request.phase == Phase.PENDING and request.provisioning_class == CHECK_CAPACITY


def _is_over_due(request: ProvisioningRequest, snapshot: Snapshot, share: Share, now: float) -> bool:
    """Whether a request that rests fails by its time."""
    found = answer_to(snapshot, request, share, now).conditions
    return any(each.type == FAILED for each in found)
