"""A container's environment variables, from its specification and the objects it refers to.

Pure: the ConfigMaps and Secrets are given. Order and expansion follow the kubelet: `envFrom` first, then
    `env`, each may use `$(NAME)` of those before it; `$$` escapes.
"""

import base64
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from localenv.kubelets.downward import field_value, resource_value

#: (kind, name) -> the object's values as texts; None: it does not exist.
Objects = Mapping[tuple[str, str], Mapping[str, str] | None]

_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^()]+)\))")


class MissingReferenceError(Exception):
    """The container cannot be made: an object or key it needs is not there (CreateContainerConfigError)."""


def references(container: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the ConfigMaps and Secrets that the variables come from, as (kind, name)."""
    found: set[tuple[str, str]] = set()
    for source in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                found.add((kind, source[field]["name"]))
    for variable in container.get("env") or []:
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if field in (variable.get("valueFrom") or {}):
                found.add((kind, variable["valueFrom"][field]["name"]))
    return found


def values_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a ConfigMap or a Secret."""
    data = document.get("data") or {}
    if document.get("kind") == "Secret" or "type" in document:
        return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}
    return dict(data)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable; unknown names stay as they are, `$$` becomes `$`."""

    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(replacement, text)


def container_variables(
    container: Mapping[str, Any],
    pod: Mapping[str, Any],
    objects: Objects,
    allocatable: Mapping[str, Decimal],
) -> dict[str, str]:
    """Return the variables of a container.

    Raises:
        MissingReferenceError: naming the object or key that is missing and not optional.
        ValueError: if a field reference names nothing.
    """
    result: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                prefix = source.get("prefix") or ""
                values = _object(objects, kind, source[field])
                result.update({prefix + key: value for key, value in values.items()})
    for variable in container.get("env") or []:
        source = variable.get("valueFrom")
        if not source:
            result[variable["name"]] = expand(variable.get("value") or "", result)
        elif "fieldRef" in source:
            result[variable["name"]] = field_value(pod, source["fieldRef"]["fieldPath"])
        elif "resourceFieldRef" in source:
            reference = source["resourceFieldRef"]
            result[variable["name"]] = resource_value(container, reference, allocatable)
        elif (value := _key_value(variable["name"], source, objects)) is not None:
            result[variable["name"]] = value
    return result


def _key_value(name: str, source: Mapping[str, Any], objects: Objects) -> str | None:
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            reference = source[field]
            value = _object(objects, kind, reference).get(reference["key"])
            if value is None and not reference.get("optional"):
                raise MissingReferenceError(
                    f"couldn't find key {reference['key']} in {kind} {reference['name']}"
                )
            return value
    raise ValueError(f"variable {name}: valueFrom {sorted(source)} is not supported here")


def _object(objects: Objects, kind: str, reference: Mapping[str, Any]) -> Mapping[str, str]:
    values = objects.get((kind, reference["name"]))
    if values is None:
        if not reference.get("optional"):
            raise MissingReferenceError(f"{kind.lower()} {reference['name']!r} not found")
        return {}
    return values
