"""What the controller may do in the cluster: its rules as a table, and nothing else.

Each rule is a line of (groups, resources, verbs, names); `controller` binds them to the service account.
Pools are watched, finalised and (at teardown) deleted, claims are written, nodes are cordoned and removed,
pods are evicted, and deleted only when the time for a drain is over. The rules are those that a recorded
life of the controller needs, and no more (`tests/environment/test_rbac.py`): what is only followed is not
fetched one by one; objects are patched and not replaced, but for the certificate's Secret and the Lease.
Secrets, leases and ConfigMaps are granted in the controller's own namespace only, and by name.
"""

from dataclasses import dataclass
from typing import Final

import pulumi_kubernetes as k8s

from nodeless.model.neighbors import AUTOSCALER_STATUS
from pulumi_nodeless.names import GANG_PAUSES, MEASURED_CAPACITY, TEARDOWN_GUARD
from pulumi_nodeless.settings import GLOBAL_SETTINGS, LOGGING
from pulumi_nodeless.webhooks import MUTATING_NAMES, VALIDATING_NAMES

FOLLOW: Final = ("list", "watch")
"""A watch brings the first objects too, but not from every API server: others are asked for a list first."""
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
    Rule(("karpenter.sh",), ("provisioners", "nodepools"), ("get", *FOLLOW, "patch", "delete")),
    Rule(("karpenter.sh",), ("nodeclaims",), ("get", *FOLLOW, "create", "patch", "delete")),
    Rule(("karpenter.sh",), ("provisioners/status", "nodepools/status", "nodeclaims/status"), ("patch",)),
    Rule(("karpenter.sh",), ("nodeoverlays",), FOLLOW),
    Rule(("karpenter.sh",), ("nodeoverlays/status",), ("patch",)),
    Rule(("",), ("nodes",), ("get", *FOLLOW, "patch", "delete")),
    Rule(("",), ("pods",), (*FOLLOW, "delete")),
    Rule(("",), ("pods/eviction",), ("create",)),
    Rule(("",), ("pods/status",), ("patch",)),
    Rule(("",), ("events",), ("create",)),
    Rule(("",), ("namespaces",), FOLLOW),
    Rule(("",), ("persistentvolumes", "persistentvolumeclaims", "podtemplates"), FOLLOW),
    Rule(("apps",), ("daemonsets", "deployments", "replicasets", "statefulsets"), FOLLOW),
    Rule(("autoscaling.x-k8s.io",), ("capacitybuffers", "provisioningrequests"), FOLLOW),
    Rule(("autoscaling.x-k8s.io",), ("capacitybuffers/status", "provisioningrequests/status"), ("patch",)),
    Rule(("batch",), ("jobs",), FOLLOW),
    Rule(("jobset.x-k8s.io",), ("jobsets",), FOLLOW),
    Rule(("scheduling.x-k8s.io",), ("podgroups",), FOLLOW),
    Rule(("autoscaling.k8s.io",), ("verticalpodautoscalers",), FOLLOW),
    Rule(("policy",), ("poddisruptionbudgets",), FOLLOW),
    Rule(("storage.k8s.io",), ("storageclasses", "csinodes", "volumeattachments"), FOLLOW),
    Rule(
        ("resource.k8s.io",),
        ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"),
        FOLLOW,
    ),
)
"""ClusterRole `karpenter-core`: scheduling and the life of nodes, whatever the cloud."""

CLOUD_RULES: Final[tuple[Rule, ...]] = (
    Rule(("karpenter.k8s.aws",), ("awsnodetemplates", "ec2nodeclasses"), FOLLOW),
    Rule(("karpenter.k8s.aws",), ("ec2nodeclasses",), ("get", "patch")),
    Rule(("karpenter.k8s.aws",), ("awsnodetemplates/status", "ec2nodeclasses/status"), ("patch",)),
    Rule(
        ("admissionregistration.k8s.io",),
        ("mutatingwebhookconfigurations",),
        ("get", "patch"),
        MUTATING_NAMES,
    ),
    Rule(
        ("admissionregistration.k8s.io",),
        ("validatingwebhookconfigurations",),
        ("get", "patch"),
        VALIDATING_NAMES,
    ),
)
"""ClusterRole `karpenter`: node templates, and the webhook configurations whose CA bundle is filled in."""

ADMIN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        ("karpenter.sh",),
        ("provisioners", "nodepools", "nodeclaims", "nodeoverlays"),
        ("get", *FOLLOW, "create", "update", "delete", "patch"),
    ),
    Rule(
        ("karpenter.k8s.aws",),
        ("awsnodetemplates", "ec2nodeclasses"),
        ("get", *FOLLOW, "create", "update", "delete", "patch"),
    ),
)
"""ClusterRole `karpenter-admin`: aggregated into the cluster's own `admin` role, for people."""

DNS_RULES: Final[tuple[Rule, ...]] = (
    Rule(("",), ("services",), ("get",), ("kube-dns",)),
    Rule(("",), ("configmaps",), ("get",), (AUTOSCALER_STATUS,)),
)
"""Role `karpenter-dns` in kube-system: the address of the cluster's DNS goes into user data; and which groups
a Cluster Autoscaler has that serves the same cluster.
"""


HOLD_RULES: Final[tuple[Rule, ...]] = (Rule(("coordination.k8s.io",), ("leases",), ("list",)),)
"""Role `karpenter-holds` in kube-system: does a stack hold its capacity still when its guard is deleted?"""


def namespace_rules(certificate_secret: str) -> tuple[Rule, ...]:
    """Role `karpenter` in the controller's namespace: settings, certificate, lease, teardown guard.

    A name in a rule covers a list or watch that selects `metadata.name`. The controller makes its Lease and
    the ConfigMaps of measured capacity and of pauses of gangs itself; `create` cannot be limited to a name.
    The Secret is made empty beside it: who may create Secrets in a namespace can have tokens of all its
    service accounts.
    """
    followed = (GLOBAL_SETTINGS, LOGGING, TEARDOWN_GUARD)
    return (
        Rule(("",), ("configmaps",), ("get", *FOLLOW), followed),
        Rule(("",), ("configmaps",), ("get",), (MEASURED_CAPACITY, GANG_PAUSES)),
        Rule(("",), ("configmaps",), ("patch",), (TEARDOWN_GUARD, MEASURED_CAPACITY, GANG_PAUSES)),
        Rule(("",), ("configmaps",), ("create",)),
        Rule(("",), ("secrets",), ("get", "update"), (certificate_secret,)),
        Rule(("coordination.k8s.io",), ("leases",), ("create",)),
        Rule(("coordination.k8s.io",), ("leases",), ("get", "update"), (LEASE,)),
    )
