"""The controller's objects: names, order and least rights."""

import json
from typing import Any

import pytest

from nodeless.api.crds import all_crds
from tests.components.conftest import CONFIG, program
from tests.components.recorder import Recorder, run

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
ADMISSION = "admissionregistration.k8s.io/v1"
MUTATING = f"kubernetes:{ADMISSION}:MutatingWebhookConfiguration"
VALIDATING = f"kubernetes:{ADMISSION}:ValidatingWebhookConfiguration"
CLUSTER_ROLE = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
ROLE = "kubernetes:rbac.authorization.k8s.io/v1:Role"

OBJECTS = [
    ("core/v1:Namespace", None, "karpenter"),
    ("policy/v1:PodDisruptionBudget", "karpenter", "karpenter"),
    ("core/v1:ServiceAccount", "karpenter", "karpenter"),
    ("core/v1:Secret", "karpenter", "karpenter-cert"),
    ("core/v1:ConfigMap", "karpenter", "config-logging"),
    ("core/v1:ConfigMap", "karpenter", "karpenter-global-settings"),
    ("core/v1:Service", "karpenter", "karpenter"),
    ("networking.k8s.io/v1:NetworkPolicy", "karpenter", "karpenter"),
    ("apps/v1:Deployment", "karpenter", "karpenter"),
    ("rbac.authorization.k8s.io/v1:ClusterRole", None, "karpenter"),
    ("rbac.authorization.k8s.io/v1:ClusterRole", None, "karpenter-core"),
    ("rbac.authorization.k8s.io/v1:ClusterRole", None, "karpenter-admin"),
    ("rbac.authorization.k8s.io/v1:ClusterRoleBinding", None, "karpenter"),
    ("rbac.authorization.k8s.io/v1:ClusterRoleBinding", None, "karpenter-core"),
    ("rbac.authorization.k8s.io/v1:Role", "karpenter", "karpenter"),
    ("rbac.authorization.k8s.io/v1:Role", "kube-system", "karpenter-dns"),
    ("rbac.authorization.k8s.io/v1:Role", "kube-system", "karpenter-holds"),
    ("rbac.authorization.k8s.io/v1:RoleBinding", "karpenter", "karpenter"),
    ("rbac.authorization.k8s.io/v1:RoleBinding", "kube-system", "karpenter-dns"),
    ("rbac.authorization.k8s.io/v1:RoleBinding", "kube-system", "karpenter-holds"),
    (f"{ADMISSION}:MutatingWebhookConfiguration", None, "defaulting.webhook.karpenter.sh"),
    (
        "admissionregistration.k8s.io/v1:MutatingWebhookConfiguration",
        None,
        "defaulting.webhook.karpenter.k8s.aws",
    ),
    (
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
        None,
        "validation.webhook.karpenter.sh",
    ),
    (
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
        None,
        "validation.webhook.karpenter.k8s.aws",
    ),
    (
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
        None,
        "validation.webhook.config.karpenter.sh",
    ),
]


@pytest.mark.parametrize(("kind", "namespace", "name"), OBJECTS)
def test_objects_have_the_charts_names(
    environment: Recorder, kind: str, namespace: str | None, name: str
) -> None:
    metadata = environment.one(f"kubernetes:{kind}", name).inputs["metadata"]
    assert metadata.get("namespace") == namespace


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_a_namespace_that_every_cluster_has_is_not_made(namespace: str) -> None:
    recorder = run(program, config={**CONFIG, "nodeless:controllerNamespace": namespace})
    assert recorder.of("kubernetes:core/v1:Namespace") == []
    assert recorder.one(DEPLOYMENT).inputs["metadata"]["namespace"] == namespace
    subjects = recorder.one(f"{CLUSTER_ROLE}Binding", "karpenter").inputs["subjects"]
    assert [subject["namespace"] for subject in subjects] == [namespace]


def test_definitions_are_the_controllers_own_unchanged(environment: Recorder) -> None:
    made = {
        each.inputs["metadata"]["name"]: each.inputs
        for each in environment.of("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition")
    }
    own = {crd["metadata"]["name"]: crd for crd in all_crds()}
    assert set(made) == set(own)
    assert {"provisioners.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws"} <= set(own)
    for name, definition in own.items():
        assert made[name]["spec"] == definition["spec"]


def pod(environment: Recorder) -> dict[str, Any]:
    spec: dict[str, Any] = environment.one(DEPLOYMENT).inputs["spec"]["template"]["spec"]
    return spec


def test_two_replicas_spread_and_are_never_disrupted_together(environment: Recorder) -> None:
    assert environment.one(DEPLOYMENT).inputs["spec"]["replicas"] == 2
    spread = pod(environment)["topologySpreadConstraints"][0]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "topology.kubernetes.io/zone",
        "ScheduleAnyway",
    )
    budget = environment.one("kubernetes:policy/v1:PodDisruptionBudget").inputs["spec"]
    assert budget["maxUnavailable"] == 1
    labels = environment.one(DEPLOYMENT).inputs["spec"]["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"] == labels
    assert environment.one("kubernetes:core/v1:Service").inputs["spec"]["selector"] == labels


def test_the_container_runs_with_least_privilege_and_fixed_size(environment: Recorder) -> None:
    spec = pod(environment)
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    figures = {"cpu": "1", "memory": "1Gi"}
    assert container["resources"] == {"requests": figures, "limits": figures}


def test_the_pod_is_as_the_controller_expects_it(environment: Recorder) -> None:
    (container,) = pod(environment)["containers"]
    assert (container["name"], container["command"], container["args"]) == (
        "controller",
        ["nodeless"],
        ["run"],
    )
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {
        "https-webhook": 8443,
        "http-metrics": 8080,
        "http": 8081,
    }
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container["env"]
        if "valueFrom" in each
    }
    assert fields == {
        "SYSTEM_NAMESPACE": "metadata.namespace",
        "POD_NAME": "metadata.name",
        "POD_IP": "status.podIP",
    }
    assert {"name": "CONFIG_LOGGING_NAME", "value": "config-logging"} in container["env"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert pod(environment)["serviceAccountName"] == "karpenter"


NETWORK_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"


def test_only_the_three_ports_of_the_pods_can_be_reached(environment: Recorder) -> None:
    spec = environment.one(NETWORK_POLICY).inputs["spec"]

    labels = environment.one(DEPLOYMENT).inputs["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"] == {"matchLabels": labels}
    assert spec["policyTypes"] == ["Ingress"]
    admitted = {rule["ports"][0]["port"]: rule.get("from") for rule in spec["ingress"]}
    # API servers and kubelets are no pods: from everywhere. Metrics: from pods of any namespace.
    assert admitted == {8443: None, 8081: None, 8080: [{"namespaceSelector": {}}]}
    (container,) = pod(environment)["containers"]
    assert set(admitted) == {port["containerPort"] for port in container["ports"]}


def test_the_webhook_may_be_kept_to_the_networks_of_api_servers_and_the_policy_left_out() -> None:
    networks = ["10.0.0.0/28", "10.0.0.16/28"]
    narrowed = run(program, config={**CONFIG, "nodeless:controllerWebhookCidrs": json.dumps(networks)})
    webhook = narrowed.one(NETWORK_POLICY).inputs["spec"]["ingress"][0]
    assert webhook["from"] == [{"ipBlock": {"cidr": network}} for network in networks]
    assert webhook["ports"] == [{"port": 8443, "protocol": "TCP"}]

    without = run(program, config={**CONFIG, "nodeless:controllerNetworkPolicy": "false"})
    assert without.of(NETWORK_POLICY) == []


def test_the_pods_wait_for_all_they_use_and_for_fargate(environment: Recorder) -> None:
    behind = environment.everything_behind(environment.one(DEPLOYMENT))
    for kind, _, name in OBJECTS:
        if not kind.endswith(":Deployment") and name != "karpenter-admin":
            assert environment.one(f"kubernetes:{kind}", name).urn in behind, name
    for profile in environment.of("aws:eks/fargateProfile:FargateProfile"):
        assert profile.urn in behind


def test_webhooks_are_made_before_pods_and_after_what_nobody_could_check_yet(environment: Recorder) -> None:
    webhooks = environment.of(MUTATING) + environment.of(VALIDATING)
    assert len(webhooks) == 5
    settings = environment.one("kubernetes:core/v1:ConfigMap", "karpenter-global-settings")
    for webhook in webhooks:
        assert settings.urn in webhook.dependencies
        assert environment.one(DEPLOYMENT).urn not in environment.everything_behind(webhook)


def test_pools_fail_closed_and_settings_fail_open(environment: Recorder) -> None:
    for each in environment.of(MUTATING) + environment.of(VALIDATING):
        (webhook,) = each.inputs["webhooks"]
        settings = each.inputs["metadata"]["name"] == "validation.webhook.config.karpenter.sh"
        assert webhook["failurePolicy"] == ("Ignore" if settings else "Fail")
        assert "caBundle" not in webhook["clientConfig"], "the controller's to fill in"
        assert webhook["clientConfig"]["service"]["name"] == "karpenter"
        assert webhook["clientConfig"]["service"]["namespace"] == "karpenter"
    own = environment.one(VALIDATING, "validation.webhook.config.karpenter.sh").inputs["webhooks"][0]
    labels = own["objectSelector"]["matchLabels"]
    for name in ("karpenter-global-settings", "config-logging"):
        map_labels = environment.one("kubernetes:core/v1:ConfigMap", name).inputs["metadata"]["labels"]
        assert labels.items() <= map_labels.items()
    guard = environment.one("kubernetes:core/v1:ConfigMap", "nodeless-teardown").inputs["metadata"]["labels"]
    assert not labels.items() <= guard.items(), "the guard must be released even when no webhook answers"


def granted(role: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {
        (group, resource, verb, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


def test_the_controllers_rights_are_spelt_out_and_as_narrow_as_names_allow(environment: Recorder) -> None:
    """That it uses each of them, and lacks none, is shown by its recorded calls (tests/environment)."""
    everywhere = granted(environment.one(CLUSTER_ROLE, "karpenter-core").inputs) | granted(
        environment.one(CLUSTER_ROLE, "karpenter").inputs
    )
    assert not any("*" in part for right in everywhere for part in right)
    assert not any(resource in ("secrets", "configmaps", "leases") for _, resource, _, _ in everywhere)
    # Pods are evicted; deleted only when the time for a drain is over.
    assert ("", "pods", "delete", "") in everywhere
    assert ("", "pods", "patch", "") not in everywhere
    assert not any(verb == "update" for _, _, verb, _ in everywhere)
    written = {name for _, resource, verb, name in everywhere if "webhook" in resource and verb == "patch"}
    assert written == {name for kind, _, name in OBJECTS if "Webhook" in kind}
    local = granted(environment.one(ROLE, "karpenter").inputs)
    assert {(resource, verb) for _, resource, verb, name in local if not name} == {
        ("configmaps", "create"),
        ("leases", "create"),
    }
    assert {name for _, resource, _, name in local if resource == "secrets"} == {"karpenter-cert"}
    changed = {name for _, resource, verb, name in local if resource == "configmaps" and verb == "patch"}
    assert changed == {"nodeless-teardown", "nodeless-measured-capacity", "nodeless-gang-pauses"}


def test_service_ports_lead_to_the_container(environment: Recorder) -> None:
    ports = environment.one("kubernetes:core/v1:Service").inputs["spec"]["ports"]
    assert {(port["name"], port["port"], port["targetPort"]) for port in ports} == {
        ("http-metrics", 8080, "http-metrics"),
        ("https-webhook", 443, "https-webhook"),
    }
