"""Nodes and their fill as an inline SVG: a row each, a bar for each resource, a color for each workload.

A bar is as long as the node is large beside the largest of the picture, so that sizes can be
compared; what is free stays pale. Equal nodes are one row with a number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from nodeless.explain.fill import NEW, NodeFill
from nodeless.explain.report import zones
from nodeless.explain.words import listed
from nodeless.model.resources import CPU, MEMORY, format_amount
from nodeless.model.workloads import Workload

#: Colors that can be told apart, also by most who do not see all of them (after Okabe and Ito).
COLORS = (
    "#4477aa", "#ee9a3a", "#3aa36d", "#c0507f", "#66bbdd", "#b8a13a",
    "#8763b5", "#d9603b", "#4aa8a0", "#8d8d3f", "#d58fb4", "#5f6f86",
)  # fmt: skip
ROWS = 80
_LEFT, _BAR, _ROW, _HEIGHT = 330, 640, 58, 16
_SHOWN = ((CPU, "cpu"), (MEMORY, "mem"))


@dataclass(frozen=True, slots=True)
class _Row:
    fill: NodeFill
    names: tuple[str, ...]
    zones: tuple[str, ...]


def colors(workloads: Iterable[Workload]) -> dict[Workload, str]:
    """A color for each workload, by its place in the order."""
    return {workload: COLORS[number % len(COLORS)] for number, workload in enumerate(sorted(set(workloads)))}


def picture(nodes: Sequence[NodeFill], palette: Mapping[Workload, str]) -> str:
    """The SVG element; empty when there is no node."""
    rows = _rows(nodes)
    if not rows:
        return ""
    largest = {
        resource: max(row.fill.allocatable.get(resource, 0) for row in rows) or 1 for resource, _ in _SHOWN
    }
    shown = rows[:ROWS]
    drawn = "".join(_node(row, number, largest, palette) for number, row in enumerate(shown))
    height, width = len(shown) * _ROW + 12, _LEFT + _BAR + 130
    more = len(rows) - len(shown)
    said = f"<p class='quiet'>and {more} more kinds of nodes</p>" if more else ""
    return (
        f'<svg class="nodes" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Nodes and what they hold">{drawn}</svg>{said}'
    )


def _rows(nodes: Sequence[NodeFill]) -> list[_Row]:
    groups: dict[tuple[object, ...], list[NodeFill]] = {}
    for fill in nodes:
        held = tuple((share.workload, share.pods, share.arriving) for share in fill.shares)
        key = (fill.state, fill.pool, fill.instance_type, fill.capacity_type, fill.price, held)
        groups.setdefault(key, []).append(fill)
    return [
        _Row(
            members[0],
            tuple(member.name for member in members),
            tuple(sorted({member.zone for member in members if member.zone})),
        )
        for members in groups.values()
    ]


def _node(row: _Row, number: int, largest: Mapping[str, int], palette: Mapping[Workload, str]) -> str:
    fill, top = row.fill, number * _ROW + 8
    name = listed(row.names, 4)
    title = fill.instance_type or "unknown type"
    times = f" &times; {len(row.names)}" if len(row.names) > 1 else ""
    price = f" · {fill.price:.4f} USD/h" if fill.price is not None else ""
    place = " ".join(part for part in (fill.capacity_type, zones(row.zones) if row.zones else "") if part)
    height = 2 * _HEIGHT + 8
    badge = (
        f'<rect class="badge {escape(fill.state)}" x="0" y="{top + 1}" width="6" height="{height}" rx="3"/>'
    )
    texts = (
        f'<text class="type" x="16" y="{top + 13}">{escape(title)}<tspan class="times">{times}</tspan></text>'
        f'<text class="place" x="16" y="{top + 27}">{escape(place)}{escape(price)}</text>'
        f'<text class="place" x="16" y="{top + 40}">{escape(_short(name))}</text>'
    )
    bars = "".join(
        _bar(fill, resource, label, top + index * (_HEIGHT + 6), largest[resource], palette)
        for index, (resource, label) in enumerate(_SHOWN)
    )
    return f'<g class="{"new" if fill.state == NEW else "standing"}">{badge}{texts}{bars}</g>'


def _short(name: str, most: int = 44) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _bar(
    fill: NodeFill, resource: str, label: str, top: int, largest: int, palette: Mapping[Workload, str]
) -> str:
    size = fill.allocatable.get(resource, 0)
    if not size:
        return ""
    width = max(24.0, _BAR * size / largest)
    scale, left = width / size, float(_LEFT)
    parts = [f'<text class="axis" x="{_LEFT - 8}" y="{top + 12}">{label}</text>']
    parts.append(f'<rect class="free" x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" rx="3"/>')
    daemons = fill.daemons.get(resource, 0)
    pieces = [("DaemonSets", daemons, "", 0)] if daemons else []
    pieces += [
        (
            str(share.workload),
            share.requests.get(resource, 0),
            palette.get(share.workload, "#888"),
            share.pods,
        )
        for share in fill.shares
    ]
    for name, amount, color, pods in pieces:
        wide = min(amount * scale, _LEFT + width - left)
        if wide <= 0:
            continue
        said = f"{name}: {f'{pods} pods, ' if pods else ''}{format_amount(resource, amount)} {label}"
        style = f'fill="{color}"' if color else 'class="daemons"'
        parts.append(
            f'<rect {style} x="{left:.1f}" y="{top}" width="{max(wide - 0.8, 0.4):.1f}" '
            f'height="{_HEIGHT}" rx="1.5">'
            f"<title>{escape(said)}</title></rect>"
        )
        left += wide
    percent = round(100 * fill.fraction(resource))
    parts.append(
        f'<text class="amount" x="{_LEFT + width + 8:.1f}" y="{top + 12}">{percent} % of '
        f"{_amount(resource, size)}</text>"
    )
    return "".join(parts)


def _amount(resource: str, amount: int) -> str:
    return f"{amount / 1000:g} cpu" if resource == CPU else f"{amount / 2**30:.1f} GiB"
