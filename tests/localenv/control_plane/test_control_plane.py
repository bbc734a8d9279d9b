"""The control plane as its users meet it: the real programs, one cluster for the session."""

from __future__ import annotations

import base64
import http.server
import json
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from localenv.certificates import CertificateAuthority
from localenv.control_plane import ControlPlane
from localenv.control_plane.state import StateDirectory, default_base
from localenv.kubernetes import ApiError, KubernetesApi
from localenv.ports import PortTaken
from localenv.processes import ProcessDied
from tests.localenv.control_plane.connect_proxy import ConnectProxy
from tests.localenv.control_plane.test_processes import alive, eventually

pytestmark = pytest.mark.cluster


def deployment(namespace: str, replicas: int) -> dict[str, Any]:
    labels = {"app": "inflate"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inflate", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
                    ]
                },
            },
        },
    }


def unschedulable(pods: list[dict[str, Any]]) -> list[str]:
    """Names of the pods that the scheduler has judged and not placed."""
    return [
        pod["metadata"]["name"]
        for pod in pods
        for condition in pod.get("status", {}).get("conditions", ())
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
    ]


def wait_for_unschedulable(api: KubernetesApi, namespace: str, count: int) -> None:
    path = api.path("v1", "Pod", namespace)
    api.wait(
        lambda: unschedulable(api.list(path)),
        lambda names: len(names) == count,
        what=f"{count} pods that the scheduler cannot place",
    )


def test_pods_of_a_deployment_wait_for_a_node(api: KubernetesApi, namespace: str) -> None:
    path = api.path_of(api.create(deployment(namespace, 2)))
    wait_for_unschedulable(api, namespace, 2)

    api.scale(path, 3)

    wait_for_unschedulable(api, namespace, 3)
    [first, *_] = api.list(api.path("v1", "Pod", namespace))
    assert first["status"]["phase"] == "Pending"
    api.wait(
        lambda: api.events(namespace, first["metadata"]["name"]),
        lambda events: any(event["reason"] == "FailedScheduling" for event in events),
        what="the scheduler's event",
    )


def test_a_service_account_without_a_role_is_forbidden_until_it_has_one(
    api: KubernetesApi, namespace: str
) -> None:
    someone = api.with_token(api.token(namespace, "default"))
    pods = api.path("v1", "Pod", namespace)
    with pytest.raises(ApiError) as refusal:
        someone.list(pods)
    assert (refusal.value.status, refusal.value.reason) == (403, "Forbidden")

    role = {"name": "view", "namespace": namespace}
    api.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        }
    )

    def allowed() -> bool:
        try:
            return someone.list(pods) == []
        except ApiError as error:
            assert error.status == 403
            return False

    api.wait(allowed, what="the binding to take effect")
    someone.close()


def test_a_node_may_not_change_another_node(
    control_plane: ControlPlane, api: KubernetesApi, tmp_path: Path
) -> None:
    own, other = "ip-10-0-1-1.ec2.internal", "ip-10-0-1-2.ec2.internal"
    access = control_plane.write_kubeconfig(tmp_path / "kubelet", f"system:node:{own}", ["system:nodes"])
    kubelet = KubernetesApi.from_kubeconfig(access)
    try:
        made = kubelet.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": own}})
        assert made["metadata"]["name"] == own
        with pytest.raises(ApiError, match=r"is not allowed|cannot") as refusal:
            kubelet.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": other}})
        assert refusal.value.status == 403
    finally:
        kubelet.close()
        api.delete(f"/api/v1/nodes/{own}", missing_ok=True)


def test_anyone_can_verify_tokens_of_service_accounts(
    control_plane: ControlPlane, api: KubernetesApi, namespace: str
) -> None:
    with urllib3.PoolManager(ca_certs=str(control_plane.certificate_authority)) as anyone:
        found = anyone.request("GET", f"{control_plane.issuer}/.well-known/openid-configuration").json()
        keys = anyone.request("GET", found["jwks_uri"]).json()
    assert found["issuer"] == control_plane.issuer
    assert [key["alg"] for key in keys["keys"]] == ["ES256"]

    token = api.token(namespace, "default", audiences=("sts.amazonaws.com",))

    claims = json.loads(base64.urlsafe_b64decode(_padded(token.split(".")[1])))
    assert claims["iss"] == control_plane.issuer
    assert claims["aud"] == ["sts.amazonaws.com"]
    assert claims["sub"] == f"system:serviceaccount:{namespace}:default"


class Webhook(http.server.BaseHTTPRequestHandler):
    """Denies what it is asked."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {
            "uid": review["request"]["uid"],
            "allowed": False,
            "status": {"message": "not on my watch"},
        }
        body = json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def webhook(namespace: str, tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    """A webhook server as a Service of the namespace would have it; its port and its authority."""
    authority = CertificateAuthority(tmp_path / "webhook")
    files = authority.write("server", authority.server("hook", [f"hook.{namespace}.svc"]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1], authority.certificate
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_given_by_service_is_reached_through_the_proxy(
    api: KubernetesApi, namespace: str, connect_proxy: ConnectProxy, webhook: tuple[int, bytes]
) -> None:
    port, authority = webhook
    connect_proxy.backend = ("127.0.0.1", port)
    service = api.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hook", "namespace": namespace},
            "spec": {"ports": [{"port": 443, "targetPort": 8443}], "selector": {"app": "hook"}},
        }
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "deny.test.nodeless.dev",
        "clientConfig": {
            "service": {"name": "hook", "namespace": namespace, "port": 443, "path": "/deny"},
            "caBundle": _base64(authority),
        },
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = api.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": f"deny-{namespace}"},
            "webhooks": [hook],
        }
    )

    def denial() -> str | None:
        try:
            api.create(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"generateName": "a-", "namespace": namespace},
                }
            )
        except ApiError as error:
            return error.message
        return None

    try:
        message = api.wait(denial, what="the webhook to be asked")
    finally:
        api.delete(api.path_of(configuration))
    assert message == 'admission webhook "deny.test.nodeless.dev" denied the request: not on my watch'
    assert f"{service['spec']['clusterIP']}:443" in connect_proxy.targets


@pytest.mark.parametrize("name", ["kube-scheduler", "etcd", "kube-apiserver"])
def test_a_killed_program_is_noticed_and_healed(
    control_plane: ControlPlane, api: KubernetesApi, namespace: str, name: str
) -> None:
    killed = control_plane.processes[name].pid
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: bool(control_plane.processes.deaths()), "the death to be seen")
    with pytest.raises(ProcessDied, match=f"{name} was killed by SIGKILL"):
        control_plane.check()

    assert control_plane.heal() == [name]

    control_plane.check()
    assert control_plane.heal() == []
    api.create(deployment(namespace, 1))
    wait_for_unschedulable(api, namespace, 1)


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1:{port}: the port is taken; hint: ") as taken:
            ControlPlane.start(tmp_path / "cluster", port=port)

    assert "\n" not in str(taken.value)
    assert not (tmp_path / "cluster").exists()


def test_a_proxy_socket_too_long_for_the_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"longer than 107 bytes; hint: "):
        ControlPlane.start(tmp_path / "cluster", proxy_socket=tmp_path / ("s" * 120))


def test_stop_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    plane = ControlPlane.start(tmp_path / "cluster")
    pids = [child.pid for child in plane.processes]
    state = plane._state.path
    assert len(pids) == 4
    assert state.parent == default_base()

    plane.stop()

    assert not any(alive(pid) for pid in pids)
    assert not (tmp_path / "cluster").exists()
    assert not state.exists()
    plane.stop()


def test_state_left_by_a_killed_owner_is_removed_by_the_next(tmp_path: Path) -> None:
    abandoned, living = StateDirectory(tmp_path), StateDirectory(tmp_path)
    abandoned._lock.close()  # as the kernel does for a killed owner
    for folder in (abandoned, living):
        os.utime(folder.path / "owner.lock", (0, 0))

    fresh = StateDirectory(tmp_path)

    assert not abandoned.path.exists()
    assert living.path.exists()
    assert fresh.path.exists()
    living.remove()
    fresh.remove()
    assert list(tmp_path.iterdir()) == []


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _padded(segment: str) -> str:
    return segment + "=" * (-len(segment) % 4)
