"""Calls out of an audit log of the API server, one JSON event a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localenv.rbac.rights import Call


def read_calls(log: Path, user: str, start: int = 0) -> dict[Call, int]:
    """What a user asked of the API server.

    Args:
        log: Written at level Metadata or above, by `ControlPlane.start(audited_users=...)`.
        user: Its name, for example `system:serviceaccount:karpenter:karpenter`.

        start: Bytes of the log that are passed over, for example its size at an earlier time.

    Returns:
        Each different call, and the worst HTTP status that it was answered with (403: not allowed).
    """
    calls: dict[Call, int] = {}
    for event in read_events(log, start):
        if event["user"]["username"] != user:
            continue
        call = call_of(event)
        status = int((event.get("responseStatus") or {}).get("code", 0))
        calls[call] = max(calls.get(call, 0), status)
    return calls


def call_of(event: Mapping[str, Any]) -> Call:
    """The call that an event of the audit log (`audit.k8s.io/v1`) is about."""
    about = event.get("objectRef")
    if about is None:
        return Call("", event["requestURI"].partition("?")[0], event["verb"])
    resource, subresource = about["resource"], about.get("subresource", "")
    # The log takes the name of what is created out of its body; the authorizer has not seen that.
    named = event["verb"] != "create" or subresource
    return Call(
        group=about.get("apiGroup", ""),
        resource=f"{resource}/{subresource}" if subresource else resource,
        verb=event["verb"],
        namespace=about.get("namespace", ""),
        name=about.get("name", "") if named else "",
    )


def read_events(log: Path, start: int = 0) -> Iterable[dict[str, Any]]:
    """The events (`audit.k8s.io/v1`) of a log from a byte on."""
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            if line.endswith(b"\n"):  # else it is still being written
                yield json.loads(line)
