"""What is legal, and probably not meant: warnings.

The API accepts all of it, as Karpenter v0.27 does; admission returns these beside its
yes, and lists them among the faults when it says no for another reason.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER
from nodeless.api.placeholders import placeholder_warnings
from nodeless.api.requirement_warnings import limit_warnings, requirement_warnings, tag_warnings, warning
from nodeless.api.rule_codes import RuleCode
from nodeless.api.settings_warnings import annotation_warnings, kubelet_warnings, volume_warnings
from nodeless.api.warnings_v1 import ec2_node_class_warnings, node_pool_warnings


def suspicions(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """What looks like a mistake in an object, valid or not."""
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return
    if any(kind.describes(manifest) for kind in (PROVISIONER, AWS_NODE_TEMPLATE, NODE_POOL, EC2_NODE_CLASS)):
        yield from placeholder_warnings(spec, "spec")
    if PROVISIONER.describes(manifest):
        yield from _provisioner(spec)
    elif AWS_NODE_TEMPLATE.describes(manifest):
        yield from _aws_settings(spec, "spec")
    elif NODE_POOL.describes(manifest):
        yield from node_pool_warnings(manifest, spec)
    elif EC2_NODE_CLASS.describes(manifest):
        yield from ec2_node_class_warnings(manifest, spec)


def _provisioner(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from requirement_warnings(spec.get("requirements"), "spec.requirements")
    limits = spec.get("limits")
    resources = limits.get("resources") if isinstance(limits, Mapping) else None
    yield from limit_warnings(resources, "spec.limits.resources")
    yield from annotation_warnings(spec.get("annotations"), "spec.annotations")
    yield from kubelet_warnings(spec.get("kubeletConfiguration"), "spec.kubeletConfiguration")
    consolidation = spec.get("consolidation")
    consolidates = isinstance(consolidation, Mapping) and bool(consolidation.get("enabled"))
    if spec.get("ttlSecondsAfterEmpty") is None and not consolidates:
        hint = "set spec.ttlSecondsAfterEmpty or spec.consolidation.enabled"
        yield warning(
            "spec",
            ABSENT,
            "has no setting that removes nodes that are no longer needed",
            hint,
            code=RuleCode.NODES_NEVER_REMOVED,
        )
    inline = spec.get("provider")
    if isinstance(inline, Mapping):
        yield from _aws_settings(inline, "spec.provider")


def _aws_settings(settings: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("subnetSelector", "securityGroupSelector", "amiSelector"):
        selector = settings.get(name)
        if not isinstance(selector, Mapping):
            continue
        if not selector:
            yield warning(at(path, name), {}, "is empty: it selects nothing", code=RuleCode.EMPTY_SELECTOR)
    yield from tag_warnings(settings.get("tags"), at(path, "tags"))
    yield from volume_warnings(settings.get("blockDeviceMappings"), at(path, "blockDeviceMappings"))
