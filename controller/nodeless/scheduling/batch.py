"""What a pass begins with: pods with volumes and devices looked up, pools with their types as tables."""

from collections.abc import Sequence

from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import Refusal
from nodeless.model.pods import Pod, PodShape
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.limits import drop_far_limits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.type_table import TypeTable
from nodeless.scheduling.devices import Devices
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Axis
from nodeless.scheduling.pods.constraints import UnschedulableReason
from nodeless.scheduling.pods.grouping import PodGroup, PodGroups
from nodeless.scheduling.pods.volumes import Volumes, mounts


def settle_pods(
    volumes: Volumes, devices: Devices, pod_groups: Sequence[PodGroup]
) -> tuple[list[PodGroup], list[Refusal]]:
    """The pods with volumes and devices looked up, and the refusals where these forbid a plan."""

    def needs_looking_up(shape: PodShape) -> bool:
        return mounts(shape) or devices.concern(shape)

    batch = [pod_group for pod_group in pod_groups if not needs_looking_up(pod_group.shape)]
    looked_up: list[tuple[str, Pod]] = []
    refusals: list[Refusal] = []
    waiting = [
        (key, pod)
        for pod_group in pod_groups
        if needs_looking_up(pod_group.shape)
        for key, pod in zip(pod_group.keys, pod_group.pods, strict=True)
    ]
    # Of pods that want the same claim the one comes first that kube-scheduler tries first.
    waiting.sort(key=lambda entry: (-entry[1].priority, entry[1].created_at, entry[0]))
    devices.expect(dict(waiting))
    for key, pod in waiting:
        settled = devices.settle(pod) if devices.concern(pod.shape) else pod
        if not isinstance(settled, UnschedulableReason):
            settled = volumes.settle(settled)
        if isinstance(settled, UnschedulableReason):
            refusals.append(Refusal(key, settled.code, (), settled.message))
        else:
            looked_up.append((key, settled))
    settled_kinds = PodGroups()
    settled_kinds.gather(looked_up)
    return [*batch, *settled_kinds], refusals


def pools_in_order(snapshot: Snapshot) -> list[Pool]:
    """Pools that are not being deleted, heaviest first, equal weights by name and kind."""
    living = (pool for pool in snapshot.pools.values() if pool.deletion_timestamp is None)
    return sorted(living, key=lambda pool: (-pool.weight, pool.name, pool.reference.kind))


def pool_tables(
    snapshot: Snapshot,
    catalog: Catalog,
    pools: Sequence[Pool],
    axis: Axis,
    *,
    strict: bool,
    meter: Meter | None = None,
    pods: int = 0,
) -> list[PoolTable]:
    """A table for each pool; pools with the same catalog share the work on its types.

    Limits that nodes for so many `pods` cannot reach are left out.
    """
    shared: dict[Identity, TypeTable] = {}
    tables = []
    for pool in pools:
        types = catalog.get(pool.key, ())
        same = Identity(types)
        table = shared.get(same)
        if table is None:
            table = shared[same] = TypeTable(types, axis, meter)
        tables.append(PoolTable(pool, table, snapshot.daemon_sets.values(), strict=strict))
    if pods:
        drop_far_limits(snapshot, {table.pool.key: table for table in tables}, pods)
    return tables
