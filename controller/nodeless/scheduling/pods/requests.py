"""Provisioning requests as pods: placeholders that are planned whole, or that keep room which is there.

The placeholders of a request that has no capacity yet (class best-effort-atomic-scale-up) get their places
all together or none of them. Those of a request that is booked keep room on nodes that exist, as far as its
pods have not come; nothing is bought for them. A request of class check-capacity that is not booked takes no
part in a plan: what `with_one_more` makes is planned to see whether the cluster has its room.

Their names hold a character that no name of Kubernetes may have.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

from immutables import Map

from nodeless.model.events import PodGone, PodSeen
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pods import Owner, Pod
from nodeless.model.provisioning_requests import (
    API_VERSION,
    ATOMIC_SCALE_UP,
    CONSUME_ANNOTATIONS,
    KIND,
    VALID_UNTIL_SECONDS,
    Phase,
    ProvisioningRequest,
)
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.eligibility import pods_to_place
from nodeless.scheduling.pods.gang_domains import Domains, kept_together
from nodeless.scheduling.pods.gangs import Gang, gangs_in, incomplete_gangs, refused_members
from nodeless.state import apply

#: Pods of one request at most; more is a slip of the finger.
MOST_PODS = 10_000
#: Placeholders of all requests in one pass at most, in the order in which the requests came.
MOST_IN_ALL = 20_000
#: Plans that are made anew without one request; then all that are not whole are left out at once.
MOST_ROUNDS = 4
_DIGITS = re.compile(r"[0-9]{1,18}")
_PENDING, _BOOKED = "^", "^^"
#: Placeholders come after every pod that waits, however old that is.
_LAST = 2.0**40
_FAILED = "Failed"
_GONE = "the room that was booked for the pod is gone, and nothing is launched for a booking"
Solve = Callable[[Snapshot], Plan]


def _no_domains(_key: str) -> Collection[str]:
    return ()


def request_of(pod: str) -> str:
    """The key of the request whose placeholder a pod key is; empty for other pods."""
    request, separator, _ = pod.partition(_PENDING)
    return request if separator else ""


def is_pending(pod: str) -> bool:
    """Whether a pod key is of a placeholder for which nodes may be launched."""
    return _PENDING in pod and _BOOKED not in pod


def invalid(request: ProvisioningRequest) -> str:
    """What is wrong with a request that will never be met; empty: nothing."""
    if not request.pod_sets:
        return "spec.podSets is empty; hint: name a PodTemplate and a count"
    for number, pods in enumerate(request.pod_sets):
        if pods.count < 1:
            return f"spec.podSets[{number}].count is {pods.count}; hint: at least 1"
    if request.pods > MOST_PODS:
        return f"it asks for {request.pods} pods; hint: {MOST_PODS} at most, split it"
    said = dict(request.parameters).get(VALID_UNTIL_SECONDS)
    if said is not None and (not _DIGITS.fullmatch(said) or int(said) < 1):
        return (
            f"spec.parameters.{VALID_UNTIL_SECONDS} is {said[:50]!r}; hint: a whole number of seconds, from 1"
        )
    return ""


def problem_of(snapshot: Snapshot, request: ProvisioningRequest) -> str:
    """Why it is not known what pods a request asks for; empty: it is."""
    for pods in request.pod_sets:
        source = snapshot.pod_sources.get(pods.source)
        if source is None:
            return f"{pods.source} does not exist; hint: create it, or delete the request"
        if source.shape.invalid:
            return f"the pods of {pods.source} cannot be read: {source.shape.invalid}"
    return ""


def with_requests(snapshot: Snapshot) -> Snapshot:
    """The cluster with the placeholders of requests as pods that wait, and without requests.

    Pods that say they use a request which has no capacity yet wait for it, and are left out.
    """
    if not snapshot.provisioning_requests:
        return snapshot
    ours = [each for each in _in_order(snapshot) if each.ours and each.phase != Phase.OVER]
    consumers = consumers_of(snapshot) if ours else {}
    pods, left, booked = snapshot.pods, MOST_IN_ALL, list[str]()
    for order, request in enumerate(ours):
        mine = consumers.get(request.key, ())
        if request.phase == Phase.PENDING:
            for pod in mine:
                if not pod.node_name:
                    pods = pods.delete(pod.key)
            if request.provisioning_class != ATOMIC_SCALE_UP:
                continue
        if request.pods > left or invalid(request) or problem_of(snapshot, request):
            continue
        made = list(placeholders(snapshot, request, mine if request.phase == Phase.BOOKED else (), order))
        left -= len(made)
        if request.phase == Phase.BOOKED:
            booked += [pod.key for pod in made]
        pods = pods.update({pod.key: pod for pod in made})
    return replace(snapshot, pods=pods, provisioning_requests=Map(), booked=tuple(booked))


def consumers_of(snapshot: Snapshot) -> dict[str, list[Pod]]:
    """The pods that say which request they use, by its key."""
    found: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        if pod.annotations:
            names = (pod.annotations.get(key) for key in CONSUME_ANNOTATIONS)
            if name := next((name for name in names if name), ""):
                found.setdefault(f"{pod.namespace}/{name}", []).append(pod)
    return found


def placeholders(
    snapshot: Snapshot, request: ProvisioningRequest, consumers: Sequence[Pod] = (), order: int = 0
) -> Iterator[Pod]:
    """The pods of a request that have not come yet, by its pod sets; `consumers`: those that have."""
    sources = [snapshot.pod_sources[pods.source] for pods in request.pod_sets]
    counts = _counts_left(request, [source.shape.requests for source in sources], consumers)
    owner = Owner(API_VERSION, KIND, request.name, uid=request.uid or request.key, controller=True)
    mark = _BOOKED if request.phase == Phase.BOOKED else _PENDING
    number = 0
    for source, count in zip(sources, counts, strict=True):
        for _ in range(count):
            yield Pod(
                uid=f"{request.uid or request.key}{mark}{number}",
                namespace=request.namespace,
                name=f"{request.name}{mark}{number}",
                shape=replace(source.shape, placeholder=True),
                labels=source.labels,
                annotations=source.annotations,
                owners=(owner,),
                unschedulable=True,
                created_at=_LAST + order,
            )
            number += 1


def _counts_left(
    request: ProvisioningRequest, requests: Sequence[tuple[tuple[str, int], ...]], consumers: Sequence[Pod]
) -> list[int]:
    """How many pods of each pod set have not come yet; `requests`: of its pods.

    A pod that requests what a pod set says is of that one; another, as one with an injected container, may be
    of any. What takes the place of a pod that has failed takes its room.
    """
    counts = [max(0, pods.count) for pods in request.pod_sets]
    came = [pod for pod in consumers if pod.phase != _FAILED]
    for pod in sorted(came, key=lambda pod: pod.shape.requests not in requests):
        alike = [at for at, asked in enumerate(requests) if asked == pod.shape.requests]
        left = [at for at in alike or range(len(counts)) if counts[at]]
        if left:
            counts[left[0]] -= 1
    return counts


def with_one_more(snapshot: Snapshot, request: ProvisioningRequest) -> Snapshot:
    """The cluster with the requests that are booked and one more, to see whether it has room for that."""
    booked = Map(
        {key: each for key, each in snapshot.provisioning_requests.items() if each.phase == Phase.BOOKED}
    )
    before = with_requests(replace(snapshot, provisioning_requests=booked))
    made = {pod.key: pod for pod in placeholders(snapshot, request)}
    return replace(before, pods=before.pods.update(made))


@dataclass(frozen=True, slots=True)
class Planners:
    """What makes a plan for a snapshot: the less is searched for, the sooner it is made.

    Attributes:
        full: Makes the plan that is carried out.
        brief: Makes one that may cost a little more, to find which groups are whole.
        quick: Makes one that may cost more, to compare the domains of gangs by.
        no_purchase: Makes one in which nothing is bought.
    """

    full: Solve
    brief: Solve
    quick: Solve
    no_purchase: Solve


def planned_whole(
    snapshot: Snapshot, planners: Planners, domains: Domains = _no_domains, now: float = 0.0
) -> Plan:
    """A plan in which each gang, and each request that has no capacity, is whole or left out.

    What is booked buys nothing, and has its places before all others. Of several groups that are not whole,
    the one that came last is left out first; it is tried once more when one that came before it is left out,
    too.

    Args:
        snapshot: With placeholders, without requests.
        planners: Make plans.
        domains: The values that a label of nodes may have, for gangs that are kept in one of them.
        now: Seconds since the epoch.
    """
    out: dict[str, Refusal] = {}
    kept: dict[str, str] = {}
    if snapshot.booked:
        snapshot, kept, out = _with_bookings(snapshot, planners.no_purchase, now)
    plan = planners.full(snapshot)
    gangs = gangs_in(snapshot, _planned(plan))
    if any(gang.topology for gang in gangs.values()):
        snapshot, gangs = kept_together(snapshot, gangs, planners.quick, domains, now)
        plan = planners.full(snapshot)
    left: list[dict[str, Refusal]] = []
    pods = snapshot.pods
    while removed := _incomplete(snapshot, plan, gangs, all_at_once=len(left) >= MOST_ROUNDS):
        left.append(removed)
        out |= removed
        snapshot = replace(snapshot, pods=_without(snapshot, removed))
        plan = planners.brief(snapshot)
    # What was left out before another may have lacked only what that one would have taken.
    for removed in (*_gangs_apart(left, gangs), *reversed(left[:-1])):
        if not removed.keys() <= out.keys():
            continue
        more = replace(snapshot, pods=snapshot.pods.update({key: pods[key] for key in removed}))
        better = planners.brief(more)
        if not _incomplete(more, better, gangs, all_at_once=True):
            snapshot, plan = more, better
            out = {key: refusal for key, refusal in out.items() if key not in removed}
    if left:
        plan = planners.full(snapshot)
        while removed := _incomplete(snapshot, plan, gangs, all_at_once=True):
            out |= removed
            snapshot = replace(snapshot, pods=_without(snapshot, removed))
            plan = planners.full(snapshot)
    if not out and not kept:
        return plan
    return replace(
        plan,
        placements=dict(sorted((*plan.placements.items(), *kept.items()))),
        refusals=tuple(sorted((*plan.refusals, *out.values()), key=lambda refusal: refusal.pod)),
    )


def _planned(plan: Plan) -> Iterable[str]:
    """The pods that a plan speaks of; without a call for each of them."""
    refused = [refusal.pod for refusal in plan.refusals]
    return chain(plan.placements, chain.from_iterable([node.pods for node in plan.new_nodes]), refused)


def _gangs_apart(left: Sequence[dict[str, Refusal]], gangs: Mapping[str, Gang]) -> list[dict[str, Refusal]]:
    """The oldest of the gangs that were left out all at once, each for itself.

    Their pods may have shared the room that there is, so that none of them was whole.
    """
    if len(left) <= MOST_ROUNDS:
        return []
    last = left[MOST_ROUNDS]
    apart = sorted(gangs.values(), key=lambda gang: (gang.came, gang.name))
    groups = [{key: last[key] for key in sorted(gang.waiting & last.keys())} for gang in apart if gang.size]
    whole = [group for group in groups if group]
    return whole[:MOST_ROUNDS]


def _with_bookings(
    snapshot: Snapshot, keep: Solve, now: float
) -> tuple[Snapshot, dict[str, str], dict[str, Refusal]]:
    """The cluster with booked room as pods of its nodes, with their places, and those that have none."""
    # Others that look for a place, those of nodes that leave among them, come after what is booked.
    others = [pod for pod in pods_to_place(snapshot, now) if _BOOKED not in pod.key]
    waiting = [pod.key for pod in others if not pod.node_name]
    alone = replace(snapshot, pods=_without(snapshot, waiting), booked=())
    alone = reduce(apply, (PodGone(pod.key) for pod in others if pod.node_name), alone)
    places = keep(alone).placements
    bound, kept, gone = snapshot, dict[str, str](), dict[str, Refusal]()
    for key in snapshot.booked:
        name = places.get(key, "")
        if name in snapshot.nodes:
            kept[key] = name
            bound = apply(bound, PodSeen(replace(snapshot.pods[key], node_name=name, unschedulable=False)))
        else:
            gone[key] = Refusal(key, RefusalCode.NO_POOL_FITS, (), _GONE)
    return replace(bound, pods=_without(bound, gone), booked=()), kept, gone


def _incomplete(
    snapshot: Snapshot, plan: Plan, gangs: Mapping[str, Gang], *, all_at_once: bool
) -> dict[str, Refusal]:
    """The pods of gangs and requests that a plan does not hold whole, each with why."""
    refused = {refusal.pod: refusal for refusal in plan.refusals if is_pending(refusal.pod)}
    there = {name: gang for name, gang in gangs.items() if not gang.waiting.isdisjoint(snapshot.pods)}
    why = incomplete_gangs(there, plan) if there else {}
    came = {request_of(pod): snapshot.pods[pod].created_at for pod in refused}
    # Keys of requests and gangs may be equal; a gang's pods come before every placeholder.
    last = max(
        [*((at, key, False) for key, at in came.items()), *((gangs[name].came, name, True) for name in why)],
        default=None,
    )
    if last is None:
        return {}
    if all_at_once:
        return _whole_groups(snapshot, came, refused) | refused_members(gangs, why)
    _, key, is_gang = last
    return refused_members(gangs, {key: why[key]}) if is_gang else _whole_groups(snapshot, {key}, refused)


def _whole_groups(
    snapshot: Snapshot, broken: Collection[str], refused: Mapping[str, Refusal]
) -> dict[str, Refusal]:
    lacking = Counter(request_of(pod) for pod in refused)
    asked = dict.fromkeys(broken, 0)
    mine = [key for key in snapshot.pods if is_pending(key) and request_of(key) in broken]
    for key in mine:
        asked[request_of(key)] += 1
    first = {request_of(pod): str(refused[pod]) for pod in sorted(refused, reverse=True)}
    found: dict[str, Refusal] = {}
    for key in mine:
        request = request_of(key)
        text = f"{lacking[request]} of {asked[request]} pods would have no place: {first[request]}"
        found[key] = Refusal(key, RefusalCode.GROUP_INCOMPLETE, (), text)
    return found


def _without(snapshot: Snapshot, keys: Iterable[str]) -> Map[str, Pod]:
    pods = snapshot.pods
    for key in keys:
        pods = pods.delete(key)
    return pods


def _in_order(snapshot: Snapshot) -> list[ProvisioningRequest]:
    return sorted(snapshot.provisioning_requests.values(), key=lambda each: (each.created_at, each.key))
