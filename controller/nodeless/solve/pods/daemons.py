"""What daemons need: the newest pod of a DaemonSet tells it better than the template.

Admission (limit ranges, injected containers, a resized pod) may have changed what a template asks
for; the pods that run bear the result (Karpenter's cache of DaemonSet pods).
"""

from dataclasses import replace

from immutables import Map

from nodeless.model.pods import DaemonSet, Pod
from nodeless.model.snapshot import Snapshot


def as_they_run(snapshot: Snapshot) -> Map[str, DaemonSet]:
    """The DaemonSets by key, each with the requests of its newest pod, where it has one."""
    daemon_sets = snapshot.daemon_sets
    newest: dict[str, Pod] = {}
    owned = [pod for pod in snapshot.pods.values() if pod.owners] if daemon_sets else []
    for pod in owned:
        if pod.terminal:
            continue
        key = _daemon_set_of(pod)
        if key in daemon_sets and (key not in newest or _age(newest[key]) < _age(pod)):
            newest[key] = pod
    changed = {
        key: replace(daemon_sets[key], shape=replace(daemon_sets[key].shape, requests=pod.shape.requests))
        for key, pod in newest.items()
        if daemon_sets[key].shape.requests != pod.shape.requests
    }
    return Map({**daemon_sets, **changed}) if changed else daemon_sets


def _daemon_set_of(pod: Pod) -> str:
    names = (owner.name for owner in pod.owners if owner.kind == "DaemonSet" and owner.controller)
    return f"{pod.namespace}/{next(names, '')}"


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created_at, pod.key
