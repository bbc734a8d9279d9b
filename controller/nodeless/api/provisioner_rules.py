"""Rules for a Provisioner as a whole; its parts have modules of their own."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.aws_rules import inline_provider_errors
from nodeless.api.errors import ABSENT, FieldError
from nodeless.api.kubelet_rules import kubelet_errors
from nodeless.api.requirement_rules import label_errors, requirement_errors
from nodeless.api.rule_codes import RuleCode
from nodeless.api.taint_rules import taint_errors

_TTLS = ("ttlSecondsUntilExpired", "ttlSecondsAfterEmpty")


def provisioner_errors(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """The broken rules of a Provisioner."""
    spec = manifest.get("spec")
    if spec is None:
        spec = {}
    if not isinstance(spec, Mapping):
        return
    yield from _life_span_errors(spec)
    yield from _provider_errors(spec)
    yield from label_errors(spec.get("labels"), "spec.labels")
    yield from taint_errors(spec, "spec")
    yield from requirement_errors(spec.get("requirements"), "spec.requirements")
    yield from kubelet_errors(spec.get("kubeletConfiguration"), "spec.kubeletConfiguration")


def _life_span_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in _TTLS:
        seconds = spec.get(name)
        if isinstance(seconds, int) and seconds < 0:
            yield FieldError(
                f"spec.{name}",
                seconds,
                "must not be negative",
                "leave it out for never",
                code=RuleCode.OUT_OF_RANGE,
            )
    consolidation = spec.get("consolidation")
    enabled = consolidation.get("enabled") if isinstance(consolidation, Mapping) else None
    empty = spec.get("ttlSecondsAfterEmpty")
    if enabled is True and isinstance(empty, int) and empty >= 0:
        yield FieldError(
            "spec.ttlSecondsAfterEmpty",
            empty,
            "cannot go together with spec.consolidation.enabled",
            "consolidation removes empty nodes too: leave ttlSecondsAfterEmpty out",
            code=RuleCode.CONFLICTING_FIELDS,
        )


def _provider_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    inline, reference = spec.get("provider"), spec.get("providerRef")
    if inline is not None and reference is not None:
        yield FieldError(
            "spec.provider",
            ABSENT,
            "cannot go together with spec.providerRef",
            "keep spec.providerRef",
            code=RuleCode.CONFLICTING_FIELDS,
        )
    elif inline is None and reference is None:
        yield FieldError(
            "spec.providerRef",
            ABSENT,
            "is required (or spec.provider): nothing says how nodes are made",
            "name an AWSNodeTemplate: providerRef: {name: default}",
            code=RuleCode.MISSING_FIELD,
        )
    if inline is not None:
        yield from inline_provider_errors(inline, "spec.provider")
