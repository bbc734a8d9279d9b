"""The most pods that can be placed, and the least that it costs, by an integer program (HiGHS).

For worlds of a dozen pods with requests, node selectors, host ports, limits of pools, existing nodes, and
rules on the hostname. Written on kube-scheduler's filters (`scheduler`), without the solver's code.

    x[p, k] = 1 where pod p runs on node k: one that exists, or the one that p leads or joins
    z[k, o] = 1 where new node k is made as offer o (pool, type, zone, capacity type)

    max   M sum x - sum w_o z
    s.t.  sum_k x[p, k] <= 1                               each pod once
          sum_o z[k, o] <= 1                               each new node is one thing
          x[p, k] <= sum_{o accepts p} z[k, o]
          sum_p q_p x[p, k] <= sum_o a_o z[k, o]           room, in every resource
          x[p, k] <= sum of x[q, k] of those that p must be beside
          x[p, k] + x[q, k] <= 1                           where p and q keep off each other
          sum_k capacity of pool i <= limit_i
          sum_i c[i, k, o] <= z[k, o]                      at most the whole of a new node is covered
          sum u_io c[i, k, o] <= amount_i                  of on-demand offers that commitment i concerns,
                                                           each of which uses u_io of it

Price: sum w_o z - sum w_o c.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import highspy

from nodeless.model.commitments import Commitment
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, PROVISIONER_NAME, ZONE
from nodeless.model.pods import Pod, PodAffinityTerm
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from tests.scheduling.scheduler import Cluster, Host, matches

#: What a pod that is placed is worth beside any price.
_PLACED = 1000.0


@dataclass(frozen=True)
class Best:
    """How many pods run, and for how many dollars an hour."""

    placed: int
    price: float


@dataclass(frozen=True)
class Offer:
    """One thing that a new node may be."""

    pool: Pool
    kind: InstanceType
    host: Host
    price: float


def best(seen: Snapshot, types: Sequence[InstanceType], commitments: Sequence[Commitment] = ()) -> Best:
    """The best that can be done for the pods that wait. Rules on anything but the hostname play no part.

    Nothing that runs uses the commitments.
    """
    waiting = sorted((pod for pod in seen.pods.values() if not pod.node_name), key=lambda pod: pod.key)
    program = highspy.Highs()
    program.silent()
    offers = list(_offers(seen, types))
    there = [
        Host(name, node.labels, node.allocatable, node.taints) for name, node in sorted(seen.nodes.items())
    ]
    places = len(there) + len(waiting)
    x = [[program.addBinary() for _ in range(places)] for _ in waiting]
    z = [[program.addBinary() for _ in offers] for _ in waiting]
    for row in x:
        program.addConstr(program.qsum(row) <= 1)
    for place, host in enumerate(there):
        for pod, row in zip(waiting, x, strict=True):
            if _alone(pod, host) is not None:
                program.addConstr(row[place] <= 0)
        for name in _names(waiting):
            used = sum(other.requests.get(name, 0) for other in seen.pods_on(host.name))
            asked = program.qsum(
                pod.requests.get(name, 0) * row[place] for pod, row in zip(waiting, x, strict=True)
            )
            program.addConstr(asked <= host.allocatable.get(name, 0) - used)
    accepted = [[_alone(pod, offer.host) is None for offer in offers] for pod in waiting]
    for leader, made in enumerate(z):
        place = len(there) + leader
        program.addConstr(program.qsum(made) <= x[leader][place])
        for index, row in enumerate(x):
            if index < leader:
                program.addConstr(row[place] <= 0)
            else:
                fitting = [made[at] for at, yes in enumerate(accepted[index]) if yes]
                program.addConstr(row[place] <= (program.qsum(fitting) if fitting else 0))
        for name in _names(waiting):
            asked = program.qsum(
                pod.requests.get(name, 0) * row[place] for pod, row in zip(waiting, x, strict=True)
            )
            room = program.qsum(
                offer.kind.allocatable.get(name, 0) * one for offer, one in zip(offers, made, strict=True)
            )
            program.addConstr(asked <= room)
    _rules(program, waiting, x, places)
    _limits(program, seen, offers, z)
    number = program.qsum(one for row in x for one in row)
    listed = program.qsum(offer.price * one for made in z for offer, one in zip(offers, made, strict=True))
    off = _covered(program, offers, z, commitments)
    price = listed - program.qsum(dollars * part for dollars, part in off) if off else listed
    program.setOptionValue("mip_rel_gap", 0.0)
    program.setOptionValue("mip_abs_gap", 1e-7)
    program.maximize(_PLACED * number - price)
    placed = round(sum(program.val(one) for row in x for one in row))
    paid = sum(
        offer.price * round(program.val(one)) for made in z for offer, one in zip(offers, made, strict=True)
    )
    return Best(placed, paid - sum(dollars * program.val(part) for dollars, part in off))


def _covered(
    program: highspy.Highs, offers: Sequence[Offer], z: list[list], commitments: Sequence[Commitment]
) -> list[tuple]:
    """The parts of new nodes that are covered, each with the price of the whole."""
    found = []
    for commitment in commitments:
        used = []
        for made in z:
            for offer, one in zip(offers, made, strict=True):
                labels = offer.host.labels
                if labels[CAPACITY_TYPE] == "on-demand" and commitment.concerns(
                    offer.kind.name, labels[ZONE]
                ):
                    part = program.addVariable(0, 1)
                    found.append((offer.price, part, id(made), offer))
                    used.append(commitment.use(offer.kind.name, offer.price) * part)
                    program.addConstr(part <= one)
        if used:
            program.addConstr(program.qsum(used) <= commitment.amount)
    for made in z:
        for offer, one in zip(offers, made, strict=True):
            parts = [part for _, part, row, of in found if row == id(made) and of is offer]
            if len(parts) > 1:
                program.addConstr(program.qsum(parts) <= one)
    return [(dollars, part) for dollars, part, *_ in found]


def _offers(seen: Snapshot, types: Sequence[InstanceType]):
    """What pools can buy; of offers that differ in nothing that pods see, the cheapest."""
    for own in seen.pools.values():
        for kind in types:
            for offering in kind.offerings:
                labels = {
                    **kind.requirements.single_values(),
                    ZONE: offering.zone,
                    CAPACITY_TYPE: offering.capacity_type,
                    PROVISIONER_NAME: own.name,
                }
                if offering.for_sale and own.requirements.satisfied_by(labels):
                    host = Host("new", {**own.labels, **labels}, kind.allocatable, own.taints)
                    yield Offer(own, kind, host, offering.price)


def _alone(pod: Pod, host: Host) -> str | None:
    empty = Host(host.name, host.labels, host.allocatable, host.taints)
    return Cluster({host.name: empty}).plain_obstacle(pod, empty)


def _names(pods: Sequence[Pod]) -> list[str]:
    return sorted({name for pod in pods for name, amount in pod.shape.requests if amount})


def _rules(program: highspy.Highs, waiting: Sequence[Pod], x: list[list], places: int) -> None:
    for (i, one), (j, other) in combinations(enumerate(waiting), 2):
        clash = {port.port for port in one.shape.host_ports} & {port.port for port in other.shape.host_ports}
        if clash or _repels(one, other) or _repels(other, one):
            for place in range(places):
                program.addConstr(x[i][place] + x[j][place] <= 1)
    for i, pod in enumerate(waiting):
        for term in pod.shape.affinity:
            if term.weight is not None or term.topology_key != HOSTNAME:
                continue
            wanted = [j for j, other in enumerate(waiting) if matches(term.selector, other.labels)]
            if i in wanted:
                # Itself will do where it is the first: then all of the group are on its node.
                for j in wanted:
                    for place in range(places):
                        if j != i:
                            others = [x[j][k] for k in range(places) if k != place]
                            program.addConstr(x[i][place] + program.qsum(others) <= 1)
                continue
            for place in range(places):
                beside = [x[j][place] for j in wanted]
                program.addConstr(x[i][place] <= (program.qsum(beside) if beside else 0))


def _repels(one: Pod, other: Pod) -> bool:
    return any(
        term.weight is None and term.topology_key == HOSTNAME and _selects(term, other)
        for term in one.shape.anti_affinity
    )


def _selects(term: PodAffinityTerm, pod: Pod) -> bool:
    return matches(term.selector, pod.labels)


def _limits(program: highspy.Highs, seen: Snapshot, offers: Sequence[Offer], z: list[list]) -> None:
    for own in seen.pools.values():
        living = [node for node in seen.nodes.values() if node.labels.get(PROVISIONER_NAME) == own.name]
        for name, limit in (own.limits or {}).items():
            used = len(living) if name == "nodes" else sum(node.capacity.get(name, 0) for node in living)
            made = [
                (1 if name == "nodes" else offer.kind.capacity[name]) * one
                for row in z
                for offer, one in zip(offers, row, strict=True)
                if offer.pool is own
            ]
            if made:
                program.addConstr(program.qsum(made) <= max(0, limit - used))
