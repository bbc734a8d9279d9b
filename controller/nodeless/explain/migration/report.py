"""All of a migration as data: `nodeless migrate` prints it as text, JSON, manifests and a page."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Any

from nodeless.explain.migration.behavior import Difference
from nodeless.explain.migration.ledger import Carried, Left
from nodeless.explain.migration.steps import Step
from nodeless.explain.report import Report
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.state.saving import plain

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PricedNode:
    """A node as it is: `price` in US dollars an hour, None where it is not known."""

    name: str
    source: str
    """Its group or pool; empty: it stays as it is."""
    instance_type: str
    zone: str
    capacity_type: str
    price: float | None


@dataclass(frozen=True, slots=True)
class Bill:
    """US dollars an hour of the nodes that would be replaced, and of those in their place.

    Attributes:
        before: Of the nodes that would be replaced, each at the bill of a node of the pool in its place.
        after: Of the new nodes that the plan launches for the same pods.
        any_type: The same where pools may buy any current type of their architecture; None: not worked out.
        staying: Of nodes that no group of the input has; they are in none of the other figures.
        unpriced: Names of nodes whose price is not known; they are in none of the figures.
    """

    before: float
    after: float | None
    any_type: float | None = None
    staying: float = 0.0
    unpriced: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Dollars an hour and a month."""
        figures = {
            "before": self.before,
            "after": self.after,
            "anyType": self.any_type,
            "staying": self.staying,
        }
        return {
            "perHour": {name: _rounded(value) for name, value in figures.items()},
            "perMonth": {
                name: None if value is None else _rounded(value * HOURS_A_MONTH)
                for name, value in figures.items()
            },
            "unpricedNodes": list(self.unpriced),
        }


def bill_of(nodes: Iterable[PricedNode], after: float | None, any_type: float | None) -> Bill:
    """The bill of some nodes, and of the plan in their place."""
    there = list(nodes)
    return Bill(
        fsum(node.price for node in there if node.source and node.price is not None),
        after,
        any_type,
        fsum(node.price for node in there if not node.source and node.price is not None),
        tuple(node.name for node in there if node.price is None),
    )


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration."""

    manifests: tuple[Manifest, ...]
    origins: tuple[tuple[str, str], ...]
    """What each pool was made of: (pool, group or object)."""
    bill: Bill
    nodes: tuple[PricedNode, ...]
    differences: tuple[Difference, ...]
    carried: tuple[Carried, ...]
    left: tuple[Left, ...]
    steps: tuple[Step, ...]
    plan: Report | None
    """What would be launched for the pods; None where the input has none."""
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> int:
        """Pods that would have no place."""
        return 0 if self.plan is None else sum(len(group.pods) for group in self.plan.unplaced)

    def to_json(self) -> dict[str, Any]:
        """As a document; money in US dollars."""
        return {
            "manifests": list(self.manifests),
            "origins": [{"pool": pool, "from": origin} for pool, origin in self.origins],
            "cost": self.bill.to_json(),
            "nodes": [plain(node) for node in self.nodes],
            "differences": [
                {
                    "code": entry.code,
                    "workload": str(entry.workload),
                    "pods": entry.pods,
                    "reason": entry.reason,
                    "change": entry.change,
                    "annotations": dict(entry.annotations),
                }
                for entry in self.differences
            ],
            "carried": [
                {"source": entry.source, "member": entry.member, "to": entry.to} for entry in self.carried
            ],
            "notCarried": [
                {
                    "source": entry.source,
                    "member": entry.member,
                    "value": entry.value,
                    "reason": entry.reason,
                    "matters": entry.matters,
                }
                for entry in self.left
            ],
            "steps": [
                {
                    "title": step.title,
                    "commands": list(step.commands),
                    "check": step.check,
                    "undo": list(step.undo),
                    "caution": step.caution,
                }
                for step in self.steps
            ],
            "plan": None if self.plan is None else self.plan.to_json(),
            "notes": list(self.notes),
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
