"""What the v1 kinds can say and this controller cannot do yet.

Such an object is accepted, with a warning, so that a user's manifests and tools go on
working; but no node is made from it, for a node that lacks what was asked for would be a
silent lie. The object's conditions say why. docs/compatibility.md lists all of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.foreign_kinds import is_of_others
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL
from nodeless.api.requirements_v1 import AWS_KEYS
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import EC2_NODE_CLASS_NAME, WELL_KNOWN

_MESSAGE = "is not supported yet: no node is made"
_OUT = "leave it out"
#: Labels of Karpenter v1 that our instance types do not have.
UNKNOWN_KEYS = frozenset(AWS_KEYS) - WELL_KNOWN - {EC2_NODE_CLASS_NAME}


def unsupported(manifest: Mapping[str, Any]) -> list[FieldError]:
    """What of a v1 object the controller cannot do; empty for other kinds."""
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return []
    if NODE_POOL.describes(manifest):
        return list(_node_pool(spec))
    return []


def _node_pool(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    template = spec.get("template")
    inner = template.get("spec") if isinstance(template, Mapping) else None
    if not isinstance(inner, Mapping):
        return
    reference = inner.get("nodeClassRef")
    if isinstance(reference, Mapping) and is_of_others(group := reference.get("group")):
        yield FieldError(
            "spec.template.spec.nodeClassRef.group",
            group,
            "belongs to EKS Auto Mode, whose controller serves this pool: nodeless creates no nodes for it",
            f"if nodeless should serve it, write {EC2_NODE_CLASS.group} and {EC2_NODE_CLASS.kind}",
            code=RuleCode.NOT_SUPPORTED,
        )
    elif isinstance(reference, Mapping):
        for name, known in (("group", EC2_NODE_CLASS.group), ("kind", EC2_NODE_CLASS.kind)):
            if reference.get(name) not in (None, "", known):
                yield _fault(f"spec.template.spec.nodeClassRef.{name}", reference[name], f"write {known}")
    requirements = inner.get("requirements")
    for position, requirement in enumerate(requirements if isinstance(requirements, list) else ()):
        key = requirement.get("key") if isinstance(requirement, Mapping) else None
        if isinstance(key, str) and key in UNKNOWN_KEYS:
            yield _fault(f"{at('spec.template.spec.requirements', position)}.key", key, _OUT)
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if key in UNKNOWN_KEYS:
            yield _fault(at("spec.template.metadata.labels", key), value, _OUT)


def _fault(path: str, value: Any, hint: str) -> FieldError:
    return FieldError(path, value, _MESSAGE, hint, code=RuleCode.NOT_SUPPORTED)
