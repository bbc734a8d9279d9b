"""What can go wrong between us and the API server."""

from collections.abc import Mapping
from typing import Any

import msgspec


class ApiUnavailable(Exception):
    """The API server cannot be reached; the message names the address and the cause."""


class AnswerTooLarge(ApiUnavailable):
    """The API server's answer is longer than what is read of one; nothing of it was kept."""


class ApiError(Exception):
    """The API server's refusal: HTTP status, machine-readable reason, message, causes."""

    def __init__(
        self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}

    @classmethod
    def from_body(cls, status: int, body: bytes) -> "ApiError":
        """From a `metav1.Status`, or whatever else came back."""
        try:
            document = msgspec.json.decode(body)
            return cls(
                status, document.get("reason", ""), document.get("message", ""), document.get("details")
            )
        except (msgspec.DecodeError, AttributeError):
            return cls(status, "", body[:500].decode("utf-8", "replace"))
