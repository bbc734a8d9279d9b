"""What EC2 says of instances when it is asked: status checks that fail, and events that are scheduled.

The queue of warnings may be missing, and status checks are never sent there. One query
for each filter, since EC2 joins filters by *and*.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.model.interruptions import Interruption, InterruptionKind

Status = Mapping[str, Any]

#: Seconds for which a check must have failed before the instance is given up (Karpenter v1).
IMPAIRED_SECONDS = 120.0
_CHECKS = ("InstanceStatus", "SystemStatus")
_EVENTS = frozenset(
    {"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}
)
#: How the description of an event begins that will not happen any more.
_OVER = ("[Completed]", "[Canceled]")
_QUERIES = (
    {"Name": "instance-status.status", "Values": ["impaired"]},
    {"Name": "system-status.status", "Values": ["impaired"]},
    {"Name": "event.code", "Values": sorted(_EVENTS)},
)


class InstanceStatuses:
    """Asks for all instances of the region that are in trouble, whoever owns them."""

    def __init__(self, session: AwsSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        #: When an instance was first seen impaired, for checks that do not say since when.
        self._since: dict[str, float] = {}

    async def impaired_instances(self) -> tuple[Interruption, ...]:
        """One warning for each instance in trouble, sorted by id.

        Raises:
            nodeless.cloudprovider.CloudError: EC2 cannot be asked.
        """
        answers = await asyncio.gather(
            *(
                self._session.pages(
                    "ec2",
                    "describe_instance_status",
                    {"Filters": [query], "MaxResults": 1000},
                    "InstanceStatuses",
                )
                for query in _QUERIES
            )
        )
        found = {str(record["InstanceId"]): record for answer in answers for record in answer}
        now = self._clock()
        impaired = {name: since for name, record in found.items() if (since := impaired_since(record, now))}
        self._since = {name: min(since, self._since.get(name, now)) for name, since in impaired.items()}
        return tuple(
            warning
            for name in sorted(found)
            if (warning := _interruption_of(name, found[name], self._since.get(name), now))
        )


def _interruption_of(name: str, status: Status, since: float | None, now: float) -> Interruption | None:
    if since is not None and now - since >= IMPAIRED_SECONDS:
        return Interruption(InterruptionKind.IMPAIRED, (name,), sent_at=now)
    if has_scheduled_event(status.get("Events") or ()):
        return Interruption(InterruptionKind.SCHEDULED_CHANGE, (name,), sent_at=now)
    return None


def impaired_since(status: Status, now: float) -> float | None:
    """Since when a check fails, `now` when that is not said; None when none does."""
    failing = [each for name in _CHECKS if (each := status.get(name) or {}).get("Status") == "impaired"]
    details: list[Mapping[str, Any]] = [
        detail for check in failing for detail in check.get("Details") or ({"Status": "failed"},)
    ]
    return min(
        (
            detail["ImpairedSince"].timestamp() if "ImpairedSince" in detail else now
            for detail in details
            if detail.get("Status", "failed") == "failed"
        ),
        default=None,
    )


def has_scheduled_event(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of the events will interrupt the instance."""
    return any(
        event.get("Code") in _EVENTS and not str(event.get("Description", "")).startswith(_OVER)
        for event in events
    )
