"""What the nodes of a plan cost an hour, as the terminal and the page tell it."""

from collections.abc import Iterable, Iterator, Mapping
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
    """The bills of what is launched, those that read alike once.

    Where one type has several, as by the volumes of two node classes, each names its pools.
    """
    bills: dict[str, dict[str, dict[str, None]]] = {}
    missing: dict[str, None] = {}
    launches = tuple(launches)
    for launch in launches:
        if line := bill_line(launch.price, [part for part in launch.parts if part.known]):
            covered = [part.detail for part in launch.parts if part.name == COMMITMENTS]
            name = ", ".join((launch.instance_type, launch.capacity_type, *covered))
            bills.setdefault(name, {}).setdefault(line, {})[launch.pool] = None
        if unknown := not_known(launch.parts):
            missing[f"not known, and not included in any price: {unknown}"] = None
    sources = price_sources(part for launch in launches for part in launch.parts)
    return LaunchBills(
        tuple(line for name, lines in bills.items() for line in _named(name, lines)),
        tuple(missing),
        tuple(f"{name}: {told}" for name, told in sources.items()),
    )


def _named(name: str, lines: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The lines of alike nodes, with their pools where those tell them apart."""
    differ = len({tuple(pools) for pools in lines.values()}) > 1
    for line, pools in lines.items():
        yield f"{name}, {', '.join(pools)}: {line}" if differ else f"{name}: {line}"
