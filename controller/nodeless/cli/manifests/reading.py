"""From documents to a snapshot, every fault of every file at once, with its line.

Kinds that the controller watches are read by its own decoders; workloads become the pods that
they would make. What manifests leave open (a node class, a storage class, a volume claim) is
assumed, and said.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import msgspec

from nodeless.api.errors import InvalidObject
from nodeless.api.foreign_kinds import is_served_by_others
from nodeless.api.reading import read_neighbor_pool
from nodeless.api.rule_codes import RuleCode
from nodeless.api.unsupported import unsupported
from nodeless.api.validation import kind_of, subject_of, validate
from nodeless.api.workload_rules import is_own_workload
from nodeless.cli.manifests.admission import Admission, admission_of, is_admission
from nodeless.cli.manifests.budgets import counted_budget, is_uncounted
from nodeless.cli.manifests.documents import BadManifests, Document, FaultLine
from nodeless.cli.manifests.generations import located, served_documents
from nodeless.cli.manifests.kafka_sets import with_parts_of_kafka
from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    group_of,
    is_kind,
    key_of,
    metadata_of,
    namespace_of,
)
from nodeless.cli.manifests.pod_sets import is_operated
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode
from nodeless.cli.manifests.ray_clusters import clusters_of
from nodeless.cli.manifests.replicas import scaling_of
from nodeless.cli.manifests.skipped import Skipped, skipped_kind
from nodeless.cli.manifests.spark_sets import APP_NAME
from nodeless.cli.manifests.stored_form import stored_form
from nodeless.cli.manifests.task_runs import with_tasks
from nodeless.cli.manifests.workload_checks import refused_in_plans
from nodeless.cli.manifests.workloads import (
    KINDS,
    daemon_set_of,
    gates_of,
    is_daemon_set,
    is_workload,
    pod_of,
    pod_sets_of,
    pods_of,
)
from nodeless.explain.migration.autoscaler import is_autoscaler, read_autoscaler
from nodeless.explain.migration.ledger import Ledger
from nodeless.explain.words import count
from nodeless.kube import Watched, watched_kinds
from nodeless.kube.autoscaler_status import groups_of, is_status
from nodeless.kube.buffers import watched_buffers
from nodeless.kube.gangs import watched_gang_sizes
from nodeless.kube.overlays import watched_overlays
from nodeless.kube.provisioning_requests import REQUESTS_V1BETA1, watched_requests
from nodeless.model import events
from nodeless.model.neighbors import ScalingGroup
from nodeless.model.pods import Pod
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, NodeClass
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim, StorageClass, Volume
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling.devices.extended_resources import CLASS_PREFIX, class_faults
from nodeless.scheduling.devices.known_devices import KNOWN_CLASSES
from nodeless.scheduling.pods.volumes import default_class
from nodeless.state import apply

_EBS = "ebs.csi.aws.com"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_NOTHING = Snapshot()
_NAMESPACED = {
    "persistentvolumeclaims",
    "provisioningrequests",
    "resourceclaims",
    "resourceclaimtemplates",
    *(watched.name for watched in (*watched_buffers(), *watched_gang_sizes())),
}
_GROUPS = ("karpenter.sh", "karpenter.k8s.aws")
_OWN_GROUPS = ("", "apps", "batch", "extensions")
#: Labels by which operators name the object that a pod came of.
_PARENT_LABELS = {
    "jobset.sigs.k8s.io/jobset-name": "JobSet",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
    APP_NAME: "SparkApplication",
}
_ROLLOUT_HASH = "rollouts-pod-template-hash"
#: Workloads that say how many pods there shall be of those that they made.
_DECIDING = ("Deployment", "Rollout")


@dataclass(frozen=True, slots=True)
class FileContents:
    """What files hold."""

    snapshot: Snapshot
    skipped: tuple[Skipped, ...] = ()
    """Objects that are left out."""
    unread: tuple[Skipped, ...] = ()
    """Those of kinds of which `assumed` says that they are not read."""
    assumed: tuple[str, ...] = ()
    """What was not in the files and is taken to exist, what was converted, and how else files were read."""
    autoscaled: bool = False
    """Whether an autoscaler of the documents, or its own operator, scales a workload of them."""


def read_documents(
    documents: Iterable[Document],
    base: Snapshot = _NOTHING,
    replicas: ReplicasMode = ReplicasMode.CURRENT,
) -> FileContents:
    """The snapshot of all documents together, on top of another. Raises BadManifests with every fault.

    An object takes the place of one of its name; of a workload, the pods that are not there yet come to be.
    `replicas` says which number of those that an autoscaler of the documents, or their operator, allows.
    """
    return _Reader(replicas).read(list(documents), base)


class _Reader:
    def __init__(self, replicas: ReplicasMode) -> None:
        self._mode = replicas
        self._faults: list[str] = []
        requests = (watched_requests(), watched_requests(REQUESTS_V1BETA1))
        others = (*watched_overlays(), *watched_gang_sizes())
        kinds = (*watched_kinds(_invalid), *watched_buffers(), *others, *requests)
        self._watched = {watched.path: watched for watched in kinds}
        self._admission = Admission()
        self._autoscaled = False
        self._made: list[Pod] = []
        self._pod_names: set[str] = set()
        self._claims: set[str] = set()
        self._aliases: dict[Workload, Workload] = {}
        self._skipped: list[Skipped] = []
        self._notes: list[str] = []
        self._parents: set[Workload] = set()
        self._given: set[Workload] = set()
        self._scaling_groups: set[ScalingGroup] = set()

    def read(self, documents: list[Document], base: Snapshot) -> FileContents:
        snapshot = base
        seen: dict[str, str] = {}
        served = served_documents(documents)
        self._faults += served.faults
        usable: list[tuple[Document, dict[str, Any]]] = []
        for document in served.documents:
            self._once(document, seen)
            if self._is_usable(document):
                usable.append((document, stored_form(document.value)))
                self._faults += _workload_faults(*usable[-1])
        usable = with_tasks(with_parts_of_kafka(usable))
        self._given = {_workload(manifest) for _, manifest in usable if is_workload(manifest)}
        self._admission, faults = admission_of(usable)
        self._fail(faults)
        self._parents = set(_parents(manifest for _, manifest in usable))
        self._pod_names = {
            f"{namespace_of(manifest)}/{metadata_of(manifest).get('name')}"
            for _, manifest in usable
            if manifest["kind"] == "Pod"
        }
        self._claims = set(base.volume_claims) | {
            "/".join(key_of(manifest))
            for _, manifest in usable
            if is_kind(manifest, "", "PersistentVolumeClaim")
        }
        self._aliases = dict(alias for _, manifest in usable for alias in clusters_of(manifest))
        for document, manifest in self._scaled(usable):
            for event in self._events(document, manifest):
                snapshot = apply(snapshot, event)
        if self._faults:
            raise BadManifests(self._faults)
        if self._scaling_groups:
            snapshot = apply(snapshot, events.AutoscalerGroupsSeen(tuple(sorted(self._scaling_groups))))
        snapshot = self._with_workloads_replaced(base, snapshot)
        for pod in _missing(snapshot, self._made, self._aliases):
            snapshot = apply(snapshot, events.PodSeen(pod))
        snapshot = self._with_budgets(usable, snapshot)
        snapshot, assumed = _assume(snapshot, base)
        notes = (*served.notes, *self._notes, *assumed, *self._admission.notes())
        return FileContents(snapshot, tuple(self._skipped), tuple(served.unread), notes, self._autoscaled)

    def _with_workloads_replaced(self, base: Snapshot, snapshot: Snapshot) -> Snapshot:
        """The snapshot without pending pods of workloads that were there before: new ones take their place.

        Pods that run stay where they are; that they request something else is noted.
        """
        requests: dict[Workload, set[tuple[tuple[str, int], ...]]] = defaultdict(set)
        for pod in self._made:
            requests[workload_of(pod)].add(pod.shape.requests)
        outdated: Counter[Workload] = Counter()
        for pod in base.pods.values() if requests else ():
            found = set() if pod.terminal or pod.key in self._pod_names else _workloads_of(pod)
            for workload in (found | {self._aliases.get(one, one) for one in found}) & set(requests):
                if not pod.node_name:
                    snapshot = apply(snapshot, events.PodGone(pod.key))
                elif pod.shape.requests not in requests[workload]:
                    outdated[workload] += 1
        for workload, number in sorted(outdated.items()):
            kept = count(number, "running pod has", "running pods have")
            stay = "it stays as it is" if number == 1 else "they stay as they are"
            self._notes.append(f"{workload}: {kept} other requests than the file; {stay}")
        return snapshot

    def _with_budgets(self, usable: list[tuple[Document, dict[str, Any]]], snapshot: Snapshot) -> Snapshot:
        """The snapshot with the evictions that budgets without a status allow. Raises BadManifests."""
        for document, manifest in usable:
            if not is_uncounted(manifest):
                continue
            try:
                budget = counted_budget(manifest, snapshot)
            except Unusable as error:
                self._fail([(document, manifest, error)])
            else:
                seen = () if budget is None else (events.PodDisruptionBudgetSeen(budget),)
                snapshot = reduce(apply, seen, snapshot)
        if self._faults:
            raise BadManifests(self._faults)
        return snapshot

    def _once(self, document: Document, seen: dict[str, str]) -> None:
        metadata = document.value.get("metadata") if isinstance(document.value, Mapping) else None
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if not name or not isinstance(metadata, Mapping):
            return
        namespace = metadata.get("namespace")
        # Operators have kinds of their own that are called Service or Cluster.
        group = _identity_group(document.value)
        identity = f"{group} {document.value.get('kind')} {namespace or 'default'}/{name}"
        if identity in seen:
            subject = f"{document.value.get('kind')}/{f'{namespace}/' if namespace else ''}{name}"
            hint = f"it is at {seen[identity]} already; hint: give each object once"
            line = f"{document.at('metadata.name')}: {subject}: {hint}"
            self._faults.append(FaultLine.of(line, RuleCode.REPEATED_NAME))
        seen.setdefault(identity, document.at())

    def _scaled(self, usable: list[tuple[Document, dict[str, Any]]]) -> list[tuple[Document, dict[str, Any]]]:
        """The objects with the replicas that autoscalers give them, without those read for that."""
        scaling = scaling_of(usable, self._mode)
        self._autoscaled |= scaling.autoscaled
        self._notes += scaling.notes
        self._skipped += scaling.skipped
        self._fail(scaling.faults)
        self._aliases |= scaling.references
        for position, number in scaling.replicas.items():
            document, manifest = usable[position]
            # A fault of the workload's own number stays one.
            if isinstance(manifest.get("spec"), Mapping) and not _is_faulty(manifest["spec"].get("replicas")):
                usable[position] = (document, {**manifest, "spec": {**manifest["spec"], "replicas": number}})
        return [pair for position, pair in enumerate(usable) if position not in scaling.read]

    def _fail(self, faults: Iterable[tuple[Document, Mapping[str, Any], Unusable]]) -> None:
        self._faults += [
            f"{document.at(error.path)}: {subject_of(manifest)}: {error}"
            for document, manifest, error in faults
        ]

    def _is_usable(self, document: Document) -> bool:
        manifest = document.value
        if not isinstance(manifest, Mapping) or not manifest.get("kind"):
            self._faults.append(
                f"{document.at()}: not a Kubernetes object; hint: an object has apiVersion and kind"
            )
            return False
        if not isinstance(manifest["kind"], str):
            self._faults.append(f"{document.at('kind')}: kind: {manifest['kind']!r} is not a name of a kind")
            return False
        faults = self._own_faults(document)
        self._faults.extend(faults)
        return not faults

    def _events(self, document: Document, manifest: dict[str, Any]) -> Iterator[events.Event]:
        try:
            yield from self._read(document, manifest)
        except Unusable as error:
            self._fail((document, manifest, fault) for fault in error.every())
        except InvalidObject as error:
            self._faults += [
                FaultLine.of(f"{document.at(problem.path)}: {error.subject}: {problem}", problem.code)
                for problem in error.errors
            ]
        except (msgspec.ValidationError, ValueError) as error:
            _, _, where = str(error).partition(" - at `")
            self._faults.append(f"{document.at(where.rstrip('`'))}: {subject_of(manifest)}: {error}")

    def _own_faults(self, document: Document) -> list[str]:
        """Faults of our kinds, as the webhook tells them."""
        manifest = document.value
        group = str(manifest.get("apiVersion") or "").partition("/")[0]
        if kind_of(manifest) is None and group not in _GROUPS:
            return []
        return [
            FaultLine.of(located(document, str(fault), fault.path), fault.code)
            for fault in validate(manifest)
            if not fault.warning
        ]

    def _read(self, document: Document, manifest: dict[str, Any]) -> Iterator[events.Event]:
        kind, api_version = manifest["kind"], str(manifest.get("apiVersion") or "v1")
        if refused := unsupported(manifest):
            # The controller makes no node of such a pool, and goes on.
            self._skipped.append(Skipped(document.at(), subject_of(manifest), kind, str(refused[0])))
            if is_served_by_others(manifest) and kind == NODE_POOL_KIND:
                yield events.NeighborPoolSeen(read_neighbor_pool(manifest))
        elif kind == "Pod":
            pod = pod_of(manifest, self._admission)
            self._note_gates(manifest, manifest.get("spec"), 0 if pod.node_name or pod.terminal else 1)
            yield events.PodSeen(pod if metadata_of(manifest).get("name") else self._named(pod))
        elif is_daemon_set(manifest):
            yield events.DaemonSetSeen(daemon_set_of(manifest, self._admission))
        elif is_status(manifest):
            self._scaling_groups.update(groups_of(manifest))
        elif is_workload(manifest):
            self._make(manifest)
            if is_autoscaler(manifest):
                named = read_autoscaler(manifest, Ledger()).groups
                self._scaling_groups.update(ScalingGroup(name, *sizes) for name, sizes in named.items())
            source = self._watched.get(_path(api_version, kind))
            # One of `generateName` has no name by which its pods could name it.
            if source is not None and metadata_of(manifest).get("name"):
                yield from _decoded(source, manifest)
        elif watched := self._watched.get(_path(api_version, kind)):
            yield from _decoded(watched, manifest)
        elif not is_admission(manifest):
            self._skipped.append(skipped_kind(manifest, document.at(), subject_of(manifest)))

    def _named(self, pod: Pod) -> Pod:
        """A pod of `generateName` with a name that no other pod of the files has."""
        number = 0
        while (key := f"{pod.namespace}/{pod.name}{number}") in self._pod_names:
            number += 1
        self._pod_names.add(key)
        return replace(pod, name=f"{pod.name}{number}", uid=key)

    def _note_gates(self, manifest: Mapping[str, Any], spec: Any, number: int) -> None:
        if number and (gates := gates_of(spec)):
            held = f"{count(number, 'pod waits', 'pods wait')} for the scheduling gate {', '.join(gates)}"
            self._notes.append(f"{subject_of(manifest)}: {held}, and nothing is launched before")

    def _make(self, manifest: dict[str, Any]) -> None:
        """The pods of a workload; where its parent or its children are there too, they are made once."""
        pod_sets = [one for one in pod_sets_of(manifest, self._mode) if not self._is_given(manifest, one)]
        pods = list(pods_of(manifest, pod_sets, self._admission, self._claims))
        if _workload(manifest) in self._parents:
            return
        self._made += pods
        for pod_set in pod_sets:
            self._note_gates(manifest, pod_set.template.get("spec"), pod_set.number)
        left_out = f", {pod_sets[0].left_out}" if pod_sets and pod_sets[0].left_out else ""
        remarks = "".join(dict.fromkeys(f"; {pod_set.remark}" for pod_set in pod_sets if pod_set.remark))
        if is_operated(manifest) or left_out or remarks:
            planned = f"planned as {count(len(pods), 'pod')}{left_out}{remarks}"
            self._notes.append(f"{subject_of(manifest)}: {planned}")
        scaled = [pod_set.scaling for pod_set in pod_sets if pod_set.scaling]
        self._notes += (f"{subject_of(manifest)}: {scaling}" for scaling in scaled)
        self._autoscaled |= bool(scaled)

    def _is_given(self, manifest: Mapping[str, Any], pod_set: PodSet) -> bool:
        """Whether the workload that an operator has made for a set is there, too, and makes the pods.

        Operators that say in it of what it is are found by that: see `_parents`.
        """
        if pod_set.owner is None:
            return False
        _, kind, name = pod_set.owner
        return Workload(namespace_of(manifest), kind, name) in self._given


def _workload_faults(document: Document, manifest: Mapping[str, Any]) -> Iterator[FaultLine]:
    """Faults of names, labels and selectors, with which the API server refuses a workload."""
    for fault in refused_in_plans(manifest) if is_own_workload(manifest) else ():
        yield FaultLine.of(located(document, str(fault), fault.path), fault.code)


def _identity_group(manifest: Mapping[str, Any]) -> str:
    """The group; one for the groups in which Kubernetes has had the same workload."""
    kind = manifest.get("kind")
    own = isinstance(kind, str) and kind in KINDS and group_of(manifest) in _OWN_GROUPS
    return "apps" if own else group_of(manifest)


def _is_faulty(replicas: Any) -> bool:
    try:
        checked_number(0 if replicas is None else replicas, "spec.replicas")
    except Unusable:
        return True
    return False


def _workload(manifest: Mapping[str, Any]) -> Workload:
    name = str(metadata_of(manifest).get("name") or "")
    return Workload(namespace_of(manifest), str(manifest["kind"]), name)


def _parents(manifests: Iterable[Mapping[str, Any]]) -> Iterator[Workload]:
    """The workloads whose pods come of other workloads of the files: a dump of a cluster has both.

    Of a Deployment or a Rollout and its ReplicaSets, the first says how many there shall be; a CronJob's next
    run comes besides its last ones.
    """
    given = list(manifests)
    there = {_workload(manifest) for manifest in given}
    owners = {_workload(manifest): owner for manifest in given if (owner := _controller(manifest))}
    for manifest in given:
        if manifest["kind"] == "Pod" or not is_workload(manifest):
            continue
        # What a Knative Service has its pods from is owned by what is owned by it.
        child, seen = _workload(manifest), set[Workload]()
        parent = _controller(manifest)
        while parent is not None and parent not in seen and parent.kind != "CronJob":
            seen.add(parent)
            if parent in there:
                yield child if parent.kind in _DECIDING else parent
            parent = owners.get(parent)


def _controller(manifest: Mapping[str, Any]) -> Workload | None:
    """What an object was made by, and is kept by."""
    owners = metadata_of(manifest).get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            return Workload(namespace_of(manifest), str(owner.get("kind")), str(owner.get("name")))
    return None


def _invalid(_manifest: dict[str, Any], error: Exception) -> None:
    if isinstance(error, InvalidObject):
        raise error


def _decoded(watched: Watched, manifest: dict[str, Any]) -> tuple[events.Event, ...]:
    if watched.name in _NAMESPACED:
        metadata = manifest.get("metadata") or {}
        manifest = {**manifest, "metadata": {"namespace": "default", **metadata}}
    _, seen = watched.decode(msgspec.json.encode(manifest))
    return seen


def _path(api_version: str, kind: str) -> str:
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/{plural}"


def _missing(snapshot: Snapshot, made: list[Pod], aliases: Mapping[Workload, Workload]) -> Iterator[Pod]:
    """The pods of workloads that are not among the pods given: a dump of a cluster has both.

    `aliases`: by what pods are owned that are those of another object, as the cluster of a RayJob.
    """
    wanted: dict[Workload, list[Pod]] = defaultdict(list)
    for pod in made:
        wanted[workload_of(pod)].append(pod)
    there: dict[Workload, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods.values() if wanted else ():
        found = set() if pod.terminal else _workloads_of(pod)
        for workload in found | {aliases[workload] for workload in found if workload in aliases}:
            there[workload].append(pod)
    taken = set(snapshot.pods)
    for workload, pods in wanted.items():
        # Those whose names are free are lacking: of a StatefulSet, the members that are not there.
        pods.sort(key=lambda pod: pod.key in snapshot.pods)
        for pod in _without(pods, there[workload]):
            name, number = pod.name, 1
            while f"{pod.namespace}/{name}" in taken:
                name, number = f"{pod.name}-{workload.kind.lower()}-{number}", number + 1
            taken.add(f"{pod.namespace}/{name}")
            yield replace(pod, name=name, uid=f"{pod.namespace}/{name}") if name != pod.name else pod


def _without(pods: list[Pod], there: list[Pod]) -> list[Pod]:
    """The pods of a workload without as many as are there: first those that request the same."""
    running = Counter(pod.shape.requests for pod in there)
    left = []
    for pod in reversed(pods):
        if running[pod.shape.requests]:
            running[pod.shape.requests] -= 1
        else:
            left.append(pod)
    others = running.total()
    return left[others:][::-1]


def _workloads_of(pod: Pod) -> set[Workload]:
    """All that count a pod as theirs: a Deployment and its ReplicaSet, a Rollout, a JobSet."""
    found = {workload_of(pod)}
    found |= {Workload(pod.namespace, owner.kind, owner.name) for owner in pod.owners}
    found |= {
        Workload(pod.namespace, kind, pod.labels[label])
        for label, kind in _PARENT_LABELS.items()
        if label in pod.labels
    }
    suffix = f"-{pod.labels.get(_ROLLOUT_HASH, '')}"
    found |= {
        Workload(pod.namespace, "Rollout", owner.name.removesuffix(suffix))
        for owner in pod.owners
        if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix)
    }
    return found


def _assume(snapshot: Snapshot, base: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot with what it refers to beyond its `base`, and lines that say what was added."""
    said: list[str] = []
    for key, pool in sorted(snapshot.pools.items()):
        if not pool.invalid and str(pool.node_class) not in snapshot.node_classes:
            family = "AL2023" if pool.node_class.kind == EC2_NODE_CLASS else "AL2"
            node_class = NodeClass(pool.node_class, ami_family=family)
            snapshot = apply(snapshot, events.NodeClassSeen(node_class))
            said.append(f"{pool.node_class} of {key} is not in the files: planned as a plain one of {family}")
    snapshot, more = _assume_volumes(snapshot)
    snapshot, bound = _assume_bound(snapshot, base)
    snapshot, classes = _assume_device_classes(snapshot)
    return snapshot, (*said, *_assume_namespaces(snapshot), *more, *bound, *classes)


def _assume_namespaces(snapshot: Snapshot) -> Iterator[str]:
    """Where affinity terms choose namespaces by labels: those of which nothing is known bear none."""
    shapes = {pod.shape for pod in snapshot.pods.values()}
    chosen = any(
        term.namespace_selector is not None and any(term.namespace_selector.label_keys())
        for shape in shapes
        for term in (*shape.affinity, *shape.anti_affinity)
    )
    missing = {pod.namespace for pod in snapshot.pods.values()} - set(snapshot.namespaces)
    for name in sorted(missing) if chosen else ():
        yield f"namespace {name} is not in the files: planned as one without labels"


def _assume_device_classes(snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The classes that drivers' charts bring, where claims or extended resources name them."""
    claimed = (*snapshot.resource_claims.values(), *snapshot.resource_claim_templates.values())
    named = {
        alternative.device_class
        for claim in claimed
        for request in claim.devices.requests
        for alternative in request.alternatives
    }
    requested = {name for pod in snapshot.pods.values() for name, _ in pod.shape.requests}
    named |= {name.removeprefix(CLASS_PREFIX) for name in requested if name.startswith(CLASS_PREFIX)}
    said = list(class_faults(snapshot.device_classes))
    for known in KNOWN_CLASSES:
        if known.name in named and known.name not in snapshot.device_classes:
            snapshot = apply(snapshot, events.DeviceClassSeen(known))
            said.append(f"DeviceClass {known.name} is not in the files: planned as in its driver's chart")
    return snapshot, tuple(said)


def _assume_volumes(snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    said = []
    wanted: set[str | None] = set()
    for pod in snapshot.pods.values():
        for name in pod.shape.claims:
            key = f"{pod.namespace}/{name}"
            if key not in snapshot.volume_claims:
                claim = PersistentVolumeClaim(namespace=pod.namespace, name=name)
                snapshot = apply(snapshot, events.VolumeClaimSeen(claim))
                said.append(f"persistent volume claim {key} is not in the files: planned as a new one")
        wanted.update(class_name for _, class_name in pod.shape.ephemeral_volumes)
    wanted.update(claim.storage_class for claim in snapshot.volume_claims.values() if not claim.volume_name)
    has_default = any(storage_class.default for storage_class in snapshot.storage_classes.values())
    for class_name in sorted(wanted, key=str):
        if class_name is None and not has_default:
            made = StorageClass("(default)", _EBS, WAIT_FOR_FIRST_CONSUMER, default=True)
        elif class_name and class_name not in snapshot.storage_classes:
            made = StorageClass(class_name, _EBS, WAIT_FOR_FIRST_CONSUMER)
        else:
            continue
        snapshot = apply(snapshot, events.StorageClassSeen(made))
        said.append(
            f"storage class {made.name} is not in the files: planned as EBS volumes created in the pod's zone"
        )
    return snapshot, tuple(sorted(said))


def _assume_bound(snapshot: Snapshot, base: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The claims of the files that the control plane binds before their pods have nodes, as bound."""
    said = set()
    for claim in [*snapshot.volume_claims.values(), *_generated_claims(snapshot, base)]:
        if claim.bound or claim.key in base.volume_claims:
            continue
        if claim.volume_name in snapshot.volumes:
            snapshot = apply(snapshot, events.VolumeClaimSeen(replace(claim, bound=True)))
            said.add(
                f"persistent volume claim {claim.key}: planned as bound to its volume {claim.volume_name}"
            )
            continue
        kind = _class_of(snapshot, claim)
        if not claim.volume_name and kind is not None and _creates_at_once(kind):
            made = Volume(f"volume of {claim.key}", kind.driver, kind.terms, kind.name)
            snapshot = apply(snapshot, events.VolumeSeen(made))
            bound = replace(claim, volume_name=made.name, bound=True)
            snapshot = apply(snapshot, events.VolumeClaimSeen(bound))
            said.add(
                f"storage class {kind.name} creates volumes before pods have nodes: planned as volumes that "
                "can be reached from all zones that it allows"
            )
    return snapshot, tuple(sorted(said))


def _generated_claims(snapshot: Snapshot, base: Snapshot) -> Iterator[PersistentVolumeClaim]:
    """The claims that are made for pods of the files."""
    for pod in snapshot.pods.values():
        for volume, class_name in pod.shape.ephemeral_volumes if pod.key not in base.pods else ():
            claim = PersistentVolumeClaim(pod.namespace, f"{pod.name}-{volume}", class_name)
            if claim.key not in snapshot.volume_claims:
                yield claim


def _class_of(snapshot: Snapshot, claim: PersistentVolumeClaim) -> StorageClass | None:
    if claim.storage_class is not None:
        return snapshot.storage_classes.get(claim.storage_class)
    return default_class(snapshot.storage_classes.values())


def _creates_at_once(kind: StorageClass) -> bool:
    return kind.binding_mode != WAIT_FOR_FIRST_CONSUMER and kind.driver != _NO_PROVISIONER
