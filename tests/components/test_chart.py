"""What is installed, against what the chart of Karpenter v0.27.3 installs; each difference is on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.components.recorder import Recorder
from tests.components.test_controller import (
    CLUSTER_ROLE,
    DEPLOYMENT,
    MUTATING,
    ROLE,
    VALIDATING,
    granted,
    pod,
)

FOLLOW = ("list", "watch")
READ = ("get", *FOLLOW)
VALIDATIONS = "validatingwebhookconfigurations"
MUTATIONS = "mutatingwebhookconfigurations"
Rights = set[tuple[str, str, str, str]]


def rights(group: str, resources: str, verbs: tuple[str, ...], *names: str) -> Rights:
    return {
        (group, resource, verb, name)
        for resource in resources.split()
        for verb in verbs
        for name in names or ("",)
    }


#: ClusterRoles `karpenter-core` and `karpenter` of the chart.
CHART = (
    rights("karpenter.sh", "provisioners provisioners/status machines machines/status", READ)
    | rights(
        "", "pods nodes persistentvolumes persistentvolumeclaims replicationcontrollers namespaces", READ
    )
    | rights("storage.k8s.io", "storageclasses csinodes", READ)
    | rights("apps", "daemonsets deployments replicasets statefulsets", FOLLOW)
    | rights("admissionregistration.k8s.io", f"{VALIDATIONS} {MUTATIONS}", READ)
    | rights("policy", "poddisruptionbudgets", READ)
    | rights("karpenter.sh", "provisioners/status machines machines/status", ("create", "delete", "patch"))
    | rights("", "events", ("create", "patch"))
    | rights("", "nodes", ("create", "patch", "delete"))
    | rights("", "pods/eviction", ("create",))
    | rights(
        "admissionregistration.k8s.io",
        VALIDATIONS,
        ("update",),
        "validation.webhook.karpenter.sh",
        "validation.webhook.config.karpenter.sh",
        "validation.webhook.karpenter.k8s.aws",
    )
    | rights("karpenter.k8s.aws", "awsnodetemplates", READ)
    | rights("admissionregistration.k8s.io", MUTATIONS, ("update",), "defaulting.webhook.karpenter.k8s.aws")
    | rights("karpenter.k8s.aws", "awsnodetemplates/status", ("patch", "update"))
)
ALL = (*READ, "create", "patch", "delete")
#: What the chart grants and nothing here uses: machines and their kin are not served, what is followed is not
#: fetched one by one, status is only patched, nodes register themselves. (Webhook configurations: below.)
LEFT_OUT = (
    rights("karpenter.sh", "machines machines/status", ALL)
    | rights("karpenter.sh", "provisioners/status", (*READ, "create", "delete"))
    | rights("karpenter.k8s.aws", "awsnodetemplates", ("get",))
    | rights("karpenter.k8s.aws", "awsnodetemplates/status", ("update",))
    | rights("", "replicationcontrollers", READ)
    | rights("", "namespaces pods persistentvolumes persistentvolumeclaims", ("get",))
    | rights("", "nodes", ("create",))
    | rights("", "events", ("patch",))
    | rights("policy", "poddisruptionbudgets", ("get",))
    | rights("storage.k8s.io", "storageclasses csinodes", ("get",))
)
#: What is needed beyond v0.27: the kinds of v1, overlays, capacity buffers, sizes of gangs, vertical
#: autoscalers, claims on devices, finalizers and a teardown's end of pools, volumes that are still attached,
#: pods deleted when the time for a drain is over.
ADDED = (
    rights("karpenter.sh", "nodeclaims", ALL)
    | rights("karpenter.sh", "nodepools", (*READ, "patch", "delete"))
    | rights("karpenter.sh", "provisioners", ("patch", "delete"))
    | rights("karpenter.sh", "nodeclaims/status nodepools/status", ("patch",))
    | rights("karpenter.sh", "nodeoverlays", FOLLOW)
    | rights("karpenter.sh", "nodeoverlays/status", ("patch",))
    | rights("karpenter.k8s.aws", "ec2nodeclasses", (*READ, "patch"))
    | rights("karpenter.k8s.aws", "ec2nodeclasses/status", ("patch",))
    | rights("autoscaling.x-k8s.io", "capacitybuffers", FOLLOW)
    | rights("autoscaling.x-k8s.io", "capacitybuffers/status", ("patch",))
    | rights("autoscaling.x-k8s.io", "provisioningrequests", FOLLOW)
    | rights("autoscaling.x-k8s.io", "provisioningrequests/status", ("patch",))
    | rights("batch", "jobs", FOLLOW)
    | rights("jobset.x-k8s.io", "jobsets", FOLLOW)
    | rights("scheduling.x-k8s.io", "podgroups", FOLLOW)
    | rights("autoscaling.k8s.io", "verticalpodautoscalers", FOLLOW)
    | rights("", "podtemplates", FOLLOW)
    | rights("", "pods", ("delete",))
    | rights("", "pods/status", ("patch",))
    | rights("storage.k8s.io", "volumeattachments", FOLLOW)
    | rights("resource.k8s.io", "resourceclaims resourceclaimtemplates resourceslices deviceclasses", FOLLOW)
)


def everywhere(environment: Recorder) -> Rights:
    roles = [environment.one(CLUSTER_ROLE, name).inputs for name in ("karpenter-core", "karpenter")]
    return granted(roles[0]) | granted(roles[1])


def test_9_6_the_controller_has_the_charts_rights_but_for_what_differs_on_purpose(
    environment: Recorder,
) -> None:
    ours = everywhere(environment)

    webhooks = {right for right in CHART | ours if right[1] in (VALIDATIONS, MUTATIONS)}
    assert CHART - ours - webhooks == LEFT_OUT
    assert ours - CHART - webhooks == ADDED
    by_name = {right for right in ours if right[1] in (VALIDATIONS, MUTATIONS)}
    assert all(name for *_, name in by_name)
    assert {verb for _, _, verb, _ in by_name} == {"get", "patch"}


def test_9_6_settings_certificate_and_lease_are_within_reach_and_nothing_else(environment: Recorder) -> None:
    local = granted(environment.one(ROLE, "karpenter").inputs)

    followed = ("karpenter-global-settings", "config-logging", "nodeless-teardown")
    assert local == (
        rights("", "configmaps", READ, *followed)
        | rights("", "configmaps", ("create",))
        | rights("", "configmaps", ("patch",), "nodeless-teardown")
        | rights("", "configmaps", ("get", "patch"), "nodeless-measured-capacity", "nodeless-gang-pauses")
        | rights("", "secrets", ("get", "update"), "karpenter-cert")
        | rights("coordination.k8s.io", "leases", ("create",))
        | rights("coordination.k8s.io", "leases", ("get", "update"), "karpenter-leader-election")
    )
    dns = environment.one(ROLE, "karpenter-dns").inputs
    assert granted(dns) == rights("", "services", ("get",), "kube-dns") | rights(
        "", "configmaps", ("get",), "cluster-autoscaler-status"
    )
    assert dns["metadata"]["namespace"] == "kube-system"
    holds = environment.one(ROLE, "karpenter-holds").inputs
    assert granted(holds) == rights("coordination.k8s.io", "leases", ("list",))
    assert holds["metadata"]["namespace"] == "kube-system"


def test_8_2_the_controller_may_not_bind_pods(environment: Recorder) -> None:
    assert not any(resource in ("pods/binding", "bindings") for _, resource, _, _ in everywhere(environment))


def test_8_2_logs_are_found_by_the_charts_label(environment: Recorder) -> None:
    labels = environment.one(DEPLOYMENT).inputs["spec"]["template"]["metadata"]["labels"]

    assert labels["app.kubernetes.io/name"] == "karpenter"
    assert labels["app.kubernetes.io/instance"] == "karpenter"


def at(document: Any, path: str) -> Any:
    """A member by its path; `0` is the first of a list."""
    for step in path.split("."):
        document = document[int(step)] if step.isdigit() else document[step]
    return document


#: 6.1, where ours is the same; paths are those of the Deployment's spec.
DEPLOYED = {
    "replicas": 2,
    "strategy.rollingUpdate.maxUnavailable": 1,
    "template.spec.priorityClassName": "system-cluster-critical",
    "template.spec.dnsPolicy": "Default",
    "template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.topologyKey": (
        "kubernetes.io/hostname"
    ),
    "template.spec.topologySpreadConstraints.0.topologyKey": "topology.kubernetes.io/zone",
    "template.spec.topologySpreadConstraints.0.maxSkew": 1,
    "template.spec.topologySpreadConstraints.0.whenUnsatisfiable": "ScheduleAnyway",
    "template.spec.tolerations.0": {"key": "CriticalAddonsOnly", "operator": "Exists"},
    "template.spec.containers.0.name": "controller",
}


def test_9_6_the_deployment_is_the_charts(environment: Recorder) -> None:
    spec = environment.one(DEPLOYMENT).inputs["spec"]

    found = {path: at(spec, path) for path in DEPLOYED}
    assert found == DEPLOYED
    terms = at(spec, "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    expressions = terms["nodeSelectorTerms"][0]["matchExpressions"]
    assert {"key": "karpenter.sh/provisioner-name", "operator": "DoesNotExist"} in expressions
    assert "checksum/settings" in spec["template"]["metadata"]["annotations"]
    assert {"kubernetes.io/os": "linux"}.items() <= (pod(environment).get("nodeSelector") or {}).items()


@pytest.mark.parametrize(
    ("kind", "name", "resources"),
    [
        (MUTATING, "defaulting.webhook.karpenter.k8s.aws", {"awsnodetemplates"}),
        (MUTATING, "defaulting.webhook.karpenter.sh", {"provisioners"}),
        (VALIDATING, "validation.webhook.karpenter.k8s.aws", {"awsnodetemplates"}),
        (VALIDATING, "validation.webhook.karpenter.sh", {"provisioners"}),
        (VALIDATING, "validation.webhook.config.karpenter.sh", {"configmaps"}),
    ],
    ids=["defaulting aws", "defaulting core", "validating aws", "validating core", "validating settings"],
)
def test_9_6_the_webhook_configurations_are_the_charts(
    environment: Recorder, kind: str, name: str, resources: set[str]
) -> None:
    (webhook,) = environment.one(kind, name).inputs["webhooks"]

    assert (webhook["name"], webhook["sideEffects"], webhook["admissionReviewVersions"]) == (
        name,
        "None",
        ["v1"],
    )
    rules = webhook["rules"]
    assert all(sorted(rule["operations"]) == ["CREATE", "UPDATE"] for rule in rules)
    assert resources <= {resource for rule in rules for resource in rule["resources"]}
    assert "clientConfig" in webhook
