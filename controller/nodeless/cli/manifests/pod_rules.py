"""Rules of the API server for pods, as far as they reach what is planned with.

The decoder keeps a pod that breaks them, for the cluster has it; a file can be mended.
Source: Kubernetes' pkg/apis/core/validation (ValidatePodSpec).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.cli.manifests.members import Unusable
from nodeless.model.quantity import QuantityError
from nodeless.model.resources import parse_resources


def check_pod_spec(spec: Any, path: str) -> None:
    """Raises Unusable where the spec of a pod, at `path`, breaks a rule; wrong types are for the decoder."""
    if not isinstance(spec, Mapping):
        return
    if spec.get("containers") in (None, []):
        raise Unusable(path, f"{path}.containers: is required; hint: a pod has one container or more")
    for place, container in (*_items(spec, "containers", path), *_items(spec, "initContainers", path)):
        resources = container.get("resources")
        if isinstance(resources, Mapping):
            _check_resources(resources, f"{place}.resources")
    for place, constraint in _items(spec, "topologySpreadConstraints", path):
        skew = constraint.get("maxSkew")
        if isinstance(skew, int) and skew < 1:
            raise Unusable(f"{place}.maxSkew", f"{place}.maxSkew: {skew} is too few; hint: 1 or more")
    for place, toleration in _items(spec, "tolerations", path):
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            hint = "hint: operator Equal compares values, Exists takes any"
            raise Unusable(
                f"{place}.value", f"{place}.value: {toleration['value']!r} is given with Exists; {hint}"
            )


def _items(holder: Mapping[str, Any], member: str, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its path."""
    listed = holder.get(member)
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, Mapping):
            yield f"{path}.{member}[{index}]", item


def _check_resources(resources: Mapping[str, Any], path: str) -> None:
    amounts: dict[str, dict[str, int]] = {"requests": {}, "limits": {}}
    for listed, read in amounts.items():
        given = resources.get(listed)
        for name, amount in given.items() if isinstance(given, Mapping) else ():
            try:
                read.update(parse_resources({name: amount}))
            except (QuantityError, TypeError) as error:
                place = f"{path}.{listed}.{name}"
                raise Unusable(place, f"{place}: {error}") from None
    for name, amount in amounts["requests"].items():
        if amount > amounts["limits"].get(name, amount):
            place, limit = f"{path}.requests.{name}", resources["limits"][name]
            raise Unusable(place, f"{place}: {resources['requests'][name]} is more than the limit {limit}")
