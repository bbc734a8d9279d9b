"""On-demand for pods to which spot costs more than it saves, because interruptions lose their work.

A plan prices nodes, and knows no pods that would rather be elsewhere. So the choice is made before it, for
each class of pods (`capacity.spot_premium`): where on-demand is no dearer, the class prefers nodes that are
not spot, more than anything else that it prefers. A preference is relaxed where on-demand cannot be had
(`first_fit.relaxing`), so that a pod gets its place all the same; and as any other, it does not keep a pod
off room that is there, for kube-scheduler knows nothing of it.

Of pods that run, the choice is made before commands are looked for (`with_running_choices`), for these see
only a part of what can be bought. A command that saves money keeps pods off spot which are better off so and
run so (`Policy.keeps_off_spot`); those that run on spot may go anywhere, for a bill that is lower. Commands
that have to be, of drifted nodes, say, go by the preference.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from immutables import Map

from nodeless.model.instance_types import Catalog
from nodeless.model.labels import CAPACITY_TYPE, LOST_WORK, SPOT
from nodeless.model.lost_work import LostWork
from nodeless.model.plan import ChosenCapacity
from nodeless.model.pods import Pod, PodShape
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.batch import pool_tables, pools_in_order, settle_pods
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.capacity.spot_premium import OFF_SPOT, choose_capacity, off_spot
from nodeless.scheduling.devices import Devices
from nodeless.scheduling.faults import or_without
from nodeless.scheduling.pods.classes import Axis, PodClass, requested_names, requests_of
from nodeless.scheduling.pods.constraints import PodRequirements, demand_of
from nodeless.scheduling.pods.grouping import PodGroup, PodGroups
from nodeless.scheduling.pods.lost_work import lost_work, with_lost_work
from nodeless.scheduling.pods.volumes import Volumes
from nodeless.scheduling.pods.zone_ids import ZoneIds
from nodeless.scheduling.policy import STRICT, Policy
from nodeless.scheduling.same_cluster import SameCluster

#: The parts of a snapshot by which the choices of pods that run are made.
_OF_CHOICES = ("pods", "nodes", "pools", "daemon_sets", "gang_sizes")
#: Weight of the preference: above those that pods may have (1 to 100).
WEIGHT = 1000


def with_choice(pods: PodClass, tables: Sequence[PoolTable], policy: Policy) -> PodClass:
    """The class with what follows from the work that its pods lose; itself where they lose none.

    Args:
        pods: The class.
        tables: The pools that may be used, heaviest first.
        policy: How to plan.
    """
    lost = pods.shape.lost_work
    if lost is None:
        return pods
    if not lost.settled:
        choice = choose_capacity(pods, lost, tables, policy.spot_interruptions)
        lost = replace(lost, choice=choice, settled=True)
        pods = pods.with_lost_work(lost)
    if lost.choice is None or not lost.choice.on_demand:
        return pods
    required, preferred = pods.demand.required, pods.demand.preferred
    if not policy.keeps_off_spot:
        return replace(pods, demand=PodRequirements(required, ((WEIGHT, OFF_SPOT), *preferred)))
    if not lost.stays:
        return pods
    return replace(pods, demand=PodRequirements(off_spot(required), preferred))


def chosen_capacities(classes: Iterable[PodClass], refused: Collection[str]) -> tuple[ChosenCapacity, ...]:
    """The choices that were made for pods that have a place; pods of one choice together."""
    keys: dict[LostWork, list[str]] = {}
    for pods in classes:
        lost = pods.shape.lost_work
        if lost is not None and lost.choice is not None:
            keys.setdefault(lost, []).extend(key for key in pods.pods if key not in refused)
    chosen = (ChosenCapacity(lost, tuple(sorted(placed))) for lost, placed in keys.items() if placed)
    return tuple(sorted(chosen, key=lambda one: one.pods))


def with_running_choices(snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Snapshot:
    """The cluster with the choice for each running pod that says what an interruption loses.

    Args:
        snapshot: The cluster.
        catalog: All that each pool may buy, by pool key.
        policy: How plans are made.
    """
    # Without a call for each of the pods, of which hardly any say it.
    if not [pod for pod in snapshot.pods.values() if pod.annotations and LOST_WORK in pod.annotations]:
        return snapshot
    pods = _settle_running(SameCluster(snapshot, catalog, policy, parts=_OF_CHOICES))
    return replace(snapshot, pods=pods)


def _concerns(pod: Pod) -> bool:
    return bool(pod.annotations) and LOST_WORK in pod.annotations and bool(pod.node_name and pod.occupies)


@lru_cache(maxsize=2)
def _settle_running(cluster: SameCluster) -> Map[str, Pod]:
    """The very same pods for the very same cluster: what searches found in it stays right."""
    snapshot, policy = cluster.snapshot, cluster.policy
    running = PodGroups()
    running.gather((key, pod) for key, pod in snapshot.pods.items() if _concerns(pod) and lost_work(pod))
    volumes, devices = Volumes(snapshot), Devices(snapshot, cluster.catalog, policy.pool_problems)
    zone_ids = ZoneIds(snapshot, policy.subnets)
    seen = zone_ids.in_snapshot()
    batch, _ = settle_pods(volumes, devices, list(running))
    batch = with_lost_work(zone_ids.in_pods(batch), snapshot.gang_sizes)
    axis = Axis(requested_names([*(each.shape for each in batch), *_daemons(seen)]))
    pools = pools_in_order(seen)
    prices = priced(devices.in_catalog(), pools, policy.price_adjustments, policy.node_fee)
    tables = [
        table
        for table in pool_tables(seen, prices, pools, axis, strict=policy.min_values == STRICT)
        if table.pool.replicas is None and table.pool.key not in policy.pool_problems
    ]
    after = snapshot.pods.mutate()
    shapes: dict[tuple[PodShape, LostWork], PodShape] = {}
    for pod_group in sorted(batch, key=lambda each: min(each.keys)):
        lost = or_without(partial(_settled, pod_group, axis, tables, policy), None, [])
        if lost is None:
            continue
        for key in pod_group.keys:
            pod = snapshot.pods[key]
            memo = pod.shape, replace(lost, stays=_is_off_spot(snapshot, pod))
            if memo not in shapes:
                shapes[memo] = replace(pod.shape, lost_work=memo[1])
            after[key] = replace(pod, shape=shapes[memo])
    return after.finish()


def _daemons(snapshot: Snapshot) -> list[PodShape]:
    return [daemon.shape for daemon in snapshot.daemon_sets.values()]


def _settled(pod_group: PodGroup, axis: Axis, tables: Sequence[PoolTable], policy: Policy) -> LostWork | None:
    """What pods of one shape lose, with their choice; None: nothing, or they cannot be planned."""
    shape = pod_group.shape
    demand = demand_of(shape)
    if shape.lost_work is None or not isinstance(demand, PodRequirements):
        return None
    shared = tuple((key, axis.row({name: 1})) for key, name in shape.shared_volumes)
    pods = PodClass(shape, demand, tuple(pod_group.keys), axis.row(requests_of(shape)), shared=shared)
    return with_choice(pods, tables, policy).shape.lost_work


def _is_off_spot(snapshot: Snapshot, pod: Pod) -> bool:
    node = snapshot.nodes.get(pod.node_name)
    return node is not None and node.labels.get(CAPACITY_TYPE) != SPOT
