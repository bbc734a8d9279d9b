"""What is asked of a zone's id (`topology.k8s.aws/zone-id`), read as asked of its name.

In an account each zone has one name and one id, and every node bears both as labels. So the planner knows
names alone: an id in a selector, an affinity term or a pool's requirement becomes the name of its zone. An
id of no zone that is known here stays as it is, and no zone is called so. (Topology keys are read so in
`rules`.)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from nodeless.model.labels import ZONE_ID
from nodeless.model.pods import NodeSelectorTerm, PodShape
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import SubnetRoom, named_zone, named_zones, zone_names
from nodeless.scheduling.pods.grouping import PodGroup


class ZoneIds:
    """The names of zones by their ids, as subnets and nodes tell them."""

    def __init__(self, snapshot: Snapshot, subnets: Mapping[str, Sequence[SubnetRoom]]) -> None:
        self._snapshot = snapshot
        self._subnets = subnets

    @cached_property
    def _names(self) -> dict[str, str]:
        of_nodes = {
            node.labels[ZONE_ID]: node.zone
            for node in self._snapshot.nodes.values()
            if ZONE_ID in node.labels
        }
        return of_nodes | zone_names(self._subnets)

    def in_snapshot(self) -> Snapshot:
        """The snapshot with pools and daemons that speak of names."""
        seen = self._snapshot
        pools = {key: self._pool(pool) for key, pool in seen.pools.items() if ZONE_ID in pool.requirements}
        daemons = {
            key: replace(daemon, shape=self._shape(daemon.shape))
            for key, daemon in seen.daemon_sets.items()
            if _speaks_of_ids(daemon.shape)
        }
        if not pools and not daemons:
            return seen
        return replace(seen, pools=seen.pools.update(pools), daemon_sets=seen.daemon_sets.update(daemons))

    def in_pods(self, pod_groups: Iterable[PodGroup]) -> list[PodGroup]:
        """Kinds of pods that speak of names."""
        return [
            self._pod_group(pod_group) if _speaks_of_ids(pod_group.shape) else pod_group
            for pod_group in pod_groups
        ]

    def _pool(self, pool: Pool) -> Pool:
        return replace(pool, requirements=named_zones(pool.requirements, self._names))

    def _pod_group(self, pod_group: PodGroup) -> PodGroup:
        shape = self._shape(pod_group.shape)
        return PodGroup(
            shape, pod_group.keys, [replace(pod, shape=shape) for pod in pod_group.pods], pod_group.ages
        )

    def _shape(self, shape: PodShape) -> PodShape:
        selected = tuple(
            self._named(Requirement(key, False, frozenset((value,))))
            for key, value in shape.node_selector
            if key == ZONE_ID
        )
        required = tuple(self._term(each) for each in shape.required_terms)
        if selected:
            # A zone may be selected by its name as well: all of it must hold.
            required = tuple(
                replace(each, expressions=(*each.expressions, *selected)) for each in required
            ) or (NodeSelectorTerm(selected),)
        return replace(
            shape,
            node_selector=tuple(pair for pair in shape.node_selector if pair[0] != ZONE_ID),
            required_terms=required,
            preferred_terms=tuple((weight, self._term(each)) for weight, each in shape.preferred_terms),
            volume_terms=tuple(self._term(each) for each in shape.volume_terms),
            device_terms=tuple(self._term(each) for each in shape.device_terms),
        )

    def _term(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        return replace(term, expressions=tuple(map(self._named, term.expressions)))

    def _named(self, requirement: Requirement) -> Requirement:
        return named_zone(requirement, self._names)


def _speaks_of_ids(shape: PodShape) -> bool:
    preferred = (each for _, each in shape.preferred_terms)
    terms = (*shape.required_terms, *preferred, *shape.volume_terms, *shape.device_terms)
    return any(key == ZONE_ID for key, _ in shape.node_selector) or any(
        expression.key == ZONE_ID for term in terms for expression in term.expressions
    )
