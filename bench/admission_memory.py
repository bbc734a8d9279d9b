"""How much memory the webhook takes at most: the real application over TLS, asked the dearest that it reads.

`python -m localenv.admission_memory` prints the figures; `make bench` does so too. Each body is as large
as the server reads at all, or holds as many values as it reads at all; what would be cheap for its sender and
dear for us in yet another way belongs here. The kernel keeps the peak (VmHWM), so that nothing is missed.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from bench.admission import NAME, serving
from nodeless.webhook.limits import BOUNDS, LARGEST_BODY

_PATH = "/validate/karpenter.sh"
_HEADERS = {"Content-Type": "application/json", "Host": NAME}
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Peak:
    """What one body cost: the process's most memory while it was answered, in MiB, and seconds."""

    name: str
    sent: int
    status: int
    answered: int
    mib: float
    seconds: float


def bodies() -> Iterator[tuple[str, bytes]]:
    """Name and body of the reviews, made one at a time."""
    yield "nothing wrong", _review(_provisioner(requirements=[]))
    yield "invalid requirements", _requirements('{"key":"a/b/c","operator":"?"}')
    yield "requirements that are numbers", _requirements("1")
    yield "empty requirements", _requirements("{}")
    yield "lists in lists", _requirements("[[1]]")
    yield "values of labels", _requirements('{"key":"example.com/a","operator":"In","values":[1]}')
    yield (
        "one type many times",
        _requirements('{"key":"node.kubernetes.io/instance-type","operator":"Exists"}'),
    )
    yield "integer labels", _labels(lambda number: f'"l{number}":{number}')
    yield "near misses of labels", _labels(lambda number: f'"node.kubernetes.io/instance-typ{number}":"a"')
    unknown = {**_provisioner(), "spec": "@"}
    yield "unknown members", _fill_manifest(unknown, lambda number: f'"requirement{number}":1', "{}")
    yield "one long key", _review(_provisioner(labels={"k" * (LARGEST_BODY - 4096): "v"}))
    yield "one long value", _review(_provisioner(labels={"k": "\N{GRINNING FACE}" * (LARGEST_BODY // 13)}))
    yield "nulls", _requirements("null")
    yield "too many values", b"[" + b"[]," * (LARGEST_BODY // 3 - 2) + b"[]]"
    yield "too deep", b"[" * LARGEST_BODY


def largest_object() -> bytes:
    """An update of the largest Provisioner that etcd takes, and its former self: all of it right."""
    values = [f"v{number:06d}.large" for number in range(100_000)]  # 1.5 MiB in JSON
    old, new = (
        _provisioner(requirements=[{"key": "example.com/kind", "operator": "In", "values": each}])
        for each in (values, values[:-1])
    )
    return _review(new, old)


def measure() -> list[Peak]:
    """Ask each of them in turn, each of a process of its own."""
    peaks = [ask(name, body) for name, body in bodies()]
    return [*peaks, ask("the largest object, old and new", largest_object())]


def run() -> str:
    """Measure, and say what was found."""
    lines = [
        f"  {peak.name}: {peak.sent / _MIB:.1f} MiB asked, {peak.status}, {peak.answered / 1024:.0f} KiB "
        f"answered in {peak.seconds:.2f} s, peak {peak.mib:.0f} MiB"
        for peak in measure()
    ]
    return "\n".join(["memory of the webhook's process under the dearest requests:", *lines])


def ask(name: str, body: bytes) -> Peak:
    """Ask one of them of a new process."""
    with serving() as (port, authority, process):
        connection = HTTPSConnection("127.0.0.1", port, context=_trusting(authority), timeout=120)
        began = time.perf_counter()
        connection.request("POST", _PATH, body=body, headers=_HEADERS)
        answer = connection.getresponse()
        answered = len(answer.read())
        took = time.perf_counter() - began
        connection.close()
        return Peak(name, len(body), answer.status, answered, _peak_mib(process.pid), took)


def _trusting(authority: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.decode())
    context.check_hostname = False  # it is asked by its address
    return context


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _provisioner(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "large"},
        "spec": {"providerRef": {"name": "default"}, **spec},
    }


def _review(new: Any, old: Any = None) -> bytes:
    request = {"uid": "memory", "operation": "UPDATE" if old else "CREATE", "object": new, "oldObject": old}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


def _requirements(item: str) -> bytes:
    return _fill_manifest(_provisioner(requirements="@"), lambda _: item, "[]")


def _labels(item: Callable[[int], str]) -> bytes:
    return _fill_manifest(_provisioner(labels="@"), item, "{}")


def _fill_manifest(manifest: dict[str, Any], item: Callable[[int], str], around: str) -> bytes:
    """The manifest, with a list or object in the place of its "@" that holds all that is read at all."""
    frame = _review(manifest)
    room, values, parts = LARGEST_BODY - len(frame), BOUNDS.values - 100, list[str]()
    while room > 0 and values > 0:
        parts.append(item(len(parts)))
        room -= len(parts[-1]) + 1
        values -= 1 + sum(map(parts[-1].count, ",[{"))
    return frame.replace(b'"@"', f"{around[0]}{','.join(parts[:-1])}{around[1]}".encode())


if __name__ == "__main__":
    sys.stdout.write(f"{run()}\n")
