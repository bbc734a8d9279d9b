"""What a manifest means where it says nothing: the defaults that admission writes into it.

Only a Provisioner has any, all of them requirements that are appended. A key that
stands in `spec.labels` is not defaulted, for a default could only contradict it.
Running it twice changes nothing, and `reading` runs it too, so that an object that was
stored without the webhook means the same.
"""

from collections.abc import Mapping
from typing import Any

from nodeless.api.kinds import PROVISIONER
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_CATEGORY,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    canonical_key,
)

_SINGLE = ((OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, ON_DEMAND))
#: A requirement on any of these says which instance types are meant.
_TYPE_KEYS = frozenset({INSTANCE_TYPE, INSTANCE_FAMILY, INSTANCE_CATEGORY, INSTANCE_GENERATION})


def default(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with defaults filled in; parts that do not change are shared, none is modified."""
    result = dict(manifest)
    missing = missing_requirements(manifest)
    if missing:
        spec = dict(manifest["spec"])
        spec["requirements"] = [*(spec.get("requirements") or []), *missing]
        result["spec"] = spec
    return result


def missing_requirements(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requirements that a Provisioner lacks, in the order in which they are appended.

    Empty for other kinds, and for a manifest whose form is broken: that is for validation to tell.
    """
    if not PROVISIONER.describes(manifest):
        return []
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return []
    requirements, labels = spec.get("requirements"), spec.get("labels")
    if not isinstance(requirements, list | None) or not isinstance(labels, Mapping | None):
        return []
    present = {canonical_key(key) for key in _keys(requirements or []) | set(labels or ())}
    missing = [_requirement(key, "In", value) for key, value in _SINGLE if key not in present]
    if not present & _TYPE_KEYS:
        missing.append(_requirement(INSTANCE_CATEGORY, "In", "c", "m", "r"))
        missing.append(_requirement(INSTANCE_GENERATION, "Gt", "2"))
    return missing


def _requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [*values]}


def _keys(requirements: list[Any]) -> set[str]:
    keys = (requirement.get("key") for requirement in requirements if isinstance(requirement, Mapping))
    return {key for key in keys if isinstance(key, str)}
