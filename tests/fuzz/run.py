"""Throw drawn objects at a running controller, with an honest workload beside them, and watch what holds.

`make fuzz` (`python -m tests.fuzz.run --objects 20000 --seed 7`) brings an environment up for it. What must
hold: no replica restarts, the honest workload runs within three times its usual time, memory stays within the
limit of the container, and the webhook answers. Objects that lived when something broke are kept in a folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from statistics import median
from typing import Any

import psutil

from localenv.environment import NAMESPACE, Environment, Options
from localenv.kubernetes import ApiError, ApiUnreachable, ConditionNotMet, KubernetesApi
from localenv.progress import StreamReport
from nodeless.model.buffers import API_VERSION
from tests.environment.user import NODES, OF_A_POOL, deployment_manifest, pool_manifests
from tests.fuzz.definition import DEFINITION
from tests.fuzz.garbling import Garbling
from tests.fuzz.objects import Kind, Object, Thrower
from tests.fuzz.schemas import Schemas

#: MiB that the controller's container may take (components/pulumi_nodeless: limit of its memory).
MEMORY_LIMIT = 1024
#: How much longer the honest workload may take among hostile neighbors.
SLOWDOWN = 3.0
#: Objects that live at a time, at least; the oldest goes first, and none before it was seen for a while.
_ALIVE, _SEEN_SECONDS = 120, 5.0
#: Connections that objects are thrown over at a time. With six, the API server takes more than one of two
#: cores, and what the honest workload waits for is kube-scheduler, whose writes stand in line.
_THROWERS = 3
#: How often something of the controller's own is garbled, for each object thrown.
_GARBLED = 0.03
_ROUNDS_BEFORE = 2
_PATIENCE = 240.0
_HONEST, _HOSTILE = "honest", "hostile"
_TAINT = {"key": _HONEST, "value": "yes", "effect": "NoSchedule"}
#: The API server refuses an object for its content.
_REFUSED = range(400, 500)


@dataclass(slots=True)
class Findings:
    """What was seen; `broken` says what did not hold, with the time."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    usual: list[float] = field(default_factory=list)
    among: list[float] = field(default_factory=list)
    peak_mib: float = 0.0
    broken: list[str] = field(default_factory=list)

    @property
    def slowdown(self) -> float:
        """The slowest honest round among hostile neighbors over the usual one."""
        return max(self.among, default=0.0) / max(median(self.usual), 0.1) if self.usual else 0.0

    def report(self) -> str:
        """Lines for people."""
        kinds = ", ".join(f"{name} {count}" for name, count in self.accepted.most_common())
        lines = [
            f"{self.accepted.total()} objects accepted ({kinds}), {self.refused.total()} refused",
            f"honest workload: usually {median(self.usual):.1f} s, among hostile neighbors "
            f"{median(self.among):.1f} s (median), {max(self.among):.1f} s (slowest of {len(self.among)})"
            if self.usual and self.among
            else "honest workload: no round was finished",
            f"memory of the largest replica: {self.peak_mib:.0f} MiB, at most {MEMORY_LIMIT}",
            *(f"BROKEN {each}" for each in self.broken),
        ]
        return "\n".join(lines)


class Honest:
    """A tenant who wants three pods to run, again and again, on nodes of a pool of its own."""

    def __init__(self, environment: Environment) -> None:
        self._api = environment.control_plane.client()
        # How long it waits at most is what is judged here.
        self._api.patience = 1.0
        discovery = {"karpenter.sh/discovery": environment.options.cluster_name}
        template = {"subnetSelector": discovery, "securityGroupSelector": discovery}
        for manifest in pool_manifests(_HONEST, template, taints=[_TAINT], ttlSecondsAfterEmpty=1):
            self._api.create(manifest)
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _HONEST}})
        deployment = deployment_manifest(_HONEST, _HONEST, 0, "700m")
        pod = deployment["spec"]["template"]["spec"]
        pod["nodeSelector"] = {"karpenter.sh/provisioner-name": _HONEST}
        pod["tolerations"] = [_TAINT | {"operator": "Equal"}]
        self._api.create(deployment)
        self._path = f"/apis/apps/v1/namespaces/{_HONEST}/deployments/{_HONEST}"

    def round(self) -> float:
        """Seconds until three pods run; afterwards they are gone again. Raises ConditionNotMet."""
        began = time.monotonic()
        self._scale(3, lambda pods: [each["status"].get("phase") for each in pods] == ["Running"] * 3)
        took = time.monotonic() - began
        self._scale(0, lambda pods: not pods)
        # The next round begins without a node, too, but for one that a stranger's pod, which tolerates every
        # taint, runs on: it rightly stays until that pod goes.
        self._api.wait(
            self._nodes_without_strangers,
            lambda nodes: not nodes,
            timeout=_PATIENCE,
            what="the nodes of the honest workload to go",
        )
        return took

    def _nodes_without_strangers(self) -> list[str]:
        nodes = {
            node["metadata"]["name"]
            for node in self._api.list(NODES, label_selector=f"{OF_A_POOL}={_HONEST}")
        }
        pods = self._api.list(f"/api/v1/namespaces/{_HOSTILE}/pods") if nodes else []
        return sorted(nodes - {pod["spec"].get("nodeName") for pod in pods})

    def _scale(self, replicas: int, reached: Callable[[list[Object]], bool]) -> None:
        self._api.scale(self._path, replicas)
        self._api.wait(
            lambda: self._api.list(f"/api/v1/namespaces/{_HONEST}/pods"),
            reached,
            timeout=_PATIENCE,
            what=f"{replicas} pods of the honest workload",
        )


class Fuzz:
    """One run on an environment; `seed` tells which objects are thrown."""

    def __init__(self, environment: Environment, seed: int, folder: Path | None = None) -> None:
        self._environment = environment
        self._folder = folder
        self._api = environment.control_plane.client()
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _HOSTILE}})
        self._api.apply(DEFINITION)
        self._api.wait(
            lambda: self._api.find(f"/openapi/v3/apis/{API_VERSION}"),
            lambda found: found is not None and "CapacityBuffer" in str(found),
            what="the schema of capacity buffers",
        )
        self._random = Random(seed)
        self._thrower = Thrower(Schemas(self._api), self._random, _HOSTILE)
        self._garbling = Garbling(self._api, self._random, NAMESPACE)
        self._alive: deque[tuple[float, str]] = deque()
        # Of everything that throwers share; objects are drawn one after the other, so that a seed tells them.
        self._lock = threading.Lock()
        self._shown: deque[Object] = deque(maxlen=2 * _ALIVE)
        self._ended = threading.Event()
        self.found = Findings()
        #: When the first object was thrown.
        self.began = float("inf")

    def run(self, enough: Callable[[Findings], bool]) -> Findings:
        """Throw until it is enough; then everything thrown is taken away again."""
        honest = Honest(self._environment)
        self.found.usual = [honest.round() for _ in range(_ROUNDS_BEFORE)]
        processes = dict(self._processes())
        self.began = time.monotonic()
        with ThreadPoolExecutor(3 + _THROWERS, thread_name_prefix="fuzz") as threads:
            watching = [
                threads.submit(self._watch, processes),
                threads.submit(self._ask_webhook),
                threads.submit(self._go_on, honest),
            ]
            throwing = [threads.submit(self._keep_throwing, enough) for _ in range(_THROWERS)]
            try:
                for each in throwing:
                    each.result()
            finally:
                self._ended.set()
        for each in watching:
            each.result()
        self._finish(honest, processes)
        return self.found

    def _keep_throwing(self, enough: Callable[[Findings], bool]) -> None:
        while True:
            with self._lock:
                if self._ended.is_set() or enough(self.found) or self.found.broken:
                    return
                drawn = self._thrower.draw()
                garbled = self._garbling.draw() if self._random.random() < _GARBLED else None
            self._throw(*drawn)
            if garbled is not None:
                self._change(*garbled)
            for path in iter(self._due, None):
                self._delete(path)

    def _throw(self, kind: Kind, thrown: Object, status: Object | None) -> None:
        try:
            made = self._api.create(thrown)
        except (ApiError, ApiUnreachable) as error:
            self._count_refusal(kind.name, error)
            return
        path = self._api.path_of(made)
        self._count(kind.name, thrown)
        if status is not None:
            self._change(f"{kind.name}/status", f"{path}/status", status)
        with self._lock:
            self._alive.append((time.monotonic(), path))

    def _due(self) -> str | None:
        """The path of an object that has lived for long enough."""
        with self._lock:
            if len(self._alive) <= _ALIVE or time.monotonic() < self._alive[0][0] + _SEEN_SECONDS:
                return None
            return self._alive.popleft()[1]

    def _change(self, name: str, path: str, change: Object) -> None:
        try:
            self._api.patch(path, change)
        except (ApiError, ApiUnreachable) as error:
            self._count_refusal(name, error)
            return
        self._count(name, {"path": path, **change})

    def _count(self, name: str, shown: Object) -> None:
        with self._lock:
            self.found.accepted[name] += 1
            self._shown.append(shown)

    def _count_refusal(self, name: str, error: Exception) -> None:
        with self._lock:
            self.found.refused[name] += 1
        # One that etcd finds too large is answered with 500, as is one that the webhook gave no answer to.
        if not isinstance(error, ApiError) or (error.status not in _REFUSED and "webhook" in str(error)):
            self._break(f"{name} was not refused but failed: {str(error)[:500]}")

    def _delete(self, path: str) -> None:
        with suppress(ApiError, ApiUnreachable):
            body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            self._api.request("DELETE", path, body=body)

    def _break(self, what: str) -> None:
        self.found.broken.append(f"after {self.found.accepted.total()} objects: {what}")

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        for pod in self._environment.controller_pods():
            yield pod, psutil.Process(self._environment.kubelets.pid_of(NAMESPACE, pod))

    def _watch(self, processes: dict[str, psutil.Process]) -> None:
        while not self._ended.wait(0.5):
            for pod, process in processes.items():
                if not self._lives(process):
                    self._break(f"replica {pod} has ended: {self._last_words(pod)}")
                    return
                with suppress(psutil.Error):
                    self.found.peak_mib = max(self.found.peak_mib, process.memory_info().rss / 2**20)
            if self.found.peak_mib > MEMORY_LIMIT:
                self._break(f"a replica takes {self.found.peak_mib:.0f} MiB")
                return

    @staticmethod
    def _lives(process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    def _last_words(self, pod: str) -> str:
        logs = [log for log in self._environment.controller_logs() if log.name.startswith(pod)]
        return logs[-1].read_text(errors="replace")[-3000:] if logs else "it left no log"

    def _ask_webhook(self) -> None:
        """A good object passes and a bad one is refused, all the time."""
        api = self._environment.control_plane.client()
        good, bad = (_provisioner(weight) for weight in (1, 101))
        while not self._ended.wait(1.0):
            try:
                api.create(good, dry_run=True)
            except (ApiError, ApiUnreachable) as error:
                self._break(f"the webhook does not answer: {error}")
                return
            if not _is_refused(api, bad):
                self._break("the webhook lets a bad object in")
                return

    def _go_on(self, honest: Honest) -> None:
        while not self._ended.is_set():
            try:
                self.found.among.append(honest.round())
            except (ConditionNotMet, ApiUnreachable, ApiError) as error:
                self._break(f"the honest workload did not run: {str(error)[:500]}")
                return

    def _finish(self, honest: Honest, processes: dict[str, psutil.Process]) -> None:
        """Whatever is left goes; the controller is to be well then."""
        if self.found.broken and self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "objects.json").write_text(json.dumps([*self._shown], indent=1))
        with ThreadPoolExecutor(_THROWERS, thread_name_prefix="fuzz") as threads:
            list(threads.map(self._delete, [path for _, path in self._alive]))
        self._alive.clear()
        release(self._api)
        self._garbling.mend()
        self._api.delete(self._api.path_of(DEFINITION), missing_ok=True)
        for pod, process in processes.items():
            if not self._lives(process) and not self.found.broken:
                self._break(f"replica {pod} has ended: {self._last_words(pod)}")
        if not self.found.broken:
            try:
                honest.round()
            except ConditionNotMet as error:
                self._break(f"the honest workload did not run at the end: {str(error)[:500]}")


def release(api: KubernetesApi) -> None:
    """Take the finalizers off what was thrown and still waits for its end: nodes that never were."""
    for api_version, kind in (
        ("v1", "Node"),
        ("karpenter.sh/v1", "NodeClaim"),
        ("karpenter.sh/v1", "NodePool"),
        ("karpenter.sh/v1alpha5", "Provisioner"),
        ("karpenter.k8s.aws/v1", "EC2NodeClass"),
        ("v1", "PersistentVolume"),
    ):
        for found in api.list(api.path(api_version, kind)):
            if found["metadata"]["name"].startswith("fuzz-"):
                with suppress(ApiError):
                    api.patch(api.path_of(found), {"metadata": {"finalizers": None}})
                    api.delete(api.path_of(found), missing_ok=True)


def _provisioner(weight: int) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"generateName": "asked-"},
        "spec": {"providerRef": {"name": "default"}, "weight": weight},
    }


def _is_refused(api: KubernetesApi, bad: Object) -> bool:
    try:
        api.create(bad, dry_run=True)
    except ApiError as error:
        return error.status in _REFUSED
    except ApiUnreachable:
        return True
    return False


def main() -> int:
    """Run on an environment of its own; 1 when something broke."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--objects", type=int, default=20_000, help="accepted objects")
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--keep", type=Path, default=Path("fuzz"), help="folder for what broke something")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)  # noqa: T201
    options = Options(
        config={"nodeless:controllerSettings": json.dumps({"nodeless.capacityBuffers": "true"})}
    )
    with Environment.start(report=StreamReport(), options=options) as environment:
        fuzz = Fuzz(environment, given.seed, given.keep)
        last = 0

        def enough(found: Findings) -> bool:
            nonlocal last
            if (total := found.accepted.total()) >= last + 1000:
                last = total
                print(f"{total} objects accepted, {len(found.among)} honest rounds", flush=True)  # noqa: T201
            return total >= given.objects or time.monotonic() > fuzz.began + given.seconds

        found = fuzz.run(enough)
        if found.slowdown > SLOWDOWN:
            found.broken.append(f"the honest workload took {found.slowdown:.1f} times its usual time")
        print(found.report())  # noqa: T201
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
