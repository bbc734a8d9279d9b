"""Who may reach the controller's pods: API servers at the webhook, pods at the metrics, kubelets at probes.

A policy of the network admits what it names and nothing else. API servers are no pods and have no name in it:
they are admitted by address, and by default from everywhere, because their addresses are the cluster's own
affair. What goes out is not restricted. Whether anything heeds the policy is up to the network plug-in:
Amazon's does on nodes when it is told to, and on Fargate nothing does (`docs/security.md`).
"""

from collections.abc import Mapping, Sequence

import pulumi_kubernetes as k8s

from pulumi_nodeless.deployment import HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT

_networking = k8s.networking.v1


def network_policy_spec(
    labels: Mapping[str, str], webhook_cidrs: Sequence[str]
) -> k8s.networking.v1.NetworkPolicySpecArgs:
    """The spec of the policy.

    Args:
        labels: Of the controller's pods.
        webhook_cidrs: Networks in which API servers may be; none: everywhere.
    """
    api_servers = [
        _networking.NetworkPolicyPeerArgs(ip_block=_networking.IPBlockArgs(cidr=cidr))
        for cidr in webhook_cidrs
    ]
    any_pod = _networking.NetworkPolicyPeerArgs(namespace_selector=k8s.meta.v1.LabelSelectorArgs())
    return _networking.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=dict(labels)),
        policy_types=["Ingress"],
        ingress=[
            _networking.NetworkPolicyIngressRuleArgs(from_=api_servers or None, ports=[_port(WEBHOOK_PORT)]),
            _networking.NetworkPolicyIngressRuleArgs(from_=[any_pod], ports=[_port(METRICS_PORT)]),
            # Kubelets ask from their nodes' addresses, which no selector names.
            _networking.NetworkPolicyIngressRuleArgs(ports=[_port(HEALTH_PORT)]),
        ],
    )


def _port(number: int) -> k8s.networking.v1.NetworkPolicyPortArgs:
    return _networking.NetworkPolicyPortArgs(port=number, protocol="TCP")
