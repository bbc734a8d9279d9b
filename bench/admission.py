"""How long the webhook takes for one object: the real application over TLS on one core, at a steady rate.

`python -m bench.admission` prints the figures; `make bench` does so too. A question that has to
wait for the ones before it counts from the moment that it was due, so that a slow answer is not hidden. The
time of the processor does not depend on what else the machine does; the time on the clock does. The second
line is of a leader that computes all the while: another thread of the same process never rests.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import yaml
from aiohttp import web

from nodeless.api.conversion import convert_to_v1
from nodeless.api.conversion_classes import ClassContext
from nodeless.api.reading import read_pool
from nodeless.api.validation_context import ValidationContext
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from nodeless.manager.freeze_gc import answer_while_computing, freeze_gc
from nodeless.webhook import pki
from nodeless.webhook.server import application

RATE = 50
SECONDS = 20
_EXAMPLES = Path(__file__).parents[1] / "examples" / "nodeless"
NAME = "karpenter.bench.svc"
#: Other pools of the cluster, each of which is compared with the one that is asked about.
_NEIGHBORS = 20


def run() -> str:
    """Measure, and say what was found."""
    times, used = _measure(computing=False)
    meanwhile, _ = _measure(computing=True)
    return (
        f"admission of one object: {_spread(times)}, of {len(times)} at {RATE} a second over TLS; the server "
        f"on one core, {used:.1f} ms of it for each\n"
        f"admission of one object while the same process computes: {_spread(meanwhile)}"
    )


def _measure(*, computing: bool) -> tuple[list[float], float]:
    """Milliseconds of the answers, sorted, and of processor time for each."""
    with serving(computing=computing) as (port, authority, process):
        before, began = _processor_time(process), time.perf_counter()
        times = sorted(asyncio.run(_ask(port, authority)))
        busy = (_processor_time(process) - before) / (time.perf_counter() - began)
    return times, 1000 * busy / RATE


def _spread(times: list[float]) -> str:
    return f"p50 {_at(times, 0.5):.1f} ms, p99 {_at(times, 0.99):.1f} ms, slowest {times[-1]:.1f} ms"


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(share * len(times)))]


def _processor_time(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return spent.user + spent.system


def questions() -> list[tuple[str, bytes]]:
    """Path and body of reviews as the API server sends them: both generations, defaulting and validation."""
    files = (_EXAMPLES / "provisioner.yaml", _EXAMPLES / "awsnodetemplate.yaml")
    old = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    manifests = [*old, *convert_to_v1(old, ClassContext("nodes")).manifests]
    asked = []
    for manifest in manifests:
        group = manifest["apiVersion"].partition("/")[0]
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "bench", "operation": "CREATE", "object": manifest, "oldObject": None},
        }
        asked += [(f"/{verb}/{group}", json.dumps(review).encode()) for verb in ("default", "validate")]
    return asked


async def _ask(port: int, authority: bytes) -> list[float]:
    """Milliseconds of each answer, counted from when its question was due."""
    context = ssl.create_default_context(cadata=authority.decode())
    asked, times = questions(), []
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=16, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(number: int, due: float) -> float:
            path, body = asked[number % len(asked)]
            await asyncio.sleep(due - loop.time())
            async with session.post(
                f"https://127.0.0.1:{port}{path}",
                data=body,
                headers={"Content-Type": "application/json"},
                server_hostname=NAME,
            ) as answer:
                response = (await answer.json())["response"]
            if not response["allowed"]:
                raise AssertionError(f"{path} refused: {response['status']['message']}")
            return 1000 * (loop.time() - due)

        for number in range(len(asked)):
            await one(number, loop.time())  # the first of each kind opens connections and fills caches
        start = loop.time() + 0.5
        due = (start + number / RATE for number in range(RATE * SECONDS))
        times = await asyncio.gather(*(one(number, moment) for number, moment in enumerate(due)))
    return list(times)


@contextmanager
def serving(*, computing: bool = False) -> Iterator[tuple[int, bytes, psutil.Process]]:
    """The webhook in a process of its own: its port, whom to trust, the process."""
    material = pki.make([NAME], time.time())
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, material, computing), daemon=True)
    process.start()
    try:
        yield ours.recv(), material.bundle, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, material: pki.Material, computing: bool) -> None:
    own = psutil.Process()
    own.cpu_affinity(own.cpu_affinity()[:1])
    answer_while_computing()
    if computing:
        threading.Thread(target=_compute, daemon=True).start()
    asyncio.run(_serve_until_stopped(pipe, material))


def _compute() -> None:
    """What a solver does to its neighbors in the process: Python, without a rest."""
    while True:
        sum(number * number for number in range(1000))


async def _serve_until_stopped(pipe: Connection, material: pki.Material) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(material.certificate + material.key)
        file.flush()
        context.load_cert_chain(file.name)
    around = ValidationContext(bundled_types(), dict(_neighbors()))
    freeze_gc()
    runner = web.AppRunner(application(context_source=lambda: around), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    pipe.send(runner.addresses[0][1])
    await asyncio.Event().wait()


def _neighbors() -> Iterator[tuple[str, Any]]:
    manifest = yaml.safe_load((_EXAMPLES / "provisioner.yaml").read_text(encoding="utf-8"))
    for number in range(_NEIGHBORS):
        pool, _ = read_pool(manifest | {"metadata": {"name": f"neighbor-{number}"}})
        yield pool.key, pool


if __name__ == "__main__":
    sys.stdout.write(f"{run()}\n")
