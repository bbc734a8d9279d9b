"""What the nodes of a plan cost an hour, as the terminal and the page tell it."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeless.explain.bill import bill_line, not_known, price_sources
from nodeless.explain.report import Launch
from nodeless.model.bill import COMMITMENTS


@dataclass(frozen=True, slots=True)
class LaunchBills:
    """Lines of each kind, none of them twice."""

    bills: tuple[str, ...]
    """What each price is made of, where more than the instance is paid for."""
    missing: tuple[str, ...]
    """What is not known, and in no price."""
    sources: tuple[str, ...]
    """Where the prices of each part are from."""


def launch_bills(launches: Iterable[Launch]) -> LaunchBills:
    """The bills of what is launched; alike nodes are told by the first of them.

    Nodes are alike here by type, capacity type and commitments.
    """
    bills: dict[str, str] = {}
    missing: dict[str, None] = {}
    launches = tuple(launches)
    for launch in launches:
        if line := bill_line(launch.price, [part for part in launch.parts if part.known]):
            covered = [part.detail for part in launch.parts if part.name == COMMITMENTS]
            name = ", ".join((launch.instance_type, launch.capacity_type, *covered))
            bills.setdefault(name, line)
        if unknown := not_known(launch.parts):
            missing[f"not known, and not included in any price: {unknown}"] = None
    sources = price_sources(part for launch in launches for part in launch.parts)
    return LaunchBills(
        tuple(f"{name}: {line}" for name, line in bills.items()),
        tuple(missing),
        tuple(f"{name}: {told}" for name, told in sources.items()),
    )
