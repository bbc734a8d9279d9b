"""One event, one new snapshot."""

from dataclasses import replace

from immutables import Map

from nodeless.model import events
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.snapshot import Snapshot
from nodeless.state.buffers import apply_buffers
from nodeless.state.devices import apply_devices
from nodeless.state.entries import delete_key
from nodeless.state.storage import apply_storage


def apply(snapshot: Snapshot, event: events.Event) -> Snapshot:  # noqa: PLR0911, PLR0912 - a branch a kind
    """The snapshot after an event."""
    match event:
        case events.PodSeen(pod):
            return _put_pod(snapshot, pod)
        case events.PodGone(key):
            return _drop_pod(snapshot, key)
        case events.NodeSeen(node):
            return _put_node(snapshot, node)
        case events.NodeGone(name):
            return _drop_node(snapshot, name)
        case events.ClaimSeen(claim):
            return _put_claim(snapshot, claim)
        case events.ClaimGone(name):
            return _drop_claim(snapshot, name)
        case events.PoolSeen(pool, inline_class):
            return _put_pool(snapshot, pool, inline_class)
        case events.PoolGone(key):
            return _drop_pool(snapshot, key)
        case events.NeighborPoolSeen(pool):
            others = snapshot.neighbor_pools.set(pool.key, pool)
            return replace(_drop_pool(snapshot, pool.key), neighbor_pools=others)
        case events.AutoscalerGroupsSeen(groups):
            return replace(snapshot, autoscaler_groups=groups)
        case events.ServerVersionSeen(version):
            return replace(snapshot, server_version=version)
        case events.NodeClassSeen(node_class):
            return replace(snapshot, node_classes=snapshot.node_classes.set(node_class.key, node_class))
        case events.NodeClassGone(key):
            return replace(snapshot, node_classes=delete_key(snapshot.node_classes, key))
        case events.DaemonSetSeen(daemon_set):
            return replace(snapshot, daemon_sets=snapshot.daemon_sets.set(daemon_set.key, daemon_set))
        case events.DaemonSetGone(key):
            return replace(snapshot, daemon_sets=delete_key(snapshot.daemon_sets, key))
        case events.NamespaceSeen(namespace):
            return replace(snapshot, namespaces=snapshot.namespaces.set(namespace.name, namespace))
        case events.NamespaceGone(name):
            return replace(snapshot, namespaces=delete_key(snapshot.namespaces, name))
        case events.PodDisruptionBudgetSeen(budget):
            budgets = snapshot.disruption_budgets.set(budget.key, budget)
            return replace(snapshot, disruption_budgets=budgets)
        case events.PodDisruptionBudgetGone(key):
            budgets = delete_key(snapshot.disruption_budgets, key)
            return replace(snapshot, disruption_budgets=budgets)
        case events.Nominated(name, until):
            if name not in snapshot.claims and name not in snapshot.nodes:
                # Gone meanwhile: nothing would ever remove the entry.
                return snapshot
            latest = max(until, snapshot.nominations.get(name, 0.0))
            return replace(snapshot, nominations=snapshot.nominations.set(name, latest))
        case events.GuardSeen(deleting, drain):
            return replace(snapshot, teardown=deleting, teardown_drain=drain)
        case events.GuardGone():
            return replace(snapshot, teardown=False)
        case (
            events.CapacityBufferSeen()
            | events.CapacityBufferGone()
            | events.ProvisioningRequestSeen()
            | events.ProvisioningRequestGone()
            | events.PodSourceSeen()
            | events.PodSourceGone()
            | events.BuffersPlaced()
        ):
            return apply_buffers(snapshot, event)
        case events.GangSizeSeen(size):
            return replace(snapshot, gang_sizes=snapshot.gang_sizes.set(size.key, size))
        case events.GangSizeGone(key):
            return replace(snapshot, gang_sizes=delete_key(snapshot.gang_sizes, key))
        case events.GangsPaused(gangs):
            return replace(snapshot, paused_gangs=Map(gangs))
        case events.NodeOverlaySeen(overlay):
            return replace(snapshot, node_overlays=snapshot.node_overlays.set(overlay.name, overlay))
        case events.NodeOverlayGone(name):
            return replace(snapshot, node_overlays=delete_key(snapshot.node_overlays, name))
        case events.VerticalPodAutoscalerSeen(autoscaler):
            known = snapshot.vertical_autoscalers
            # Their status is written every minute, most often with the same recommendation.
            if known.get(autoscaler.key) == autoscaler:
                return snapshot
            return replace(snapshot, vertical_autoscalers=known.set(autoscaler.key, autoscaler))
        case events.VerticalPodAutoscalerGone(key):
            left = delete_key(snapshot.vertical_autoscalers, key)
            return replace(snapshot, vertical_autoscalers=left)
        case events.OverlaysApplied(names):
            return replace(snapshot, applied_overlays=names)
        case (
            events.ResourceClaimSeen()
            | events.ResourceClaimGone()
            | events.ResourceClaimTemplateSeen()
            | events.ResourceClaimTemplateGone()
            | events.ResourceSliceSeen()
            | events.ResourceSliceGone()
            | events.DeviceClassSeen()
            | events.DeviceClassGone()
        ):
            return apply_devices(snapshot, event)
        case _:
            return apply_storage(snapshot, event)


def _put_pod(snapshot: Snapshot, pod: Pod) -> Snapshot:
    before = snapshot.pods.get(pod.key)
    bound = snapshot.pods_of_node
    if before is not None and before.node_name != pod.node_name:
        bound = _unbind(bound, before)
    if pod.node_name:
        bound = bound.set(pod.node_name, bound.get(pod.node_name, frozenset()) | {pod.key})
    return replace(snapshot, pods=snapshot.pods.set(pod.key, pod), pods_of_node=bound)


def _drop_pod(snapshot: Snapshot, key: str) -> Snapshot:
    pod = snapshot.pods.get(key)
    if pod is None:
        return snapshot
    return replace(snapshot, pods=snapshot.pods.delete(key), pods_of_node=_unbind(snapshot.pods_of_node, pod))


def _unbind(bound: Map[str, frozenset[str]], pod: Pod) -> Map[str, frozenset[str]]:
    if not pod.node_name:
        return bound
    left = bound.get(pod.node_name, frozenset()) - {pod.key}
    return bound.set(pod.node_name, left) if left else delete_key(bound, pod.node_name)


def _reindex(
    index: Map[str, str],
    objects: Map[str, Node] | Map[str, NodeClaim],
    name: str,
    after: Node | NodeClaim | None,
) -> Map[str, str]:
    """Provider id to object name, after the object `name` of `objects` changed to `after`.

    Two objects may have one provider id (a machine that joined again under another name): the one seen
    last stands in the index, and the other one takes its place when it goes.
    """
    before = objects.get(name)
    old = before.provider_id if before is not None else ""
    new = after.provider_id if after is not None else ""
    if old and old != new and index.get(old) == name:
        twins = sorted(other for other, each in objects.items() if each.provider_id == old and other != name)
        index = index.set(old, twins[0]) if twins else index.delete(old)
    return index.set(new, name) if new else index


def _put_node(snapshot: Snapshot, node: Node) -> Snapshot:
    index = _reindex(snapshot.node_names, snapshot.nodes, node.name, node)
    return replace(snapshot, nodes=snapshot.nodes.set(node.name, node), node_names=index)


def _drop_node(snapshot: Snapshot, name: str) -> Snapshot:
    index = _reindex(snapshot.node_names, snapshot.nodes, name, None)
    nominations = delete_key(snapshot.nominations, name)
    return replace(
        snapshot, nodes=delete_key(snapshot.nodes, name), node_names=index, nominations=nominations
    )


def _put_claim(snapshot: Snapshot, claim: NodeClaim) -> Snapshot:
    index = _reindex(snapshot.claim_names, snapshot.claims, claim.name, claim)
    return replace(snapshot, claims=snapshot.claims.set(claim.name, claim), claim_names=index)


def _drop_claim(snapshot: Snapshot, name: str) -> Snapshot:
    index = _reindex(snapshot.claim_names, snapshot.claims, name, None)
    nominations = delete_key(snapshot.nominations, name)
    return replace(
        snapshot, claims=delete_key(snapshot.claims, name), claim_names=index, nominations=nominations
    )


def _put_pool(snapshot: Snapshot, pool: Pool, inline_class: NodeClass | None) -> Snapshot:
    classes = snapshot.node_classes
    classes = (
        classes.set(pool.key, inline_class) if inline_class is not None else delete_key(classes, pool.key)
    )
    others = delete_key(snapshot.neighbor_pools, pool.key)
    pools = snapshot.pools.set(pool.key, pool)
    return replace(snapshot, pools=pools, node_classes=classes, neighbor_pools=others)


def _drop_pool(snapshot: Snapshot, key: str) -> Snapshot:
    """Without a pool, whoever serves it."""
    return replace(
        snapshot,
        pools=delete_key(snapshot.pools, key),
        node_classes=delete_key(snapshot.node_classes, key),
        neighbor_pools=delete_key(snapshot.neighbor_pools, key),
    )
