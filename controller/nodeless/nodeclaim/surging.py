"""Surge before evict: a pod that nothing stands in for gets its successor first, and leaves then.

Opt-in, by the annotation `nodeless.dev/surge: "true"` on the pods of a Deployment. An eviction takes a
single replica away before there is another one; a restart of its Deployment makes the other one first.
So, when such a pod must leave its node and no other pod of its Deployment is ready elsewhere, the
Deployment is restarted (as by `kubectl rollout restart`, once for each pod) instead of an eviction. Its
own rolling update then brings up the successor, which finds no place on a node that is on its way out,
and removes the pod. A drain waits for that for ten minutes; then the pod is evicted like any other. In a
teardown no node is made for a successor, and nothing waits for one.
"""

from collections.abc import Iterable

from nodeless.model.labels import SURGE, SURGED_FOR
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

#: How long after the node's deletion a successor is waited for.
SURGE_PATIENCE = 600.0
DEPLOYMENT = "Deployment"


def surges(pod: Pod) -> bool:
    """Whether the pod asks for a successor before it leaves, and its owner can make one."""
    return pod.annotations.get(SURGE) == "true" and workload_of(pod).kind == DEPLOYMENT


def surge_pending(snapshot: Snapshot, pods: Iterable[Pod]) -> frozenset[str]:
    """Of the pods of one node, the keys of those that surge and that no ready pod stands in for elsewhere."""
    asking = {pod.key: workload_of(pod) for pod in pods if surges(pod) and not pod.terminal}
    if not asking or snapshot.teardown:
        return frozenset()
    home = {snapshot.pods[key].node_name for key in asking if key in snapshot.pods}
    stood_in = _ready_elsewhere(snapshot, set(asking.values()), home)
    return frozenset(key for key, workload in asking.items() if workload not in stood_in)


def surge_started(snapshot: Snapshot, pods: Iterable[Pod]) -> frozenset[str]:
    """Of some pods the keys of those for which a successor has been made, ready or not.

    It stands on the successor, so that a leader that follows asks for no second one.
    """
    asking = {pod.uid: pod for pod in pods if surges(pod)}
    if not asking:
        return frozenset()
    return frozenset(
        asking[uid].key
        for pod in snapshot.pods.values()
        if (uid := pod.annotations.get(SURGED_FOR, "")) in asking
        and not pod.terminal
        and pod.deletion_timestamp is None
        and workload_of(pod) == workload_of(asking[uid])
    )


def _ready_elsewhere(snapshot: Snapshot, wanted: set[Workload], home: set[str]) -> set[Workload]:
    return {
        workload
        for pod in snapshot.pods.values()
        if pod.ready
        and not pod.terminal
        and pod.deletion_timestamp is None
        and pod.node_name not in home
        and (workload := workload_of(pod)) in wanted
    }
