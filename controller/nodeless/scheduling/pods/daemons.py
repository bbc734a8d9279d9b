"""What daemons need: the newest pod of a DaemonSet tells it better than the template.

Admission (limit ranges, injected containers, tolerations and affinity added, a resized pod) may have
changed what a template asks for; the pods that run bear the result (Karpenter's cache of DaemonSet pods).
Of the pod's required node affinity the DaemonSet controller has replaced the template's by the name of
the node; what else stands there was added after it. Labels are the template's: while a new template is rolled
out, new nodes get pods of that.
"""

from dataclasses import replace

from immutables import Map

from nodeless.model.pods import DaemonSet, NodeSelectorTerm, Pod, PodShape
from nodeless.model.snapshot import Snapshot


def with_observed_requests(snapshot: Snapshot) -> Map[str, DaemonSet]:
    """The DaemonSets by key, each as its newest pod was admitted, where it has one that can be read."""
    daemon_sets = snapshot.daemon_sets
    newest: dict[str, Pod] = {}
    owned = [pod for pod in snapshot.pods.values() if pod.owners] if daemon_sets else []
    for pod in owned:
        if pod.terminal or pod.shape.invalid:
            continue
        key = _daemon_set_of(pod)
        if key in daemon_sets and (key not in newest or _age(newest[key]) < _age(pod)):
            newest[key] = pod
    admitted = {
        key: replace(daemon_sets[key], shape=_admitted(daemon_sets[key].shape, pod.shape))
        for key, pod in newest.items()
    }
    return daemon_sets.update(admitted) if admitted else daemon_sets


def _admitted(template: PodShape, pod: PodShape) -> PodShape:
    """The template with what admission made of it, which takes no selector and no toleration away."""
    return replace(
        template,
        requests=pod.requests,
        host_ports=pod.host_ports,
        tolerations=tuple(dict.fromkeys((*template.tolerations, *pod.tolerations))),
        node_selector=tuple(sorted({**dict(template.node_selector), **dict(pod.node_selector)}.items())),
        required_terms=_with_added(template.required_terms, pod.required_terms),
    )


def _with_added(
    template: tuple[NodeSelectorTerm, ...], pod: tuple[NodeSelectorTerm, ...]
) -> tuple[NodeSelectorTerm, ...]:
    """The template's terms, each with what stands beside the node's name in those of the pod."""
    if not all(term.expressions for term in pod):
        return template
    return tuple(
        replace(own, expressions=tuple(dict.fromkeys((*own.expressions, *added.expressions))))
        for own in template or (NodeSelectorTerm(()),)
        for added in pod
    )


def _daemon_set_of(pod: Pod) -> str:
    names = (owner.name for owner in pod.owners if owner.kind == "DaemonSet" and owner.controller)
    return f"{pod.namespace}/{next(names, '')}"


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created_at, pod.key
