"""What a lab may do on an environment, what it promised, and what it found.

A lab is a list of expectations in the order in which a reader of the article meets them;
each is waited for, with a deadline, and kept with its outcome.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml

from localenv.environment import Environment
from localenv.kubernetes import ApiError, ApiUnreachable, ConditionNotMet
from localenv.labs import cluster_view, timeline
from localenv.labs.cluster_view import ClusterView, NodeRow

EXAMPLES = Path(__file__).parents[2] / "examples"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
PROVISIONERS = "/apis/karpenter.sh/v1alpha5/provisioners"
TEMPLATES = "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

#: Of the controller where labs run. A node that pods were planned for may go after twice the longest batch,
#: as in Karpenter: by default each wait for an empty node would be 10 s longer.
SETTINGS = {"batchMaxDuration": "5s"}

Found = TypeVar("Found")


class ExpectationFailed(AssertionError):
    """Something that a lab promises did not come true; the text says what was there instead."""


@dataclass(slots=True)
class Check:
    """One expectation; `ok` is None while it is waited for, `detail` what was found."""

    text: str
    ok: bool | None = None
    detail: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class LabResult:
    """What became of a lab. `nodes` and costs are those of its main moment: when its pods run."""

    name: str
    title: str
    checks: list[Check] = field(default_factory=list)
    nodes: tuple[NodeRow, ...] = ()
    timeline: dict[str, float] = field(default_factory=dict)
    cost_before: float = 0.0
    cost_after: float = 0.0

    @property
    def ok(self) -> bool:
        return bool(self.checks) and all(check.ok for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The lab as the demo's JSON has it."""
        return {
            "name": self.name,
            "ok": self.ok,
            "nodes": [node.to_json() for node in self.nodes],
            "timeline": self.timeline,
            "costPerHour": {"before": self.cost_before, "after": self.cost_after},
        }


class Lab(ABC):
    """One lab. Subclasses say what happens in `steps`."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, environment: Environment, changed: Callable[[], None] = lambda: None) -> None:
        self.environment = environment
        self.api = environment.api
        self.result = LabResult(self.name, self.title)
        self._changed = changed

    @abstractmethod
    def steps(self) -> None:
        """Do the lab. Raises ExpectationFailed."""

    def view(self) -> ClusterView:
        """The cluster now."""
        return cluster_view.take(self.api)

    def apply(self, file: str, **changes: Any) -> dict[str, Any]:
        """Apply a manifest of examples/; `changes` replaces members of its spec."""
        manifest = yaml.safe_load((EXAMPLES / file).read_text())
        manifest["spec"] |= changes
        return self.api.apply(manifest, field_manager="labs")

    def expect(
        self,
        text: str,
        look: Callable[[], Found],
        *,
        seconds: float = 60.0,
        detail: Callable[[Found], str] = str,
    ) -> Found:
        """Wait until `look` finds something (anything true) and keep the outcome.

        Raises:
            ExpectationFailed: Nothing was found in time.
        """
        check = Check(text)
        self.result.checks.append(check)
        self._changed()
        began = time.monotonic()
        try:
            found: Found = self.api.wait(look, timeout=seconds, what=text)
        except (ConditionNotMet, ApiError, ApiUnreachable) as error:
            check.ok, check.detail = False, str(error)
            raise ExpectationFailed(f"{self.name}: {text}: {error}") from error
        finally:
            check.seconds = time.monotonic() - began
            self._changed()
        check.ok = True
        check.detail = "" if found is True else detail(found)
        self._changed()
        return found

    def fail(self, promise: str, error: Exception) -> None:
        """Keep a promise that something broke."""
        self.result.checks.append(Check(promise, ok=False, detail=str(error)))
        self._changed()

    def run_pods(self, file: str, deployment: str, replicas: int, **changes: Any) -> None:
        """Apply a deployment, wait until all its pods run, and record this as the lab's main moment."""
        self.result.cost_before = self.view().cost_per_hour
        began = time.time()
        self.apply(file, replicas=replicas, **changes)
        self.api.wait(lambda: self.pods_of(deployment), timeout=30, what=f"pods of {deployment}")
        pending = max(began, time.time() - 0.1)
        path = f"{DEPLOYMENTS}/{deployment}"
        self.expect(
            f"all {replicas} pods of {deployment} run",
            lambda: (self.api.get(path).get("status") or {}).get("availableReplicas") == replicas,
            seconds=90,
        )
        running = time.time()
        now = self.view()
        self.result.nodes = now.nodes
        self.result.cost_after = now.cost_per_hour
        self.result.timeline = timeline.timeline(self.log_lines(began), pending, running)

    def pods_of(self, deployment: str) -> list[dict[str, Any]]:
        """The pods that carry the label `app=<deployment>`."""
        return self.api.list("/api/v1/namespaces/default/pods", label_selector=f"app={deployment}")

    def log_lines(self, since: float) -> list[dict[str, Any]]:
        """What the controller's replicas logged since a moment."""
        return list(timeline.log_lines(self.environment.controller_logs(), since))

    def claims(self) -> list[dict[str, Any]]:
        """All NodeClaims."""
        return self.api.list(CLAIMS)

    def live_instances(self) -> list[str]:
        """Ids of the EC2 instances that are not terminated."""
        states = [
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "shutting-down"]}
        ]
        reservations = self.environment.aws.client("ec2").describe_instances(Filters=states)["Reservations"]
        return [
            instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"]
        ]

    def clean_up(self) -> None:
        """Take away what the lab made, and wait until its nodes are gone."""
        for name in ("inflate", "web"):
            self.api.delete(f"{DEPLOYMENTS}/{name}", missing_ok=True)
        for collection in (PROVISIONERS, TEMPLATES):
            for item in self.api.list(collection):
                self.api.delete(f"{collection}/{item['metadata']['name']}", missing_ok=True)
        self.api.wait(
            lambda: not self.api.list(PROVISIONERS) and not self.claims(), timeout=90, what="pools to go"
        )


def run_lab(lab: Lab) -> LabResult:
    """Run a lab to its end or to the first thing that fails; cleans up either way.

    What the cluster refuses, between expectations too, is a promise that was not kept: the
    result says so, and the labs after this one still run.
    """
    try:
        with _keep_failure(lab, "the cluster takes what the lab gives it"):
            lab.steps()
    finally:
        with _keep_failure(lab, "what the lab made can be taken away"):
            lab.clean_up()
    return lab.result


@contextmanager
def _keep_failure(lab: Lab, promise: str) -> Iterator[None]:
    """Keep a failure in the result instead of raising it."""
    try:
        yield
    except ExpectationFailed:
        pass  # is in the result already
    except (ApiError, ApiUnreachable, ConditionNotMet) as error:
        lab.fail(promise, error)


def join_names(names: Iterable[str]) -> str:
    """Names with commas."""
    return ", ".join(names)
