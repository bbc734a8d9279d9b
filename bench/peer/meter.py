"""What a workload costs while it goes on, seen from outside of the controller.

Money is that of the instances which AWS bills, by its price list, integrated over the time; seconds are
those from a pod's creation to its running; calls are those of the API server's audit log and of the local
AWS's record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import psutil

from bench.peer.workloads import NAMESPACE
from localenv.environment import Environment
from localenv.labs.cluster_view import price_of
from localenv.rbac import read_events
from localenv.stats import MIB

_SAMPLE_SECONDS = 0.5
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
#: States of an instance that is paid for.
_BILLED = ("pending", "running", "stopping", "shutting-down")
_HOUR = 3600.0


@dataclass(slots=True)
class Cost:
    """What one workload cost under one controller.

    Attributes:
        dollars: Over the whole time.
        price: Dollars an hour of what stands at the end.
        waits: Seconds from each pod's creation until it was seen running.
        waiting: Pods that did not run at the end.
        evictions: That the API server granted.
        launched: Instances that were not there before.
        ended: Instances that were there before, or came meanwhile, and are gone.
        writes: Requests to the API server that change something, evictions and events included.
        aws: Calls to AWS.
        processor: Seconds.
        memory: MiB, resident, the most that was seen.
    """

    dollars: float = 0.0
    price: float = 0.0
    waits: list[float] = field(default_factory=list)
    waiting: int = 0
    evictions: int = 0
    launched: int = 0
    ended: int = 0
    writes: int = 0
    aws: int = 0
    processor: float = 0.0
    memory: float = 0.0

    def wait(self, part: float) -> float:
        """Seconds within which that part of the pods ran; 0 when none was made."""
        ordered = sorted(self.waits)
        return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0


class Meter:
    """Measures one controller on one environment."""

    def __init__(self, environment: Environment, user: str, pids: Callable[[], Iterable[int]]) -> None:
        """`user`: as whom the API server knows the controller; `pids`: of its processes now."""
        self._environment, self._user, self._pids = environment, user, pids
        self._role = f":assumed-role/{environment.stack.outputs()['controllerRoleName']}/"
        self._created: dict[str, float] = {}
        self._ran: set[str] = set()

    def measure(self, act: Callable[[], None], seconds: float) -> Cost:
        """Do something and watch for so long what it costs."""
        cost, log, calls = Cost(), self._log_size(), len(self._environment.aws.calls())
        before = self.billed_instances()
        seen, spent = set(before), self._processor()
        act()
        began = last = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            billed = self.billed_instances()
            seen |= set(billed)
            cost.price = sum(billed.values())
            cost.dollars += cost.price * (now - last) / _HOUR
            last = now
            cost.waiting = self._look_at_pods(cost)
            cost.memory = max(cost.memory, self._memory())
            time.sleep(_SAMPLE_SECONDS)
        cost.launched = len(seen - set(before))
        cost.ended = len(seen - set(self.billed_instances()))
        cost.processor = sum(total - spent.get(pid, 0.0) for pid, total in self._processor().items())
        cost.aws = sum(self._role in call["principal"] for call in self._environment.aws.calls()[calls:])
        self._count(cost, log)
        return cost

    def billed_instances(self) -> dict[str, float]:
        """Dollars an hour of each instance that is paid for, by id."""
        return {
            instance["InstanceId"]: price_of(
                instance["InstanceType"],
                instance["Placement"]["AvailabilityZone"],
                "spot" if instance.get("InstanceLifecycle") == "spot" else "on-demand",
            )
            for instance in self._environment.aws.instances()
            if instance["State"]["Name"] in _BILLED
        }

    def _look_at_pods(self, cost: Cost) -> int:
        """Note which pods began to run; how many do not yet."""
        now, waiting = time.time(), 0
        pods = self._environment.api.list(f"/api/v1/namespaces/{NAMESPACE}/pods")
        for pod in pods:
            metadata = pod["metadata"]
            if any(owner["kind"] == "DaemonSet" for owner in metadata.get("ownerReferences", ())):
                continue
            created = self._created.setdefault(metadata["uid"], now)
            if pod["status"].get("phase") != "Pending":
                if metadata["uid"] not in self._ran:
                    self._ran.add(metadata["uid"])
                    cost.waits.append(now - created)
            elif not metadata.get("deletionTimestamp"):
                waiting += 1
        return waiting

    def _processor(self) -> dict[int, float]:
        """Seconds of processor so far, by process."""
        times = {pid: psutil.Process(pid).cpu_times() for pid in self._pids()}
        return {pid: spent.user + spent.system for pid, spent in times.items()}

    def _memory(self) -> float:
        return float(sum(psutil.Process(pid).memory_info().rss for pid in self._pids())) / MIB

    def _log_size(self) -> int:
        log = self._environment.control_plane.audit_log
        return log.stat().st_size if log.exists() else 0

    def _count(self, cost: Cost, start: int) -> None:
        log = self._environment.control_plane.audit_log
        for event in read_events(log, start) if log.exists() else ():
            if event["user"]["username"] != self._user or event["verb"] not in _WRITES:
                continue
            cost.writes += 1
            about = event.get("objectRef") or {}
            granted = int((event.get("responseStatus") or {}).get("code", 0)) < 400
            cost.evictions += about.get("subresource") == "eviction" and granted
