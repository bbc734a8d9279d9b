"""Nodes and what they hold, as HTML: rows in groups, a bar for each resource, colors for large workloads.

The larger a node beside the largest of its group, the longer its bar: by the square root, so that what is
on a small one can be read beside a large one. Whatever is drawn is text as well. The rows are in the groups
of the first grouping; of the others there are the groups without rows: the script of the page moves them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

from nodeless.explain.fill import NEW, NodeFill, Share
from nodeless.explain.node_groups import Grouping, Row, Usage, groupings, rows
from nodeless.explain.words import count, listed
from nodeless.explain.workload_counts import holding
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.workloads import Workload

#: Workloads that have a color of their own: as many as can be told apart (`page.css` has the colors).
COLORED = 20
#: Of the width of its group, for the bar of the smallest node: what is on it can still be seen.
SHORTEST = 1 / 3
#: Rows that are open at first: the groups after them wait to be asked for.
OPEN = 60
#: Workloads that are named below the bars.
_NAMED = 4
_LABELS = {CPU: "cpu", MEMORY: "mem"}


@dataclass(frozen=True, slots=True)
class Palette:
    """Classes of color: `c0` for the workload that takes the most, `co` for those without a color."""

    classes: Mapping[Workload, str]

    @staticmethod
    def of(ordered: Iterable[Usage]) -> "Palette":
        """Colors for the first of them."""
        largest = [usage.workload for usage in ordered][:COLORED]
        return Palette({workload: f"c{number}" for number, workload in enumerate(largest)})

    def __getitem__(self, workload: Workload) -> str:
        return self.classes.get(workload, "co")


def picture(nodes: Iterable[NodeFill], palette: Palette) -> str:
    """The groups of every grouping; empty when there is no node."""
    made = rows(nodes)
    if not made:
        return ""
    ways = groupings(made)
    places = _places(made, ways)
    drawn, before = [], 0
    for name, inside in ways[0].groups:
        largest = _largest(inside)
        items = "".join(_node(row, places[row.number], largest, palette) for row in inside)
        drawn.append(_group(name, inside, items, is_open=not before or before + len(inside) <= OPEN))
        before += len(inside)
    first = f'<div data-by="{ways[0].name}">{"".join(drawn)}</div>'
    return first + "".join(_empty(way, is_open=len(made) <= OPEN) for way in ways[1:])


def grouping_choices() -> str:
    """The groupings as options of a form."""
    return "".join(f'<option value="{way.name}">{way.title}</option>' for way in groupings(()))


def length(size: int, largest: int) -> float:
    """How long a bar is, 0 to 1 of the width of its group."""
    return max(SHORTEST, sqrt(size / largest))


def amount_of(resource: str, amount: int) -> str:
    """An amount as people read it: `7.91 cpu`, `28.6 GiB`, `4`."""
    if resource == CPU:
        return f"{amount / 1000:,g} cpu"
    return f"{amount / 2**30:,.1f} GiB" if resource == MEMORY else f"{amount:,}"


def _places(made: Sequence[Row], ways: Sequence[Grouping]) -> list[list[int]]:
    """The group of each row in each grouping."""
    places: list[list[int]] = [[] for _ in made]
    for way in ways:
        for place, (_, inside) in enumerate(way.groups):
            for row in inside:
                places[row.number].append(place)
    return places


def _empty(way: Grouping, *, is_open: bool) -> str:
    groups = "".join(_group(name, inside, "", is_open=is_open) for name, inside in way.groups)
    return f'<div data-by="{way.name}" hidden>{groups}</div>'


def _group(name: str, inside: Sequence[Row], items: str, *, is_open: bool) -> str:
    nodes = [member for row in inside for member in row.members]
    unpriced = sum(node.price is None for node in nodes)
    bill = f"{sum(row.bill for row in inside):,.2f} USD/h" if unpriced < len(nodes) else ""
    facts = [
        count(len(nodes), "node"),
        bill + (f" without {count(unpriced, 'node')} of unknown price" if bill and unpriced else ""),
        *(f"{label} {100 * used / size:.0f} %" for label, used, size in _totals(nodes) if size),
    ]
    return (
        f'<details class="group"{" open" if is_open else ""}><summary><h3><bdi>{escape(name)}</bdi></h3> '
        f'<span class="quiet">{" · ".join(filter(None, facts))}</span></summary>'
        f'<ul class="nodes">{items}</ul></details>'
    )


def _totals(nodes: Sequence[NodeFill]) -> Iterable[tuple[str, int, int]]:
    used = [node.used for node in nodes]
    for resource, label in ((CPU, "cpu"), (MEMORY, "memory")):
        yield (
            label,
            sum(one.get(resource, 0) for one in used),
            sum(node.allocatable.get(resource, 0) for node in nodes),
        )


def _largest(inside: Iterable[Row]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for row in inside:
        for resource in row.resources:
            largest[resource] = max(largest.get(resource, 0), row.fill.allocatable[resource])
    return largest


def _node(row: Row, places: Iterable[int], largest: Mapping[str, int], palette: Palette) -> str:
    fill, several = row.fill, len(row.members) > 1
    times = f" &times; {len(row.members)}" if several else ""
    price = "price unknown" if fill.price is None else f"{fill.price:.4f} USD/h{' each' if several else ''}"
    place = " · ".join(part for part in (fill.capacity_type, fill.zone) if part)
    names = listed([member.name for member in row.members], 3)
    bars = "".join(_bar(fill, resource, largest[resource], palette) for resource in row.resources)
    percents = (f"{100 * fill.fraction(resource):.0f}" for resource in (CPU, MEMORY))
    # Shown where the group does not say it.
    pool = f'<span class="pool"><bdi>{escape(fill.pool)}</bdi></span> ' if fill.pool else ""
    # By what the script sorts.
    values = (row.number, f"{fill.price or 0:g}", *percents, fill.pods)
    return (
        f'<li data-g="{" ".join(map(str, places))}" data-v="{" ".join(map(str, values))}"><details><summary>'
        f'<span class="what"><span><b><bdi>{escape(fill.instance_type or "unknown type")}</bdi>{times}</b> '
        f'<span class="state {escape(fill.state)}">{escape(fill.state)}</span></span> '
        f"<span><bdi>{escape(place)}</bdi></span> {pool}"
        f"<span>{price} · <bdi>{escape(names)}</bdi></span></span> "
        f'<span class="fill">{bars}{_holds(fill, palette)}</span></summary>'
        f"{_contents(row, palette)}</details></li>"
    )


def _holds(fill: NodeFill, palette: Palette) -> str:
    """The line below the bars: what takes the most of the node."""
    ordered = sorted(fill.shares, key=lambda share: (-_part(share, fill), share.workload))
    named = [
        f'<span><i class="{palette[share.workload]}"></i>'
        f"<bdi>{escape(holding(((share.workload, share.pods),)))}</bdi></span>"
        for share in ordered[:_NAMED]
    ]
    more = len(ordered) - _NAMED
    named += [f"<span>and {count(more, 'other')}</span>"] if more > 0 else []
    return f'<span class="holds">{" ".join(named) or "no pods"}</span>'


def _part(share: Share, fill: NodeFill) -> float:
    sizes = ((name, fill.allocatable.get(name, 0)) for name in (CPU, MEMORY))
    return sum(share.requests.get(name, 0) / size for name, size in sizes if size)


def _bar(fill: NodeFill, resource: str, largest: int, palette: Palette) -> str:
    """One bar. Its pieces are in the order of the lines of `_contents`: so the script knows what they are."""
    size, left, pieces = fill.allocatable[resource], 0.0, []
    for color, amount in _pieces(fill, resource, palette):
        wide = max(0.0, min(100 * amount / size, 100 - left))
        pieces.append(f"<rect class={color} x={left:.2f}% width={wide:.2f}% />")
        left += wide
    label = _LABELS.get(resource) or escape(resource.rpartition("/")[2])
    return (
        f'<span class="bar"><span>{label}</span> <span><svg aria-hidden="true" data-r="{escape(resource)}" '
        f'data-s="{size}" width="{100 * length(size, largest):.1f}%">{"".join(pieces)}</svg></span> '
        f"<span>{round(100 * fill.fraction(resource))} % of {amount_of(resource, size)}</span></span>"
    )


def _pieces(fill: NodeFill, resource: str, palette: Palette) -> Iterable[tuple[str, int]]:
    """Color and amount of each piece of a bar."""
    if any(fill.daemons.values()):
        yield "cd", fill.daemons.get(resource, 0)
    for share in fill.shares:
        yield palette[share.workload], share.requests.get(resource, 0)


def _contents(row: Row, palette: Palette) -> str:
    """What is on such a node, and by name which pods are on which."""
    fill, resources = row.fill, row.resources
    lines = [
        _content(palette[share.workload], str(share.workload), _pods(share, fill), share.requests, resources)
        for share in fill.shares
    ]
    if any(fill.daemons.values()):
        lines.insert(0, _content("cd", "DaemonSets", "-", fill.daemons, resources))
    heads = "".join(f"<th>{escape(name)}</th>" for name in resources)
    table = (
        f"<table><thead><tr><th>on {'each node' if len(row.members) > 1 else 'the node'}</th>"
        f"<th>pods</th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
    pods = "".join(
        f"<dt><bdi>{escape(member.name)}</bdi></dt><dd><bdi>{escape(', '.join(keys))}</bdi></dd>"
        for member in row.members
        if (keys := [key for share in member.shares for key in share.keys])
    )
    inner = (table if lines else "<p>Nothing is on it.</p>") + (f"<dl>{pods}</dl>" if pods else "")
    return f'<div class="contents">{inner}</div>'


def _pods(share: Share, fill: NodeFill) -> str:
    arriving = share.arriving if fill.state != NEW else 0
    return f"{share.pods} ({share.arriving} arriving)" if arriving else str(share.pods)


def _content(color: str, name: str, pods: str, amounts: Mapping[str, int], resources: Iterable[str]) -> str:
    cells = "".join(
        f"<td>{amount_of(resource, amounts[resource]) if amounts.get(resource) else '-'}</td>"
        for resource in resources
    )
    return f"<tr><td><i class={color}></i><bdi>{escape(name)}</bdi></td><td>{pods}</td>{cells}</tr>"
