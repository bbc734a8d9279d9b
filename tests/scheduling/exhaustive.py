"""The best plan for a few pods by trying everything: every grouping of them, every node for each group.

Written on kube-scheduler's filters (`scheduler`) and the nodes that pools could make
(`topology_worlds.shapes`), without the solver's code. Domains that pools could make nodes in count, as
in Karpenter. A grouping counts when its pods can be bound one by one, and when the new
nodes stay within the limits of their pools.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import PROVISIONER_NAME
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from tests.scheduling.scheduler import Cluster, Host, binding_order
from tests.scheduling.topology_worlds import shapes

#: Combinations tried before the search gives up.
_PATIENCE = 4000
Choice = tuple[float, Pool | None, InstanceType | None, Host]
"""Price, pool and type of a new node; none for a host that exists."""


class GaveUp(Exception):
    """There are too many combinations."""


def least_price(seen: Snapshot, waiting: Sequence[Pod]) -> float | None:
    """The least price at which all the pods run; None when they cannot.

    Raises:
        GaveUp: The case is too large.
    """
    hosts = _hosts(seen)
    new = [(price, own, kind, host) for own, kind, host, price in _for_sale(seen)]
    there: list[Choice] = [(0.0, None, None, host) for host in hosts.values()]
    best: list[tuple[float, int, tuple[int, ...], list[list[Pod]], list[list[Choice]]]] = []
    for number, groups in enumerate(_groupings(list(waiting))):
        choices = [_choices(group, there, new) for group in groups]
        if all(choices):
            first = (0,) * len(groups)
            heappush(best, (_price(choices, first), number, first, groups, choices))
    tried: set[tuple[int, tuple[int, ...]]] = set()
    for _ in range(_PATIENCE):
        if not best:
            return None
        price, number, at, groups, choices = heappop(best)
        if (number, at) in tried:
            continue
        tried.add((number, at))
        if _works(seen, groups, [some[i] for some, i in zip(choices, at, strict=True)]):
            return price
        for position, some in enumerate(choices):
            if at[position] + 1 < len(some):
                after = (*at[:position], at[position] + 1, *at[position + 1 :])
                heappush(best, (_price(choices, after), number, after, groups, choices))
    raise GaveUp


def _hosts(seen: Snapshot) -> dict[str, Host]:
    hosts = {
        name: Host(name, there.labels, there.allocatable, there.taints, there.unschedulable)
        for name, there in sorted(seen.nodes.items())
    }
    for pod in seen.pods.values():
        if pod.node_name:
            hosts[pod.node_name].pods.append(pod)
    return hosts


def _for_sale(seen: Snapshot) -> Iterator[tuple[Pool, InstanceType, Host, float]]:
    for own, kind, host in shapes(seen):
        zone, capacity_type = (
            host.labels[key] for key in ("topology.kubernetes.io/zone", "karpenter.sh/capacity-type")
        )
        prices = [
            offering.price
            for offering in kind.offerings
            if (offering.zone, offering.capacity_type) == (zone, capacity_type)
        ]
        yield own, kind, host, min(prices)


def _groupings(pods: list[Pod]) -> Iterator[list[list[Pod]]]:
    """Every way to divide pods into groups."""
    if not pods:
        yield []
        return
    first, rest = pods[0], pods[1:]
    for groups in _groupings(rest):
        yield [[first], *groups]
        for position, group in enumerate(groups):
            yield [*groups[:position], [first, *group], *groups[position + 1 :]]


def _choices(group: list[Pod], there: Sequence[Choice], new: Sequence[Choice]) -> list[Choice]:
    """The nodes that hold a group, rules with other groups apart; the cheapest first."""
    found = []
    for choice in (*there, *new):
        host = choice[3]
        alone = Host(host.name, host.labels, host.allocatable, host.taints, host.cordoned, list(host.pods))
        plain = [pod for pod in group if Cluster({alone.name: alone}).plain_obstacle(pod, alone) is None]
        used: dict[str, int] = {}
        for pod in (*host.pods, *group):
            for name, amount in pod.shape.requests:
                used[name] = used.get(name, 0) + amount
        if len(plain) == len(group) and all(used[name] <= host.allocatable.get(name, 0) for name in used):
            found.append(choice)
    return sorted(found, key=lambda choice: choice[0])


def _price(choices: Sequence[Sequence[Choice]], at: Sequence[int]) -> float:
    return sum(some[i][0] for some, i in zip(choices, at, strict=True))


def _works(seen: Snapshot, groups: Sequence[list[Pod]], chosen: Sequence[Choice]) -> bool:
    existing = [choice[3].name for choice in chosen if choice[1] is None]
    if len(existing) != len(set(existing)) or not _within_limits(seen, chosen):
        return False
    hosts = _hosts(seen)
    wanted: dict[str, list[Pod]] = {}
    for index, (group, (_, own, _, host)) in enumerate(zip(groups, chosen, strict=True)):
        name = host.name if own is None else f"new-{index}"
        if own is not None:
            labels = {key: value for key, value in host.labels.items() if key != "kubernetes.io/hostname"}
            hosts[name] = Host(name, labels, host.allocatable, host.taints)
        wanted[name] = list(group)
    to_come = tuple(host for _, _, host in shapes(seen))
    return binding_order(Cluster(hosts, to_come), wanted) is not None


def _within_limits(seen: Snapshot, chosen: Sequence[Choice]) -> bool:
    for own in seen.pools.values():
        used = [
            there.capacity for there in seen.nodes.values() if there.labels.get(PROVISIONER_NAME) == own.name
        ]
        before = len(used)
        used += [kind.capacity for _, pool, kind, _ in chosen if pool is own and kind is not None]
        for name, limit in (own.limits or {}).items():
            total = len(used) if name == "nodes" else sum(one.get(name, 0) for one in used)
            if len(used) > before and total > limit:
                return False
    return True
