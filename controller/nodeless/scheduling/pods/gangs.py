"""Gangs: pods that run together or not at all, by an annotation of theirs that says how many they are.

Members are the pods of one namespace and one group: of a pod group of coscheduling, of a group of a
LeaderWorkerSet, of a JobSet, or of one controller (a Job), in this order. Of a gang as many pods must have a
place as it needs, those that run already among them; what comes beyond that is planned pod by pod.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeless.model.labels import GANG_SIZE
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot

#: Labels that name the group of a pod; the first that it bears counts.
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "jobset.sigs.k8s.io/jobset-name",
)
#: Pods of one gang at most; more is a slip of the finger.
MOST_PODS = 10_000
_SIZE = re.compile(r"[1-9][0-9]{0,8}")
_SUCCEEDED = "Succeeded"


@dataclass(frozen=True, slots=True)
class Gang:
    """The members of a gang in a cluster, by their keys."""

    name: str
    """Namespace and group."""
    size: int
    """How many pods it needs; 0: that cannot be read."""
    said: str
    """What the annotation says."""
    standing: int
    """How many members run, have succeeded, or are about to be bound."""
    waiting: frozenset[str]
    """Members that lack capacity."""
    others: int
    """Members of which kube-scheduler has not said yet that they lack capacity."""
    came: float
    """When its first waiting member was created."""


def gang_of(pod: Pod) -> str:
    """The name of the gang of a pod; empty: it is in none."""
    if not pod.annotations or GANG_SIZE not in pod.annotations:
        return ""
    group = next((value for key in GROUP_LABELS if (value := pod.labels.get(key))), "")
    owner = next((owner for owner in pod.owners if owner.controller), None)
    return f"{pod.namespace}/{group or (owner.name if owner is not None else pod.name)}"


def gangs_in(snapshot: Snapshot, planned: Iterable[str]) -> dict[str, Gang]:
    """The gangs of which pods are planned, by name.

    Only where there is one among these pods are all pods of the cluster looked at.
    """
    pods = snapshot.pods
    waiting = [
        pod for key in planned if (pod := pods.get(key)) is not None and pod.annotations and not pod.node_name
    ]
    names = {name for pod in waiting if (name := gang_of(pod))}
    if not names:
        return {}
    members: dict[str, list[Pod]] = {}
    for pod in pods.values():
        if (name := gang_of(pod)) in names:
            members.setdefault(name, []).append(pod)
    return {name: _gang(name, members[name]) for name in sorted(names)}


def incomplete_gangs(gangs: Mapping[str, Gang], plan: Plan) -> dict[str, str]:
    """The gangs that a plan does not hold whole, each with what is missing."""
    refused = {refusal.pod: refusal for refusal in plan.refusals}
    found = {}
    for name, gang in gangs.items():
        missing = [refused[key] for key in sorted(gang.waiting & refused.keys())]
        if problem := _problem(gang, missing):
            found[name] = f"gang {name}: {problem}"
    return found


def refused_members(gangs: Mapping[str, Gang], why: Mapping[str, str]) -> dict[str, Refusal]:
    """The refusals of all waiting members of gangs that are left out, by pod."""
    return {
        key: Refusal(key, RefusalCode.GROUP_INCOMPLETE, (), text)
        for name, text in why.items()
        for key in sorted(gangs[name].waiting)
    }


def _gang(name: str, members: Iterable[Pod]) -> Gang:
    said: Counter[str] = Counter()
    standing, others = 0, 0
    waiting: dict[str, float] = {}
    for pod in members:
        said[pod.annotations[GANG_SIZE]] += 1
        if pod.provisionable:
            waiting[pod.key] = pod.created_at
        elif pod.phase == _SUCCEEDED or (not pod.terminal and (pod.node_name or pod.nominated_node_name)):
            standing += 1
        elif not pod.terminal and pod.deletion_timestamp is None:
            others += 1
    # Members that say different sizes, as after a change of their template: the largest is safe.
    text = max(said, key=lambda value: (_size(value) or MOST_PODS + 1, value))
    return Gang(name, _size(text), text, standing, frozenset(waiting), others, min(waiting.values()))


def _size(text: str) -> int:
    """The number that an annotation says, from 1 to `MOST_PODS`; 0: it says none."""
    number = int(text) if _SIZE.fullmatch(text) else 0
    return number if number <= MOST_PODS else 0


def _problem(gang: Gang, missing: list[Refusal]) -> str:
    """Why a gang is not whole; empty: it is."""
    if not gang.size:
        return f"annotation {GANG_SIZE} is {gang.said[:50]!r}; hint: a whole number from 1 to {MOST_PODS}"
    there = gang.standing + len(gang.waiting)
    if there + gang.others < gang.size:
        return f"{there + gang.others} of {gang.size} pods exist; nothing is launched until all of them do"
    if there < gang.size:
        return (
            f"{there} of {gang.size} pods run or lack capacity; kube-scheduler has not tried the others yet"
        )
    fit = there - len(missing)
    if fit >= gang.size:
        return ""
    return f"{fit} of {gang.size} pods fit; pod {missing[0].pod}: {missing[0]}"
