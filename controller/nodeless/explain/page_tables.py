"""The tables of the page: what is launched, and what each workload takes and where.

On a narrow screen each row becomes a card, in which every cell says its column (`page.css` has their names
once more). The script of the page sorts them.
"""

from collections.abc import Iterable, Sequence
from html import escape

from nodeless.explain.node_groups import Usage
from nodeless.explain.picture import Palette, amount_of
from nodeless.explain.report import Landing, Launch, where, zones
from nodeless.explain.words import count
from nodeless.explain.workload_counts import holding
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.workloads import Workload

#: Columns of numbers: sorted by their value, the largest first.
NUMBERS = frozenset({"nodes", "USD/h each", "pods", "cpu", "memory", "not placed"})


def launches_table(launches: Sequence[Launch]) -> str:
    """Nodes to launch; empty for none."""
    heads = ("nodes", "type", "capacity", "zones", "USD/h each", "pool", "holds", "next best")
    rows = [
        (
            str(launch.count),
            _text(launch.instance_type),
            _text(launch.capacity_type),
            _text(zones(launch.zones)),
            f"{launch.price:.4f}",
            _text(launch.pool),
            _text(holding(launch.workloads)),
            _next_best(launch),
        )
        for launch in launches
    ]
    return _table("Nodes to launch", heads, rows) if rows else ""


def workloads_table(
    landings: Iterable[Landing], ordered: Iterable[Usage], palette: Palette
) -> tuple[str, int]:
    """Every workload that is planned or runs, what takes the most first, and their number."""
    landed = {landing.workload: landing for landing in landings}
    rows = [_workload(usage.workload, usage, landed.pop(usage.workload, None), palette) for usage in ordered]
    rows += [_workload(workload, None, landing, palette) for workload, landing in sorted(landed.items())]
    heads = ("workload", "pods", "cpu", "memory", "on new nodes", "on existing nodes", "not placed")
    table = _table("Workloads, what they request, and where their pods are placed", heads, rows)
    return table if rows else "", len(rows)


def _workload(
    workload: Workload, usage: Usage | None, landing: Landing | None, palette: Palette
) -> tuple[str, ...]:
    refused = landing.refused if landing else 0
    pods = (usage.pods if usage else 0) + refused
    color = f'<i class="{palette[workload]}"></i>' if usage else "<i></i>"
    on_new, on_existing = (landing.on_new, landing.on_existing) if landing else ((), ())
    return (
        f"{color}<bdi>{escape(str(workload))}</bdi>",
        str(pods),
        _amount(CPU, usage.cpu if usage else 0),
        _amount(MEMORY, usage.memory if usage else 0),
        _text(where(on_new)),
        _text(where(on_existing)),
        f"<b>{refused}</b>" if refused else "-",
    )


def _amount(resource: str, amount: int) -> str:
    return amount_of(resource, amount) if amount else "-"


def _text(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>" if text else "-"


def _next_best(launch: Launch) -> str:
    """The types that would have come next, each on a line of its own."""
    lines = [
        f"<bdi>{escape(alternative.instance_type)}</bdi> {alternative.price:.4f}"
        + (
            f" <small>+{100 * (alternative.price / launch.price - 1):.1f} %</small>"
            if launch.price > 0
            else ""
        )
        for alternative in launch.next_best
    ]
    more = launch.types - 1 - len(lines)
    lines += [f"<small>and {count(more, 'other')}</small>"] if more > 0 else []
    return "".join(f'<span class="next">{line}</span> ' for line in lines) or "<small>no other type</small>"


def _table(label: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(
        f'<th scope="col"{" class=number" if name in NUMBERS else ""}>{escape(name)}</th>' for name in heads
    )
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<table class="cards-when-narrow" aria-label="{escape(label)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
