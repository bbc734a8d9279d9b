"""Fargate pods executed as real processes: what their Deployment wires is what the process sees."""

from __future__ import annotations

import base64
import json
import os
import signal
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localenv.certificates import CertificateAuthority
from localenv.kubernetes import ApiError, KubernetesApi
from tests.localenv.kubelets.world import IMAGE, World, is_true

pytestmark = pytest.mark.cluster

ROLE = "arn:aws:iam::123456789012:role/served"
LABELS = {"app": "served"}
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _deployment(namespace: str, **changes: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{IMAGE}:1.0",
        "command": ["python", "/app/served.py"],
        "args": ["/scratch", "/certificates"],
        "ports": [{"name": "http", "containerPort": 8081}, {"name": "webhook", "containerPort": 8443}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "GREETING", "value": "hello from $(POD_NAME)"},
            {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
            {
                "name": "MEMORY",
                "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
            },
            {"name": "SETTINGS", "value": "file:///etc/settings/level"},
        ],
        "envFrom": [{"prefix": "ALL_", "configMapRef": {"name": "settings"}}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "http"},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
        "volumeMounts": [
            {"name": "app", "mountPath": "/app"},
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "certificates", "mountPath": "/certificates"},
        ],
        **changes,
    }
    spec = {
        "serviceAccountName": "served",
        "containers": [container],
        "volumes": [
            {"name": "app", "configMap": {"name": "app"}},
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "certificates", "secret": {"secretName": "certificates"}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "served", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": spec},
        },
    }


def _supporting_objects(namespace: str) -> list[dict[str, Any]]:
    name = f"served.{namespace}.svc"
    with tempfile.TemporaryDirectory() as folder:
        authority = CertificateAuthority(Path(folder))
    issued = authority.server(name, [name])
    files = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": authority.certificate}
    texts = {name: content.decode() for name, content in files.items()}
    metadata = {"namespace": namespace}
    program = Path(__file__).with_name("served.py").read_text()
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "served", "annotations": {"eks.amazonaws.com/role-arn": ROLE}, **metadata},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "app", **metadata},
            "data": {"served.py": program},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", **metadata},
            "data": {"level": "debug"},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "certificates", **metadata},
            "data": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "served", **metadata},
            "spec": {"selector": LABELS, "ports": [{"port": 443, "targetPort": "webhook"}]},
        },
    ]


def _pods(world: World, namespace: str) -> list[dict[str, Any]]:
    return world.api.list(f"/api/v1/namespaces/{namespace}/pods", label_selector="app=served")


def _ready_pods(world: World, namespace: str, count: int = 2) -> list[dict[str, Any]]:
    def ready(pods: list[dict[str, Any]]) -> bool:
        return len(pods) == count and all(is_true(pod, "Ready") for pod in pods)

    found: list[dict[str, Any]] = world.api.wait(
        lambda: _pods(world, namespace), ready, timeout=45, what="ready pods"
    )
    return found


def _address(world: World, pod: dict[str, Any]) -> str:
    """Where the pod's process listens on this machine; environments side by side use different networks."""
    pid = world.kubelets.pid_of(pod["metadata"]["namespace"], pod["metadata"]["name"])
    variables = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(variable.removeprefix("POD_IP=") for variable in variables if variable.startswith("POD_IP="))


def _ask(world: World, pod: dict[str, Any], path: str) -> bytes:
    address = _address(world, pod)
    with _OPENER.open(f"http://{address}:8081{path}", timeout=5) as answer:
        content: bytes = answer.read()
    return content


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def served(world: World, fargate_namespace: str) -> Iterator[str]:
    """Two ready replicas of the program on Fargate, in this namespace."""
    for document in _supporting_objects(fargate_namespace):
        world.api.create(document)
    world.api.create(_deployment(fargate_namespace))
    _ready_pods(world, fargate_namespace)
    yield fargate_namespace
    world.api.delete(
        f"/apis/apps/v1/namespaces/{fargate_namespace}/deployments/served", propagation="Foreground"
    )
    world.api.wait(lambda: _pods(world, fargate_namespace), lambda pods: not pods, timeout=45, what="no pods")


def test_each_replica_has_a_fargate_node_of_its_own(world: World, served: str) -> None:
    pods = _pods(world, served)

    nodes = {pod["spec"]["nodeName"] for pod in pods}
    assert len(nodes) == 2
    for pod in pods:
        node = world.api.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
        address = pod["status"]["podIP"].replace(".", "-")
        assert node["metadata"]["name"] == f"fargate-ip-{address}.us-east-1.compute.internal"
        assert node["metadata"]["labels"]["eks.amazonaws.com/compute-type"] == "fargate"
        taint = {"key": "eks.amazonaws.com/compute-type", "value": "fargate", "effect": "NoSchedule"}
        assert taint in node["spec"]["taints"]
        # 1 CPU, 1 GiB and EKS's 256 MB: the next size Fargate has.
        assert (node["status"]["capacity"]["cpu"], node["status"]["capacity"]["memory"]) == (
            "1",
            str(2 * 2**30),
        )
        assert pod["metadata"]["labels"]["eks.amazonaws.com/fargate-profile"] == "serverless"


def test_the_process_sees_what_the_deployment_wires(world: World, served: str) -> None:
    pod = _pods(world, served)[0]

    environment = json.loads(_ask(world, pod, "/environment"))

    home = world.kubelets.directory / "pods" / f"{served}_{pod['metadata']['name']}"
    loopback, pod_address = environment["POD_IP"].split("."), pod["status"]["podIP"].split(".")
    assert loopback[0] == "127"
    assert loopback[2:] == pod_address[2:]
    assert environment["GREETING"] == f"hello from {pod['metadata']['name']}"
    assert (environment["LEVEL"], environment["ALL_level"]) == ("debug", "debug")
    assert environment["MEMORY"] == "1024"
    assert environment["SETTINGS"] == f"file://{home}/volumes/settings/level"
    assert "AWS_ACCESS_KEY_ID" not in environment
    arguments = json.loads(_ask(world, pod, "/arguments"))
    assert arguments[1:] == [f"{home}/volumes/scratch", f"{home}/volumes/certificates"]
    assert f"serving {pod['metadata']['name']}" in world.kubelets.log_of(pod["metadata"]["name"]).read_text()


def test_a_role_on_the_service_account_becomes_a_token_for_sts(world: World, served: str) -> None:
    pod = _pods(world, served)[0]

    environment = json.loads(_ask(world, pod, "/environment"))

    assert environment["AWS_ROLE_ARN"] == ROLE
    assert environment["AWS_REGION"] == environment["AWS_DEFAULT_REGION"] == "us-east-1"
    assert environment["AWS_STS_REGIONAL_ENDPOINTS"] == "regional"
    token = _ask(world, pod, f"/file?{environment['AWS_WEB_IDENTITY_TOKEN_FILE']}").decode()
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["aud"] == ["sts.amazonaws.com"]
    assert claims["sub"] == f"system:serviceaccount:{served}:served"
    assert claims["iss"] == world.control_plane.issuer
    assert claims["exp"] - claims["iat"] == 86400


def test_the_kubeconfig_of_a_pod_is_its_service_accounts(world: World, served: str) -> None:
    pod = _pods(world, served)[0]
    environment = json.loads(_ask(world, pod, "/environment"))

    api = KubernetesApi.from_kubeconfig(Path(environment["KUBECONFIG"]))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    api.close()

    assert user["status"]["userInfo"]["username"] == f"system:serviceaccount:{served}:served"


def test_a_changed_config_map_reaches_the_mounted_file(world: World, served: str) -> None:
    pod = _pods(world, served)[0]
    place = json.loads(_ask(world, pod, "/environment"))["SETTINGS"].removeprefix("file://")
    assert _ask(world, pod, f"/file?{place}") == b"debug"

    world.api.patch(f"/api/v1/namespaces/{served}/configmaps/settings", {"data": {"level": "info"}})

    world.api.wait(
        lambda: _ask(world, pod, f"/file?{place}"), lambda content: content == b"info", what="the new level"
    )


def test_a_failing_readiness_probe_takes_the_pod_out(world: World, served: str) -> None:
    pod = _pods(world, served)[0]
    path = f"/api/v1/namespaces/{served}/pods/{pod['metadata']['name']}"
    scratch = Path(json.loads(_ask(world, pod, "/arguments"))[1])

    (scratch / "unready").touch()
    world.api.wait(path, lambda found: not is_true(found, "Ready"))
    (scratch / "unready").unlink()
    found = world.api.wait(path, lambda found: is_true(found, "Ready"))

    assert found["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_killed_process_is_started_again_and_the_status_tells(world: World, served: str) -> None:
    name = _pods(world, served)[0]["metadata"]["name"]
    pid = world.kubelets.pid_of(served, name)

    os.kill(pid, signal.SIGKILL)

    def restarted(found: dict[str, Any]) -> bool:
        return found["status"]["containerStatuses"][0]["restartCount"] == 1 and is_true(found, "Ready")

    found = world.api.wait(f"/api/v1/namespaces/{served}/pods/{name}", restarted)
    terminated = found["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (terminated["exitCode"], terminated["signal"]) == (137, 9)
    assert world.kubelets.pid_of(served, name) != pid


def test_a_deleted_pods_process_ends_and_its_node_goes(world: World, served: str) -> None:
    pod = _pods(world, served)[0]
    pid = world.kubelets.pid_of(served, pod["metadata"]["name"])

    world.api.delete(f"/api/v1/namespaces/{served}/pods/{pod['metadata']['name']}")

    world.api.wait_gone(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    assert not _alive(pid)
    _ready_pods(world, served)


def test_the_api_server_reaches_a_webhook_by_its_service(world: World, served: str) -> None:
    authority = _supporting_authority(world, served)
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"deny-{served}"},
        "webhooks": [
            {
                "name": "deny.served.example",
                "clientConfig": {
                    "service": {"name": "served", "namespace": served, "port": 443},
                    "caBundle": authority,
                },
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["limitranges"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": served}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
            }
        ],
    }
    world.api.create(configuration)
    probe = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "denied", "namespace": served},
        "spec": {"limits": []},
    }

    def refusal() -> str:
        try:
            world.api.create(probe, dry_run=True)
        except ApiError as error:
            return str(error)
        return ""

    answer = world.api.wait(refusal, what="the webhook to answer")
    world.api.delete(f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/deny-{served}")
    assert "denied by served-" in answer


def _supporting_authority(world: World, namespace: str) -> str:
    secret = world.api.get(f"/api/v1/namespaces/{namespace}/secrets/certificates")
    return str(secret["data"]["ca.crt"])


def test_a_crashing_program_backs_off(world: World, fargate_namespace: str) -> None:
    for document in _supporting_objects(fargate_namespace):
        world.api.create(document)
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "crashing", "namespace": fargate_namespace},
            "spec": {
                "containers": [{"name": "main", "image": IMAGE, "command": ["python", "-c", "exit(3)"]}]
            },
        }
    )

    def waiting(found: dict[str, Any]) -> bool:
        statuses = found["status"].get("containerStatuses") or [{"state": {}}]
        return (statuses[0]["state"].get("waiting") or {}).get("reason") == "CrashLoopBackOff"

    found = world.api.wait(f"/api/v1/namespaces/{fargate_namespace}/pods/crashing", waiting)
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3


def test_a_pod_that_misses_a_config_map_says_so(world: World, fargate_namespace: str) -> None:
    variable = {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}}
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "60"], "env": [variable]}
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "waiting", "namespace": fargate_namespace},
            "spec": {"containers": [container]},
        }
    )

    def state(found: dict[str, Any]) -> dict[str, Any]:
        statuses = found["status"].get("containerStatuses") or [{"state": {}}]
        waiting: dict[str, Any] = statuses[0]["state"].get("waiting") or {}
        return waiting

    path = f"/api/v1/namespaces/{fargate_namespace}/pods/waiting"
    found = world.api.wait(path, lambda found: state(found).get("reason") == "CreateContainerConfigError")
    assert state(found)["message"] == "configmap 'settings' not found"

    for document in _supporting_objects(fargate_namespace):
        world.api.create(document)

    world.api.wait(path, lambda found: is_true(found, "Ready"))


def test_no_process_outlives_the_kubelets(world: World, fargate_namespace: str, tmp_path: Path) -> None:
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "sleeper", "namespace": fargate_namespace},
            "spec": {"containers": [{"name": "main", "image": IMAGE, "command": ["sleep", "600"]}]},
        }
    )
    path = f"/api/v1/namespaces/{fargate_namespace}/pods/sleeper"
    world.api.wait(path, lambda found: is_true(found, "Ready"))
    pid = world.kubelets.pid_of(fargate_namespace, "sleeper")

    os.kill(world.kubelets.processes["kubelets"].pid, signal.SIGKILL)
    world.api.wait(lambda: not _alive(pid), what="the executed process to end")
    world.kubelets.restart()

    found = world.api.wait(
        path,
        lambda found: (
            is_true(found, "Ready") and found["status"]["containerStatuses"][0]["restartCount"] == 1
        ),
        what="the pod to run again",
    )
    assert world.kubelets.pid_of(fargate_namespace, found["metadata"]["name"]) != pid
