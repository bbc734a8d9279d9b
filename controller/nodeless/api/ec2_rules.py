"""Rules for an EC2NodeClass beyond those that the API server enforces by itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError
from nodeless.api.kubelet_rules import kubelet_value_errors


def ec2_node_class_errors(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """The broken rules of an EC2NodeClass: thresholds and amounts that no kubelet could read."""
    spec = manifest.get("spec")
    if isinstance(spec, Mapping):
        yield from kubelet_value_errors(spec.get("kubelet"), "spec.kubelet")
