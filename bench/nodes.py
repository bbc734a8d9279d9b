"""`make bench`: how much of the way to a node is ours. Prints; asserts nothing.

Rounds on one environment: ten pods that fit no node, a pool that allows every instance
type; each round is timed from the controller's own log and the calls that the local AWS
recorded.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import admission, admission_memory, cloud_provider
from localenv import stats
from localenv.environment import Environment, Options
from localenv.labs.run import Lab, run_lab
from localenv.labs.timeline import log_lines
from localenv.progress import StreamReport

PODS = 10


class _Round(Lab):
    """Ten pods, any instance type."""

    name = "bench"
    title = "ten pods, every instance type"

    def steps(self) -> None:
        self.apply("nodeless/awsnodetemplate.yaml")
        self.apply("nodeless/provisioner.yaml", requirements=_EVERY_TYPE, ttlSecondsAfterEmpty=1)
        self.expect("the pool is warm", self._warm)
        self.run_pods("nodeless/web.yaml", "web", PODS)

    def _warm(self) -> bool:
        """The node template has been resolved, and the launch template of the pool exists."""
        ec2 = self.environment.aws.client("ec2")
        return bool(ec2.describe_launch_templates()["LaunchTemplates"])


_EVERY_TYPE: list[dict[str, Any]] = [
    {"key": "karpenter.k8s.aws/instance-category", "operator": "Exists"},
    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]},
]


def run(rounds: int = 5) -> int:
    """Run the benchmark; 0 when every round gave its pods a node."""
    console = Console()
    console.print(admission.run())
    console.print(admission_memory.run())
    console.print(cloud_provider.run())
    began = time.time()
    with Environment.start(report=StreamReport(), options=Options()) as environment:
        up = time.time() - began
        memory = stats.memory(environment)
        table = Table("ROUND", "PLAN ms", "FLEET REQUEST ms", "LAUNCHED s", "RUNNING s", "OURS", box=None)
        failed = 0
        for number in range(1, rounds + 1):
            since = time.time()
            environment.aws.forget_calls()
            result = run_lab(_Round(environment))
            lines = list(log_lines(environment.controller_logs(), since))
            found = stats.decisions(lines, environment.aws.calls())
            failed += not result.ok
            if found:
                table.add_row(*_row(number, found[0], result.timeline))
        console.print(table)
        for pod, mib in stats.memory(environment).items():
            console.print(
                f"{pod}: {memory.get(pod, 0):.0f} MiB at start, {mib:.0f} MiB after {rounds} rounds"
            )
        console.print(
            f"environment up in {up:.1f} s; times are from the end of the batch window, boot time 2 s"
        )
        console.print("OURS: the share of the time to running pods that is planning and asking for the node")
    return 1 if failed else 0


def _row(number: int, decision: stats.Decision, timeline: dict[str, float]) -> tuple[str, ...]:
    running = timeline.get("running", 0.0)
    return (
        str(number),
        f"{1000 * decision.planned:.0f}",
        f"{1000 * decision.requested:.0f}",
        f"{timeline.get('launched', 0.0):.2f}",
        f"{running:.2f}",
        f"{decision.requested / running:.1%}" if running else "-",
    )
