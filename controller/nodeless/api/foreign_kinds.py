"""Kinds in the manifests of users of Karpenter and EKS that the controller does not read, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import AWS_GROUP, CORE_GROUP

_NOT_READ = {
    ("eks.amazonaws.com", "NodeClass"): (
        "is the node class of EKS Auto Mode, and is not read: pools that name it get no nodes",
        "write an EC2NodeClass (karpenter.k8s.aws/v1) in its place, and name it in nodeClassRef",
    ),
    (CORE_GROUP, "Machine"): (
        "is a node of Karpenter v0.28 to v0.31, and is not read: its Node counts as one of another tool",
        "leave it out; nodeless writes a NodeClaim for each node that it launches",
    ),
}


#: Members of a NodeClass of EKS Auto Mode that an EC2NodeClass has, too, and those that it has elsewhere.
_SHARED = frozenset(
    {
        "capacityReservationSelectorTerms",
        "instanceProfile",
        "role",
        "securityGroupSelectorTerms",
        "subnetSelectorTerms",
        "tags",
    }
)
_ELSEWHERE = {
    "ephemeralStorage": "spec.blockDeviceMappings",
    "advancedNetworking": "spec.associatePublicIPAddress and spec.userData",
}


#: API groups of node classes whose pools and claims another controller serves.
_OTHERS_GROUPS = frozenset({"eks.amazonaws.com"})
#: Those of our own; a claim of a Provisioner with an inline provider names the Provisioner.
_OWN_GROUPS = frozenset({AWS_GROUP, CORE_GROUP})


def is_served_by_others(manifest: Any) -> bool:
    """Whether a NodePool or NodeClaim names a node class of EKS Auto Mode, whose controller serves it.

    Karpenter's kinds are Auto Mode's as well, in the same version: such a claim is somebody else's node. To
    launch, drain or delete it, or to write its status, would be to fight over it. As in Karpenter, which
    leaves alone what names a node class of another provider.
    """
    return any(map(is_of_others, _node_class_groups(manifest)))


def is_of_another_provider(manifest: Any) -> bool:
    """Whether a NodePool or NodeClaim names a node class that is none of ours, of whatever provider."""
    return any(group not in _OWN_GROUPS for group in _node_class_groups(manifest))


def _node_class_groups(manifest: Any) -> Iterator[str]:
    """The group of the node class that a NodePool or NodeClaim names, where it names one."""
    for path in (("spec", "template", "spec", "nodeClassRef"), ("spec", "nodeClassRef")):
        found = manifest
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        group = found.get("group") if isinstance(found, Mapping) else None
        if isinstance(group, str) and group:
            yield group


def is_of_others(group: Any) -> bool:
    """Whether the group of a node class is one that another controller serves."""
    return isinstance(group, str) and group in _OTHERS_GROUPS


def _differences(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What of a NodeClass an EC2NodeClass has under another name, or not at all."""
    spec = manifest.get("spec")
    given = spec if isinstance(spec, Mapping) else {}
    yield "amiSelectorTerms are required there"
    for name, there in _ELSEWHERE.items():
        if name in given:
            yield f"spec.{name} is {there} there"
    if missing := [f"spec.{name}" for name in given if name not in _SHARED and name not in _ELSEWHERE]:
        yield f"{', '.join(missing)}: not there"


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
    if kind == "NodeClass":
        hint = "; ".join((hint, *_differences(manifest)))
    return FieldError("kind", f"{version} {kind}", message, hint, warning=True, code=RuleCode.KIND_NOT_READ)
