"""From documents to a snapshot, every fault of every file at once, with its line.

Kinds that the controller watches are read by its own decoders; workloads become the pods that
they would make. What manifests leave open (a node class, a storage class, a volume claim) is
assumed, and said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import InvalidObject
from nodeless.api.foreign_kinds import is_served_by_others
from nodeless.api.reading import read_neighbor_pool
from nodeless.api.unsupported import unsupported
from nodeless.api.validation import kind_of, subject_of, validate
from nodeless.cli.manifests.admission import Admission, admission_of, is_admission
from nodeless.cli.manifests.documents import BadManifests, Document
from nodeless.cli.manifests.generations import served_documents
from nodeless.cli.manifests.members import Unusable, checked_number, metadata_of, namespace_of
from nodeless.cli.manifests.pod_sets import is_operated
from nodeless.cli.manifests.pod_templates import ReplicasMode
from nodeless.cli.manifests.replicas import scaling_of
from nodeless.cli.manifests.skipped import Skipped, skipped_kind
from nodeless.cli.manifests.workloads import (
    daemon_set_of,
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
from nodeless.kube.overlays import watched_overlays
from nodeless.kube.provisioning_requests import REQUESTS_V1BETA1, watched_requests
from nodeless.model import events
from nodeless.model.neighbors import ScalingGroup
from nodeless.model.pods import Pod
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, NodeClass
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim, StorageClass
from nodeless.model.workloads import Workload, workload_of
from nodeless.state import apply

_EBS = "ebs.csi.aws.com"
_NOTHING = Snapshot()
_NAMESPACED = {
    "persistentvolumeclaims",
    "provisioningrequests",
    *(watched.name for watched in watched_buffers()),
}
_GROUPS = ("karpenter.sh", "karpenter.k8s.aws")
#: Maps of strings, whose null values Kubernetes' decoder reads as empty strings.
_STRING_MAPS = ("labels", "annotations", "nodeSelector", "matchLabels")
#: Labels by which operators name the object that a pod came of.
_PARENT_LABELS = {
    "jobset.sigs.k8s.io/jobset-name": "JobSet",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
}
_ROLLOUT_HASH = "rollouts-pod-template-hash"


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
        kinds = (*watched_kinds(_invalid), *watched_buffers(), *watched_overlays(), *requests)
        self._watched = {watched.path: watched for watched in kinds}
        self._admission = Admission()
        self._autoscaled = False
        self._made: list[Pod] = []
        self._skipped: list[Skipped] = []
        self._notes: list[str] = []
        self._parents: set[Workload] = set()
        self._scaling_groups: set[ScalingGroup] = set()

    def read(self, documents: list[Document], snapshot: Snapshot) -> FileContents:
        seen: dict[str, str] = {}
        served = served_documents(documents)
        self._faults += served.faults
        usable: list[tuple[Document, dict[str, Any]]] = []
        for document in served.documents:
            self._once(document, seen)
            if self._is_usable(document):
                usable.append((document, dict(drop_nulls(_with_empty_strings(document.value)))))
        self._admission, faults = admission_of(usable)
        self._fail(faults)
        self._parents = set(_parents(manifest for _, manifest in usable))
        for document, manifest in self._scaled(usable):
            for event in self._events(document, manifest):
                snapshot = apply(snapshot, event)
        if self._faults:
            raise BadManifests(self._faults)
        if self._scaling_groups:
            snapshot = apply(snapshot, events.AutoscalerGroupsSeen(tuple(sorted(self._scaling_groups))))
        for pod in _missing(snapshot, self._made):
            snapshot = apply(snapshot, events.PodSeen(pod))
        snapshot, assumed = _assume(snapshot)
        notes = (*served.notes, *self._notes, *assumed)
        return FileContents(snapshot, tuple(self._skipped), tuple(served.unread), notes, self._autoscaled)

    def _once(self, document: Document, seen: dict[str, str]) -> None:
        metadata = document.value.get("metadata") if isinstance(document.value, Mapping) else None
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if not name or not isinstance(metadata, Mapping):
            return
        namespace = metadata.get("namespace")
        identity = f"{document.value.get('kind')} {namespace or 'default'}/{name}"
        if identity in seen:
            subject = f"{document.value.get('kind')}/{f'{namespace}/' if namespace else ''}{name}"
            hint = f"it is at {seen[identity]} already; hint: give each object once"
            self._faults.append(f"{document.at('metadata.name')}: {subject}: {hint}")
        seen.setdefault(identity, document.at())

    def _scaled(self, usable: list[tuple[Document, dict[str, Any]]]) -> list[tuple[Document, dict[str, Any]]]:
        """The objects with the replicas that autoscalers give them, without those read for that."""
        scaling = scaling_of(usable, self._mode)
        self._autoscaled |= scaling.autoscaled
        self._notes += scaling.notes
        self._skipped += scaling.skipped
        self._fail(scaling.faults)
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
                f"{document.at()}: no Kubernetes object; hint: an object has apiVersion and kind"
            )
            return False
        if not isinstance(manifest["kind"], str):
            self._faults.append(f"{document.at('kind')}: kind: {manifest['kind']!r} is no name of a kind")
            return False
        faults = self._own_faults(document)
        self._faults.extend(faults)
        return not faults

    def _events(self, document: Document, manifest: dict[str, Any]) -> Iterator[events.Event]:
        try:
            yield from self._read(document, manifest)
        except Unusable as error:
            self._faults.append(f"{document.at(error.path)}: {subject_of(manifest)}: {error}")
        except InvalidObject as error:
            self._faults += [
                f"{document.at(problem.path)}: {error.subject}: {problem}" for problem in error.errors
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
            f"{document.at(fault.path)}: {subject_of(manifest)}: {fault}"
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
            yield events.PodSeen(pod_of(manifest, self._admission))
        elif is_daemon_set(manifest):
            yield events.DaemonSetSeen(daemon_set_of(manifest, self._admission))
        elif is_status(manifest):
            self._scaling_groups.update(groups_of(manifest))
        elif is_workload(manifest):
            self._make(manifest)
            if is_autoscaler(manifest):
                named = read_autoscaler(manifest, Ledger()).groups
                self._scaling_groups.update(ScalingGroup(name, *sizes) for name, sizes in named.items())
            if source := self._watched.get(_path(api_version, kind)):
                yield from _decoded(source, manifest)
        elif watched := self._watched.get(_path(api_version, kind)):
            yield from _decoded(watched, manifest)
        elif not is_admission(manifest):
            self._skipped.append(skipped_kind(manifest, document.at(), subject_of(manifest)))

    def _make(self, manifest: dict[str, Any]) -> None:
        """The pods of a workload; where its parent or its children are there too, they are made once."""
        pod_sets = pod_sets_of(manifest, self._mode)
        pods = list(pods_of(manifest, pod_sets, self._admission))
        if _workload(manifest) in self._parents:
            return
        self._made += pods
        if is_operated(manifest):
            left_out = f", {pod_sets[0].left_out}" if pod_sets and pod_sets[0].left_out else ""
            self._notes.append(f"{subject_of(manifest)}: planned as {count(len(pods), 'pod')}{left_out}")
        scaled = [pod_set.scaling for pod_set in pod_sets if pod_set.scaling]
        self._notes += (f"{subject_of(manifest)}: {scaling}" for scaling in scaled)
        self._autoscaled |= bool(scaled)


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

    Of a Deployment and its ReplicaSets, the Deployment says how many there shall be; a CronJob's next run
    comes besides its last ones.
    """
    given = list(manifests)
    there = {_workload(manifest) for manifest in given}
    for manifest in given:
        owners = metadata_of(manifest).get("ownerReferences")
        if manifest["kind"] == "Pod" or not is_workload(manifest) or not isinstance(owners, list):
            continue
        for owner in owners:
            if not isinstance(owner, Mapping) or owner.get("controller") is not True:
                continue
            parent = Workload(namespace_of(manifest), str(owner.get("kind")), str(owner.get("name")))
            if parent in there and parent.kind != "CronJob":
                yield _workload(manifest) if parent.kind == "Deployment" else parent


def _with_empty_strings(value: Any) -> Any:
    """The value with empty strings for nulls in maps of strings: a selector keeps the label it asks for."""
    if isinstance(value, list):
        return [_with_empty_strings(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    read = {key: _with_empty_strings(member) for key, member in value.items()}
    for name in _STRING_MAPS:
        if isinstance(strings := read.get(name), dict):
            read[name] = {key: "" if text is None else text for key, text in strings.items()}
    return read


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


def _missing(snapshot: Snapshot, made: list[Pod]) -> Iterator[Pod]:
    """The pods of workloads that are not among the pods given: a dump of a cluster has both."""
    there: Counter[Workload] = Counter()
    for pod in snapshot.pods.values():
        if not pod.terminal:
            there.update(_workloads_of(pod))
    taken = set(snapshot.pods)
    lacking = Counter(workload_of(pod) for pod in made) - there
    # Those whose names are free come first: of a StatefulSet, the members that are not there.
    for pod in sorted(made, key=lambda pod: pod.key in snapshot.pods):
        workload = workload_of(pod)
        if not lacking[workload]:
            continue
        lacking[workload] -= 1
        name, number = pod.name, 1
        while f"{pod.namespace}/{name}" in taken:
            name, number = f"{pod.name}-{workload.kind.lower()}-{number}", number + 1
        taken.add(f"{pod.namespace}/{name}")
        yield replace(pod, name=name, uid=f"{pod.namespace}/{name}") if name != pod.name else pod


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


def _assume(snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot with what it refers to, and lines that say what was added."""
    said: list[str] = []
    for key, pool in sorted(snapshot.pools.items()):
        if not pool.invalid and str(pool.node_class) not in snapshot.node_classes:
            family = "AL2023" if pool.node_class.kind == EC2_NODE_CLASS else "AL2"
            node_class = NodeClass(pool.node_class, ami_family=family)
            snapshot = apply(snapshot, events.NodeClassSeen(node_class))
            said.append(f"{pool.node_class} of {key} is not in the files: taken as a plain one of {family}")
    snapshot, more = _assume_volumes(snapshot)
    return snapshot, (*said, *_assume_namespaces(snapshot), *more)


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
        yield f"namespace {name} is not in the files: taken as one without labels"


def _assume_volumes(snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    said = []
    wanted: set[str | None] = set()
    for pod in snapshot.pods.values():
        for name in pod.shape.claims:
            key = f"{pod.namespace}/{name}"
            if key not in snapshot.volume_claims:
                claim = PersistentVolumeClaim(namespace=pod.namespace, name=name)
                snapshot = apply(snapshot, events.VolumeClaimSeen(claim))
                said.append(f"persistent volume claim {key} is not in the files: taken as a new one")
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
            f"storage class {made.name} is not in the files: taken as EBS volumes made in the pod's zone"
        )
    return snapshot, tuple(sorted(said))
