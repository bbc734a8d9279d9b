"""Fields that another generation of the API has under another name, or in another kind: hints.

One table: kind, the field that is not there, and where what it said is said now (Karpenter's guides for the
upgrades from v1alpha5 to v1beta1 and from v1beta1 to v1).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nodeless.api.errors import FieldError
from nodeless.api.kinds import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    EC2_NODE_CLASS_V1BETA1,
    NODE_CLAIM,
    NODE_CLAIM_V1BETA1,
    NODE_POOL,
    NODE_POOL_V1BETA1,
    PROVISIONER,
    Kind,
)

_KUBELET = "EC2NodeClass spec.kubelet"
_REFERENCE = "spec.template.spec.nodeClassRef, with group, kind and name"

MOVED: Final[Mapping[Kind, Mapping[str, str]]] = {
    NODE_POOL: {
        "spec.annotations": "spec.template.metadata.annotations",
        "spec.consolidation": "spec.disruption.consolidationPolicy and consolidateAfter",
        "spec.disruption.expireAfter": "spec.template.spec.expireAfter",
        "spec.expireAfter": "spec.template.spec.expireAfter",
        "spec.kubelet": _KUBELET,
        "spec.kubeletConfiguration": _KUBELET,
        "spec.labels": "spec.template.metadata.labels",
        "spec.limits.resources": "spec.limits itself, as spec.limits.cpu",
        "spec.nodeClassRef": "spec.template.spec.nodeClassRef",
        "spec.provider": "an EC2NodeClass, which spec.template.spec.nodeClassRef names",
        "spec.providerRef": _REFERENCE,
        "spec.requirements": "spec.template.spec.requirements",
        "spec.startupTaints": "spec.template.spec.startupTaints",
        "spec.taints": "spec.template.spec.taints",
        "spec.template.spec.kubelet": _KUBELET,
        "spec.template.spec.kubeletConfiguration": _KUBELET,
        "spec.template.spec.nodeClassRef.apiVersion": (
            "spec.template.spec.nodeClassRef.group, without the version: karpenter.k8s.aws"
        ),
        "spec.template.spec.providerRef": _REFERENCE,
        "spec.terminationGracePeriod": "spec.template.spec.terminationGracePeriod",
        "spec.ttlSecondsAfterEmpty": (
            "spec.disruption.consolidateAfter, as 30s, with consolidationPolicy: WhenEmpty"
        ),
        "spec.ttlSecondsUntilExpired": "spec.template.spec.expireAfter, as 720h",
    },
    NODE_CLAIM: {
        "spec.kubelet": _KUBELET,
        "spec.nodeClassRef.apiVersion": "spec.nodeClassRef.group, without the version: karpenter.k8s.aws",
    },
    EC2_NODE_CLASS: {
        "spec.amiSelector": "spec.amiSelectorTerms, a list of terms",
        "spec.kubeletConfiguration": "spec.kubelet",
        "spec.launchTemplate": "the EC2NodeClass itself: images, disks, user data",
        "spec.launchTemplateName": "the EC2NodeClass itself: images, disks, user data",
        "spec.securityGroupSelector": "spec.securityGroupSelectorTerms, a list of terms",
        "spec.subnetSelector": "spec.subnetSelectorTerms, a list of terms",
    },
    NODE_POOL_V1BETA1: {
        "spec.template.spec.expireAfter": "spec.disruption.expireAfter",
        "spec.template.spec.nodeClassRef.group": "spec.template.spec.nodeClassRef.apiVersion",
    },
    EC2_NODE_CLASS_V1BETA1: {
        "spec.kubelet": "NodePool spec.template.spec.kubelet",
        "spec.amiSelector": "spec.amiSelectorTerms, a list of terms",
        "spec.securityGroupSelector": "spec.securityGroupSelectorTerms, a list of terms",
        "spec.subnetSelector": "spec.subnetSelectorTerms, a list of terms",
    },
    NODE_CLAIM_V1BETA1: {
        "spec.expireAfter": "NodePool spec.disruption.expireAfter",
        "spec.nodeClassRef.group": "spec.nodeClassRef.apiVersion",
    },
    PROVISIONER: {
        "spec.disruption": "spec.consolidation, spec.ttlSecondsAfterEmpty and spec.ttlSecondsUntilExpired",
        "spec.expireAfter": "spec.ttlSecondsUntilExpired",
        "spec.kubelet": "spec.kubeletConfiguration",
        "spec.nodeClassRef": "spec.providerRef",
        "spec.template": "spec itself: labels, annotations, requirements, taints, providerRef",
    },
    AWS_NODE_TEMPLATE: {
        "spec.amiSelectorTerms": "spec.amiSelector, a map",
        "spec.kubelet": "Provisioner spec.kubeletConfiguration",
        "spec.role": "spec.instanceProfile",
        "spec.securityGroupSelectorTerms": "spec.securityGroupSelector, a map of tags",
        "spec.subnetSelectorTerms": "spec.subnetSelector, a map of tags",
    },
}


def with_new_home(fault: FieldError, kind: Kind) -> FieldError:
    """The fault; when its field is one that `kind` has elsewhere, with that place as its hint."""
    home = MOVED.get(kind, {}).get(fault.path)
    return fault if home is None else replace(fault, hint=f"in {kind.api_version} this is {home}")
