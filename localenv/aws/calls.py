"""A call to the local AWS: what was asked, by whom, and how a handler answers or refuses.

Handlers are plain functions `(Call) -> dict`; the gateway parses the request before and renders the answer
after, unless the handler has done so itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localenv.aws.moto_internals import MotoServer, WireResponse
    from localenv.aws.state import LocalState


class AwsError(Exception):
    """An error in AWS's words, rendered in the wire protocol of the service that was called."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """One authenticated call."""

    service: str
    operation: str
    region: str
    access_key: str
    #: ARN of the caller; empty for the calls that need no signature.
    principal: str
    parameters: dict[str, Any]
    moto: MotoServer
    state: LocalState

    def client(self, service: str | None = None) -> Any:
        """A boto3 client of moto in the call's region."""
        return self.moto.client(service or self.service, self.region)

    def forward(self, **changes: object) -> dict[str, Any]:
        """What moto answers to this call, with some parameters changed (`None` leaves one out)."""
        parameters = {**self.parameters, **changes}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        method = getattr(self.client(), snake_case(self.operation))
        answer: dict[str, Any] = method(**parameters)
        answer.pop("ResponseMetadata", None)
        return answer


Handler = Callable[[Call], "Mapping[str, Any] | WireResponse"]
#: Handlers by (service, operation).
Handlers = dict[tuple[str, str], Handler]


def snake_case(name: str) -> str:
    """boto3's name of an operation."""
    from botocore import xform_name  # noqa: PLC0415 - keeps this module free of clients at import

    return str(xform_name(name))


def as_list(value: Any) -> list[Any]:
    """What a policy or a token says once or as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def digest(value: object, length: int = 17) -> str:
    """A stable hexadecimal digest of any JSON-like value: identifiers and idempotency tokens."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
