"""The server over TLS, asked directly."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from nodeless.api.validation_context import ValidationContext
from nodeless.webhook import AdmissionServer, Certificates, WebhookPortTakenError
from nodeless.webhook.server import application
from tests.api.manifests import article, provisioner
from tests.webhook.conftest import Serving
from tests.webhook.reviews import patch_of, review

pytestmark = pytest.mark.cluster
JSON_TYPE = "application/json"


def ask(
    serving: Serving, path: str, body: bytes, *, method: str = "POST", content_type: str = JSON_TYPE
) -> tuple[int, str]:
    async def scenario() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method,
                f"https://127.0.0.1:{serving.port}{path}",
                data=body,
                headers={"Content-Type": content_type},
                ssl=serving.trust(),
                server_hostname=serving.name,
            ) as response,
        ):
            return response.status, await response.text()

    return asyncio.run(scenario())


def answer(serving: Serving, path: str, document: Any) -> dict[str, Any]:
    status, text = ask(serving, path, json.dumps(document).encode())
    assert status == 200
    found: dict[str, Any] = json.loads(text)
    return found


def test_3_1_it_defaults_and_validates_and_outlives_nonsense(serving: Serving) -> None:
    assert len(patch_of(answer(serving, "/default/karpenter.sh", review(provisioner())))) == 1
    for path in ("/validate/karpenter.sh", "/validate/karpenter.k8s.aws"):
        assert not answer(serving, path, review(article()))["response"]["allowed"]

    assert ask(serving, "/validate/karpenter.sh", b"{", content_type="text/plain")[0] == 415
    for body in (
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({"kind": "AdmissionReview"}).encode(),
    ):
        status, text = ask(serving, "/validate/karpenter.sh", body)
        assert status == 400
        assert "body is" in text or "AdmissionReview" in text
    for path, method in (("/", "GET"), ("/validate/else", "POST"), ("/validate/karpenter.sh", "GET")):
        status, text = ask(serving, path, b"", method=method)
        assert (status, path in text) == (400, True)

    for manifest in (None, 1, "x", [], {}, {"apiVersion": [], "kind": {}}, {**article(), "metadata": 3}):
        response = answer(serving, "/validate/karpenter.sh", review(manifest))["response"]
        assert not response["allowed"]
        assert response["status"]["message"]

    assert answer(serving, "/validate/karpenter.sh", review(provisioner()))["response"]["allowed"]


def test_a_client_without_the_bundle_does_not_trust_it(serving: Serving) -> None:
    async def scenario() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get(
                f"https://127.0.0.1:{serving.port}/",
                ssl=ssl.create_default_context(),
                server_hostname=serving.name,
            )

    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        asyncio.run(scenario())


def test_a_taken_port_is_one_clear_line(on_cluster: Any, serving: Serving) -> None:
    async def scenario(client: Any) -> None:
        await AdmissionServer("127.0.0.1", serving.port, Certificates(client, serving.namespace)).start()

    with pytest.raises(WebhookPortTakenError, match=rf"127\.0\.0\.1:{serving.port}: .*; hint: free the port"):
        on_cluster(scenario)


def test_a_renewed_certificate_is_shown_without_a_restart(on_cluster: Any, serving: Serving) -> None:
    async def shown(port: int) -> bytes | None:
        anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anyone.check_hostname = False
        anyone.verify_mode = ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anyone)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return bytes(certificate)

    async def scenario(client: Any) -> None:
        clock = {"now": time.time()}
        certificates = Certificates(client, serving.namespace, now=lambda: clock["now"])
        async with AdmissionServer("127.0.0.1", 0, certificates) as server:
            before = await shown(server.port)
            assert certificates.bundle == serving.bundle
            clock["now"] += 6.5 * 86400
            await certificates.refresh()
            assert await shown(server.port) != before
        assert certificates.bundle.endswith(serving.bundle)

    on_cluster(scenario)


def test_a_verdict_does_not_wait_for_warnings_that_cannot_be_given() -> None:
    def broken() -> ValidationContext:
        raise RuntimeError("nothing can be seen")

    async def scenario() -> tuple[dict[str, Any], dict[str, Any]]:
        async with TestClient(TestServer(application(context_source=broken))) as client:
            answers = []
            for manifest in (provisioner(), article()):
                response = await client.post("/validate/karpenter.sh", json=review(manifest))
                answers.append((await response.json())["response"])
        return answers[0], answers[1]

    taken, refused = asyncio.run(scenario())

    assert taken["allowed"]
    assert "spec.requirements[2].operator" in refused["status"]["message"]


@pytest.mark.parametrize(("padding", "in_the_loop"), [(100, True), (100_000, False)])
def test_a_small_review_costs_no_thread_and_a_large_one_holds_up_nobody(
    padding: int, in_the_loop: bool
) -> None:
    threads = []

    def context_source() -> ValidationContext:
        threads.append(threading.current_thread())
        return ValidationContext()

    async def scenario() -> None:
        manifest = provisioner(annotations={"note": "x" * padding})
        async with TestClient(TestServer(application(context_source=context_source))) as client:
            response = await client.post("/validate/karpenter.sh", json=review(manifest))
            assert (await response.json())["response"]["allowed"]

    asyncio.run(scenario())

    assert [thread is threading.main_thread() for thread in threads] == [in_the_loop]
