"""What the controller may do in the cluster: its rules as a table, and nothing else.

Each rule is a line of (groups, resources, verbs, names); `controller` binds them to the service account.
Pools are watched, finalised and (at teardown) deleted, claims are written, nodes are cordoned and removed,
pods are evicted, and deleted only when the time for a drain is over. What may be patched may mostly be
updated too, as in Karpenter's chart, though nodeless only patches it. Secrets, leases and ConfigMaps are
granted in the controller's own namespace only, the writable ones by name.
"""

from dataclasses import dataclass
from typing import Final

import pulumi_kubernetes as k8s

from pulumi_nodeless.names import MEASURED_CAPACITY, TEARDOWN_GUARD
from pulumi_nodeless.webhooks import MUTATING_NAMES, VALIDATING_NAMES

READ: Final = ("get", "list", "watch")
LEASE: Final = "karpenter-leader-election"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a role."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def args(self) -> k8s.rbac.v1.PolicyRuleArgs:
        """The same line for the Kubernetes provider."""
        return k8s.rbac.v1.PolicyRuleArgs(
            api_groups=list(self.groups),
            resources=list(self.resources),
            verbs=list(self.verbs),
            resource_names=list(self.names) or None,
        )


CORE_RULES: Final[tuple[Rule, ...]] = (
    Rule(("karpenter.sh",), ("provisioners", "nodepools"), (*READ, "patch", "update", "delete")),
    Rule(
        ("karpenter.sh",),
        ("provisioners/status", "provisioners/finalizers", "nodepools/status", "nodepools/finalizers"),
        ("patch", "update"),
    ),
    Rule(("karpenter.sh",), ("nodeclaims",), (*READ, "create", "patch", "update", "delete")),
    Rule(("karpenter.sh",), ("nodeclaims/status", "nodeclaims/finalizers"), ("patch", "update")),
    Rule(("",), ("nodes",), (*READ, "create", "patch", "delete")),
    Rule(("",), ("pods", "persistentvolumes", "persistentvolumeclaims", "namespaces"), READ),
    Rule(("",), ("pods",), ("delete",)),
    Rule(("",), ("pods/eviction",), ("create",)),
    Rule(("", "events.k8s.io"), ("events",), ("create", "patch")),
    Rule(("apps",), ("daemonsets", "deployments", "replicasets", "statefulsets"), READ),
    Rule(("",), ("podtemplates",), READ),
    Rule(("autoscaling.x-k8s.io",), ("capacitybuffers",), READ),
    Rule(("autoscaling.x-k8s.io",), ("capacitybuffers/status",), ("patch", "update")),
    Rule(("policy",), ("poddisruptionbudgets",), READ),
    Rule(("storage.k8s.io",), ("storageclasses", "csinodes", "volumeattachments"), READ),
)
"""ClusterRole `karpenter-core`: scheduling and the life of nodes, whatever the cloud."""

CLOUD_RULES: Final[tuple[Rule, ...]] = (
    Rule(("karpenter.k8s.aws",), ("awsnodetemplates", "ec2nodeclasses"), (*READ, "patch", "update")),
    Rule(
        ("karpenter.k8s.aws",),
        (
            "awsnodetemplates/status",
            "awsnodetemplates/finalizers",
            "ec2nodeclasses/status",
            "ec2nodeclasses/finalizers",
        ),
        ("patch", "update"),
    ),
    Rule(
        ("admissionregistration.k8s.io",),
        ("mutatingwebhookconfigurations",),
        ("get", "update", "patch"),
        MUTATING_NAMES,
    ),
    Rule(
        ("admissionregistration.k8s.io",),
        ("validatingwebhookconfigurations",),
        ("get", "update", "patch"),
        VALIDATING_NAMES,
    ),
)
"""ClusterRole `karpenter`: node templates, and the webhook configurations whose CA bundle is filled in."""

ADMIN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        ("karpenter.sh",),
        ("provisioners", "nodepools", "nodeclaims"),
        (*READ, "create", "update", "delete", "patch"),
    ),
    Rule(
        ("karpenter.k8s.aws",),
        ("awsnodetemplates", "ec2nodeclasses"),
        (*READ, "create", "update", "delete", "patch"),
    ),
)
"""ClusterRole `karpenter-admin`: aggregated into the cluster's own `admin` role, for people."""

DNS_RULES: Final[tuple[Rule, ...]] = (Rule(("",), ("services",), ("get",), ("kube-dns",)),)
"""Role `karpenter-dns` in kube-system: the address of the cluster's DNS goes into user data."""


def namespace_rules(certificate_secret: str) -> tuple[Rule, ...]:
    """Role `karpenter` in the controller's namespace: settings, certificate, lease, teardown guard.

    The controller makes the ConfigMap of measured capacity itself; `create` cannot be limited to a name.
    """
    return (
        Rule(("",), ("configmaps",), READ),
        Rule(("",), ("configmaps",), ("create",)),
        Rule(("",), ("configmaps",), ("patch", "update"), (TEARDOWN_GUARD, MEASURED_CAPACITY)),
        Rule(("",), ("secrets",), ("get", "update", "patch"), (certificate_secret,)),
        Rule(("coordination.k8s.io",), ("leases",), ("create",)),
        Rule(("coordination.k8s.io",), ("leases",), ("get", "update", "patch"), (LEASE,)),
    )
