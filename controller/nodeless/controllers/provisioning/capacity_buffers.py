"""Capacity buffers after a pass: their status, and which nodes hold their room.

Two conditions (Karpenter's names): `ReadyForProvisioning` says whether it is known what pods a buffer
is for, `Provisioning` whether existing nodes have room for all of them.
"""

from collections.abc import Iterator

from nodeless.api.writing import conditions_to_api
from nodeless.controllers.error_boundary import ErrorBoundary, Subject
from nodeless.controllers.provisioning.plan_shares import Share, shares_of
from nodeless.controllers.provisioning.status_writes import write_status
from nodeless.kube import ApiClient
from nodeless.kube.buffers import BUFFERS
from nodeless.kube.cluster import Cluster
from nodeless.model.buffers import POD_TEMPLATE, CapacityBuffer
from nodeless.model.conditions import Condition, merged_conditions, same
from nodeless.model.events import BuffersPlaced
from nodeless.model.plan import Plan
from nodeless.model.snapshot import Snapshot
from nodeless.operator.clock import wall_clock
from nodeless.operator.logs import logger
from nodeless.scheduling.pods.buffers import BufferReason, Resolution, buffer_of, is_placeholder, resolutions

READY_FOR_PROVISIONING = "ReadyForProvisioning"
PROVISIONING = "Provisioning"


class Buffers:
    """Tells buffers and the cluster what a pass found for them."""

    def __init__(self, client: ApiClient, cluster: Cluster, boundary: ErrorBoundary | None = None) -> None:
        self._boundary = boundary
        self._client = client
        self._cluster = cluster
        self._log = logger("buffers")

    async def tell(self, snapshot: Snapshot, plan: Plan) -> None:
        """Write what is new about the buffers of a snapshot that was planned for.

        Raises:
            ApiUnavailable: The API server cannot be reached.
        """
        found = resolutions(snapshot) if snapshot.capacity_buffers else {}
        shares = shares_of(plan, buffer_of) if found else {}
        nodes = {name for key, name in plan.placements.items() if is_placeholder(key)}
        known = self._cluster.snapshot
        if any(
            found[key].replicas and key not in shares
            for key, buffer in snapshot.capacity_buffers.items()
            if buffer.deletion_timestamp is None
        ):
            # Its pods were set aside: their room is where an earlier pass found it.
            nodes |= set(known.buffered)
        if not known.room_placed or nodes != set(known.buffered):
            self._cluster.handle(BuffersPlaced(tuple(sorted(nodes))))
        for _, buffer in sorted(snapshot.capacity_buffers.items()):
            if self._boundary is None:
                await self._tell_one(snapshot, buffer, found[buffer.key], shares.get(buffer.key))
            elif not self._boundary.seconds_to_rest(buffer.key, str(buffer.generation)):
                subject = Subject("CapacityBuffer", buffer.name, buffer.uid, buffer.namespace)
                with self._boundary.around(buffer.key, str(buffer.generation), subject):
                    await self._tell_one(snapshot, buffer, found[buffer.key], shares.get(buffer.key))

    async def _tell_one(
        self, snapshot: Snapshot, buffer: CapacityBuffer, found: Resolution, share: Share | None
    ) -> None:
        status = buffer_status(snapshot, buffer, found, share, wall_clock())
        if status and buffer.deletion_timestamp is None:
            await write_status(self._client, BUFFERS, buffer, status, self._log)


def buffer_status(
    snapshot: Snapshot, buffer: CapacityBuffer, found: Resolution, share: Share | None, now: float
) -> dict[str, object]:
    """What the status of a buffer must say, where it says something else.

    Args:
        snapshot: The cluster.
        buffer: As it is.
        found: What it gets.
        share: What the plan of a pass says of it; None: nothing, as where its pods were set aside.
        now: Seconds since the epoch.
    """
    conditions = merged_conditions(
        buffer.conditions, _conditions_of(snapshot, found, share), now, buffer.generation
    )
    status = {
        name: value for name, value in _fields_of(buffer, found).items() if buffer.reported.get(name) != value
    }
    if not same(buffer.conditions, conditions):
        status["conditions"] = conditions_to_api(conditions)
    return status


def _fields_of(buffer: CapacityBuffer, found: Resolution) -> dict[str, object]:
    """What the status of a buffer says beside conditions; None: the field is not to be there."""
    source = found.source
    template = source if source is not None and source.kind == POD_TEMPLATE else None
    return {
        "replicas": found.replicas,
        "provisioningStrategy": buffer.strategy,
        "podTemplateRef": {"name": template.name} if template else None,
        "podTemplateGeneration": template.generation if template else None,
    }


def _conditions_of(snapshot: Snapshot, found: Resolution, share: Share | None) -> Iterator[Condition]:
    if found.reason != BufferReason.RESOLVED:
        yield Condition(READY_FOR_PROVISIONING, "False", found.reason, found.message)
        yield Condition(PROVISIONING, "False", BufferReason.NOT_READY_FOR_PROVISIONING, found.message)
        return
    yield Condition(READY_FOR_PROVISIONING, "True", BufferReason.RESOLVED, found.held_back)
    if not found.replicas:
        why = found.held_back or "replicas, percentage and limits result in 0 pods"
        yield Condition(PROVISIONING, "False", BufferReason.BUFFER_EMPTY, why)
    elif share is not None:
        yield _provisioning(snapshot, found.replicas, share)


def _provisioning(snapshot: Snapshot, replicas: int, share: Share) -> Condition:
    """Whether existing nodes have room for all pods of a buffer, and why others have no place."""
    ready = sum(name in snapshot.nodes for name in share.places)
    if ready == replicas:
        return Condition(PROVISIONING, "True", BufferReason.FITS_EXISTING_CAPACITY)
    text = f"existing nodes have room for {ready} of {replicas}"
    if share.refusals:
        text += f"; {len(share.refusals)} cannot be placed: {share.refusals[0]}"
    return Condition(PROVISIONING, "False", BufferReason.REQUIRES_NEW_CAPACITY, text)
