"""What is legal in a v1 object, and probably not meant: warnings. See `warnings`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.requirement_warnings import limit_warnings, requirement_warnings, tag_warnings, warning
from nodeless.api.rule_codes import RuleCode
from nodeless.api.settings_warnings import annotation_warnings, kubelet_warnings, volume_warnings
from nodeless.api.times import LONGEST_SPAN, is_longer_than_counts
from nodeless.api.unsupported import unsupported


def node_pool_warnings(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What looks like a mistake in a NodePool, and what of it has no effect yet."""
    for fault in unsupported(manifest):
        yield replace(fault, warning=True)
    yield from limit_warnings(spec.get("limits"), "spec.limits")
    template = spec.get("template")
    inner = template.get("spec") if isinstance(template, Mapping) else None
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    if isinstance(metadata, Mapping):
        yield from annotation_warnings(metadata.get("annotations"), "spec.template.metadata.annotations")
    if isinstance(inner, Mapping):
        yield from requirement_warnings(inner.get("requirements"), "spec.template.spec.requirements", v1=True)
        for name in ("expireAfter", "terminationGracePeriod"):
            yield from _span_warnings(inner.get(name), f"spec.template.spec.{name}")
    disruption = spec.get("disruption")
    if isinstance(disruption, Mapping):
        yield from _span_warnings(disruption.get("consolidateAfter"), "spec.disruption.consolidateAfter")


def _span_warnings(text: object, path: str) -> Iterator[FieldError]:
    try:
        endless = isinstance(text, str) and is_longer_than_counts(text)
    except ValueError:
        return
    if endless:
        years = LONGEST_SPAN // (365 * 86_400)
        hint = "write Never if you want no end"
        yield warning(
            path,
            text,
            f"is longer than the longest duration, {years} years, which applies instead",
            hint,
            code=RuleCode.DURATION_TOO_LONG,
        )


def ec2_node_class_warnings(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What looks like a mistake in an EC2NodeClass, and what of it cannot be done yet."""
    for fault in unsupported(manifest):
        yield replace(fault, warning=True)
    yield from tag_warnings(spec.get("tags"), "spec.tags")
    yield from kubelet_warnings(spec.get("kubelet"), "spec.kubelet")
    yield from volume_warnings(spec.get("blockDeviceMappings"), "spec.blockDeviceMappings")
    for name, alone in (
        ("subnetSelectorTerms", ("id",)),
        ("securityGroupSelectorTerms", ("id", "name")),
        ("amiSelectorTerms", ()),
    ):
        terms = spec.get(name)
        for position, term in enumerate(terms if isinstance(terms, list) else ()):
            if isinstance(term, Mapping):
                yield from _term_warnings(term, at(f"spec.{name}", position), alone)


def _term_warnings(term: Mapping[str, Any], path: str, alone: tuple[str, ...]) -> Iterator[FieldError]:
    tags = term.get("tags")
    for key, value in tags.items() if isinstance(tags, Mapping) else ():
        if isinstance(value, str) and "," in value:
            message = "contains a comma, which does not separate values here as it did in v1alpha5"
            yield warning(
                at(f"{path}.tags", str(key)),
                value,
                message,
                "write one term for each value",
                code=RuleCode.COMMA_IN_TAG,
            )
    for member in alone:
        others = [name for name in term if name != member and term[name] is not None]
        if term.get(member) is not None and others:
            message = f"is combined with {', '.join(others)}: all of them must match"
            yield warning(
                f"{path}.{member}",
                term[member],
                message,
                "if either should be enough, write two terms",
                code=RuleCode.COMBINED_TERM,
            )
