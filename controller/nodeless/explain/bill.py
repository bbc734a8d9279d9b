"""The bill of a node in words: its parts, and which of them are not known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from nodeless.model.bill import BillPart


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
