"""Which rule between pods keeps a class from nodes that could otherwise be made."""

from collections.abc import Mapping, Sequence

from nodeless.model.labels import HOSTNAME
from nodeless.model.plan import RefusalCode
from nodeless.scheduling.pods.classes import PodClass
from nodeless.scheduling.pods.rules import Rules, TopologyGroup
from nodeless.scheduling.spread.sharing import ENDLESS
from nodeless.scheduling.topology.tracking import Topology

#: Domains told one by one in a message.
DOMAINS_SHOWN = 5


def blocked(pods: PodClass, topology: Topology) -> tuple[RefusalCode, str]:
    """Code and message of the first rule that leaves no domain, by kind: affinity, anti-affinity, spread.

    When no single rule does, those that close any domain are at fault together, with the code of the first.
    """
    rules = pods.hard_rules
    entries = [
        (Rules(affinity=(rule,)), RefusalCode.POD_AFFINITY, _affinity(rule.topology_groups, topology))
        for rule in rules.affinity
    ]
    entries += [
        (
            Rules(anti_affinity=(rule,)),
            RefusalCode.POD_ANTI_AFFINITY,
            _anti_affinity(rule.topology_group, topology),
        )
        for rule in rules.anti_affinity
    ]
    entries += [
        (
            Rules(repelled_by=(topology_group,)),
            RefusalCode.POD_ANTI_AFFINITY,
            _repelled(topology_group, topology),
        )
        for topology_group in rules.repelled_by
    ]
    for rule in rules.spread:
        key = rule.topology_group.key
        universe = topology.domains.universe(key, rule.topology_group.nodes) if key != HOSTNAME else ()
        counts = _numbers(dict.fromkeys(universe, 0) | topology.counters[rule.topology_group].domains)
        few = (
            f", and counts as empty while there are fewer than {rule.min_domains} domains"
            if rule.min_domains > 1
            else ""
        )
        message = (
            f"topologySpreadConstraints on {key}: no domain where a node can be made may hold one pod more "
            f"with maxSkew {rule.max_skew}{few} ({counts or 'no domain'})"
        )
        entries.append((Rules(spread=(rule,)), RefusalCode.TOPOLOGY_SPREAD, message))
    closing: list[tuple[RefusalCode, str]] = []
    for entry, code, message in entries:
        number, of_all = topology.open_domains(entry, pods)
        if not number:
            return code, message
        if number < of_all < ENDLESS:
            closing.append((code, message))
    if len(closing) < 2:
        return (closing or [entry[1:] for entry in entries])[0]
    names = " and ".join(dict.fromkeys(message.partition(": ")[0] for _, message in closing))
    return closing[0][0], f"{names}: together they leave no domain where a node can be made"


def _affinity(topology_groups: Sequence[TopologyGroup], topology: Topology) -> str:
    where = ", ".join(topology_group.key for topology_group in topology_groups)
    if not any(topology.counters[topology_group].total for topology_group in topology_groups):
        return f"podAffinity on {where}: no pod that it selects runs or is planned"
    return f"podAffinity on {where}: no node beside the pods that it selects has room or can be made"


def _anti_affinity(topology_group: TopologyGroup, topology: Topology) -> str:
    counts = _numbers(topology.counters[topology_group].domains)
    return f"podAntiAffinity on {topology_group.key}: pods that it selects are in every domain ({counts})"


def _repelled(topology_group: TopologyGroup, topology: Topology) -> str:
    counts = _numbers(topology.counters[topology_group].domains)
    key = topology_group.key
    return f"podAntiAffinity on {key} of other pods: it selects this pod, and holds every domain ({counts})"


def _numbers(counts: Mapping[str, int]) -> str:
    listed = [f"{value}: {count}" for value, count in sorted(counts.items())]
    more = len(listed) - DOMAINS_SHOWN
    return ", ".join(listed[:DOMAINS_SHOWN]) + (f" and {more} others" if more > 0 else "")
