"""`make soak`: a large cluster that never rests. Prints what it finds and what is wanted; fails on a miss.

Pods of ten Deployments fill the nodes; then nobody does anything, and the controller's processor time is
measured; then Deployments shrink and grow in turns and pods are deleted here and there, while the
controller's memory is sampled. At the end everything must run, and what the controller knows must be what
the API server has. Which Deployment and which pods is seeded: every run does the same.

What on a real cluster has machines of its own, so that the controller never competes with it (500 kubelets,
the scheduler, Kubernetes' own controllers), lets the controller, the API server and the cloud go first;
and the control plane spends memory, of which there is enough, instead of processor time.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import mean
from typing import Any
from urllib.request import ProxyHandler, build_opener

import psutil
from rich.console import Console
from rich.table import Table

from localenv.environment import NAMESPACE, Environment, Leader, Options
from localenv.kubelets.addresses import local_address
from localenv.kubernetes import KubernetesApi, Object
from localenv.labs.run import CLAIMS, DEPLOYMENTS
from localenv.progress import StreamReport
from localenv.stats import MIB

WORKLOADS = 10
_POD_CPU = "180m"
_QUIET_SECONDS = 60.0
_SAMPLE_SECONDS = 5.0
_STEP_SECONDS = 15.0
#: Nodes and pods that come up slowly on a small machine are no fault of the controller's.
_PATIENCE_SECONDS = 1800.0
_RECONCILE = "controller_runtime_reconcile_time_seconds_bucket"
_NODES = "karpenter_cluster_state_node_count"
_SEED = 1
#: How much garbage a Go program gathers before it looks for it, in percent of what lives; usual are 100.
_GARBAGE_PERCENT = "400"
_PODS = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_ELSEWHERE = ("kube-scheduler", "kube-controller-manager")
#: What is wanted: shares of a core, of the memory, and seconds.
MOST_IDLE = 0.02
MOST_GROWTH = 0.05
MOST_LATENCY = 1.0
#: Its rounds wait for messages (long polling): how long they take says nothing.
_POLLING = "interruption"

Samples = Mapping[str, float]


@dataclass(slots=True)
class Findings:
    """What a soak found."""

    #: Share of one core that the controller took while nothing happened.
    idle: float = 0.0
    #: Seconds since the churn began, and the leader's resident memory, MiB.
    memory: list[tuple[float, float]] = field(default_factory=list)
    #: Upper bound in seconds of 99 of 100 rounds of each loop, by loop.
    p99: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    churned: int = 0

    def growth(self) -> float:
        """How much the memory of the last third of the churn is above that of the second, as a part."""
        third = len(self.memory) // 3
        if not third:
            return 0.0
        second, last = self.memory[third : 2 * third], self.memory[-third:]
        return mean(size for _, size in last) / mean(size for _, size in second) - 1

    def figures(self) -> tuple[Figure, ...]:
        """Every figure that has a bound: one for each loop, beside processor, memory and events."""
        return (
            Figure(
                "processor while quiet",
                self.idle,
                MOST_IDLE,
                f"{self.idle:.2%} of a core",
                f"{MOST_IDLE:.0%}",
            ),
            Figure(
                "memory, last third above the second",
                self.growth(),
                MOST_GROWTH,
                f"{self.growth():+.1%}",
                f"{MOST_GROWTH:.0%}",
            ),
            *(
                Figure(f"p99 of {loop}", bound, MOST_LATENCY, f"at most {bound:g} s", f"{MOST_LATENCY:g} s")
                for loop, bound in self.p99.items()
            ),
            Figure("missed events", len(self.missed), 0, str(len(self.missed)), "0"),
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """What was found, and what is wanted at most, each also as it is printed."""

    name: str
    value: float
    bound: float
    found: str
    wanted: str

    @property
    def holds(self) -> bool:
        return self.value <= self.bound


def run(minutes: float = 30.0, pods: int = 5000) -> int:
    """Soak a cluster of a node for each ten pods; 0 when every figure is within its bound."""
    console = Console()
    # The control plane has memory here, and no processor to spare for collecting garbage.
    os.environ.setdefault("GOGC", _GARBAGE_PERCENT)
    with Environment.start(report=StreamReport(), options=Options()) as environment:
        soak = Soak(environment, pods)
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            (f"filling {pods // 10} nodes with {pods} pods", soak.fill),
            ("doing nothing", soak.rest),
            (f"{minutes:g} minutes of churn", lambda: soak.churn(60 * minutes)),
            ("growing everything back", soak.settle),
        )
        for what, step in steps:
            environment.report(what)
            step()
        console.print(_table(soak.found))
    for each in soak.found.missed:
        console.print(f"MISSED {each}")
    return 0 if all(figure.holds for figure in soak.found.figures()) else 1


class Soak:
    """The steps of a soak, and what they find."""

    def __init__(self, environment: Environment, pods: int) -> None:
        self.found = Findings()
        self._environment, self._api = environment, environment.api
        self._each = pods // WORKLOADS
        self._chance = random.Random(_SEED)
        self._leader = environment.await_leader()
        control_plane = environment.control_plane.processes
        for process in (*environment.kubelets.processes, *(control_plane[name] for name in _ELSEWHERE)):
            process.give_way()

    def fill(self) -> None:
        """Make the pool and the pods, one Deployment after the other, and wait until all run.

        All at once, on a small machine, some simulated kubelets would be late with their heartbeats.
        """
        for manifest in _pool(self._environment.options.cluster_name):
            self._api.create(manifest)
        for number in range(WORKLOADS):
            self._api.create(_deployment(f"soak-{number}", self._each))
            self._wait(f"the pods of soak-{number} to run", partial(self._run, number + 1))

    def rest(self) -> None:
        """Do nothing, and see what the controller does."""
        # On a machine that is too small the replica that led at first may have lost its lease meanwhile.
        self._leader = self._environment.await_leader()
        self._wait("the nodes to be initialized", lambda: self._difference() == "")
        process = psutil.Process(self._leader.pid)
        # What the last pods have set off is over by then.
        time.sleep(_QUIET_SECONDS / 2)
        before, began = process.cpu_times(), time.monotonic()
        time.sleep(_QUIET_SECONDS)
        after = process.cpu_times()
        spent = after.user + after.system - before.user - before.system
        self.found.idle = spent / (time.monotonic() - began)

    def churn(self, seconds: float) -> None:
        """Shrink, grow and delete for so long."""
        process, before = psutil.Process(self._leader.pid), self._metrics()
        began = due = sampled = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            if now >= due:
                self._step()
                due = now + _STEP_SECONDS
            if now >= sampled:
                self.found.memory.append((now - began, process.memory_info().rss / MIB))
                sampled = now + _SAMPLE_SECONDS
            time.sleep(1.0)
        self.found.p99 = quantiles(before, self._metrics())

    def settle(self) -> None:
        """Grow everything back; what does not run then, or is not known as it is, was missed."""
        for number in range(WORKLOADS):
            self._scale(number, self._each)
        self._expect("every pod to run", self._all_run)
        self._expect("the controller to know what there is", lambda: self._difference() == "")
        if self._environment.leader() != self._leader:
            self.found.missed.append("another replica leads than at the beginning: the leader ended")

    def _step(self) -> None:
        """One Deployment shrinks to a half, the one before grows back, and a few pods are deleted."""
        number = self.found.churned % WORKLOADS
        self._scale(number, self._each // 2)
        self._scale((number - 1) % WORKLOADS, self._each)
        pods = self._pod_names()
        for name in self._chance.sample(pods, len(pods) // 100):
            self._api.delete(f"{_PODS}/{name}", missing_ok=True)
        self.found.churned += 1

    def _pod_names(self) -> list[str]:
        """As a table without the objects, from the API server's memory: the whole pods would keep it busy."""
        query = {"resourceVersion": "0", "includeObject": "None"}
        table = self._api.request("GET", _PODS, query=query, accept=_TABLE)
        return [row["cells"][0] for row in table["rows"]]

    def _scale(self, number: int, replicas: int) -> None:
        self._api.patch(f"{DEPLOYMENTS}/soak-{number}", {"spec": {"replicas": replicas}})

    def _all_run(self) -> bool:
        return self._run(WORKLOADS)

    def _run(self, workloads: int) -> bool:
        ready = [each.get("status", {}).get("readyReplicas", 0) for each in self._api.list(DEPLOYMENTS)]
        return len(ready) == workloads and all(number == self._each for number in ready)

    def _difference(self) -> str:
        """How what the controller knows differs from what there is; empty when it does not."""
        nodes = len(self._api.list("/api/v1/nodes"))
        known = self._metrics().get(_NODES, 0.0)
        claims = self._api.list(CLAIMS)
        waiting = [claim["metadata"]["name"] for claim in claims if not _is_initialized(claim)]
        if waiting:
            return f"claims that are not initialized: {', '.join(waiting[:5])}"
        return "" if known == nodes else f"{nodes} nodes, and {known:.0f} known"

    def _metrics(self) -> Samples:
        return scrape(self._api, self._leader)

    def _wait(self, what: str, predicate: Callable[[], bool]) -> None:
        self._api.wait(predicate, timeout=_PATIENCE_SECONDS, what=what)

    def _expect(self, what: str, predicate: Callable[[], bool]) -> None:
        try:
            self._wait(what, predicate)
        except TimeoutError as error:
            self.found.missed.append(str(error))


def scrape(api: KubernetesApi, leader: Leader) -> Samples:
    """The leader's series, by name and labels as written."""
    pod = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{leader.pod}")
    url = f"http://{local_address(pod['status']['podIP'])}:8080/metrics"
    # Loopback must not go through a proxy.
    with build_opener(ProxyHandler({})).open(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    parts = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in parts}


def quantiles(before: Samples, after: Samples, part: float = 0.99) -> dict[str, float]:
    """Upper bound in seconds of a part of the rounds between two scrapes, by loop.

    Left out are loops that did nothing, and the one that waits for messages.
    """
    counts: dict[str, list[tuple[float, float]]] = {}
    for series, count in after.items():
        if series.startswith(_RECONCILE):
            labels = dict(each.split("=") for each in series[len(_RECONCILE) + 1 : -1].split(","))
            bound = float(labels["le"].strip('"').replace("+Inf", "inf"))
            loop = labels["controller"].strip('"')
            counts.setdefault(loop, []).append((bound, count - before.get(series, 0.0)))
    found = {}
    for loop, buckets in sorted(counts.items()):
        total = max(count for _, count in buckets)
        if total and loop != _POLLING:
            found[loop] = min(bound for bound, count in buckets if count >= part * total)
    return found


def _is_initialized(claim: Object) -> bool:
    conditions = (claim.get("status") or {}).get("conditions") or ()
    return any(
        condition["type"] == "Initialized" and condition["status"] == "True" for condition in conditions
    )


def _pool(cluster: str) -> tuple[Object, Object]:
    """Machines of two vCPUs, of which each holds ten pods."""
    discovery = {"karpenter.sh/discovery": cluster}
    requirements: list[dict[str, Any]] = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    return (
        {
            "apiVersion": "karpenter.k8s.aws/v1alpha1",
            "kind": "AWSNodeTemplate",
            "metadata": {"name": "soak"},
            "spec": {
                "amiFamily": "Bottlerocket",
                "subnetSelector": discovery,
                "securityGroupSelector": discovery,
            },
        },
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": "soak"},
            "spec": {
                "providerRef": {"name": "soak"},
                "requirements": requirements,
                "consolidation": {"enabled": True},
            },
        },
    )


def _deployment(name: str, replicas: int) -> Object:
    container = {
        "name": "pause",
        "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.2",
        "resources": {"requests": {"cpu": _POD_CPU}},
    }
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }


def _table(found: Findings) -> Table:
    table = Table("FIGURE", "VALUE", "WANTED AT MOST", "", box=None)
    for figure in found.figures():
        table.add_row(figure.name, figure.found, figure.wanted, "holds" if figure.holds else "MISSED")
    step = max(len(found.memory) // 10, 1)
    samples = "  ".join(f"{at / 60:.0f} min {size:.0f}" for at, size in found.memory[::step])
    table.add_row("memory, MiB", samples)
    table.add_row("steps of churn", str(found.churned))
    return table
