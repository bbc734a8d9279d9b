"""The webhook of the real process: when it is ready, and that it answers what it was asked before it ends."""

import json
import socket
import ssl

import pytest

from localenv.kubernetes import ApiError
from localenv.ports import free_port
from tests.api.manifests import article, provisioner
from tests.controllers.test_probes import get
from tests.localenv.control_plane.connect_proxy import ConnectProxy
from tests.rights import allow
from tests.webhook.conftest import configured
from tests.webhook.reviews import review

pytestmark = pytest.mark.cluster

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


@pytest.fixture
def installation(control_plane, api, namespace):
    """What an installation makes: the paths of its webhook configurations, and a way to its Service."""
    ports = [{"name": "https-webhook", "port": 443, "targetPort": 8443}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "karpenter", "namespace": namespace},
    }
    api.create({**service, "spec": {"ports": ports}})
    allow(control_plane, namespace, "secrets", "create")  # none is made for the controller
    with (
        configured(api, namespace) as paths,
        ConnectProxy(control_plane.kubeconfig.parent / "proxy") as proxy,
    ):
        yield paths, proxy


def bundles(api, paths):
    return [
        webhook["clientConfig"].get("caBundle") for path in paths for webhook in api.get(path)["webhooks"]
    ]


def refusal(api, manifest):
    try:
        api.create(manifest, dry_run=True)
    except ApiError as error:
        return str(error)
    return ""


def test_4_4_it_is_not_ready_until_a_certificate_is_there_and_trusted(replicas, api, namespace, installation):
    """A Secret that cannot be written keeps the certificate from being made; nothing else is wrong."""
    paths, proxy = installation
    secret = f"/api/v1/namespaces/{namespace}/secrets/karpenter-cert"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "karpenter-cert"}, "immutable": True}
    api.create({**body, "metadata": {"name": "karpenter-cert", "namespace": namespace}})
    port = free_port()
    process = replicas("first", DISABLE_WEBHOOK="false", WEBHOOK_PORT=str(port))
    probes = process.env["HEALTH_PROBE_PORT"]
    api.wait(lambda: "certificate is not ready yet" in process.log.read_text(), what="the refusal")

    api.wait(lambda: get(probes, "/readyz") == (503, "waiting for the webhook"), what="all but the webhook")
    assert get(probes, "/healthz") == (200, "ok")
    assert bundles(api, paths) == [None] * 5
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)

    api.delete(secret)
    api.wait(lambda: get(probes, "/readyz") == (200, "ok"), what="readiness")

    assert None not in bundles(api, paths)
    assert set(api.get(secret)["data"]) == {"server-key.pem", "server-cert.pem", "ca-cert.pem"}
    proxy.backend = ("127.0.0.1", port)
    api.wait(lambda: refusal(api, article()), lambda told: "has blanks around it" in told)


def test_3_1_what_was_asked_before_sigterm_is_answered(replicas, api, namespace, installation):
    """Half a question is on its way, and another connection is open, when the process is told to end."""
    port = free_port()
    process = replicas("first", DISABLE_WEBHOOK="false", WEBHOOK_PORT=str(port))
    probes = process.env["HEALTH_PROBE_PORT"]
    api.wait(lambda: "webhook is serving" in process.log.read_text(), what="the webhook")
    api.wait(lambda: get(probes, "/readyz") == (200, "ok"), what="readiness")
    body = json.dumps(review(provisioner(weight=101))).encode()
    head = (
        "POST /validate/karpenter.sh HTTP/1.1\r\nHost: karpenter\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        trust.wrap_socket(plain) as asking,
        socket.create_connection(("127.0.0.1", port), timeout=30) as idle,
        trust.wrap_socket(idle),
    ):
        asking.sendall(head + body[:40])
        process.terminate()
        api.wait(lambda: '"stopping"' in process.log.read_text(), what="the end to begin")
        asking.sendall(body[40:])
        answer = b""
        while piece := asking.recv(65536):
            answer += piece

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"spec.weight: 101 must be from 1 to 100" in answer
    assert process.wait(timeout=120) == 0
    log = process.log.read_text()
    for noise in ("Traceback", "Task was destroyed", "never retrieved", "Unclosed"):
        assert noise not in log
