"""What earlier searches found to take the place of nodes, for as long as what they looked at is the same.

As nodes grow older a command may be worth it that was not before (`balance`), so a cluster in which nothing
changes is searched again and again. What would take the place of its nodes is the same each time; only
whether it is worth it is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from nodeless.disruption.candidates import Candidate
from nodeless.disruption.consolidation_state import is_unchanged
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.replacing import Replacement
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import PlannedNode
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import capped

T = TypeVar("T")


class Searches:
    """A cache that one search after the other is given; not for several at the same time."""

    def __init__(self) -> None:
        self._of: tuple[Snapshot, Catalog, DisruptionPolicy, frozenset[str]] | None = None
        self._found: dict[tuple[str, ...], Replacement | str] = {}
        self._by_plan: dict[tuple[str, ...], Replacement | str | None] = {}
        self._targets: dict[tuple[str, ...], Sequence[PlannedNode]] = {}

    def reset_unless_same(
        self, snapshot: Snapshot, catalog: Catalog, policy: DisruptionPolicy, closed: frozenset[str]
    ) -> None:
        """Forget what was found if this is not what it was found in.

        Args:
            snapshot: The cluster that is searched.
            catalog: What each pool may buy, at list prices.
            policy: How commands are judged, with the adjustments and the fee that make up what is paid.
            closed: Names of nodes to which no pod is moved.
        """
        if not self.holds(snapshot, catalog, policy, closed):
            self._found.clear()
            self._by_plan.clear()
            self._targets.clear()
        self._of = snapshot, catalog, policy, closed

    def holds(
        self, snapshot: Snapshot, catalog: Catalog, policy: DisruptionPolicy, closed: frozenset[str]
    ) -> bool:
        """Whether what was found is right for this cluster: to search it again takes little."""
        return self._of is not None and _same(self._of, (snapshot, catalog, policy, closed))

    def replacement(
        self, candidates: Sequence[Candidate], search: Callable[[], Replacement | str]
    ) -> Replacement | str:
        """What takes the place of candidates, searched for once."""
        return _once(self._found, candidates, search)

    def replacement_by_plan(
        self, candidates: Sequence[Candidate], search: Callable[[], Replacement | str | None]
    ) -> Replacement | str | None:
        """The same by the plan alone; None: to find it takes as long as to find what is bound."""
        return _once(self._by_plan, candidates, search)

    def target(
        self, candidates: Sequence[Candidate], search: Callable[[], Sequence[PlannedNode]]
    ) -> Sequence[PlannedNode]:
        """What would be bought for the pods of all these candidates, searched for once."""
        return _once(self._targets, candidates, search)


def _once(found: dict[tuple[str, ...], T], candidates: Sequence[Candidate], search: Callable[[], T]) -> T:
    key = tuple(sorted(candidate.name for candidate in candidates))
    if key not in found:
        found[key] = search()
    return found[key]


def _same(
    one: tuple[Snapshot, Catalog, DisruptionPolicy, frozenset[str]],
    other: tuple[Snapshot, Catalog, DisruptionPolicy, frozenset[str]],
) -> bool:
    (snapshot, catalog, policy, closed), (now, buyable, judged_by, closed_now) = one, other
    # A catalog stays the very same until prices, stock or types change.
    bought = catalog.keys() == buyable.keys() and all(catalog[key] is buyable[key] for key in catalog)
    return (
        bought
        and closed == closed_now
        and (policy == judged_by or _judges_alike(policy, judged_by, 2 * len(now.pods)))
        and is_unchanged(snapshot, now)
    )


def _judges_alike(one: DisruptionPolicy, other: DisruptionPolicy, addresses: int) -> bool:
    """Whether policies differ in nothing but addresses that all pods could not use, on a node each.

    EC2 counts the free addresses of subnets anew with each node that comes or goes.
    """

    def with_what_counts(policy: DisruptionPolicy) -> DisruptionPolicy:
        subnets = capped(policy.solving.subnets, addresses)
        return replace(policy, solving=replace(policy.solving, subnets=subnets))

    return with_what_counts(one) == with_what_counts(other)
