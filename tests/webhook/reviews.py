"""Questions as the API server asks them."""

from __future__ import annotations

import base64
import json
from typing import Any


def request(
    manifest: Any, operation: str = "CREATE", old: Any = None, *, subresource: str = ""
) -> dict[str, Any]:
    """The `request` of a review of one manifest."""
    asked = {"uid": "u-1", "operation": operation, "object": manifest, "oldObject": old}
    return asked | ({"subResource": subresource} if subresource else {})


def review(manifest: Any, operation: str = "CREATE", old: Any = None) -> dict[str, Any]:
    """A whole AdmissionReview."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": request(manifest, operation, old),
    }


def patch_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch of an answer."""
    encoded = answer["response"].get("patch")
    found: list[dict[str, Any]] = json.loads(base64.b64decode(encoded)) if encoded else []
    return found
