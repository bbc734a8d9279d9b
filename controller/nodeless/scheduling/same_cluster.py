"""A cluster, and what is planned with, as the key of a cache."""

from collections.abc import Iterable
from dataclasses import fields

from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.eligibility import held_pods
from nodeless.scheduling.policy import Policy

#: All parts of a snapshot.
_PARTS = tuple(part.name for part in fields(Snapshot))


class SameCluster:
    """Equal to another one where a plan comes out the same: of the very same objects, by an equal policy."""

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        policy: Policy,
        parts: Iterable[str] = _PARTS,
    ) -> None:
        """`parts`: of the snapshot, those that count."""
        self.snapshot, self.catalog, self.policy = snapshot, catalog, policy
        keys = tuple(sorted(catalog))
        seen = (getattr(snapshot, part) for part in parts)
        self._same = Identity(*seen, *(catalog[key] for key in keys))
        self._equal = keys, policy

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SameCluster)
            and self._same == other._same
            and self._equal == other._equal
            and self._holds_the_same(other)
        )

    def _holds_the_same(self, other: "SameCluster") -> bool:
        """Time counts by what it changes: else nothing would be the same a moment later."""
        now, then = self.policy.now, other.policy.now
        return now == then or held_pods(self.snapshot, now) == held_pods(other.snapshot, then)

    def __hash__(self) -> int:
        return hash(self._same)
