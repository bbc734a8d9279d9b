"""Kinds in the manifests of users of Karpenter and EKS that the controller does not read, and why."""

from collections.abc import Mapping
from typing import Any

from nodeless.api.errors import FieldError
from nodeless.api.rule_codes import RuleCode

_NOT_READ = {
    ("eks.amazonaws.com", "NodeClass"): (
        "is the node class of EKS Auto Mode, and is not read: pools that name it get no nodes",
        "write an EC2NodeClass (karpenter.k8s.aws/v1) in its place, and name it in nodeClassRef",
    ),
}


def foreign_warning(manifest: Any) -> FieldError | None:
    """A warning about an object of a kind that is not read; None for any other object."""
    if not isinstance(manifest, Mapping):
        return None
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    reason = _NOT_READ.get((version.partition("/")[0], kind))
    if reason is None:
        return None
    message, hint = reason
    return FieldError("kind", f"{version} {kind}", message, hint, warning=True, code=RuleCode.KIND_NOT_READ)
