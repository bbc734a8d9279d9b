"""Which rule between pods keeps a class from nodes that could otherwise be made."""

from collections.abc import Mapping, Sequence

from nodeless.model.labels import HOSTNAME
from nodeless.model.plan import RefusalCode
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.rules import Rules, TopologyGroup
from nodeless.scheduling.topology.tracking import Topology

#: Domains told one by one in a message.
DOMAINS_SHOWN = 5


def blocked(pods: PodClass, topology: Topology) -> tuple[RefusalCode, str]:
    """Code and message of the first rule that leaves no domain, by kind: affinity, anti-affinity, spread.

    When no single rule does, all that apply are at fault together, and the first is told.
    """
    rules = pods.hard_rules
    told = [
        (Rules(affinity=(rule,)), RefusalCode.POD_AFFINITY, _affinity(rule.tallies, topology))
        for rule in rules.affinity
    ]
    told += [
        (Rules(anti_affinity=(rule,)), RefusalCode.POD_ANTI_AFFINITY, _anti_affinity(rule.tally, topology))
        for rule in rules.anti_affinity
    ]
    told += [
        (Rules(repelled_by=(tally,)), RefusalCode.POD_ANTI_AFFINITY, _repelled(tally, topology))
        for tally in rules.repelled_by
    ]
    for rule in rules.spread:
        key = rule.tally.key
        universe = topology.domains.universe(key, rule.tally.nodes) if key != HOSTNAME else ()
        counts = _numbers(dict.fromkeys(universe, 0) | topology.counters[rule.tally].domains)
        few = (
            f", and counts as empty while there are fewer than {rule.min_domains} domains"
            if rule.min_domains > 1
            else ""
        )
        message = (
            f"topologySpreadConstraints on {key}: no domain where a node can be made may hold one pod more "
            f"with maxSkew {rule.max_skew}{few} ({counts or 'no domain'})"
        )
        told.append((Rules(spread=(rule,)), RefusalCode.TOPOLOGY_SPREAD, message))
    alone = (entry for entry in told if not topology.open_domains(entry[0]))
    _, code, message = next(alone, told[0])
    return code, message


def _affinity(tallies: Sequence[TopologyGroup], topology: Topology) -> str:
    where = ", ".join(tally.key for tally in tallies)
    if not any(topology.counters[tally].total for tally in tallies):
        return f"podAffinity on {where}: no pod that it selects runs or is planned"
    return f"podAffinity on {where}: no node beside the pods that it selects has room or can be made"


def _anti_affinity(tally: TopologyGroup, topology: Topology) -> str:
    counts = _numbers(topology.counters[tally].domains)
    return f"podAntiAffinity on {tally.key}: pods that it selects are in every domain ({counts})"


def _repelled(tally: TopologyGroup, topology: Topology) -> str:
    counts = _numbers(topology.counters[tally].domains)
    return f"podAntiAffinity on {tally.key} of other pods selects this pod, and holds every domain ({counts})"


def _numbers(counts: Mapping[str, int]) -> str:
    listed = [f"{value}: {count}" for value, count in sorted(counts.items())]
    more = len(listed) - DOMAINS_SHOWN
    return ", ".join(listed[:DOMAINS_SHOWN]) + (f" and {more} others" if more > 0 else "")
