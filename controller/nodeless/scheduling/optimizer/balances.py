"""What rules over zones say of whole plans: how many pods may be where at least and at most.

A hard spread holds when a pod is placed: its zone has at most `skew` pods more than the emptiest one, which
gets no emptier later. So where every class that is counted has the rule, it holds for all of them at the end:

    there_v + n_v <= m + skew,   m <= there_v + n_v        for each zone v

with n_v of those that come, and m in the emptiest zone.

Pods that keep off their own like by zone are at most one in each. What else rules over zones ask for is left
out: a bound on what plans cost is lower then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from nodeless.model.labels import ZONE
from nodeless.scheduling.capacity.highs import Rows, quiet_solver
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.rules import Spread, TopologyGroup
from nodeless.scheduling.topology.tracking import Topology


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """Classes whose pods together are balanced over zones."""

    members: tuple[PodClass, ...]
    zones: tuple[str, ...]
    there: tuple[int, ...]
    """By zone, the pods that run there and are counted."""
    skew: int
    grows: bool
    """Whether more may be in a zone the more are in the emptiest one; otherwise `skew` is all."""
    coming: int = 0
    """How many pods come in all."""

    def in_emptiest(self) -> tuple[int, int]:
        """How many pods are in the emptiest zone in the end, at least and at most."""
        if not self.grows:
            return 0, 0
        together = sum(self.there) + self.coming
        least, most = min(self.there, default=0), together // max(1, len(self.zones))
        while least < most:
            middle = (least + most) // 2
            others = sorted(max(middle + self.skew, there) for there in self.there)[1:]
            if middle + sum(others) < together:
                least = middle + 1
            else:
                most = middle
        return least, together // max(1, len(self.zones))

    def most_in(self, zone: str) -> int:
        """How many may come to a zone at most."""
        above = dict(self.most_above_emptiest())
        if zone not in above:
            return self.coming
        return max(0, min(self.coming, above[zone] + self.in_emptiest()[1]))

    def most_above_emptiest(self) -> Iterable[tuple[str, int]]:
        """How many more may come to a zone than there are pods in the emptiest one.

        Zones with more pods than there may be are left out: then nobody may come, and that is not said.
        """
        least = min(self.there, default=0)
        for zone, there in zip(self.zones, self.there, strict=True):
            if not self.grows:
                yield zone, max(0, self.skew - there)
            elif there <= least + self.skew:
                yield zone, self.skew - there


def keeps_balance(pods: PodClass) -> bool:
    """Whether rules of a class say how many of it may be in a zone."""
    return any(rule.topology_group.key == ZONE for rule in pods.hard_rules.spread) or any(
        rule.topology_group.key == ZONE for rule in pods.hard_rules.anti_affinity
    )


def balances_of(classes: Sequence[PodClass], topology: Topology) -> list[Balance]:
    """What rules say of plans for these classes; `topology`: nothing of them is placed."""
    adders: dict[TopologyGroup, list[PodClass]] = {}
    for pods in classes:
        for topology_group in pods.adds:
            adders.setdefault(topology_group, []).append(pods)
    spreads: dict[TopologyGroup, list[tuple[PodClass, Spread]]] = {}
    for pods in classes:
        for rule in pods.hard_rules.spread:
            if rule.topology_group.key == ZONE:
                spreads.setdefault(rule.topology_group, []).append((pods, rule))
    return [*_spread(spreads, adders, topology), *_alone(classes, topology)]


def _spread(
    spreads: Mapping[TopologyGroup, Sequence[tuple[PodClass, Spread]]],
    adders: Mapping[TopologyGroup, Sequence[PodClass]],
    topology: Topology,
) -> Iterable[Balance]:
    for topology_group, ruled in spreads.items():
        members = dict.fromkeys(pods for pods, _ in ruled)
        counter = topology.counters[topology_group]
        # Pods without the rule may add to a zone later, and pods that are not counted add nothing.
        if members.keys() != set(adders.get(topology_group, ())) or any(counter.unsure.values()):
            continue
        zones = topology.domains.universe(ZONE, topology_group.nodes)
        skew = max(rule.max_skew for _, rule in ruled)
        yield Balance(
            tuple(members),
            zones,
            tuple(counter.domains.get(zone, 0) for zone in zones),
            skew,
            any(len(zones) >= rule.min_domains for _, rule in ruled),
        )


def _alone(classes: Iterable[PodClass], topology: Topology) -> Iterable[Balance]:
    for pods in classes:
        for rule in pods.hard_rules.anti_affinity:
            if rule.topology_group.key == ZONE and rule.topology_group in pods.adds:
                zones = topology.domains.launchable(ZONE)
                counted = topology.counters[rule.topology_group].domains
                there = tuple(counted.get(zone, 0) for zone in zones)
                yield Balance((pods,), zones, there, 1, grows=False)


def add_balances(
    balances: Sequence[Balance],
    places: Mapping[tuple[PodClass | None, str | None], int],
    rows: Rows,
    most: list[float],
) -> None:
    """Add to a program what rules say of zones.

    Args:
        balances: The rules.
        places: The variable for pods of a class in a zone.
        rows: The rows so far.
        most: The most that each variable may be; gets those of further ones.
    """
    for balance in balances:
        emptiest = len(most)
        fewest, highest = balance.in_emptiest()
        most.append(float(highest))
        rows.least([(emptiest, 1.0)], fewest)
        inside = {
            zone: [places[pods, zone] for pods in balance.members if (pods, zone) in places]
            for zone in balance.zones
        }
        for zone, there in zip(balance.zones, balance.there, strict=True):
            rows.most([(emptiest, 1.0), *((column, -1.0) for column in inside[zone])], there)
        for zone, more in balance.most_above_emptiest():
            rows.most([(emptiest, -1.0), *((column, 1.0) for column in inside[zone])], more)


def least_worth(
    parts: Sequence[tuple[PodClass | None, str | None, float, float]], balances: Sequence[Balance]
) -> float:
    """What pods are worth at least together, wherever rules let them be.

    Args:
        parts: A class and a zone, with how many pods the class has in all, and what one is worth there.
        balances: What rules say of zones.
    """
    rows, most = Rows(), [highspy.kHighsInf] * len(parts)
    classes: dict[PodClass | None, list[int]] = {}
    for column, (pods, *_) in enumerate(parts):
        classes.setdefault(pods, []).append(column)
    for columns in classes.values():
        rows.least([(column, 1.0) for column in columns], parts[columns[0]][2])
    places = {(pods, zone): column for column, (pods, zone, *_) in enumerate(parts)}
    add_balances(balances, places, rows, most)
    worth = np.array([*(each for *_, each in parts), *([0.0] * len(balances))])
    solver = quiet_solver()
    solver.passModel(
        rows.of_fractions(worth, np.zeros(len(most)), np.array(most), highspy.ObjSense.kMinimize)
    )
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return 0.0
    return float(solver.getInfo().objective_function_value)
