"""Answers to "why": one pod, workload, node or pool of a plan."""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nodeless.api.times import format_time
from nodeless.explain.bill import bill_lines
from nodeless.explain.decisions import Situation
from nodeless.explain.disruption import judged, saving_work
from nodeless.explain.fill import NodeFill, existing_nodes, new_nodes
from nodeless.explain.lost_work import CapacityReason, reason_of, reason_of_running
from nodeless.explain.pool_facts import pool_facts
from nodeless.explain.preference_costs import PreferenceCosts, Trying, preference_costs
from nodeless.explain.report import Launch, Unplaced, launches_of, relaxed, unplaced
from nodeless.explain.resizes import advise_resize
from nodeless.explain.why import why
from nodeless.explain.words import amounts, count, listed, price
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import PLANNED_BECAUSE
from nodeless.model.nodes import NodeClaim
from nodeless.model.plan import Plan
from nodeless.model.pods import Pod
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, kind_called, with_kind_called, workload_of, workloads_called
from nodeless.nodeclaim.checkpoints import instance_ends
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.capacity.terminating import waiting, with_room_to_come
from nodeless.scheduling.pods.gangs import gang_of
from nodeless.state.expected import planned_for
from nodeless.state.protection import protection
from nodeless.state.saving import plain

_IGNORED = "is ignored: kube-scheduler has not marked it unschedulable, or it is not for nodes of nodeless"


class NotThere(LookupError):
    """Neither pod, workload, node nor pool; the text names what is near."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is to say about a pod or a node."""

    subject: str
    lines: tuple[str, ...]
    placed: bool = True
    """False for a pod without a place."""
    ready: bool = True
    """False for a pool that makes no nodes."""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The same as data, in the terms of the plan's report: `resize`, `unplaced`, `node`, `launch`, `relaxed`,
    `capacity`, `preferences`, `disruption`, and `pool`."""

    def to_json(self) -> dict[str, Any]:
        """The answer as a JSON document."""
        document = {"subject": self.subject, "placed": self.placed, "reasons": list(self.lines)}
        return {**document, **{name: plain(fact) for name, fact in self.facts.items()}}


def answer(
    situation: Situation,
    plan: Plan,
    name: str,
    wider: Catalog | None = None,
    namespace: str = "",
    trying: Trying = Trying.AUTO,
) -> Answer:
    """The answer on a pod (`namespace/name`, or its name alone), a workload, a node, a pool. Raises NotThere.

    Pods, claims and nodes go by `KIND/NAME`, too, and pools do by nothing else. Of a workload (`KIND/NAME`,
    `NAMESPACE/KIND/NAME`) the first pod is told of, or the first without a place. Pods and workloads that are
    named without a namespace are those of `namespace`, where one is given. `trying` says how often is planned
    again to find what the preferences of a pod's workload, or of those on a new node, cost.
    """
    snapshot, policy = situation.snapshot, situation.policy
    priced_for = partial(preference_costs, situation, plan, trying)
    catalog = priced(situation.catalog, snapshot.pools.values(), policy.price_adjustments, policy.node_fee)
    if (pool := snapshot.pools.get(with_kind_called(name))) is not None:
        told = pool_facts(situation, catalog, plan, pool)
        return Answer(pool.key, tuple(told.lines()), ready=told.ready, facts={"pool": told})
    new = new_nodes(snapshot, catalog, plan)
    existing = existing_nodes(snapshot, catalog, plan, policy.commitments)
    asked, name = name, _plain(snapshot, name)
    keys = [key for key in snapshot.pods if name in _names_of_pod(key, namespace)]
    if len(keys) > 1 and name not in keys:
        raise NotThere(f"{name} is the name of several pods; hint: say which: {listed(sorted(keys))}")
    launches = {node: launch for launch in launches_of(plan, new) for node in launch.nodes}
    if keys:
        key = name if name in keys else keys[0]
        return _of_pod(situation, plan, key, (*new, *existing), launches, wider, priced_for)
    for fill in (*new, *existing):
        if fill.name == name:
            answer_of_node = _of_node(fill, plan, launches.get(name), _planned(situation, fill.name))
            if name in launches:
                return _with_preferences(
                    answer_of_node, priced_for({share.workload for share in fill.shares})
                )
            judgment = judged(situation, name)
            if judgment is None:
                return answer_of_node
            facts = {**answer_of_node.facts, "disruption": judgment}
            return replace(answer_of_node, lines=(*answer_of_node.lines, str(judgment)), facts=facts)
    workloads = (
        workloads_called((pod for _, pod in sorted(snapshot.pods.items())), asked, namespace)
        if "/" in asked
        else {}
    )
    if len(workloads) > 1:
        there = listed([str(each) for each in sorted(workloads)])
        raise NotThere(f"{asked} is the name of several workloads; hint: say NAMESPACE/KIND/NAME: {there}")
    for workload, pods in workloads.items():
        refused = [refusal.pod for refusal in plan.refusals if snapshot.pods[refusal.pod] in pods]
        key = next(iter(refused), pods[0].key)
        said = _of_pod(situation, plan, key, (*new, *existing), launches, wider, priced_for)
        without = f", {len(refused)} without a place" if refused else ""
        return replace(said, subject=f"{workload}, {count(len(pods), 'pod')}{without}; {said.subject}")
    names = [*snapshot.pods, *(fill.name for fill in (*new, *existing)), *snapshot.pools]
    part = name.rpartition("/")[2]
    near = [name for name in names if part in name] or difflib.get_close_matches(name, names, 5) or names
    inside = f", or not of namespace {namespace}" if namespace else ""
    there = listed(sorted(near)) or "none"
    raise NotThere(f"{asked} is neither pod, workload, node nor pool{inside}; hint: there is {there}")


def _names_of_pod(key: str, namespace: str) -> tuple[str, ...]:
    """What a pod may be called: without its namespace where that is the one given, or none is."""
    there, _, name = key.partition("/")
    return (key, name) if namespace in ("", there) else (key,)


def _plain(snapshot: Snapshot, name: str) -> str:
    """The name of a pod or a node that is asked for as `pod/web-0`, `node/n1`, `nodeclaim/n1-a`.

    A pod's is with its namespace where that is said; a claim's is its node's, once there is one.
    """
    if name in snapshot.pods:
        return name
    *inside, kind, plain = ("", name) if "/" not in name else name.split("/")
    kind = kind_called(kind)
    if kind == "Pod":
        return "/".join((*inside, plain))
    if kind == "NodeClaim" and (claim := snapshot.claims.get(plain)) is not None:
        node = snapshot.node_of(claim)
        return plain if node is None else node.name
    return plain if kind in ("Node", "NodeClaim") else name


def _planned(situation: Situation, name: str) -> tuple[str, ...]:
    """What the controller noted on the claim of a node that stands, or starts, and what became of it."""
    snapshot = situation.snapshot
    node = snapshot.nodes.get(name)
    claim = snapshot.claim_of(node) if node is not None else snapshot.claims.get(name)
    if claim is None:
        return ()
    text = claim.annotations.get(PLANNED_BECAUSE, "")
    ends = instance_ends(claim)
    known = (f"its instance ends at {format_time(ends)}",) if ends is not None else ()
    because = (f"when it was planned: {line}" for line in text.split("; ") if line)
    saving = saving_work(snapshot, claim, situation.now)
    return (*known, *saving, *because, *_planned_pods(snapshot, claim, node.name if node is not None else ""))


def _planned_pods(snapshot: Snapshot, claim: NodeClaim, node: str) -> Iterator[str]:
    """Where the pods are that a claim was planned for."""
    number, pods = planned_for(snapshot, claim)
    if not number:
        return
    here = sum(pod.node_name == node != "" for pod in pods)
    away = [f"{pod.key} ({pod.node_name})" for pod in pods if pod.node_name not in ("", node)]
    waiting = sum(not pod.node_name for pod in pods)
    parts = [f"{here} run here"]
    if waiting:
        parts.append(f"{waiting} wait for it")
    if away:
        parts.append(f"{len(away)} went elsewhere: {listed(away)}")
    if number > len(pods):
        parts.append(f"{number - len(pods)} are gone")
    yield f"of the {count(number, 'pod')} that it was planned for {'; '.join(parts)}"


def node_lines(fill: NodeFill) -> tuple[str, ...]:
    """What a node is, how full it is, and what its workloads are."""
    return (_bought(fill), *_bill(fill), *_held(fill))


def _of_node(fill: NodeFill, plan: Plan, launch: Launch | None, because: tuple[str, ...] = ()) -> Answer:
    facts: dict[str, Any] = {"node": fill, **({"launch": launch} if launch else {})}
    if launch is None:
        lines = (_bought(fill), *_bill(fill), *because, *_held(fill))
        return Answer(f"{fill.name}, {fill.state}", lines, facts=facts)
    planned = plan.new_nodes[int(fill.name.removeprefix("new-")) - 1]
    lines = (*why(planned).splitlines(), *_held(fill))
    return Answer(f"{fill.name}, a new node of {fill.pool}", lines, facts=facts)


def _of_pod(
    situation: Situation,
    plan: Plan,
    key: str,
    nodes: tuple[NodeFill, ...],
    launches: Mapping[str, Launch],
    wider: Catalog | None,
    priced_for: Callable[[Collection[Workload]], PreferenceCosts],
) -> Answer:
    pod = situation.snapshot.pods[key]
    subject = f"{key}, of {workload_of(pod)}, requests {amounts(pod.requests)}"
    if not pod.node_name and (later := _after_termination(situation, plan, key)):
        return Answer(subject, later)
    for refusal in plan.refusals:
        if refusal.pod == key:
            (group,) = unplaced(situation, (refusal,), wider)
            return Answer(
                subject, ("has no place", *_hindered(group)), placed=False, facts={"unplaced": group}
            )
    home = _home(plan, key)
    fill = next((node for node in nodes if node.name == home), None)
    if fill is None and home:
        # A claim whose node has appeared: the node bears another name.
        return Answer(subject, (f"lands on {home}, which has room",))
    if fill is None:
        return _of_running(situation, pod, subject) if pod.node_name else Answer(subject, (_IGNORED,))
    lost = relaxed(situation, (relaxation for relaxation in plan.relaxations if key in relaxation.pods))
    losses = tuple(f"relaxed: {relaxation.message} [{relaxation.code}]" for relaxation in lost)
    chosen = next((one for one in plan.choices if key in one.pods), None)
    reason = reason_of(chosen.lost_work) if chosen is not None else None
    node = _of_node(fill, plan, launches.get(home))
    where = f"a new node of {fill.pool}" if home in launches else "which has room"
    reasons = why(plan.new_nodes[int(home.removeprefix("new-")) - 1]) if home in launches else _bought(fill)
    facts = {**node.facts, "relaxed": list(lost), **_as_fact(reason)}
    lines = (*_saving(situation, pod), *_as_lines(reason), *losses, *reasons.splitlines())
    said = Answer(subject, (f"lands on {home}, {where}", *lines), facts=facts)
    return _with_preferences(said, priced_for({workload_of(pod)}))


def _after_termination(situation: Situation, plan: Plan, key: str) -> tuple[str, ...]:
    """What a pod without room waits for where terminating pods leave it enough; nothing where they do not."""
    snapshot, longest = situation.snapshot, situation.policy.termination_wait
    freed, nodes = with_room_to_come(snapshot, situation.now, longest)
    if not nodes or key in plan.placements or gang_of(snapshot.pods[key], snapshot.gang_sizes):
        return ()
    home = waiting(snapshot, nodes, replace(situation, snapshot=freed).plan().placements).get(key)
    if home is None:
        return ()
    return (
        f"lands on {home}, once the pods that terminate there are gone",
        f"is planned without their room after {longest:g} s",
    )


def _with_preferences(said: Answer, costs: PreferenceCosts) -> Answer:
    """The answer with what preferences cost, where they cost something."""
    if not costs:
        return said
    lines = (f"preference: {line}" for line in costs.lines())
    return replace(said, lines=(*said.lines, *lines), facts={**said.facts, "preferences": costs})


def _as_lines(reason: CapacityReason | None) -> tuple[str, ...]:
    return () if reason is None else (reason.message,)


def _as_fact(reason: CapacityReason | None) -> dict[str, CapacityReason]:
    return {} if reason is None else {"capacity": reason}


def _of_running(situation: Situation, pod: Pod, subject: str) -> Answer:
    """Where a pod runs, what holds its node, and what keeps it from growing."""
    held = protection(pod, situation.now)
    held_lines = (f"its node is not disrupted: it has {held}",) if held else ()
    advice = advise_resize(situation, pod)
    lines = advice.lines() if advice is not None else ()
    reason = reason_of_running(situation, pod.key)
    facts = {**({} if advice is None else {"resize": advice}), **_as_fact(reason)}
    saving = (*_saving(situation, pod), *_as_lines(reason))
    return Answer(subject, (f"runs on {pod.node_name}", *held_lines, *saving, *lines), facts=facts)


def _saving(situation: Situation, pod: Pod) -> tuple[str, ...]:
    node = situation.snapshot.nodes.get(pod.node_name)
    claim = situation.snapshot.claim_of(node) if node is not None else None
    return saving_work(situation.snapshot, claim, situation.now, pod.key) if claim is not None else ()


def _home(plan: Plan, key: str) -> str:
    """The node on which a plan puts a pod; empty when it does not."""
    number = next((number for number, node in enumerate(plan.new_nodes, 1) if key in node.pods), None)
    return f"new-{number}" if number else plan.placements.get(key, "")


def _hindered(group: Unplaced) -> Iterator[str]:
    for obstacle in group.obstacles:
        yield f"{f'{listed(obstacle.pools)}: ' if obstacle.pools else ''}{obstacle.message} [{obstacle.code}]"
    yield from (f"would fit: {remedy}" for remedy in group.remedies)


def _bought(fill: NodeFill) -> str:
    cost = price(fill.price) if fill.price is not None else "price not known"
    where = ", ".join(each for each in (fill.instance_type, fill.capacity_type, fill.zone, fill.pool) if each)
    return f"{where or 'no type known'}, {cost}"


def _bill(fill: NodeFill) -> tuple[str, ...]:
    return () if fill.price is None else bill_lines(fill.price, fill.parts)


def _held(fill: NodeFill) -> tuple[str, ...]:
    full = [f"{resource} {fill.fraction(resource):.0%}" for resource in (CPU, MEMORY)]
    filled = (f"full to {', '.join(full)}",) if fill.allocatable else ()
    daemons = (f"DaemonSets: {amounts(fill.daemons)}",) if fill.daemons else ()
    shares = (
        f"{share.workload}: {count(share.pods, 'pod')}"
        f"{f' ({share.arriving} of them arriving)' if share.arriving < share.pods and share.arriving else ''}"
        for share in fill.shares
    )
    return (*filled, *daemons, *shares)
