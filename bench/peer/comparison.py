"""`make bench ARGS=--peer`: both controllers on the same ten workloads, and the table. Asserts nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.table import Table

from bench.peer import workloads as drawn
from bench.peer.meter import Cost, Meter
from bench.peer.workloads import Workload
from localenv import karpenter
from localenv.environment import CONTROLLER, Environment, Options
from localenv.kubernetes import KubernetesApi, Object
from localenv.progress import Report, StreamReport

KARPENTER, NODELESS = CONTROLLERS = ("karpenter", "nodeless")
_OF_APPS = f"/apis/apps/v1/namespaces/{drawn.NAMESPACE}"
#: What users make in the namespace of the workloads.
_MADE = (
    f"{_OF_APPS}/deployments",
    f"{_OF_APPS}/statefulsets",
    f"{_OF_APPS}/daemonsets",
    f"/apis/batch/v1/namespaces/{drawn.NAMESPACE}/jobs",
)
_TYPES = ("c", "m", "r")
#: Longer than either takes to end its last node.
_EMPTY_SECONDS = 600.0
_WIDTH = 160


def run(
    seed: int | None = None,
    pods: int = 200,
    seconds: float = 180.0,
    *,
    boot_seconds: float = 30.0,
    controllers: Sequence[str] = CONTROLLERS,
    only: Sequence[str] = (),
) -> int:
    """Measure and print.

    Args:
        seed: Of what is drawn; a new one, which is printed, when None.
        pods: About how many there are at the most.
        seconds: That each workload is watched for, under both.
        boot_seconds: From a launch to a Ready node. EC2 takes half a minute and more for one of EKS:
            with less, moves pay as they never do, and waits are those of the controllers alone.
        controllers: Which ones.
        only: Words in the names of workloads; all by default.
    """
    # A row is longer than most terminals are wide, and cut figures are none.
    console, report = Console(width=_WIDTH), StreamReport()
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    console.print(f"seed {seed}, about {pods} pods, {seconds:g} s a workload, {boot_seconds:g} s to boot")
    chosen = [each for each in drawn.draw(seed, pods) if not only or any(word in each.name for word in only)]
    found: dict[str, list[Cost]] = {}
    for name in controllers:
        options = Options(boot_seconds=boot_seconds, audited=True, also_audited=(karpenter.ACCOUNT.user,))
        with (
            Environment.start(report=report, options=options) as environment,
            _controller(environment, name, report) as meter,
        ):
            found[name] = _live(environment, meter, chosen, seconds, seed, name)
    console.print(table([each.name for each in chosen], found))
    return 0


@contextmanager
def _controller(environment: Environment, name: str, report: Report) -> Iterator[Meter]:
    if name == KARPENTER:
        with karpenter.in_its_place(environment, karpenter.karpenter(report)) as process:
            yield Meter(environment, karpenter.ACCOUNT.user, lambda: [process.pid])
    else:
        # Of two replicas, as of one Karpenter, the one that acts.
        yield Meter(environment, CONTROLLER.user, lambda: [environment.await_leader().pid])


def _live(
    environment: Environment,
    meter: Meter,
    workloads: Sequence[Workload],
    seconds: float,
    seed: int,
    name: str,
) -> list[Cost]:
    """One workload after the other, those that begin on an empty cluster once it is."""
    api, chance = environment.api, random.Random(seed)
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": drawn.NAMESPACE}})
    for manifest in pool(environment):
        api.create(manifest)
    found = []
    for workload in workloads:
        if workload.empty:
            _end(api)
            api.wait(
                lambda: not meter.billed_instances(), timeout=_EMPTY_SECONDS, what="the last node to end"
            )
        environment.report(f"{name}: {workload.name}")
        found.append(meter.measure(partial(_act, environment, workload, chance), seconds))
        environment.report(f"{name}: {workload.name}: {_line(found[-1])}")
    return found


def _act(environment: Environment, workload: Workload, chance: random.Random) -> None:
    api = environment.api
    for manifest in workload.made:
        api.create(manifest)
    for deployment, replicas in workload.scaled.items():
        api.scale(f"{_OF_APPS}/deployments/{deployment}", replicas)
    for deployment in workload.rolled:
        change = {"spec": {"template": {"metadata": {"annotations": {"rolled": workload.name}}}}}
        api.patch(f"{_OF_APPS}/deployments/{deployment}", change)
    _interrupt(environment, workload.interrupted, chance)
    if workload.ends:
        _end(api)


def _interrupt(environment: Environment, share: float, chance: random.Random) -> None:
    """AWS announces that it takes down this share of the nodes."""
    running = sorted(
        instance["InstanceId"]
        for instance in environment.aws.instances()
        if instance["State"]["Name"] == "running"
    )
    for instance in chance.sample(running, math.ceil(share * len(running))):
        environment.aws.interrupt(instance, "scheduled-change")


def _end(api: KubernetesApi) -> None:
    for collection in _MADE:
        for each in api.list(collection):
            api.delete(f"{collection}/{each['metadata']['name']}", propagation="Background")


def pool(environment: Environment) -> tuple[Object, Object]:
    """A pool of v1 for both: on-demand machines of the usual families, consolidated without much waiting."""
    discovery = {"tags": {"karpenter.sh/discovery": environment.options.cluster_name}}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "peer"}
    requirements = [
        _needs("karpenter.sh/capacity-type", "In", "on-demand"),
        _needs("kubernetes.io/arch", "In", "amd64"),
        _needs("karpenter.k8s.aws/instance-category", "In", *_TYPES),
        _needs("karpenter.k8s.aws/instance-generation", "Gt", "2"),
    ]
    node_class = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "peer"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [discovery],
            "securityGroupSelectorTerms": [discovery],
            "instanceProfile": environment.stack.outputs()["instanceProfileName"],
        },
    }
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "10s",
        "budgets": [{"nodes": "100%"}],
    }
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}
    node_pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "peer"},
        "spec": {"template": template, "disruption": disruption},
    }
    return node_class, node_pool


def _needs(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": [*values]}


def table(names: Sequence[str], found: Mapping[str, Sequence[Cost]]) -> Table:
    """A row for each workload and controller."""
    columns = "USD,USD/h END,P50 s,P99 s,WAITING,EVICTED,LAUNCHED,ENDED,API WRITES,AWS CALLS,CPU s,MiB"
    printed = Table("WORKLOAD", "", *columns.split(","), box=None)
    for index, workload in enumerate(names):
        for controller, costs in found.items():
            cost = costs[index]
            printed.add_row(
                workload,
                controller,
                f"{cost.dollars:.4f}",
                f"{cost.price:.3f}",
                f"{cost.wait(0.5):.1f}",
                f"{cost.wait(0.99):.1f}",
                *map(str, (cost.waiting, cost.evictions, cost.launched, cost.ended, cost.writes, cost.aws)),
                f"{cost.processor:.1f}",
                f"{cost.memory:.0f}",
            )
            workload = ""  # noqa: PLW2901 - named once for both
    return printed


def _line(cost: Cost) -> str:
    return (
        f"{cost.dollars:.4f} USD, {cost.price:.3f} USD/h, p50 {cost.wait(0.5):.1f} s, "
        f"p99 {cost.wait(0.99):.1f} s, {cost.waiting} waiting, {cost.evictions} evicted, "
        f"{cost.launched} launched, {cost.ended} ended"
    )
