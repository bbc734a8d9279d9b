"""The bill of a node in words: its parts, and which of them are not known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from nodeless.api.times import format_time
from nodeless.explain.words import count
from nodeless.model.bill import INSTANCE, NODE_FEE, BillPart
from nodeless.model.commitments import NOT_COVERED, Commitment, Coverage, covers_nothing
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import CAPACITY_TYPE, OS, ZONE
from nodeless.model.node_offerings import NodePrices
from nodeless.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class BillSum:
    """What one part costs of several nodes together, in dollars an hour."""

    name: str
    dollars: float


def bill_line(price: float, parts: Sequence[BillPart]) -> str:
    """`0.0216 = instance 0.0188 + volumes 0.0028 (20 GiB gp3), not known: license (of SUSE Linux)`.

    Empty where the price is that of the instance and nothing else is known of.
    """
    known = [part for part in parts if part.dollars is not None]
    missing = not_known(parts)
    if len(known) < 2 and not missing:
        return ""
    text = f"{price:.4f} =" + "".join(_term(part, first=part is known[0]) for part in known)
    return f"{text}, not known: {missing}" if missing else text


def price_sources(parts: Iterable[BillPart]) -> dict[str, str]:
    """Where prices are from, by part, each source once: `AWS's EBS prices (2021-07-14)`."""
    found: dict[str, dict[str, None]] = {}
    for part in parts:
        for source in part.sources:
            found.setdefault(part.name, {})[str(source)] = None
    return {name: " and ".join(sources) for name, sources in found.items()}


def sources_line(parts: Iterable[BillPart]) -> str:
    """`instance by AWS Price List API (2026-11-26T10:00:00Z), volumes by AWS's EBS prices (2021-07-14)`.

    Empty where nothing is told.
    """
    return ", ".join(f"{name} by {sources}" for name, sources in price_sources(parts).items())


def bill_lines(price: float, parts: Sequence[BillPart]) -> tuple[str, ...]:
    """What a node costs in two lines at most: its parts, and where their prices are from."""
    bill, sources = bill_line(price, parts), sources_line(parts)
    return (*((f"bill: {bill}",) if bill else ()), *((f"prices: {sources}",) if sources else ()))


def not_known(parts: Iterable[BillPart]) -> str:
    """The parts without a price, each with the reason: `public IPv4 (subnets decide)`."""
    return ", ".join(f"{part.name}{_of(part)}" for part in parts if part.dollars is None)


def _term(part: BillPart, *, first: bool) -> str:
    dollars = part.dollars or 0.0
    sign = " - " if dollars < 0 else " " if first else " + "
    return f"{sign}{part.name} {abs(dollars):.4f}{_of(part)}"


def _of(part: BillPart) -> str:
    return f" ({part.detail})" if part.detail else ""


def sums(bills: Iterable[Sequence[BillPart]]) -> tuple[BillSum, ...]:
    """What each part costs of several nodes together, in the order in which parts come up."""
    dollars: dict[str, list[float]] = {}
    for parts in bills:
        for part in parts:
            if part.dollars is not None:
                dollars.setdefault(part.name, []).append(part.dollars)
    return tuple(BillSum(name, fsum(each)) for name, each in dollars.items())


def sum_lines(bills: Sequence[Sequence[BillPart]]) -> Iterator[str]:
    """What several nodes cost by part, what of it is not known, and where prices are from."""
    dollars = sums(bills)
    missing = [
        f"{name} of {count(number, 'node')}" for name, number in unknown_parts(bills).items() if number
    ]
    if len(dollars) > 1 or missing:
        known = ", ".join(f"{part.name} {part.dollars:,.4f}" for part in dollars)
        yield f"by part: {known} USD/h" + (f"; not known: {', '.join(missing)}" if missing else "")
    if sources := sources_line(part for parts in bills for part in parts):
        yield f"prices: {sources}"


def unknown_parts(bills: Iterable[Sequence[BillPart]]) -> dict[str, int]:
    """Of how many nodes each part is not known; 0 for a part that is known of all."""
    unknown: dict[str, int] = {}
    for parts in bills:
        missing = {part.name for part in parts if not part.known}
        for name in dict.fromkeys(part.name for part in parts):
            unknown[name] = unknown.get(name, 0) + (name in missing)
    return unknown


@dataclass(frozen=True, slots=True)
class CommitmentUse:
    """How much of a commitment is used."""

    name: str
    used: float
    amount: float
    unit: str
    usable: bool = True
    """Whether it is for anything that a pool may buy or that runs."""

    def __str__(self) -> str:
        if not self.usable:
            return f"{self.name}: no pool buys an on-demand instance type that it is for"
        amount = f"{self.amount:.4g} {self.unit}"
        return f"{self.name}: {self.used:.4g} of {amount} used ({self.used / self.amount:.0%})"


def commitment_uses(
    commitments: Sequence[Commitment], coverage: Coverage, catalog: Catalog
) -> tuple[CommitmentUse, ...]:
    """What is used of each commitment.

    Args:
        commitments: Those that count now.
        coverage: What is left of them.
        catalog: What each pool may buy.
    """
    nothing = covers_nothing(catalog, commitments)
    found = []
    for commitment in commitments:
        used = max(0.0, commitment.amount - coverage.left.get(commitment.name, commitment.amount))
        usable = used > 0 or commitment.name not in nothing
        found.append(CommitmentUse(commitment.name, used, commitment.amount, commitment.unit, usable))
    return tuple(found)


def term_notes(commitments: Iterable[Commitment], now: float) -> Iterator[str]:
    """A line for each commitment that does not count now: it has ended, or is yet to begin."""
    for commitment in commitments:
        if commitment.end is not None and commitment.end <= now:
            yield f"commitment {commitment.name} ended {_moment(commitment.end)}"
        elif commitment.start is not None and commitment.start > now:
            yield f"commitment {commitment.name} begins {_moment(commitment.start)}"


def _moment(seconds: float) -> str:
    """A day where it is its beginning, else a time."""
    return format_time(seconds).removesuffix("T00:00:00Z")


@dataclass(frozen=True, slots=True)
class PoolBill:
    """What the nodes of a pool cost an hour, by part."""

    nodes: int
    parts: Mapping[str, float]
    """Dollars an hour of the nodes of which the instance's price is known; a part that is known of none of
    them is missing."""
    unknown: Mapping[str, int]
    """Of how many nodes a part is not known; 0 for a part that is known of all."""

    @property
    def total(self) -> float | None:
        """Dollars an hour of the nodes whose price is known; None: there are nodes, and it is of none."""
        unpriced = self.unknown.get(INSTANCE, 0)
        return None if self.nodes and unpriced == self.nodes else fsum(self.parts.values())


def pool_bills(
    snapshot: Snapshot, catalog: Catalog, node_fee: float = 0.0, coverage: Coverage = NOT_COVERED
) -> dict[str, PoolBill]:
    """The bill of each pool, by name: of the claims that have an instance, at what such a node costs now.

    A node whose instance has no known price counts there, and in no sum: the rest of its bill goes by that.

    Args:
        snapshot: With the pools and their claims.
        catalog: What pools may buy, at the prices of nodes without the fee.
        node_fee: Dollars an hour that each node costs besides.
        coverage: What commitments cover of the nodes.
    """
    prices = NodePrices(catalog)
    fee = (BillPart(NODE_FEE, node_fee),) if node_fee else ()
    bills: dict[str, list[tuple[BillPart, ...]]] = {pool.name: [] for pool in snapshot.pools.values()}
    for claim in snapshot.claims.values():
        if not claim.provider_id:
            continue
        zone, capacity_type = claim.labels.get(ZONE, ""), claim.labels.get(CAPACITY_TYPE, "")
        system = claim.labels.get(OS, "")
        offering = prices.find(str(claim.pool), claim.instance_type, zone, capacity_type, system)
        off = coverage.parts.get(claim.name, ())
        parts = (BillPart(INSTANCE, None),) if offering is None else (*offering.parts, *off, *fee)
        bills.setdefault(claim.pool.name, []).append(parts)
    return {name: _pool_bill(listed) for name, listed in bills.items()}


def _pool_bill(bills: Sequence[Sequence[BillPart]]) -> PoolBill:
    return PoolBill(len(bills), {each.name: each.dollars for each in sums(bills)}, unknown_parts(bills))
