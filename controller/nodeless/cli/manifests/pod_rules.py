"""Rules of the API server for pods, as far as they reach what is planned with.

The decoder keeps a pod that breaks them, for the cluster has it; a file can be mended.
Source: Kubernetes' pkg/apis/core/validation (ValidatePodSpec).
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from nodeless.cli.manifests.members import Unusable
from nodeless.model.quantity import QuantityError
from nodeless.model.resources import parse_resources

#: The members of a container's `resources`; another one is a slip that leaves the container without requests.
_RESOURCES = ("claims", "limits", "requests")
#: The domain of resources that nodes have by themselves.
_NATIVE = "kubernetes.io"
_REQUEST = re.compile(r"(containers|initContainers)\[(\d+)\]\.resources\.requests\.(.+)$")


def check_pod_spec(spec: Any, path: str) -> None:
    """Raises Unusable with all rules that a pod's spec, at `path`, breaks; types are for the decoder."""
    if isinstance(spec, Mapping) and (faults := list(_spec_faults(spec, path))):
        first, *others = faults
        raise Unusable(first.path, str(first), others)


def _spec_faults(spec: Mapping[str, Any], path: str) -> Iterator[Unusable]:
    if spec.get("containers") in (None, []):
        yield Unusable(path, f"{path}.containers: is required; hint: a pod has one container or more")
    names: set[Any] = set()
    for place, container in (*_items(spec, "containers", path), *_items(spec, "initContainers", path)):
        resources, name = container.get("resources"), container.get("name")
        if isinstance(resources, Mapping):
            yield from _resource_faults(resources, f"{place}.resources")
        if isinstance(name, str) and name in names:
            yield Unusable(f"{place}.name", f"{place}.name: another container is called {name}, too")
        names.add(name if isinstance(name, str) else None)
    for place, constraint in _items(spec, "topologySpreadConstraints", path):
        skew = constraint.get("maxSkew")
        if isinstance(skew, int) and skew < 1:
            yield Unusable(f"{place}.maxSkew", f"{place}.maxSkew: {skew} is too few; hint: 1 or more")
    for place, toleration in _items(spec, "tolerations", path):
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            hint = "hint: operator Equal compares values, Exists takes any"
            yield Unusable(
                f"{place}.value", f"{place}.value: {toleration['value']!r} is given with Exists; {hint}"
            )


def _items(holder: Mapping[str, Any], member: str, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its path."""
    listed = holder.get(member)
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, Mapping):
            yield f"{path}.{member}[{index}]", item


def _resource_faults(resources: Mapping[str, Any], path: str) -> Iterator[Unusable]:
    for name in resources:
        if name not in _RESOURCES:
            close = get_close_matches(str(name), _RESOURCES, 1)
            hint = f"; hint: did you mean {close[0]}?" if close else ""
            yield Unusable(f"{path}.{name}", f"{path}.{name}: is not a known field{hint}")
    amounts: dict[str, dict[str, int]] = {"requests": {}, "limits": {}}
    unreadable: set[str] = set()
    for listed, read in amounts.items():
        given = resources.get(listed)
        for name, amount in given.items() if isinstance(given, Mapping) else ():
            try:
                read.update(parse_resources({name: amount}))
            except (QuantityError, TypeError) as error:
                place = f"{path}.{listed}.{name}"
                yield Unusable(place, f"{place}: {error}")
                unreadable.add(name)
                continue
            if read[name] < 0:
                place = f"{path}.{listed}.{name}"
                yield Unusable(place, f"{place}: {amount} is negative; hint: 0 or more")
    for name, amount in amounts["requests"].items():
        if amount > amounts["limits"].get(name, amount):
            place, limit = f"{path}.requests.{name}", resources["limits"][name]
            yield Unusable(place, f"{place}: {resources['requests'][name]} is more than the limit {limit}")
        elif amount != amounts["limits"].get(name) and _is_extended(name) and name not in unreadable:
            place = f"{path}.requests.{name}"
            yield Unusable(
                place, f"{place}: {name} has no limit of the same amount; hint: a limit alone is enough"
            )


def _is_extended(resource: str) -> bool:
    """Whether a resource is of a device plugin, of which a container has what it requests and no more."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != _NATIVE and not domain.endswith(f".{_NATIVE}")


def with_defaults_told(error: Unusable, spec: Any) -> Unusable:
    """Faults of requests above their limit, with where that is from if `spec` does not give it itself."""
    others = [_with_default_told(other, spec) for other in error.others]
    first = _with_default_told(error, spec)
    return Unusable(first.path, str(first), others)


def _with_default_told(error: Unusable, spec: Any) -> Unusable:
    found = _REQUEST.search(error.path)
    if found is None or "is more than the limit" not in str(error):
        return error
    listed, index, resource = found.groups()
    containers = spec.get(listed) if isinstance(spec, Mapping) else None
    try:
        limits = containers[int(index)]["resources"]["limits"]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        limits = None
    if isinstance(limits, Mapping) and resource in limits:
        return error
    hint = "hint: the limit is the default of a LimitRange of the namespace, set one in the container"
    return Unusable(error.path, f"{error}; {hint}")
