"""What the API server fills into pods as it admits them: priorities, runtime classes, LimitRanges' defaults.

PriorityClasses, RuntimeClasses and LimitRanges among the files are read as its admission plugins of these do.
The bounds of a LimitRange (`min`, `max`) only give defaults here: no pod is refused for them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.cli.manifests.documents import Document
from nodeless.cli.manifests.members import Unusable, group_of, list_at, mapping_at, name_of, namespace_of
from nodeless.model.quantity import QuantityError
from nodeless.model.resources import parse_resources

_PRIORITY_CLASS = ("scheduling.k8s.io", "PriorityClass")
_LIMIT_RANGE = ("", "LimitRange")
_RUNTIME_CLASS = ("node.k8s.io", "RuntimeClass")
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_INT32 = 2**31
_AMOUNTS = ("default", "defaultRequest", "min", "max")


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What a container has that does not say otherwise."""

    limits: Mapping[str, Any]
    requests: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Runtime:
    """What pods of a runtime class have besides: of their sandbox, and so that nodes have it."""

    overhead: Mapping[str, Any]
    node_selector: Mapping[str, Any]
    tolerations: list[Mapping[str, Any]]


@dataclass(slots=True)
class Admission:
    """What the files say of it.

    Attributes:
        priorities: The value of each priority class.
        default_priority: (name, value) of the class that pods without one have.
        defaults: Those of containers, by namespace.
        runtimes: What each runtime class adds.
        missing: Classes that pods name and that are not there, as (kind, name).
    """

    priorities: dict[str, int] = field(default_factory=lambda: dict(_BUILT_IN))
    default_priority: tuple[str, int] = ("", 0)
    defaults: dict[str, list[_Defaults]] = field(default_factory=dict)
    runtimes: dict[str, _Runtime] = field(default_factory=dict)
    missing: set[tuple[str, str]] = field(default_factory=set)

    def admit(self, namespace: str, spec: Any) -> Any:
        """The spec of a pod with what is filled in. What has not the form of a spec stays as it is."""
        if not isinstance(spec, Mapping):
            return spec
        filled = self._with_runtime(spec)
        if spec.get("priority") is None:
            name, value = self.default_priority
            if given := spec.get("priorityClassName"):
                if str(given) not in self.priorities:
                    self.missing.add(("priority", str(given)))
                value = self.priorities.get(str(given), 0)
            elif name:
                filled["priorityClassName"] = name
            if value:
                filled["priority"] = value
        for defaults in self.defaults.get(namespace, ()):
            for member in ("containers", "initContainers"):
                if isinstance(containers := filled.get(member), list):
                    filled[member] = [_with_defaults(container, defaults) for container in containers]
        return filled

    def _with_runtime(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec with what its runtime class adds; what the pod says itself stays."""
        filled = dict(spec)
        if not (name := spec.get("runtimeClassName")):
            return filled
        runtime = self.runtimes.get(str(name))
        if runtime is None:
            self.missing.add(("runtime", str(name)))
            return filled
        if runtime.overhead and spec.get("overhead") is None:
            filled["overhead"] = runtime.overhead
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or []
        if runtime.node_selector and isinstance(selector, Mapping):
            filled["nodeSelector"] = {**runtime.node_selector, **selector}
        if runtime.tolerations and isinstance(tolerations, list):
            filled["tolerations"] = [*tolerations, *runtime.tolerations]
        return filled

    def notes(self) -> list[str]:
        """Lines on the classes that are missing."""
        taken = {"priority": "its pods have priority 0", "runtime": "its pods need nothing besides their own"}
        return [
            f"{kind} class {name} is not in the files: {taken[kind]}" for kind, name in sorted(self.missing)
        ]


def is_admission(manifest: Mapping[str, Any]) -> bool:
    """Whether an object says what is filled into pods."""
    return (group_of(manifest), manifest["kind"]) in (_PRIORITY_CLASS, _LIMIT_RANGE, _RUNTIME_CLASS)


def admission_of(
    given: Iterable[tuple[Document, Mapping[str, Any]]],
) -> tuple[Admission, list[tuple[Document, Mapping[str, Any], Unusable]]]:
    """What PriorityClasses, RuntimeClasses and LimitRanges say, and faults of those that cannot be read."""
    found, faults = Admission(), []
    for document, manifest in given:
        if not is_admission(manifest):
            continue
        try:
            if manifest["kind"] == "PriorityClass":
                _read_class(manifest, found)
            elif manifest["kind"] == "RuntimeClass":
                _read_runtime(manifest, found)
            else:
                _read_limits(manifest, found)
        except Unusable as error:
            faults.append((document, manifest, error))
    return found, faults


def _read_class(manifest: Mapping[str, Any], found: Admission) -> None:
    name, value = name_of(manifest), manifest.get("value", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT32 <= value < _INT32:
        raise Unusable("value", f"value: {value!r} is not a priority; hint: a whole number of 32 bits")
    found.priorities[name] = value
    # Of several defaults the API server takes the lowest.
    before, lowest = found.default_priority
    if manifest.get("globalDefault") is True and (not before or value < lowest):
        found.default_priority = (name, value)


def _read_runtime(manifest: Mapping[str, Any], found: Admission) -> None:
    overhead = manifest.get("overhead")
    fixed = {} if overhead is None else _amounts(mapping_at(manifest, "overhead"), "podFixed", "overhead")
    scheduling = {} if manifest.get("scheduling") is None else mapping_at(manifest, "scheduling")
    selector = scheduling.get("nodeSelector") or {}
    if not isinstance(selector, Mapping):
        raise Unusable("scheduling.nodeSelector", f"scheduling.nodeSelector: {selector!r} is not an object")
    tolerations = list_at(scheduling, "tolerations", "scheduling")
    found.runtimes[name_of(manifest)] = _Runtime(fixed, selector, tolerations)


def _read_limits(manifest: Mapping[str, Any], found: Admission) -> None:
    for index, item in enumerate(list_at(mapping_at(manifest, "spec"), "limits", "spec")):
        amounts = {member: _amounts(item, member, f"spec.limits[{index}]") for member in _AMOUNTS}
        if item.get("type") == "Container":
            limits = {**amounts["max"], **amounts["default"]}
            requests = {**amounts["min"], **limits, **amounts["defaultRequest"]}
            defaults = _Defaults(limits, requests)
            found.defaults.setdefault(namespace_of(manifest), []).append(defaults)


def _amounts(item: Mapping[str, Any], member: str, path: str) -> Mapping[str, Any]:
    given, place = item.get(member, {}), f"{path}.{member}"
    if not isinstance(given, Mapping):
        raise Unusable(place, f"{place}: {given!r} is not an object")
    for name, amount in given.items():
        try:
            parse_resources({name: amount})
        except (QuantityError, TypeError) as error:
            raise Unusable(f"{place}.{name}", f"{place}.{name}: {error}") from None
    return given


def _with_defaults(container: Any, defaults: _Defaults) -> Any:
    """A container's own limits come before the defaults of requests: Kubernetes fills those in first."""
    resources = container.get("resources", {}) if isinstance(container, Mapping) else None
    if not isinstance(resources, Mapping):
        return container
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if not (isinstance(limits, Mapping) and isinstance(requests, Mapping)):
        return container
    filled = {
        **resources,
        "limits": {**defaults.limits, **limits},
        "requests": {**defaults.requests, **limits, **requests},
    }
    return {**container, "resources": filled}
