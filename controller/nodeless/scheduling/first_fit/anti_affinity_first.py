"""How many nodes rules on the hostname make classes need.

Pods that keep off each other's nodes need a node each, however small they are. Placed last, they come
when nobody is left to share those nodes. Placed first, on nodes sized for their share of all that is to
come, they carry the others.
"""

from collections.abc import Iterable, Mapping

from nodeless.model.labels import HOSTNAME
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.rules import TopologyGroup


def nodes_apart(classes: Iterable[PodClass]) -> Mapping[PodClass, float]:
    """For classes with rules that let only so many on one node: the nodes that all under that rule need."""
    limits = {pods: _own_limits(pods) for pods in classes if pods.hard_rules}
    total: dict[TopologyGroup, float] = {}
    for pods, own in limits.items():
        for topology_group, most in own.items():
            total[topology_group] = total.get(topology_group, 0.0) + len(pods.pods) / most
    return {pods: max(total[topology_group] for topology_group in own) for pods, own in limits.items() if own}


def _own_limits(pods: PodClass) -> dict[TopologyGroup, int]:
    """The groups of the host in which pods of a class count, and how many of them one node may have."""
    limits = {
        spread.topology_group: spread.max_skew
        for spread in pods.hard_rules.spread
        if spread.counts_itself and spread.topology_group.key == HOSTNAME
    }
    for anti in pods.hard_rules.anti_affinity:
        if anti.counts_itself and anti.topology_group.key == HOSTNAME:
            limits[anti.topology_group] = 1
    return limits
