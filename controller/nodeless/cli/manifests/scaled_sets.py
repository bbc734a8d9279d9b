"""The pods of what scales itself: Knative Services, ScaledJobs of KEDA, runners of GitHub Actions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nodeless.cli.manifests.members import (
    Unusable,
    checked_number,
    group_of,
    is_kind,
    mapping_at,
    metadata_of,
    name_of,
    number_at,
)
from nodeless.cli.manifests.pod_templates import PodSet, Range, ReplicasMode

_TEMPLATE = "spec.template"
_KNATIVE = "serving.knative.dev"
_KNATIVE_KINDS = ("Service", "Configuration")
#: Annotations of a Knative pod template, with the names that older versions had; the first one counts.
_MIN = ("autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/minScale")
_MAX = ("autoscaling.knative.dev/max-scale", "autoscaling.knative.dev/maxScale")
_INITIAL = ("autoscaling.knative.dev/initial-scale", "autoscaling.knative.dev/initialScale")
_SCALED_JOB = ("keda.sh", "ScaledJob")
_RUNNERS = ("actions.github.com", "AutoscalingRunnerSet")
#: What KEDA takes a ScaledJob without `maxReplicaCount` to allow.
_KEDA_MOST = 100
_PAUSED = "autoscaling.keda.sh/paused"


def scales_itself(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is one whose operator decides how many pods there are."""
    if (group_of(manifest), manifest.get("kind")) in (_SCALED_JOB, _RUNNERS):
        return True
    return _is_knative(manifest)


def scaled_sets(manifest: Mapping[str, Any], mode: ReplicasMode) -> list[PodSet]:
    """The pods of such an object. Raises Unusable."""
    if _is_knative(manifest):
        return [_knative(manifest, mode)]
    return [_jobs(manifest, mode) if manifest["kind"] == _SCALED_JOB[1] else _runners(manifest, mode)]


def _is_knative(manifest: Mapping[str, Any]) -> bool:
    return is_kind(manifest, _KNATIVE, *_KNATIVE_KINDS)


def _knative(manifest: Mapping[str, Any], mode: ReplicasMode) -> PodSet:
    """Between `min-scale`, 0 unless given, and `max-scale`, where 0 is no bound; one pod to begin with."""
    template = mapping_at(manifest, _TEMPLATE)
    least = _annotated(template, _MIN, 0)
    most = _annotated(template, _MAX, 0) or None
    _check(least, most, f"{_TEMPLATE}.metadata.annotations", _MIN[0], _MAX[0])
    scaled = Range(least, _annotated(template, _INITIAL, 1), most)
    made = _set(manifest, _TEMPLATE, template, scaled.number(mode))
    told = scaled.told(made.number, "autoscaling.knative.dev", "max-scale")
    return replace(made, scaling=told, left_out="without Knative's container queue-proxy")


def _annotated(template: Mapping[str, Any], names: tuple[str, str], default: int) -> int:
    annotations = metadata_of(template).get("annotations")
    given = annotations if isinstance(annotations, Mapping) else {}
    for name in names:
        text = given.get(name)
        if text is not None:
            plain = isinstance(text, str) and text.isascii() and text.isdigit()
            path = f'{_TEMPLATE}.metadata.annotations["{name}"]'
            return checked_number(int(text) if plain else text, path)
    return default


def _jobs(manifest: Mapping[str, Any], mode: ReplicasMode) -> PodSet:
    """Jobs, between `minReplicaCount` and `maxReplicaCount`, each with the pods that it has at once."""
    path = "spec.jobTargetRef"
    spec, job = mapping_at(manifest, "spec"), mapping_at(manifest, path)
    pods = number_at(job, "parallelism", path)
    pods = min(pods, number_at(job, "completions", path, default=pods))
    least = number_at(spec, "minReplicaCount", "spec", default=0)
    most = number_at(spec, "maxReplicaCount", "spec", default=_KEDA_MOST)
    _check(least, most, "spec", "minReplicaCount", "maxReplicaCount")
    scaled = Range(least, least, most)
    annotations = metadata_of(manifest).get("annotations")
    paused = isinstance(annotations, Mapping) and annotations.get(_PAUSED) == "true"
    jobs = 0 if paused else scaled.number(mode)
    number = checked_number(jobs * pods, "spec.maxReplicaCount")
    made = _set(manifest, f"{path}.template", mapping_at(manifest, f"{path}.template"), number)
    told = scaled.told(jobs, "its triggers", "maxReplicaCount", "Job")
    return replace(made, remark="it is paused") if paused else replace(made, scaling=told)


def _runners(manifest: Mapping[str, Any], mode: ReplicasMode) -> PodSet:
    """Between `minRunners`, 0 unless given, and `maxRunners`; they come with the jobs that are queued."""
    spec = mapping_at(manifest, "spec")
    least = number_at(spec, "minRunners", "spec", default=0)
    most = None if spec.get("maxRunners") is None else number_at(spec, "maxRunners", "spec")
    _check(least, most, "spec", "minRunners", "maxRunners")
    scaled = Range(least, least, most)
    made = _set(manifest, _TEMPLATE, mapping_at(manifest, _TEMPLATE), scaled.number(mode))
    told = scaled.told(made.number, "the jobs that are queued", "maxRunners", "runner")
    return replace(made, scaling=told, left_out="without its listener")


def _set(manifest: Mapping[str, Any], path: str, template: Mapping[str, Any], number: int) -> PodSet:
    return PodSet(path, template, number, name_of(manifest))


def _check(least: int, most: int | None, path: str, lower: str, upper: str) -> None:
    if most is not None and least > most:
        raise Unusable(path, f"{path}: {lower} {least} is more than {upper} {most}")
