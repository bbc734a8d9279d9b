"""Gangs: pods that run together or not at all, as many as an annotation of theirs or their owner says.

Members are the pods of one namespace and one group: of a pod group of coscheduling, of a group of a
LeaderWorkerSet, of a JobSet, or of one controller (a Job), in this order. Of a gang as many pods must have a
place as it needs, those that run already among them; what comes beyond that is planned pod by pod.

A size is the annotation's on the pods; else a PodGroup's, a Job's or a JobSet's (`Snapshot.gang_sizes`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from immutables import Map

from nodeless.model.gangs import JOB, JOB_SET, POD_GROUP, GangSize
from nodeless.model.labels import GANG, GANG_SIZE, GANG_TOPOLOGY, LEADER_WORKER_SIZE, OF_OWNER, canonical_key
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot

#: Labels that name the PodGroup of a pod, the newest first.
POD_GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
LEADER_WORKER_GROUP = "leaderworkerset.sigs.k8s.io/group-key"
JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
#: Labels that name the group of a pod; the first that it bears counts.
GROUP_LABELS = (
    *POD_GROUP_LABELS,
    LEADER_WORKER_GROUP,
    JOB_SET_NAME,
)
#: Pods of one gang at most; more is a slip of the finger.
MOST_PODS = 10_000
_NUMBERS = f"a whole number from 1 to {MOST_PODS}"
_SIZE = re.compile(r"[1-9][0-9]{0,8}")
_SUCCEEDED = "Succeeded"


@dataclass(frozen=True, slots=True)
class Gang:
    """The members of a gang in a cluster, by their keys."""

    name: str
    """Namespace and group."""
    size: int
    """How many pods it needs; 0: that cannot be read."""
    problem: str
    """Why its size cannot be read; empty: it can."""
    standing: int
    """How many members run, have succeeded, or are about to be bound."""
    waiting: frozenset[str]
    """Members that lack capacity."""
    bound: int
    """How many members have a node or have succeeded."""
    others: int
    """Members of which kube-scheduler has not said yet that they lack capacity."""
    came: float
    """When its first waiting member was created; 0: none waits."""
    paused: str = ""
    """Why nothing is launched for it now."""
    topology: str = ""
    """The label of nodes of which all members have one value; empty: they may be anywhere."""
    domains: frozenset[str] = frozenset()
    """The values of that label where members run."""
    domain: str = ""
    """The value that was found for the others (`gang_domains`)."""


@dataclass(frozen=True, slots=True)
class _Member:
    """What a pod says of its gang."""

    group: str
    size: int
    """How many pods it needs; 0: see `problem`."""
    problem: str = ""


_NO_SIZES: Map[str, GangSize] = Map()


def gang_of(pod: Pod, sizes: Mapping[str, GangSize] = _NO_SIZES) -> str:
    """The name of the gang of a pod; empty: it is in none.

    Args:
        pod: The pod.
        sizes: What PodGroups, Jobs and JobSets say (`Snapshot.gang_sizes`).
    """
    member = _member(pod, sizes)
    return "" if member is None else f"{pod.namespace}/{member.group}"


def gang_size(pod: Pod, sizes: Mapping[str, GangSize] = _NO_SIZES) -> int:
    """How many pods the gang of a pod needs; 1: it is in none, or its size cannot be read.

    That of a placeholder is the one of the pods whose place it keeps.
    """
    member = _said(pod, sizes)
    return 1 if member is None else max(member.size, 1)


def gangs_in(snapshot: Snapshot, planned: Iterable[str]) -> dict[str, Gang]:
    """The gangs of which pods are planned, by name.

    Only where there is one among these pods are all pods of the cluster looked at.
    """
    pods, sizes = snapshot.pods, snapshot.gang_sizes
    waiting = [
        pod
        for key in planned
        if (pod := pods.get(key)) is not None and (pod.annotations or sizes) and not pod.node_name
    ]
    names = {name for pod in waiting if (name := gang_of(pod, sizes))}
    return gangs_named(snapshot, names) if names else {}


def gangs_named(snapshot: Snapshot, names: Collection[str]) -> dict[str, Gang]:
    """The gangs of these names, those without pods left out. All pods of the cluster are looked at."""
    sizes = snapshot.gang_sizes
    members: dict[str, list[tuple[Pod, _Member]]] = {}
    for pod in snapshot.pods.values():
        member = _member(pod, sizes)
        if member is not None and (name := f"{pod.namespace}/{member.group}") in names:
            members.setdefault(name, []).append((pod, member))
    paused = snapshot.paused_gangs
    return {
        name: _in_domains(snapshot, _gang(name, members[name], paused.get(name, "")), members[name])
        for name in sorted(members)
    }


def _in_domains(snapshot: Snapshot, gang: Gang, members: Iterable[tuple[Pod, _Member]]) -> Gang:
    """The gang with the label that keeps it together, and where it runs."""
    said = {pod.annotations[GANG_TOPOLOGY] for pod, _ in members if GANG_TOPOLOGY in pod.annotations}
    if not said:
        return gang
    if len(said) > 1 or not all(said):
        return replace(
            gang,
            size=0,
            problem=f"its pods say different things as annotation {GANG_TOPOLOGY}: "
            f"{', '.join(repr(key[:50]) for key in sorted(said))}; hint: one label of nodes, the same on all",
        )
    key = canonical_key(said.pop())
    running = (pod for pod, _ in members if not pod.terminal and pod.deletion_timestamp is None)
    nodes = (snapshot.nodes.get(pod.node_name) for pod in running if pod.node_name)
    domains = frozenset(node.labels[key] for node in nodes if node is not None and node.labels.get(key))
    return replace(gang, topology=key, domains=domains)


def _member(pod: Pod, sizes: Mapping[str, GangSize]) -> _Member | None:
    """What a pod says of its gang; None: it is in none, as a placeholder is."""
    return None if pod.shape.placeholder else _said(pod, sizes)


def _said(pod: Pod, sizes: Mapping[str, GangSize]) -> _Member | None:
    said = pod.annotations.get(GANG_SIZE) if pod.annotations else None
    if said is None:
        return _of_owner(pod, sizes) if sizes else None
    if said != OF_OWNER:
        size = _size(said)
        problem = "" if size else f"annotation {GANG_SIZE} is {said[:50]!r}; hint: {_NUMBERS}, or {OF_OWNER}"
        return _Member(_group(pod), size, problem)
    group, workers = pod.labels.get(LEADER_WORKER_GROUP), pod.annotations.get(LEADER_WORKER_SIZE)
    if group and workers is not None:
        size = _size(workers)
        return _Member(group, size, "" if size else f"annotation {LEADER_WORKER_SIZE} is {workers[:50]!r}")
    return _of_owner(pod, sizes) or _Member(
        _group(pod),
        0,
        f"annotation {GANG_SIZE} is {OF_OWNER}, and nothing that owns pod {pod.key} is known to say a size"
        f"; hint: give its Job or JobSet the label {GANG}=true",
    )


def _of_owner(pod: Pod, sizes: Mapping[str, GangSize]) -> _Member | None:
    """What the PodGroup, JobSet or Job of a pod says; None: there is none that says anything."""
    for kind, name in _owners(pod):
        said = sizes.get(f"{kind}/{pod.namespace}/{name}")
        if said is None:
            continue
        if said.problem or said.size > MOST_PODS:
            problem = said.problem or f"{said.size} pods are too many; hint: {_NUMBERS}"
            return _Member(name, 0, f"{kind} {said.namespace}/{name}: {problem}")
        return _Member(name, said.size)
    return None


def _owners(pod: Pod) -> Iterator[tuple[str, str]]:
    """Kinds and names of what may say the size of a pod's gang."""
    if group := _first_label(pod, POD_GROUP_LABELS):
        yield POD_GROUP, group
    if job_set := pod.labels.get(JOB_SET_NAME):
        yield JOB_SET, job_set
    for owner in pod.owners:
        if owner.controller and owner.kind in (JOB, JOB_SET):
            yield owner.kind, owner.name


def _group(pod: Pod) -> str:
    owner = next((owner for owner in pod.owners if owner.controller), None)
    return _first_label(pod, GROUP_LABELS) or (owner.name if owner is not None else pod.name)


def _first_label(pod: Pod, keys: Iterable[str]) -> str:
    return next((value for key in keys if (value := pod.labels.get(key))), "")


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


def _gang(name: str, members: Iterable[tuple[Pod, _Member]], paused: str) -> Gang:
    said: set[_Member] = set()
    standing, bound, others = 0, 0, 0
    waiting: dict[str, float] = {}
    for pod, member in members:
        said.add(member)
        # What terminates is no part of it any more: of a Job that is created anew all earlier pods do.
        if pod.deletion_timestamp is not None:
            continue
        if pod.provisionable:
            waiting[pod.key] = pod.created_at
        elif pod.phase == _SUCCEEDED or (not pod.terminal and (pod.node_name or pod.nominated_node_name)):
            standing += 1
            bound += bool(pod.node_name)
        elif not pod.terminal:
            others += 1
    # Members that say different sizes, as after a change of their template: the largest is safe.
    largest = max(said, key=lambda member: (member.size or MOST_PODS + 1, member.problem))
    size, problem = largest.size, largest.problem
    came = min(waiting.values(), default=0.0)
    return Gang(name, size, problem, standing, frozenset(waiting), bound, others, came, paused)


def _size(text: str) -> int:
    """The number that an annotation says, from 1 to `MOST_PODS`; 0: it says none."""
    number = int(text) if _SIZE.fullmatch(text) else 0
    return number if number <= MOST_PODS else 0


def _problem(gang: Gang, missing: list[Refusal]) -> str:
    """Why a gang is not whole; empty: it is."""
    if not gang.size:
        return gang.problem
    if gang.paused:
        return gang.paused
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
    where = f" in one {gang.topology}" if gang.topology else ""
    return f"{fit} of {gang.size} pods fit{where}; pod {missing[0].pod}: {missing[0]}"
