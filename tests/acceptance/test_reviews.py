"""Questions of the API server and our answers to them, whole, as files.

`reviews/NAME.json` holds path, question and answer. The server is the real one, asked over TLS; the same
manifests go through the real API server in `tests/webhook`. NODELESS_WRITE_REVIEWS=1 writes them anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import urllib3

from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

FILES = sorted((Path(__file__).parent / "reviews").glob("*.json"))
JSON_TYPE = "application/json"


def asked(serving: Serving, path: str, body: bytes, content_type: str = JSON_TYPE) -> tuple[int, str]:
    with urllib3.HTTPSConnectionPool(
        "127.0.0.1",
        serving.port,
        ssl_context=serving.trust(),
        server_hostname=serving.name,
        assert_hostname=serving.name,
        retries=False,
        timeout=60,
    ) as pool:
        answer = pool.request("POST", path, body=body, headers={"Content-Type": content_type})
        return answer.status, answer.data.decode()


@pytest.mark.parametrize("file", FILES, ids=[f"9.3 {file.stem}" for file in FILES])
def test_a_review_is_answered_to_the_letter(admission: Serving, file: Path) -> None:
    review = json.loads(file.read_text())

    status, text = asked(admission, review["path"], json.dumps(review["asked"]).encode())

    assert status == 200
    if os.environ.get("NODELESS_WRITE_REVIEWS"):
        review["answered"] = json.loads(text)
        file.write_text(json.dumps(review, indent=2) + "\n")
    assert json.loads(text) == review["answered"]


def test_9_3_the_files_show_every_kind_of_question() -> None:
    assert {file.stem for file in FILES} >= {
        "create-defaulted",
        "create-refused",
        "create-with-warnings",
        "update-refused",
        "status-update",
        "finalizer-update",
        "delete",
        "unknown-kind",
        "unknown-member-of-the-provider",
        "node-pool",
        "settings",
    }


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", ""])
def test_9_3_another_content_type_is_not_read(admission: Serving, content_type: str) -> None:
    body = FILES[0].read_bytes()

    status, text = asked(admission, "/validate/karpenter.sh", body, content_type)

    assert (status, text) == (415, "the content type must be application/json\n")


@pytest.mark.parametrize("path", ["/", "/default", "/validate/karpenter.sh/v1", "/default/apps"])
def test_3_1_a_path_that_is_not_served_is_named(admission: Serving, path: str) -> None:
    assert asked(admission, path, b"{}") == (400, f"POST {path} is not served here\n")
