"""The API server asked what it would do, without doing it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from localenv.kubernetes import KubernetesApi
from nodeless.api.kinds import KIND_OF_NAME


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a user is told: the refusal (empty when there is none) and the warnings; and the object stored."""

    refusal: str
    warnings: tuple[str, ...]
    stored: dict[str, Any]
    status: int = HTTPStatus.OK

    @property
    def about_the_object(self) -> bool:
        """Whether it would be the same at another time."""
        passing = {HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
        return self.status < HTTPStatus.INTERNAL_SERVER_ERROR and self.status not in passing

    @property
    def told(self) -> str:
        return "\n".join([self.refusal, *self.warnings])


#: A webhook that did not answer, an API server that is busy, a name that is not free yet: no verdict on the
#: object. What comes each time is one.
_PAUSES = (0.2, 0.5, 1.0, 2.0)


def asked_to_create(api: KubernetesApi, manifest: dict[str, Any], *, dry_run: bool = True) -> Verdict:
    """The verdict on a new object, unknown fields refused as kubectl has it."""
    query = {"fieldValidation": "Strict", "dryRun": "All" if dry_run else None}
    path = KIND_OF_NAME[manifest["kind"]].path()

    def ask() -> Verdict:
        answer = api.connection.exchange("POST", path, body=manifest, query=query)
        return _verdict(answer.status, answer.content, answer.warnings)

    verdict = ask()
    for pause in _PAUSES:
        if verdict.about_the_object:
            break
        time.sleep(pause)
        verdict = ask()
    return verdict


def asked_to_apply(api: KubernetesApi, manifest: dict[str, Any], *, dry_run: bool = True) -> Verdict:
    """The verdict on `kubectl apply --server-side`."""
    query = {
        "fieldValidation": "Strict",
        "fieldManager": "kubectl",
        "force": True,
        "dryRun": "All" if dry_run else None,
    }
    path = KIND_OF_NAME[manifest["kind"]].path(manifest["metadata"]["name"])
    answer = api.connection.exchange(
        "PATCH", path, body=manifest, query=query, content_type="application/apply-patch+yaml"
    )
    return _verdict(answer.status, answer.content, answer.warnings)


def _verdict(status: int, content: Any, warnings: tuple[str, ...]) -> Verdict:
    if status < 400:
        return Verdict("", warnings, content)
    message = content.get("message", "") if isinstance(content, dict) else str(content)
    return Verdict(f"{status}: {message}", warnings, {}, status)
