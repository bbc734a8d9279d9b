"""From the documents to the model: pods, nodes, DaemonSets."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import msgspec

from nodeless.api.times import parse_time
from nodeless.kube import documents
from nodeless.model import pods as model
from nodeless.model.conditions import Condition
from nodeless.model.labels import (
    CHECKPOINT_GRACE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    FIELD_MANAGER,
    GANG_SIZE,
    GANG_TOPOLOGY,
    LEADER_WORKER_SIZE,
    LOST_WORK,
    POD_DELETION_COST,
    POD_DISRUPTION_COST,
    SURGE,
    SURGED_FOR,
)
from nodeless.model.namespaces import Namespace
from nodeless.model.neighbors import program_of
from nodeless.model.nodes import Node
from nodeless.model.provisioning_requests import CONSUME_ANNOTATIONS
from nodeless.model.quantity import QuantityError, parse_units
from nodeless.model.requirements import Requirement
from nodeless.model.resources import PODS, Resources, add, format_amount, maximum, parse_resources
from nodeless.model.taints import Taint, Toleration

_POD = msgspec.json.Decoder(documents.Pod)
_NODE = msgspec.json.Decoder(documents.Node)
_MANAGED_FIELDS = msgspec.json.Decoder(list[documents.ManagedFields] | None)
_OUTLINE = msgspec.json.Decoder(documents.PodOutline)
_NAMESPACE = msgspec.json.Decoder(documents.Namespace)
_DAEMON_SET = msgspec.json.Decoder(documents.DaemonSet)

_POD_ANNOTATIONS = (
    DO_NOT_EVICT,
    DO_NOT_DISRUPT,
    CHECKPOINT_GRACE,
    POD_DELETION_COST,
    POD_DISRUPTION_COST,
    SURGE,
    SURGED_FOR,
    GANG_SIZE,
    GANG_TOPOLOGY,
    LEADER_WORKER_SIZE,
    LOST_WORK,
    *CONSUME_ANNOTATIONS,
)
_NOMINATION = "f:nominatedNodeName"
#: Bytes of a pod's JSON; etcd takes 1.5 MiB, of which an ordinary pod has a hundredth.
MOST_POD_BYTES = 4 * 1024 * 1024
#: Characters of what is wrong with a pod that are kept.
_LONGEST_PROBLEM = 500
_RESIZE_PENDING = "PodResizePending"
#: Its reasons: the node lacks the room now; the node can never have it.
DEFERRED, INFEASIBLE = "Deferred", "Infeasible"
_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_MIRROR = "kubernetes.io/config.mirror"
#: Distinct pod shapes kept for sharing; a cluster has far fewer workloads than this.
_MOST_SHAPES = 50_000
_shapes: dict[model.PodShape, model.PodShape] = {}
_Containers = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
_container_shapes: dict[_Containers, _Containers] = {}


def decode_pod(raw: bytes, *, container_requests: bool = False) -> model.Pod:
    """A pod from its JSON, on demand with what each container requests.

    Raises msgspec.DecodeError, and ValueError for one that is too large.
    """
    if len(raw) > MOST_POD_BYTES:
        raise ValueError(
            f"it is {len(raw) / 2**20:.1f} MiB as JSON, and pods of more than {MOST_POD_BYTES // 2**20} MiB"
            " are not planned for; hint: move large values into a ConfigMap or Secret",
        )
    document = _POD.decode(raw)
    pod = _read_pod(document)
    return replace(pod, container_requests=_by_container(document.spec)) if container_requests else pod


def outline_pod(raw: bytes, problem: str) -> model.Pod:
    """What is certain of a pod whose requirements are not known, because it is too large or cannot be read.

    Its name, its node and its phase: its node is not empty. `problem` is why it cannot be planned for.
    Raises msgspec.DecodeError, ValueError when not even that is certain.
    """
    document = _OUTLINE.decode(raw)
    spec = documents.PodSpec(nodeName=document.spec.nodeName, schedulerName=document.spec.schedulerName)
    seen = document.status
    status = documents.PodStatus(phase=seen.phase, conditions=seen.conditions, startTime=seen.startTime)
    pod = _read_pod(documents.Pod(document.metadata, spec, status))
    shape = model.PodShape(requests=((PODS, 1),), invalid=problem[:_LONGEST_PROBLEM])
    return replace(pod, shape=_shapes.setdefault(shape, shape))


def _read_pod(document: documents.Pod) -> model.Pod:
    metadata, spec, status = document.metadata, document.spec, document.status
    annotations = metadata.annotations
    conditions = {condition.type: condition for condition in status.conditions}
    scheduled = conditions.get("PodScheduled")
    ready = conditions.get("Ready")
    ours = _expected_by_us(document)
    return model.Pod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        shape=shape_of(spec, status, metadata.labels),
        labels=metadata.labels,
        annotations={key: annotations[key] for key in _POD_ANNOTATIONS if key in annotations},
        node_name=spec.nodeName,
        nominated_node_name="" if ours else status.nominatedNodeName,
        expected_node_name=status.nominatedNodeName if ours else "",
        phase=status.phase,
        unschedulable=scheduled is not None and scheduled.reason == "Unschedulable",
        ready=ready is not None and ready.status == "True",
        ready_at=_time(ready.lastTransitionTime) if ready is not None else None,
        owners=_owners(metadata),
        priority=spec.priority,
        priority_class=spec.priorityClassName,
        scheduler_name=spec.schedulerName,
        created_at=_time(metadata.creationTimestamp) or 0.0,
        started_at=_time(status.startTime),
        deletion_timestamp=_time(metadata.deletionTimestamp),
        grace_period_seconds=spec.terminationGracePeriodSeconds,
        checkpoint_requested_at=_checkpoint_requested(annotations, conditions),
        resize=_pending_resize(spec, status),
        mirror=_MIRROR in annotations,
        limits=_limits(spec),
        least_requests=_least_requests(spec),
        generated_claims=tuple(
            (status_of_claim.name, status_of_claim.resourceClaimName)
            for status_of_claim in status.resourceClaimStatuses
            if status_of_claim.resourceClaimName is not None
        ),
        extended_parts=_extended_parts(spec),
        program=_program(spec),
    )


def _extended_parts(spec: documents.PodSpec) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What devices would be allocated apart, of extended resources that more than one container requests.

    kube-scheduler claims devices for each container. An init container uses those of containers and sidecars
    that start after it, and of what init containers ask for beyond that the most counts once (KEP-5004).
    """
    containers = (*spec.initContainers, *spec.containers)
    if len(containers) < 2:
        return ()
    amounts = [{**each.resources.limits, **each.resources.requests} for each in containers]
    names = [name for some in amounts for name in some if "/" in name]
    initial = len(spec.initContainers)
    found = []
    for name in sorted({name for name in names if names.count(name) > 1}):
        try:
            asked = [max(parse_units(some.get(name, 0)), 0) for some in amounts]
        except QuantityError:
            continue
        short = [at < initial and each.restartPolicy != "Always" for at, each in enumerate(containers)]
        lasting = [0 if ends else amount for ends, amount in zip(short, asked, strict=True)]
        more = max((asked[at] - sum(lasting[at:]) for at, ends in enumerate(short) if ends), default=0)
        parts = tuple(part for part in (more, *lasting) if part > 0)
        if len(parts) > 1:
            found.append((name, parts))
    return tuple(found)


def _checkpoint_requested(
    annotations: Mapping[str, str], conditions: Mapping[str, documents.PodCondition]
) -> float | None:
    told = conditions.get(model.CHECKPOINT_REQUESTED) if CHECKPOINT_GRACE in annotations else None
    return _time(told.lastTransitionTime) if told is not None and told.status == "True" else None


def _program(spec: documents.PodSpec) -> str:
    """Which other autoscaler it is, if any."""
    return next(filter(None, (program_of(container.image) for container in spec.containers)), "")


def _expected_by_us(document: documents.Pod) -> bool:
    """Whether it was we who wrote the nominated node's name: the API server keeps who wrote a field last."""
    if not document.status.nominatedNodeName:
        return False
    return any(
        entry.manager == FIELD_MANAGER and _NOMINATION in _fields(entry.fieldsV1.get("f:status"))
        for entry in _MANAGED_FIELDS.decode(document.metadata.managedFields) or ()
    )


def _fields(of: object) -> dict[str, object]:
    return of if isinstance(of, dict) else {}


def decode_daemon_set(raw: bytes) -> model.DaemonSet:
    """A DaemonSet from its JSON, with the shape of the pods that it makes."""
    document = _DAEMON_SET.decode(raw)
    metadata, template = document.metadata, document.spec.template
    return model.DaemonSet(
        metadata.uid, metadata.namespace, metadata.name, shape_of(template.spec), template.metadata.labels
    )


def decode_namespace(raw: bytes) -> Namespace:
    """A namespace from its JSON, with the labels by which affinity terms choose it."""
    metadata = _NAMESPACE.decode(raw).metadata
    return Namespace(metadata.name, metadata.labels)


def decode_node(raw: bytes) -> Node:
    """A node from its JSON."""
    document = _NODE.decode(raw)
    metadata, spec, status = document.metadata, document.spec, document.status
    return Node(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resourceVersion,
        provider_id=spec.providerID,
        labels=metadata.labels,
        annotations=metadata.annotations,
        taints=tuple(Taint(taint.key, taint.effect, taint.value) for taint in spec.taints),
        unschedulable=spec.unschedulable,
        capacity=parse_resources(status.capacity),
        allocatable=parse_resources(status.allocatable),
        ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions),
        created_at=_time(metadata.creationTimestamp) or 0.0,
        deletion_timestamp=_time(metadata.deletionTimestamp),
        finalizers=tuple(metadata.finalizers),
        owners=_owners(metadata),
        conditions=tuple(
            Condition(
                condition.type,
                condition.status,
                condition.reason,
                "",
                _time(condition.lastTransitionTime) or 0.0,
            )
            for condition in status.conditions
        ),
        boot_id=status.nodeInfo.bootID,
    )


def shape_of(
    spec: documents.PodSpec,
    status: documents.PodStatus | None = None,
    labels: Mapping[str, str] = _NO_LABELS,
) -> model.PodShape:
    """What of a pod's spec decides where it can run; one shared instance for equal specs.

    A spec that says what cannot be read (an operator of a later Kubernetes, say) gives an invalid shape.
    What the API server adds to a pod, and not to a template, is added here: host ports of pods on the host's
    network, and the pod's own labels under `matchLabelKeys` and `mismatchLabelKeys` of affinity terms.
    """
    try:
        shape = _read_shape(spec, status, labels)
    except ValueError as error:
        shape = model.PodShape(requests=((PODS, 1),), invalid=str(error))
    if len(_shapes) >= _MOST_SHAPES:
        _shapes.clear()
    return _shapes.setdefault(shape, shape)


def _read_shape(
    spec: documents.PodSpec, status: documents.PodStatus | None, labels: Mapping[str, str]
) -> model.PodShape:
    affinity = spec.affinity or documents.Affinity()
    node_affinity = affinity.nodeAffinity or documents.NodeAffinity()
    required = node_affinity.requiredDuringSchedulingIgnoredDuringExecution
    return model.PodShape(
        requests=tuple(sorted(pod_requests(spec, status).items())),
        node_selector=tuple(sorted(spec.nodeSelector.items())),
        required_terms=tuple(selector_term(term) for term in required.nodeSelectorTerms) if required else (),
        preferred_terms=tuple(
            (preferred.weight, selector_term(preferred.preference))
            for preferred in node_affinity.preferredDuringSchedulingIgnoredDuringExecution
        ),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in spec.tolerations),
        host_ports=_host_ports(spec),
        spread=tuple(_spread(constraint) for constraint in spec.topologySpreadConstraints),
        affinity=_pod_affinity(affinity.podAffinity, labels),
        anti_affinity=_pod_affinity(affinity.podAntiAffinity, labels),
        claims=tuple(
            volume.persistentVolumeClaim.claimName
            for volume in spec.volumes
            if volume.persistentVolumeClaim is not None
        ),
        ephemeral_volumes=tuple(
            (volume.name, volume.ephemeral.volumeClaimTemplate.spec.storageClassName)
            for volume in spec.volumes
            if volume.ephemeral is not None and volume.ephemeral.volumeClaimTemplate is not None
        ),
        resource_claims=_resource_claims(spec, status),
    )


def _host_ports(spec: documents.PodSpec) -> tuple[model.HostPort, ...]:
    """Those of containers and sidecars; on the host's network every container port is one."""
    return tuple(
        model.HostPort(port.hostIP or "0.0.0.0", number, port.protocol)
        for container in (*_sidecars(spec), *spec.containers)
        for port in container.ports
        if (number := port.hostPort or (port.containerPort if spec.hostNetwork else 0))
    )


def _sidecars(spec: documents.PodSpec) -> list[documents.Container]:
    return [
        init_container for init_container in spec.initContainers if init_container.restartPolicy == "Always"
    ]


def _resource_claims(
    spec: documents.PodSpec, status: documents.PodStatus | None
) -> tuple[model.PodResourceClaim, ...]:
    """A pod's claims on devices, without claims of which its status says that none was needed (KEP-4381)."""
    needless = {
        resource_claim_status.name
        for resource_claim_status in (status.resourceClaimStatuses if status is not None else ())
        if resource_claim_status.resourceClaimName is None
    }
    declared = {resource_claim.name: resource_claim for resource_claim in spec.resourceClaims}
    containers = (*spec.initContainers, *spec.containers)
    used = {claim.name for container in containers for claim in container.resources.claims}
    return tuple(
        sorted(_pod_resource_claim(name, declared.get(name)) for name in {*declared, *used} - needless)
    )


def _pod_resource_claim(name: str, claim: documents.PodResourceClaim | None) -> model.PodResourceClaim:
    if claim is None:
        return model.PodResourceClaim(name)
    return model.PodResourceClaim(name, claim.resourceClaimName or "", claim.resourceClaimTemplateName or "")


def pod_requests(spec: documents.PodSpec, status: documents.PodStatus | None = None) -> dict[str, int]:
    """A pod's effective requests, by Kubernetes' rules, with one unit of `pods`.

    Sidecars (init containers that restart) count with the containers, every other init container for
    itself with the sidecars started before it; the larger of the two phases counts. Pod-level requests
    replace the sum, and a pod-level limit counts where nothing is requested of its resource (as the API
    server fills it in for pods); the runtime class's overhead comes on top
    (https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers).
    While a container, or the pod as a whole, is resized in place it counts with the most of what is
    requested, allocated and in use; with the latter two alone while its node says that it can never grow so
    far
    (component-helpers' `PodRequests` with `UseStatusResources`, KEP-1287 and KEP-5419).
    """
    infeasible = status is not None and _resize_pending(status) == INFEASIBLE
    return _requests(spec, status, _granted if infeasible else maximum)


def _granted(_requested: Resources, in_use: Resources) -> dict[str, int]:
    return dict(in_use)


def _requests(
    spec: documents.PodSpec,
    status: documents.PodStatus | None,
    counts: Callable[[Resources, Resources], dict[str, int]],
) -> dict[str, int]:
    """A pod's requests, with what counts of what a container requests and what is in use of that."""
    held = _held_resources(status)

    def effective(requested: dict[str, int], in_use: dict[str, int] | None) -> dict[str, int]:
        return requested if in_use is None else counts(requested, in_use)

    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.initContainers:
        requests = _container_requests(container.resources)
        if container.restartPolicy == "Always":
            sidecars = add(sidecars, effective(requests, held.get(container.name)))
            peak = maximum(peak, sidecars)
        else:
            # These cannot be resized, and what their status says does not count.
            peak = maximum(peak, add(sidecars, requests))
    running = add(
        sidecars,
        *(
            effective(_container_requests(container.resources), held.get(container.name))
            for container in spec.containers
        ),
    )
    needed = maximum(running, peak)
    if spec.resources is not None:
        asked = _pod_level_requests(spec.resources, needed)
        counted = effective(asked, _in_use_by_pod(status))
        needed |= {name: counted.get(name, 0) for name in asked}
    return {
        name: amount for name, amount in add(needed, parse_resources(spec.overhead)).items() if amount
    } | {PODS: 1}


def _pending_resize(spec: documents.PodSpec, status: documents.PodStatus) -> model.PendingResize | None:
    """The resize that waits; None also where what is asked for cannot be read: its shape says that."""
    reason = _resize_pending(status) if spec.nodeName else ""
    if not reason:
        return None
    try:
        wanted, granted = _requests(spec, None, maximum), _requests(spec, status, _granted)
    except ValueError:
        return None
    return model.PendingResize(reason, tuple(sorted(wanted.items())), tuple(sorted(granted.items())))


def _resize_pending(status: documents.PodStatus) -> str:
    """Why a resize of the pod waits: `Deferred`, `Infeasible`; empty: none does."""
    return next((each.reason for each in status.conditions if each.type == _RESIZE_PENDING), "")


def _held_resources(status: documents.PodStatus | None) -> dict[str, dict[str, int]]:
    """By container, what its kubelet says is allocated to it or in use."""
    if status is None:
        return {}
    return {
        container.name: _in_use(container.allocatedResources, container.resources)
        for container in (*status.initContainerStatuses, *status.containerStatuses)
        if container.resources is not None
    }


def _in_use_by_pod(status: documents.PodStatus | None) -> dict[str, int] | None:
    """The same of the pod as a whole; None where its kubelet says nothing."""
    if status is None or status.resources is None:
        return None
    return _in_use(status.allocatedResources, status.resources)


def _in_use(allocated: documents.Quantities | None, actual: documents.ResourceRequirements) -> dict[str, int]:
    return maximum(parse_resources(allocated), parse_resources(actual.requests))


def _by_container(spec: documents.PodSpec) -> _Containers:
    """What containers and sidecars request, one shared instance for equal ones; nothing if unreadable."""
    try:
        found = tuple(
            (container.name, tuple(sorted(_container_requests(container.resources).items())))
            for container in (*_sidecars(spec), *spec.containers)
        )
    except ValueError:
        return ()
    if len(_container_shapes) >= _MOST_SHAPES:
        _container_shapes.clear()
    return _container_shapes.setdefault(found, found)


def _limits(spec: documents.PodSpec) -> tuple[tuple[str, int], ...]:
    containers = (*_sidecars(spec), *spec.containers)
    given = [container.resources.limits for container in containers if container.resources.limits]
    try:
        return tuple(sorted(add({}, *(parse_resources(limits) for limits in given)).items()))
    except ValueError:
        # The shape says what cannot be read; here it is only not shown.
        return ()


def _least_requests(spec: documents.PodSpec) -> tuple[tuple[str, int], ...]:
    if not (spec.initContainers or spec.resources is not None or spec.overhead):
        return ()
    initial = [each for each in spec.initContainers if each.restartPolicy != "Always"]
    try:
        least = pod_requests(msgspec.structs.replace(spec, initContainers=initial, containers=[]))
    except ValueError:
        # As for limits.
        return ()
    return _shared(tuple(sorted((name, amount) for name, amount in least.items() if name != PODS)))


@lru_cache(maxsize=4096)
def _shared(requests: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """One instance for equal ones."""
    return requests


def _pod_level_requests(
    resources: documents.ResourceRequirements, needed: Mapping[str, int]
) -> dict[str, int]:
    amounts = _container_requests(resources)
    return {
        name: amount for name, amount in amounts.items() if name in resources.requests or name not in needed
    }


def _container_requests(resources: documents.ResourceRequirements) -> dict[str, int]:
    amounts = parse_resources({**resources.limits, **resources.requests})
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(f"it requests {format_amount(name, amount)} of {name}")
    return amounts


def selector_term(term: documents.NodeSelectorTerm) -> model.NodeSelectorTerm:
    """One node selector term, of a pod's affinity or of a volume's."""
    return model.NodeSelectorTerm(
        tuple(Requirement.of(e.key, e.operator, e.values) for e in term.matchExpressions),
        match_fields=bool(term.matchFields),
        fields=tuple(Requirement.of(e.key, e.operator, e.values) for e in term.matchFields),
    )


def label_selector(selector: documents.Selector | None) -> model.LabelSelector | None:
    """A selector, or None where there is none (it then selects nothing)."""
    if selector is None:
        return None
    return model.LabelSelector(
        tuple(sorted(selector.matchLabels.items())),
        tuple((e.key, e.operator, tuple(e.values)) for e in selector.matchExpressions),
    )


def _spread(constraint: documents.SpreadConstraint) -> model.TopologySpreadConstraint:
    return model.TopologySpreadConstraint(
        constraint.topologyKey,
        constraint.maxSkew,
        constraint.whenUnsatisfiable,
        label_selector(constraint.labelSelector),
        constraint.minDomains,
        constraint.nodeAffinityPolicy,
        constraint.nodeTaintsPolicy,
        tuple(constraint.matchLabelKeys),
    )


def _pod_affinity(
    affinity: documents.PodAffinity | None, labels: Mapping[str, str]
) -> tuple[model.PodAffinityTerm, ...]:
    if affinity is None:
        return ()
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution
    preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution
    return tuple(
        _affinity_term(term, weight, labels)
        for term, weight in [
            *((term, None) for term in required),
            *((weighted.podAffinityTerm, weighted.weight) for weighted in preferred),
        ]
    )


def _affinity_term(
    term: documents.PodAffinityTerm, weight: int | None, labels: Mapping[str, str]
) -> model.PodAffinityTerm:
    selector = label_selector(term.labelSelector)
    if selector is not None and (term.matchLabelKeys or term.mismatchLabelKeys):
        wanted = [(key, "In", (labels[key],)) for key in term.matchLabelKeys if key in labels]
        wanted += [(key, "NotIn", (labels[key],)) for key in term.mismatchLabelKeys if key in labels]
        added = tuple(resource for resource in wanted if resource not in selector.match_expressions)
        selector = replace(selector, match_expressions=(*selector.match_expressions, *added))
    return model.PodAffinityTerm(
        term.topologyKey,
        selector,
        tuple(term.namespaces),
        label_selector(term.namespaceSelector),
        weight,
    )


def _owners(metadata: documents.Metadata) -> tuple[model.Owner, ...]:
    references: Iterable[documents.OwnerReference] = metadata.ownerReferences
    return tuple(model.Owner(o.apiVersion, o.kind, o.name, o.uid, o.controller) for o in references)


def _time(text: str | None) -> float | None:
    return None if text is None else parse_time(text)


def decode_node_document(document: dict[str, object]) -> Node:
    """A node from an already decoded document, as answers to our own writes come."""
    return decode_node(msgspec.json.encode(document))
