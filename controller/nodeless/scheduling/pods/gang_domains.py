"""Gangs that are to be kept in one domain: a zone, a placement group, a capacity reservation.

A gang names a label of nodes (`nodeless.dev/gang-topology`). It is planned by itself in each domain of that
label, its members selecting the domain, and is kept in the one where most of it fits, at the lowest price.
Where members run already, the others follow them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from immutables import Map

from nodeless.model.instance_types import Catalog
from nodeless.model.labels import GANG_TOPOLOGY, ZONE
from nodeless.model.plan import Plan
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.gangs import Gang

#: Domains that are tried for a gang, and gangs for which they are in one pass, at most.
MOST_DOMAINS, MOST_GANGS = 12, 8
_TOO_MANY = "it waits for its turn: other gangs are looked at first for the domain where they fit"
Solve = Callable[[Snapshot], Plan]
Domains = Callable[[str], Collection[str]]


def domains_of(snapshot: Snapshot, catalog: Catalog, key: str) -> frozenset[str]:
    """The values that a label of nodes may have: of what is for sale, and of nodes that exist."""
    found = {value for node in snapshot.nodes.values() if (value := node.labels.get(key))}
    for types in catalog.values():
        for each in types:
            known = each.requirements.get(key)
            if known is not None and not known.complement and key != ZONE:
                found |= known.values
            for offering in each.offerings:
                labels = {ZONE: offering.zone, **offering.reservation_labels}
                if offering.for_sale and key in labels:
                    found.add(labels[key])
    return frozenset(found)


def kept_together(
    snapshot: Snapshot, gangs: Mapping[str, Gang], solve: Solve, domains: Domains, now: float
) -> tuple[Snapshot, dict[str, Gang]]:
    """The cluster with each such gang in one domain, and the gangs with the domains that were found.

    Args:
        snapshot: The cluster.
        gangs: The gangs of which pods are planned, by name.
        solve: Makes a plan for a snapshot.
        domains: The values that a label of nodes may have.
        now: Seconds since the epoch: which gangs have their turn, where not all do.
    """
    found = dict(gangs)
    apart = [
        gang
        for gang in sorted(gangs.values(), key=lambda gang: (gang.came, gang.name))
        if gang.topology
        and not (gang.problem or gang.paused)
        and len(gang.waiting) + gang.standing >= gang.size
    ]
    turns = _turns(apart, now)
    for gang in apart:
        if gang not in turns:
            found[gang.name] = replace(gang, paused=_TOO_MANY)
            continue
        domain = _best(snapshot, gang, solve, domains)
        if not domain:
            text = f"neither a node nor what is for sale has the label {gang.topology}"
            found[gang.name] = replace(gang, paused=f"{text}; hint: annotation {GANG_TOPOLOGY}")
            continue
        found[gang.name] = replace(gang, domain=domain)
        snapshot = _within(snapshot, gang, domain)
    return snapshot, found


def _turns(gangs: Sequence[Gang], now: float) -> Sequence[Gang]:
    """The gangs that are looked at in a pass, of those in the order of their age.

    The oldest are in each pass. Others are drawn: the oldest may be those that never fit.
    """
    if len(gangs) <= MOST_GANGS:
        return gangs
    oldest = MOST_GANGS // 2
    return [*gangs[:oldest], *Random(now).sample(gangs[oldest:], MOST_GANGS - oldest)]  # noqa: S311


def _best(snapshot: Snapshot, gang: Gang, solve: Solve, domains: Domains) -> str:
    """The domain in which most of a gang fits, at the lowest price; empty: there is none."""
    others = [key for key, pod in snapshot.pods.items() if not pod.node_name and key not in gang.waiting]
    alone = replace(snapshot, pods=_without(snapshot, others), booked=())
    ranked = []
    for domain in sorted(gang.domains or _selected(snapshot, gang) or domains(gang.topology))[:MOST_DOMAINS]:
        plan = solve(_within(alone, gang, domain))
        ranked.append((sum(each.pod in gang.waiting for each in plan.refusals), plan.cost_per_hour, domain))
    return min(ranked, default=(0, 0.0, ""))[2]


def _selected(snapshot: Snapshot, gang: Gang) -> frozenset[str]:
    """The domains that members select themselves."""
    chosen = (dict(snapshot.pods[key].shape.node_selector).get(gang.topology) for key in gang.waiting)
    return frozenset(filter(None, chosen))


def _within(snapshot: Snapshot, gang: Gang, domain: str) -> Snapshot:
    """The cluster with the members of a gang selecting a domain."""
    pods = snapshot.pods
    for key in gang.waiting:
        pods = pods.set(key, _selecting(pods[key], gang.topology, domain))
    return replace(snapshot, pods=pods)


def _selecting(pod: Pod, key: str, domain: str) -> Pod:
    # Where it selects another domain itself it fits nowhere: kube-scheduler goes by its own selector.
    selector = {*pod.shape.node_selector, (key, domain)}
    return replace(pod, shape=replace(pod.shape, node_selector=tuple(sorted(selector))))


def _without(snapshot: Snapshot, keys: Iterable[str]) -> Map[str, Pod]:
    pods = snapshot.pods
    for key in keys:
        pods = pods.delete(key)
    return pods
