"""Manifests for tests: valid as they are, with only the field that matters given by the test."""

from __future__ import annotations

from typing import Any

SELECTOR = {"karpenter.sh/discovery": "demo"}


def provisioner(**spec: Any) -> dict[str, Any]:
    """A valid Provisioner of a node template; members given as None are left out."""
    whole = {"providerRef": {"name": "default"}, "ttlSecondsAfterEmpty": 30, **spec}
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {name: value for name, value in whole.items() if value is not None},
    }


def inline(**provider: Any) -> dict[str, Any]:
    """A valid Provisioner with an inline provider."""
    return provisioner(providerRef=None, provider=_settings(provider))


def node_template(**spec: Any) -> dict[str, Any]:
    """A valid AWSNodeTemplate."""
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "default"},
        "spec": _settings(spec),
    }


def node_pool(*, template: dict[str, Any] | None = None, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    """A valid NodePool; `template` are members of spec.template.spec. Members given as None are left out."""
    inner = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [],
        **(template or {}),
    }
    whole = {"template": _given({"spec": _given(inner), "metadata": metadata}), **spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": _given(whole),
    }


def ec2_node_class(**spec: Any) -> dict[str, Any]:
    """A valid EC2NodeClass."""
    whole = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": SELECTOR}],
        "securityGroupSelectorTerms": [{"tags": SELECTOR}],
        "instanceProfile": "nodes",
        **spec,
    }
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": _given(whole),
    }


def node_pool_v1beta1(
    *, template: dict[str, Any] | None = None, metadata: Any = None, **spec: Any
) -> dict[str, Any]:
    """A valid NodePool of v1beta1; arguments as for `node_pool`."""
    inner = {"nodeClassRef": {"name": "default"}, "requirements": [], **(template or {})}
    whole = {"template": _given({"spec": _given(inner), "metadata": metadata}), **spec}
    return {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": _given(whole),
    }


def ec2_node_class_v1beta1(**spec: Any) -> dict[str, Any]:
    """A valid EC2NodeClass of v1beta1."""
    whole = {
        "amiFamily": "AL2023",
        "subnetSelectorTerms": [{"tags": SELECTOR}],
        "securityGroupSelectorTerms": [{"tags": SELECTOR}],
        "role": "nodes",
        **spec,
    }
    return {
        "apiVersion": "karpenter.k8s.aws/v1beta1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": _given(whole),
    }


def node_claim_v1beta1(**spec: Any) -> dict[str, Any]:
    """A valid NodeClaim of v1beta1."""
    whole = {"nodeClassRef": {"name": "default"}, "requirements": [], **spec}
    return {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodeClaim",
        "metadata": {"name": "default"},
        "spec": _given(whole),
    }


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def requirement(key: str, operator: str | None = "In", *values: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": key}
    if operator is not None:
        entry["operator"] = operator
    return entry | ({"values": [*values]} if values else {})


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    whole = {"subnetSelector": SELECTOR, "securityGroupSelector": SELECTOR, **given}
    return {name: value for name, value in whole.items() if value is not None}


def article() -> dict[str, Any]:
    """The Provisioner of the article "Introducing Karpenter" as printed: four faults and a doubtful key."""
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {
            "requirements": [
                requirement("node.k8s.aws/instance-type", "In", "m5.large", "m5.2xlarge"),
                requirement("topology.kubernetes.io/zone", "In", "us-east-1a", "us-east-1b"),
                requirement("kubernetes.io/arch", None, "arm64", "amd64"),
                requirement(" karpenter.sh/capacity-type", "In", "spot", "on-demand"),
            ],
            "provider": {"instanceProfile": "KarpenterNodeInstanceProfile-eks-karpenter-demo"},
            "ttlSecondsAfterEmpty": 30,
        },
    }


def article_corrected() -> dict[str, Any]:
    """The same intent without the faults."""
    manifest = article()
    selector = {"karpenter.sh/discovery": "eks-karpenter-demo"}
    manifest["spec"]["requirements"] = [
        requirement("node.kubernetes.io/instance-type", "In", "m5.large", "m5.2xlarge"),
        requirement("topology.kubernetes.io/zone", "In", "us-east-1a", "us-east-1b"),
        requirement("kubernetes.io/arch", "In", "arm64", "amd64"),
        requirement("karpenter.sh/capacity-type", "In", "spot", "on-demand"),
    ]
    manifest["spec"]["provider"] |= {"subnetSelector": selector, "securityGroupSelector": selector}
    return manifest
