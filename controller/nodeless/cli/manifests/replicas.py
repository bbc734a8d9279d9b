"""How many replicas workloads have that others scale: autoscalers, and Rollouts that refer to a Deployment.

HorizontalPodAutoscalers (autoscaling/v1, v2), KEDA's ScaledObjects and its HTTPScaledObjects keep a workload
between a least and a most number. Which of them is planned is the user's choice; by itself what
`spec.replicas` says, brought within the range as the autoscaler would.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodeless.api.validation import subject_of
from nodeless.cli.manifests.documents import Document
from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    group_of,
    mapping_at,
    metadata_of,
    namespace_of,
    number_at,
    text_at,
)
from nodeless.cli.manifests.pod_templates import ReplicasMode
from nodeless.cli.manifests.skipped import Skipped
from nodeless.cli.manifests.workloads import is_scalable, is_workload
from nodeless.explain.words import count
from nodeless.model.workloads import Workload

_HPA = ("autoscaling", "HorizontalPodAutoscaler")
_SCALED_OBJECT = ("keda.sh", "ScaledObject")
_HTTP_SCALED_OBJECT = ("http.keda.sh", "HTTPScaledObject")
_ROLLOUT = ("argoproj.io", "Rollout")
_TARGET = "spec.scaleTargetRef"
#: What KEDA takes a ScaledObject without `maxReplicaCount`, and its kin for HTTP, to allow.
_KEDA_MOST = 100
#: Annotations with which KEDA leaves a workload alone: as it is, or with a number of replicas.
_PAUSED, _PAUSED_REPLICAS = "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"


@dataclass(frozen=True, slots=True)
class _Key:
    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class _Range:
    """What an autoscaler keeps a workload between."""

    target: _Key
    least: int
    most: int
    zero_turns_off: bool
    idle: int | None = None
    """Fewer than the least: what it may have while it has nothing to do."""

    def number(self, given: int | None, mode: ReplicasMode) -> int:
        """The replicas that are planned, of what `spec.replicas` says."""
        if given == 0 and self.zero_turns_off and self.least:
            return 0
        if mode is ReplicasMode.MAX:
            return self.most
        if self.idle is not None and (mode is ReplicasMode.MIN or given == self.idle):
            return self.idle
        if mode is ReplicasMode.MIN:
            return self.least
        return min(max(1 if given is None else given, self.least), self.most)


Given = Sequence[tuple[Document, Mapping[str, Any]]]


@dataclass(slots=True)
class Scaling:
    """What autoscalers and Rollouts make of the workloads of the same files.

    Attributes:
        replicas: The replicas of a workload that others scale, by the position of its document.
        read: The positions of the documents that were read here.
        notes: Which workload is planned with how many replicas, and why.
        autoscaled: Whether an autoscaler scales one of them.
        skipped: Those whose workload is not among the files.
        references: By each Rollout that refers to a Deployment, that Deployment.
        faults: (document, manifest, fault) of those that cannot be read.
    """

    replicas: dict[int, int] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    autoscaled: bool = False
    skipped: list[Skipped] = field(default_factory=list)
    references: dict[Workload, Workload] = field(default_factory=dict)
    faults: list[tuple[Document, Mapping[str, Any], Unusable]] = field(default_factory=list)


def scaling_of(given: Given, mode: ReplicasMode = ReplicasMode.CURRENT) -> Scaling:
    """The replicas of all workloads that are scaled by other objects of the files."""
    return _Scaler(given, mode).scaling()


class _Scaler:
    def __init__(self, given: Given, mode: ReplicasMode) -> None:
        self._given, self._mode, self._found = given, mode, Scaling()
        self._positions = {
            _key(manifest): position
            for position, (_, manifest) in enumerate(given)
            if is_workload(manifest) or _is_reference(manifest)
        }
        self._scaled_objects = {_key(manifest) for _, manifest in given if _kind(manifest) == _SCALED_OBJECT}

    def scaling(self) -> Scaling:
        """The result; autoscalers first, for a Rollout may be the target of one."""
        by: dict[_Key, str] = {}
        for position, (document, manifest) in enumerate(self._given):
            if _kind(manifest) in _RANGES:
                self._found.read.add(position)
                try:
                    self._scale(document, manifest, by)
                except Unusable as error:
                    self._found.faults.append((document, manifest, error))
        for position, (document, manifest) in enumerate(self._given):
            if _is_reference(manifest):
                self._found.read.add(position)
                try:
                    self._refer(position, document, manifest)
                except Unusable as error:
                    self._found.faults.append((document, manifest, error))
        return self._found

    def _scale(self, document: Document, manifest: Mapping[str, Any], by: dict[_Key, str]) -> None:
        if self._is_kedas(manifest):
            return
        if _kind(manifest) == _SCALED_OBJECT and _is_paused(manifest):
            paused = _target(manifest)
            self._found.notes.append(
                f"{paused} in {paused.namespace}: planned as it is, {subject_of(manifest)} is paused"
            )
            return
        limits = _RANGES[_kind(manifest)](manifest)
        if limits.target in by:
            message = f"{limits.target} is scaled by {by[limits.target]} already; hint: keep one of them"
            raise Unusable(_TARGET, f"{_TARGET}: {message}")
        by[limits.target] = f"{subject_of(manifest)} at {document.at()}"
        position = self._positions.get(limits.target)
        if position is None:
            self._skip(document, manifest, f"its target {limits.target} is not in the files")
            return
        target = self._given[position][1]
        if not (is_scalable(target) or _is_reference(target)):
            self._skip(document, manifest, f"its target {limits.target} has no spec.replicas to scale")
            return
        given = _replicas(target)
        number = limits.number(given, self._mode)
        self._found.replicas[position] = number
        self._found.autoscaled = True
        off = given == 0 and not number and limits.least
        why = "spec.replicas 0 turns the autoscaler off" if off else f"of {limits.least} to {limits.most}"
        self._found.notes.append(
            f"{limits.target} in {limits.target.namespace}: planned with {count(number, 'replica')}, {why} "
            f"({subject_of(manifest)})"
        )

    def _refer(self, position: int, document: Document, manifest: Mapping[str, Any]) -> None:
        """A Rollout's reference: the Deployment has the template, the Rollout the number."""
        reference = mapping_at(manifest, "spec.workloadRef")
        kind = text_at(reference, "kind", "spec.workloadRef", default="Deployment")
        target = _Key(namespace_of(manifest), kind, text_at(reference, "name", "spec.workloadRef"))
        number = self._found.replicas.get(position)
        if number is None:
            number = number_at(mapping_at(manifest, "spec"), "replicas", "spec")
        at = self._positions.get(target)
        if at is None or not is_scalable(self._given[at][1]):
            self._skip(document, manifest, f"its {target} is not in the files")
            return
        self._found.replicas[at] = number
        rollout = Workload(target.namespace, str(manifest["kind"]), str(metadata_of(manifest).get("name")))
        self._found.references[rollout] = Workload(target.namespace, target.kind, target.name)
        self._found.notes.append(
            f"{target} in {target.namespace}: planned with {count(number, 'replica')}, "
            f"those of {subject_of(manifest)}"
        )

    def _is_kedas(self, manifest: Mapping[str, Any]) -> bool:
        """Whether KEDA makes an autoscaler of a ScaledObject that is there too, or the other way round."""
        if _kind(manifest) == _HTTP_SCALED_OBJECT:
            name = str(metadata_of(manifest).get("name"))
            return _Key(namespace_of(manifest), "ScaledObject", name) in self._scaled_objects
        owners = metadata_of(manifest).get("ownerReferences")
        return _kind(manifest) == _HPA and any(
            _Key(namespace_of(manifest), str(owner.get("kind")), str(owner.get("name")))
            in self._scaled_objects
            for owner in (owners if isinstance(owners, list) else ())
            if isinstance(owner, Mapping)
        )

    def _skip(self, document: Document, manifest: Mapping[str, Any], reason: str) -> None:
        kind = str(manifest["kind"])
        self._found.skipped.append(Skipped(document.at(), subject_of(manifest), kind, reason))


def _hpa(manifest: Mapping[str, Any]) -> _Range:
    spec = mapping_at(manifest, "spec")
    least = number_at(spec, "minReplicas", "spec")
    if spec.get("maxReplicas") is None:
        raise Unusable("spec", "spec.maxReplicas: is required")
    most = number_at(spec, "maxReplicas", "spec")
    return _range(manifest, least, most, ("minReplicas", "maxReplicas"), zero_turns_off=True)


def _scaled_object(manifest: Mapping[str, Any]) -> _Range:
    """KEDA scales from and to zero by itself, or to `idleReplicaCount` while no trigger is active."""
    spec = mapping_at(manifest, "spec")
    least = number_at(spec, "minReplicaCount", "spec", default=0)
    most = number_at(spec, "maxReplicaCount", "spec", default=_KEDA_MOST)
    limits = _range(manifest, least, most, ("minReplicaCount", "maxReplicaCount"), zero_turns_off=False)
    fixed = _annotation(manifest, _PAUSED_REPLICAS)
    if fixed is not None:
        path = f"metadata.annotations[{_PAUSED_REPLICAS}]"
        number = checked_number(int(fixed) if fixed.isascii() and fixed.isdigit() else fixed, path)
        return replace(limits, least=number, most=number)
    idle = number_at(spec, "idleReplicaCount", "spec", default=least)
    return replace(limits, idle=idle if idle < least else None)


def _http_scaled_object(manifest: Mapping[str, Any]) -> _Range:
    """KEDA's add-on for HTTP makes a ScaledObject of it, of the same name."""
    given = "replicas" in mapping_at(manifest, "spec")
    replicas = mapping_at(manifest, "spec.replicas") if given else {}
    least = number_at(replicas, "min", "spec.replicas", default=0)
    most = number_at(replicas, "max", "spec.replicas", default=_KEDA_MOST)
    return _range(manifest, least, most, ("replicas.min", "replicas.max"), zero_turns_off=False)


_RANGES: Mapping[tuple[str, Any], Callable[[Mapping[str, Any]], _Range]] = {
    _HPA: _hpa,
    _SCALED_OBJECT: _scaled_object,
    _HTTP_SCALED_OBJECT: _http_scaled_object,
}


def _is_paused(manifest: Mapping[str, Any]) -> bool:
    """Whether KEDA leaves the workload with the replicas that it has."""
    return _annotation(manifest, _PAUSED) == "true" and _annotation(manifest, _PAUSED_REPLICAS) is None


def _annotation(manifest: Mapping[str, Any], name: str) -> str | None:
    annotations = metadata_of(manifest).get("annotations")
    found = annotations.get(name) if isinstance(annotations, Mapping) else None
    return None if found is None else str(found)


def _range(
    manifest: Mapping[str, Any], least: int, most: int, members: tuple[str, str], *, zero_turns_off: bool
) -> _Range:
    lower, upper = members
    if not most:
        raise Unusable(f"spec.{upper}", f"spec.{upper}: 0 is too few; hint: 1 or more")
    if least > most:
        path = f"spec.{lower}" if mapping_at(manifest, "spec").get(lower) is not None else f"spec.{upper}"
        raise Unusable(path, f"spec.{lower}: {least} is more than spec.{upper}: {most}")
    return _Range(_target(manifest), least, most, zero_turns_off)


def _target(manifest: Mapping[str, Any]) -> _Key:
    """What an autoscaler scales."""
    reference = mapping_at(manifest, _TARGET)
    default = "" if _kind(manifest) == _HPA else "Deployment"
    kind = text_at(reference, "kind", _TARGET, default)
    return _Key(namespace_of(manifest), kind, text_at(reference, "name", _TARGET))


def _replicas(manifest: Mapping[str, Any]) -> int | None:
    """What `spec.replicas` says; a fault of it is told where the workload is read."""
    spec = manifest.get("spec")
    found = spec.get("replicas") if isinstance(spec, Mapping) else None
    return found if isinstance(found, int) else None


def _is_reference(manifest: Mapping[str, Any]) -> bool:
    spec = manifest.get("spec")
    refers = isinstance(spec, Mapping) and spec.get("workloadRef") is not None
    return _kind(manifest) == _ROLLOUT and refers and not is_workload(manifest)


def _kind(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return group_of(manifest), str(manifest["kind"])


def _key(manifest: Mapping[str, Any]) -> _Key:
    name = str(metadata_of(manifest).get("name") or "")
    return _Key(namespace_of(manifest), str(manifest["kind"]), name)
