"""Whatever comes in over the wire, the webhook server answers it and goes on serving."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.api.documents import documents
from tests.api.manifests import article, provisioner
from tests.api.test_properties import JSON
from tests.webhook.conftest import Serving
from tests.webhook.reviews import review

pytestmark = pytest.mark.cluster

PATHS = [
    *(
        f"/{verb}/{group}"
        for verb in ("default", "validate")
        for group in ("karpenter.sh", "karpenter.k8s.aws")
    ),
    "/validate/config.karpenter.sh",
]
OPERATIONS = some.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"])
SENSIBLE = json.dumps(review(article())).encode()


@some.composite
def torn(draw: some.DrawFn) -> bytes:
    """A review with some of its bytes overwritten, or its end cut off."""
    body = bytearray(SENSIBLE)
    for _ in range(draw(some.integers(0, 4))):
        body[draw(some.integers(0, len(body) - 1))] = draw(some.integers(0, 255))
    return bytes(body[: draw(some.integers(0, len(body)))])


BODIES = some.one_of(
    some.binary(max_size=200),
    torn(),
    JSON.map(lambda document: json.dumps(document).encode()),
    some.builds(review, JSON | documents(), OPERATIONS, JSON | documents()).map(
        lambda document: json.dumps(document).encode()
    ),
    some.integers(1, 4000).map(lambda depth: json.dumps(review({})).replace("{}", "[" * depth).encode()),
    some.integers(1, 900).map(
        lambda depth: (
            json.dumps(review(provisioner(provider="@")))
            .replace('"@"', '{"a":' * depth + "1" + "}" * depth)
            .encode()
        )
    ),
)


@pytest.fixture(scope="module")
def wire(admission: Serving) -> Iterator[urllib3.HTTPSConnectionPool]:
    """Connections to the server, kept open between requests as the API server keeps them."""
    with urllib3.HTTPSConnectionPool(
        "127.0.0.1",
        admission.port,
        ssl_context=admission.trust(),
        server_hostname=admission.name,
        assert_hostname=admission.name,
        retries=False,
        timeout=60,
    ) as pool:
        yield pool


def ask(wire: urllib3.HTTPSConnectionPool, path: str, body: bytes) -> tuple[int, Any]:
    answer = wire.request("POST", path, body=body, headers={"Content-Type": "application/json"})
    return answer.status, json.loads(answer.data) if answer.status == 200 else answer.data.decode()


@settings(deadline=None, max_examples=250)
@given(some.data())
def test_every_body_is_answered(wire: urllib3.HTTPSConnectionPool, data: some.DataObject) -> None:
    status, answer = ask(wire, data.draw(some.sampled_from(PATHS)), data.draw(BODIES))

    if status == 200:
        response = answer["response"]
        assert response["uid"]
        assert response["allowed"] or response["status"]["message"]
    else:
        assert status == 400
        assert "AdmissionReview" in answer or "body is" in answer


@settings(deadline=None, max_examples=40)
@given(
    some.binary(max_size=300)
    | some.just(b"POST /validate/karpenter.sh HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n{")
)
def test_bytes_that_are_no_request_leave_the_server_serving(
    admission: Serving, wire: urllib3.HTTPSConnectionPool, sent: bytes
) -> None:
    with (
        socket.create_connection(("127.0.0.1", admission.port), timeout=30) as plain,
        admission.trust().wrap_socket(plain, server_hostname=admission.name) as secure,
    ):
        secure.sendall(sent)

    assert ask(wire, PATHS[0], json.dumps(review(provisioner())).encode())[1]["response"]["allowed"]


def test_a_body_beyond_all_sense_is_refused(wire: urllib3.HTTPSConnectionPool) -> None:
    answer = wire.request(
        "POST", PATHS[0], body=b" " * (9 * 1024 * 1024), headers={"Content-Type": "application/json"}
    )

    assert answer.status == 413
