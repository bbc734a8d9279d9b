"""What the API server fills into pods as it admits them: priorities, and the defaults of LimitRanges.

PriorityClasses and LimitRanges among the files are read as its admission plugins Priority and LimitRanger do.
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
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_INT32 = 2**31
_AMOUNTS = ("default", "defaultRequest", "min", "max")


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What a container has that does not say otherwise."""

    limits: Mapping[str, Any]
    requests: Mapping[str, Any]


@dataclass(slots=True)
class Admission:
    """What the files say of it.

    Attributes:
        priorities: The value of each priority class.
        default_priority: (name, value) of the class that pods without one have.
        defaults: Those of containers, by namespace.
    """

    priorities: dict[str, int] = field(default_factory=lambda: dict(_BUILT_IN))
    default_priority: tuple[str, int] = ("", 0)
    defaults: dict[str, list[_Defaults]] = field(default_factory=dict)

    def admit(self, namespace: str, spec: Any) -> Any:
        """The spec of a pod with what is filled in. What has not the form of a spec stays as it is."""
        if not isinstance(spec, Mapping):
            return spec
        filled = dict(spec)
        if spec.get("priority") is None:
            name, value = self.default_priority
            if given := spec.get("priorityClassName"):
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


def is_admission(manifest: Mapping[str, Any]) -> bool:
    """Whether an object says what is filled into pods."""
    return (group_of(manifest), manifest["kind"]) in (_PRIORITY_CLASS, _LIMIT_RANGE)


def admission_of(
    given: Iterable[tuple[Document, Mapping[str, Any]]],
) -> tuple[Admission, list[tuple[Document, Mapping[str, Any], Unusable]]]:
    """What PriorityClasses and LimitRanges say, and the faults of those that cannot be read."""
    found, faults = Admission(), []
    for document, manifest in given:
        if not is_admission(manifest):
            continue
        try:
            if manifest["kind"] == "PriorityClass":
                _read_class(manifest, found)
            else:
                _read_limits(manifest, found)
        except Unusable as error:
            faults.append((document, manifest, error))
    return found, faults


def _read_class(manifest: Mapping[str, Any], found: Admission) -> None:
    name, value = name_of(manifest), manifest.get("value", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT32 <= value < _INT32:
        raise Unusable("value", f"value: {value!r} is no priority; hint: a whole number of 32 bits")
    found.priorities[name] = value
    if manifest.get("globalDefault") is True:
        found.default_priority = (name, value)


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
        raise Unusable(place, f"{place}: {given!r} is no object")
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
