"""What is legal in a v1 object, and probably not meant: warnings. See `advice`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.requirement_advice import limit_advice, requirement_advice, tag_advice, warning
from nodeless.api.settings_advice import annotation_advice, kubelet_advice, volume_advice
from nodeless.api.unsupported import unsupported


def node_pool_advice(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What looks like a mistake in a NodePool, and what of it has no effect yet."""
    for fault in unsupported(manifest):
        yield replace(fault, warning=True)
    yield from limit_advice(spec.get("limits"), "spec.limits")
    template = spec.get("template")
    inner = template.get("spec") if isinstance(template, Mapping) else None
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    if isinstance(metadata, Mapping):
        yield from annotation_advice(metadata.get("annotations"), "spec.template.metadata.annotations")
    if isinstance(inner, Mapping):
        yield from requirement_advice(inner.get("requirements"), "spec.template.spec.requirements")


def ec2_node_class_advice(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What looks like a mistake in an EC2NodeClass, and what of it cannot be done yet."""
    for fault in unsupported(manifest):
        yield replace(fault, warning=True)
    yield from tag_advice(spec.get("tags"), "spec.tags")
    yield from kubelet_advice(spec.get("kubelet"), "spec.kubelet")
    yield from volume_advice(spec.get("blockDeviceMappings"), "spec.blockDeviceMappings")
    for name, alone in (
        ("subnetSelectorTerms", ("id",)),
        ("securityGroupSelectorTerms", ("id", "name")),
        ("amiSelectorTerms", ()),
    ):
        terms = spec.get(name)
        for position, term in enumerate(terms if isinstance(terms, list) else ()):
            if isinstance(term, Mapping):
                yield from _term_advice(term, at(f"spec.{name}", position), alone)


def _term_advice(term: Mapping[str, Any], path: str, alone: tuple[str, ...]) -> Iterator[FieldError]:
    tags = term.get("tags")
    for key, value in tags.items() if isinstance(tags, Mapping) else ():
        if isinstance(value, str) and "${" in value:
            message = "holds a placeholder that nothing has filled in"
            yield warning(at(f"{path}.tags", str(key)), value, message, "run it through envsubst")
        elif isinstance(value, str) and "," in value:
            message = "holds a comma, which is part of the value here, not a list as in v1alpha5"
            yield warning(at(f"{path}.tags", str(key)), value, message, "write one term for each value")
    for member in alone:
        others = [name for name in term if name != member and term[name] is not None]
        if term.get(member) is not None and others:
            message = f"stands beside {', '.join(others)}: all of them must match"
            yield warning(f"{path}.{member}", term[member], message, "make a term of its own of it")
