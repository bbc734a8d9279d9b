"""What must hold at every moment, whatever fails: looked at from outside, all the time.

The watcher reads the API server and the local AWS by itself, past all faults, and shares no code with the
controller. It keeps the worst that it saw of each invariant, and what broke one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from localenv.aws import LocalAws, price_book
from localenv.kubernetes import ApiError, ApiUnreachable, KubernetesApi

CLAIM_TAG = "karpenter.sh/nodeclaim"
#: What claims that were launched together bear in its place.
GROUP_TAG = "nodeless.dev/launch-group"
REPLACES = "nodeless.dev/replaces"
REASON = "nodeless.dev/disruption-reason"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
#: An instance without claim is left 30 s (a claim may be on its way), and looked for every 10 s at first.
COLLECTED_SECONDS = 30.0 + 10.0
#: What a look and a listing may take on a loaded machine.
SLACK_SECONDS = 30.0
_LIVING = ("pending", "running")
_TURN_SECONDS = 0.2
_BOOK = price_book.load()


@dataclass
class Findings:
    """What was seen."""

    looks: int = 0
    most_instances_of_a_claim: int = 0
    most_nodes_of_a_claim: int = 0
    longest_without_claim: float = 0.0
    longest_pending: float = 0.0
    #: Pods of one budget that were on their way out by eviction, less those that it allows; at most 0.
    worst_eviction: int = -1_000
    #: US dollars an hour of the replacements of a voluntary move, less those of what they replaced.
    worst_command: float | None = None
    broken: list[str] = field(default_factory=list)

    def report(self) -> str:
        """A line for each invariant."""
        command = "no move" if self.worst_command is None else f"{self.worst_command:+.4f} USD/h"
        evicted = "no budget" if self.worst_eviction == -1_000 else f"{self.worst_eviction:+d} pods"
        lines = [
            f"instances of one claim, most            {self.most_instances_of_a_claim}",
            f"nodes of one claim, most                {self.most_nodes_of_a_claim}",
            f"instance without claim, longest         {self.longest_without_claim:.1f} s",
            f"evicted beyond a budget, worst          {evicted}",
            f"pod pending, longest                    {self.longest_pending:.1f} s",
            f"price of a voluntary move, worst        {command}",
            f"looks                                   {self.looks}",
            *(f"BROKEN {each}" for each in self.broken),
        ]
        return "\n".join(lines)


class Invariants:
    """Judges one look after the other."""

    def __init__(self, patience: float) -> None:
        self.found = Findings()
        #: Claims by the instance that their status named, kept beyond their end.
        self.claim_of: dict[str, str] = {}
        self._patience = patience
        self._unclaimed: dict[str, float] = {}
        self._pending: dict[str, float] = {}
        #: Price by claim, kept beyond its end.
        self._prices: dict[str, float] = {}

    def see(
        self,
        now: float,
        instances: list[dict[str, Any]],
        claims: dict[str, Any],
        nodes: Sequence[dict[str, Any]] = (),
        pods: Sequence[dict[str, Any]] = (),
        budgets: Sequence[dict[str, Any]] = (),
    ) -> None:
        """What there was at a moment: claims by name, and only instances that live."""
        self.claim_of |= {key: name for name, claim in claims.items() if (key := instance_of(claim))}
        owners = [self._owner(each) for each in instances]
        self._count(owners, [_label(each) for each in nodes])
        self._see_unclaimed(now, instances, owners, claims)
        self._see_pending(now, pods)
        for budget in budgets:
            self._see_evictions(budget, pods)
        self._see_commands(instances, owners, claims)
        self.found.looks += 1

    def _owner(self, instance: dict[str, Any]) -> str:
        """The claim that an instance is or was of, by status or by tag; empty when neither tells."""
        return self.claim_of.get(instance["InstanceId"]) or _tags(instance).get(CLAIM_TAG, "")

    def _break(self, text: str) -> None:
        if text not in self.found.broken:
            self.found.broken.append(text)

    def _count(self, owners: list[str], nodes: list[str]) -> None:
        found = self.found
        for name, count in Counter(filter(None, owners)).items():
            found.most_instances_of_a_claim = max(found.most_instances_of_a_claim, count)
            if count > 1:
                self._break(f"claim {name} has {count} instances")
        for name, count in Counter(filter(None, nodes)).items():
            found.most_nodes_of_a_claim = max(found.most_nodes_of_a_claim, count)
            if count > 1:
                self._break(f"claim {name} has {count} nodes")

    def _see_unclaimed(
        self, now: float, instances: list[dict[str, Any]], owners: list[str], claims: dict[str, Any]
    ) -> None:
        unclaimed = {
            each["InstanceId"]
            for each, name in zip(instances, owners, strict=True)
            if name not in claims and {CLAIM_TAG, GROUP_TAG} & _tags(each).keys()
        }
        self._unclaimed = {key: self._unclaimed.get(key, now) for key in unclaimed}
        for key, since in self._unclaimed.items():
            self.found.longest_without_claim = max(self.found.longest_without_claim, now - since)
            if now - since > COLLECTED_SECONDS + SLACK_SECONDS:
                self._break(f"instance {key} lives without a claim")

    def _see_pending(self, now: float, pods: Sequence[dict[str, Any]]) -> None:
        pending = {
            each["metadata"]["uid"]
            for each in pods
            if each["status"].get("phase") == "Pending" and "deletionTimestamp" not in each["metadata"]
        }
        self._pending = {uid: self._pending.get(uid, now) for uid in pending}
        names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in pods}
        for uid, since in self._pending.items():
            self.found.longest_pending = max(self.found.longest_pending, now - since)
            if now - since > self._patience:
                self._break(f"pod {names[uid]} is pending though capacity and limits allow it")

    def _see_evictions(self, budget: dict[str, Any], pods: Sequence[dict[str, Any]]) -> None:
        least = budget["spec"].get("minAvailable")
        status = budget.get("status") or {}
        if not isinstance(least, int) or "expectedPods" not in status:
            return
        wanted = budget["spec"]["selector"]["matchLabels"].items()
        leaving = [
            each for each in pods if wanted <= each["metadata"].get("labels", {}).items() and _evicted(each)
        ]
        beyond = len(leaving) - max(status["expectedPods"] - least, 0)
        if leaving:
            self.found.worst_eviction = max(self.found.worst_eviction, beyond)
            if beyond > 0:
                self._break(f"budget {budget['metadata']['name']}: {len(leaving)} pods evicted at a time")

    def _see_commands(
        self, instances: list[dict[str, Any]], owners: list[str], claims: dict[str, Any]
    ) -> None:
        for instance, name in zip(instances, owners, strict=True):
            if name:
                self._prices[name] = _price(instance)
        commands: dict[str, list[str]] = {}
        for name, claim in claims.items():
            notes = claim["metadata"].get("annotations", {})
            if notes.get(REPLACES) and notes.get(REASON) == "Underutilized" and name in self._prices:
                commands.setdefault(notes[REPLACES], []).append(name)
        for olds, news in commands.items():
            if all(old in self._prices for old in olds.split(",")):
                more = sum(self._prices[new] for new in news)
                more -= sum(self._prices[old] for old in olds.split(","))
                worst = self.found.worst_command
                self.found.worst_command = more if worst is None else max(worst, more)
                if more > 0:
                    self._break(f"the move of {olds} to {', '.join(news)} costs {more:.4f} USD/h more")


class Watcher:
    """Looks until stopped; `with` one around what is to be watched."""

    def __init__(self, api: KubernetesApi, aws: LocalAws, namespace: str, patience: float) -> None:
        """Capacity and limits allow every pod of a story: within `patience` seconds it has a node."""
        self.invariants = Invariants(patience)
        self._api, self._aws, self._namespace = api, aws, namespace
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="invariants", daemon=True)

    @property
    def found(self) -> Findings:
        return self.invariants.found

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join(timeout=30)

    def pause(self, seconds: float) -> None:
        """Let time pass while a fault lasts, and go on looking."""
        self._ended.wait(seconds)

    def _run(self) -> None:
        while not self._ended.wait(_TURN_SECONDS):
            # The API server may be down, or etcd be paused: there is nothing to see then.
            with suppress(ApiError, ApiUnreachable, OSError):
                self.look()

    def look(self) -> None:
        """One look."""
        # Instances first: an instance listed before its claim is written would seem to have none.
        instances = [each for each in self._aws.instances() if each["State"]["Name"] in _LIVING]
        claims = {each["metadata"]["name"]: each for each in self._api.list(CLAIMS)}
        pods = self._api.list(f"/api/v1/namespaces/{self._namespace}/pods")
        budgets = self._api.list(f"/apis/policy/v1/namespaces/{self._namespace}/poddisruptionbudgets")
        nodes = self._api.list("/api/v1/nodes")
        self.invariants.see(time.monotonic(), instances, claims, nodes, pods, budgets)


def instance_of(claim: dict[str, Any]) -> str:
    """The id of the instance that a claim's status names; empty before it is launched."""
    return str(claim.get("status", {}).get("providerID", "")).rpartition("/")[2]


def _tags(instance: dict[str, Any]) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in instance.get("Tags", ())}


def _label(node: dict[str, Any]) -> str:
    return str(node["metadata"].get("labels", {}).get(CLAIM_TAG, ""))


def _evicted(pod: dict[str, Any]) -> bool:
    """Whether the pod is on its way out because the eviction API let it go."""
    conditions = pod["status"].get("conditions", ())
    asked = any(
        each["type"] == "DisruptionTarget" and each.get("reason") == "EvictionByEvictionAPI"
        for each in conditions
    )
    return asked and "deletionTimestamp" in pod["metadata"]


def _price(instance: dict[str, Any]) -> float:
    kind, zone = instance["InstanceType"], instance["Placement"]["AvailabilityZone"]
    if instance.get("InstanceLifecycle") == "spot":
        return _BOOK.spot(kind, zone) or 0.0
    return _BOOK.on_demand(kind, zone[:-1]) or 0.0
