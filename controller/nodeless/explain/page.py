"""The report of a plan as one HTML page that needs nothing but itself, for those who were not there.

What matters comes first: price, pods, what has no place and why. Style and script are files of their own
beside this module and become part of the page; its Content-Security-Policy admits these two, by their
hashes, and nothing else. Without the script everything can be read; it adds search, order and grouping.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.resources import files

from nodeless.explain.fill import NEW
from nodeless.explain.launch_bills import launch_bills
from nodeless.explain.lost_work import CapacityReason
from nodeless.explain.node_groups import Usage, usages
from nodeless.explain.page_tables import launches_table, workloads_table
from nodeless.explain.picture import COLORED, Palette, grouping_choices, picture
from nodeless.explain.report import UNKNOWN_BEFORE, RelaxedPreferences, Report, Unplaced
from nodeless.explain.together import Together
from nodeless.explain.words import count, listed
from nodeless.explain.workload_counts import holding
from nodeless.model.bill import HOURS_A_MONTH

# Part of the package, as the modules are.
STYLE, SCRIPT = (files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
#: Groups of pods without a place that are shown at once; the others can be unfolded.
REFUSED_SHOWN = 3
#: Rows of a table that is unfolded at first.
ROWS_SHOWN = 40
#: Sections that are read before anything is looked for.
_SUMMARY = ("refused", "preferences", "relaxed", "chosen", "together")


def page(
    report: Report,
    at: datetime,
    command: str = "nodeless plan",
    sections: Iterable[tuple[str, Sequence[str]]] = (),
) -> str:
    """The page.

    Args:
        report: What it shows.
        at: When the report was made, in UTC.
        command: What made it.
        sections: A title and lines for each section that comes before the plan.
    """
    ordered, bills = usages(report.nodes), launch_bills(report.launches)
    palette = Palette.of(ordered)
    unknown = (f"{UNKNOWN_BEFORE}: {report.unknown_before}",) if report.unknown_before else ()
    first = [
        (f"part-{number}", escape(heading), _items(lines))
        for number, (heading, lines) in enumerate(sections, start=1)
    ]
    parts = [
        *first,
        ("refused", "Not placed", _refused(report.unplaced)),
        ("preferences", "What preferences cost", _items(report.preferences.lines())),
        ("relaxed", "Preferences relaxed so that pods can be scheduled", _relaxed(report.relaxed)),
        ("chosen", "Spot or on-demand for each pod, by what interruptions lose", _chosen(report.chosen)),
        ("together", "Kept together by required pod affinity", _together(report.together)),
        ("nodes", "Nodes and their fill", _nodes(report, ordered, palette)),
        ("launches", "To launch", _folded(launches_table(report.launches), len(report.launches))),
        ("bills", "What a node costs an hour", _items((*bills.bills, *bills.missing, *unknown))),
        ("commitments", "Reserved Instances and Savings Plans", _items(map(str, report.commitments))),
        ("sources", "Where prices are from", _items(bills.sources)),
        ("workloads", "Workloads", _workloads(report, ordered, palette)),
        ("notes", "What this rests on", _items(report.notes)),
    ]
    shown = [(name, heading, inner) for name, heading, inner in parts if inner]
    summary = {*_SUMMARY, *(name for name, *_ in first)}
    title = escape(_headline(report))
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(command)}: {title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><h1>{title}</h1>\n<p class="quiet">{escape(command)}, {at:%Y-%m-%d %H:%M} UTC</p>\n'
        f"{_cards(report)}{_contents(shown)}</header>\n<main>\n"
        + "\n".join(_section(*each) for each in shown if each[0] in summary)
        + _controls(report)
        + "\n".join(_section(*each) for each in shown if each[0] not in summary)
        + f"\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    # Names may hold halves of characters, which no encoding has.
    return text.encode("utf-8", "replace").decode("utf-8")


def _policy() -> str:
    """What the page may load and run: its own style and script, and no other."""
    style, script = (b64encode(sha256(part.encode()).digest()).decode() for part in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _headline(report: Report) -> str:
    refused = sum(len(group.pods) for group in report.unplaced)
    launched = sum(launch.count for launch in report.launches)
    if not report.landings:
        return count(launched, "new node") if launched else "Nothing to plan"
    done = f"{count(launched, 'new node')} for {count(report.pods - refused, 'pod')}"
    return f"{done}, {refused} not placed" if refused else done


def _cards(report: Report) -> str:
    cost, existing = report.cost, sum(node.state != NEW for node in report.nodes)
    refused = sum(len(group.pods) for group in report.unplaced)
    unpriced = f", {count(cost.unpriced, 'node')} of unknown price left out" if cost.unpriced else ""
    cards = [
        (f"{cost.after:,.2f}", f"USD an hour: {cost.before:,.2f} before, {cost.added:+,.2f}{unpriced}"),
        (f"{cost.added * HOURS_A_MONTH:+,.0f}", f"USD a month, to {cost.after * HOURS_A_MONTH:,.0f}"),
        (
            f"{report.pods - refused:,}",
            f"of {report.pods:,} pods placed" + (f", {refused:,} not placed" if refused else ""),
        ),
        (
            f"{sum(launch.count for launch in report.launches):,}",
            "nodes to launch" + (f", beside {existing:,} that exist" if existing else ""),
        ),
    ]
    if cost.proved_cheapest and cost.added > 0:
        cards.append(("Cheapest", f"{cost.as_known or 'proved: '}no other plan for these pods costs less"))
    elif cost.gap is not None and cost.added > 0:
        most = "of what is added is the most that any other plan could save"
        if cost.unknown:
            most += f" (not known: {listed(cost.unknown, 3)})"
        cards.append((f"{100 * cost.gap:.1f} %", most))
    fewer = cost.fewer_nodes
    if fewer is not None and fewer.price > 0:
        cards.append(
            (
                count(fewer.nodes, "node"),
                f"fewer than the cheapest plan found, for {fewer.price:.4f} USD/h more",
            )
        )
    inner = "".join(f"<li><b>{escape(value)}</b> <span>{name}</span></li>" for value, name in cards)
    return f'<ul class="cards" aria-label="Summary">{inner}</ul>'


def _contents(shown: Sequence[tuple[str, str, str]]) -> str:
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in shown)
    return f'<nav aria-label="On this page"><ul>{links}</ul></nav>' if links else ""


def _section(name: str, title: str, inner: str) -> str:
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{inner}</section>'


def _controls(report: Report) -> str:
    """The form that the script brings to life; there is no use for it without."""
    if not report.landings and not report.nodes:
        return ""
    orders = ("As planned", "Price", "CPU fill", "Memory fill", "Pods", "Instance type")
    sorts = "".join(f'<option value="{number}">{name}</option>' for number, name in enumerate(orders))
    return (
        '<form role="search" id="controls" aria-label="Find and arrange" hidden>'
        '<label class="find">Find <input type="search" id="find" autocomplete="off" spellcheck="false" '
        'placeholder="pod, workload, node, type, zone, pool">'
        f'</label><label>Group nodes by <select id="group">{grouping_choices()}</select></label>'
        f'<label>Sort nodes by <select id="sort">{sorts}</select></label>'
        '<label>Length of bars <select id="scale"><option value="group">Size in the group</option>'
        '<option value="all">Size among all</option><option value="fill">Fill alone</option></select></label>'
        '<span class="buttons"><button type="button" id="unfold">Expand all</button>'
        '<button type="button" id="fold">Collapse all</button></span>'
        '<p role="status" id="found"></p></form>\n'
    )


def _refused(groups: Sequence[Unplaced]) -> str:
    shown = "".join(map(_refused_group, groups[:REFUSED_SHOWN]))
    rest = groups[REFUSED_SHOWN:]
    if not rest:
        return shown
    said = f"{count(len(rest), 'other reason')} for {count(sum(len(group.pods) for group in rest), 'pod')}"
    others = "".join(map(_refused_group, rest))
    return f'{shown}<details class="more"><summary>{said}</summary>{others}</details>'


def _refused_group(group: Unplaced) -> str:
    names = listed([str(workload) for workload, _ in group.workloads], 3)
    reasons = "".join(
        f"<li><bdi>{escape(f'{listed(obstacle.pools, 3)}: ' if obstacle.pools else '')}"
        f"{escape(obstacle.message)}</bdi> <code>{escape(obstacle.code)}</code></li>"
        for obstacle in group.obstacles
    )
    fits = "".join(
        f'<li class="remedy"><bdi>would fit: {escape(remedy)}</bdi></li>' for remedy in group.remedies
    )
    title = f"<h3>{count(len(group.pods), 'pod')} of <bdi>{escape(names)}</bdi></h3>"
    pods = (
        f'<details class="pods"><summary>{count(len(group.pods), "pod")} by name</summary>'
        f"<p><bdi>{escape(', '.join(group.pods))}</bdi></p></details>"
    )
    return f'<div class="reason">{title}<ul>{reasons}{fits}</ul>{pods}</div>'


def _relaxed(losses: Sequence[RelaxedPreferences]) -> str:
    items = "".join(
        f"<li><bdi>{escape(holding(loss.workloads))}: {escape(loss.message)}</bdi> "
        f"<code>{escape(loss.code)}</code></li>"
        for loss in losses
    )
    return f"<ul>{items}</ul>" if items else ""


def _chosen(reasons: Sequence[CapacityReason]) -> str:
    return _items(f"{holding(reason.workloads)}: {reason.message}" for reason in reasons)


def _together(groups: Sequence[Together]) -> str:
    return _items(str(group) for group in groups)


def _items(lines: Iterable[str]) -> str:
    items = "".join(f"<li><bdi>{escape(line)}</bdi></li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _nodes(report: Report, ordered: Sequence[Usage], palette: Palette) -> str:
    drawn = picture(report.nodes, palette)
    if not drawn:
        return ""
    entries = "".join(
        f'<li><i class="{palette[usage.workload]}"></i><bdi>{escape(str(usage.workload))}</bdi> '
        f"<small>{_percent(usage.part)}</small></li>"
        for usage in ordered[:COLORED]
    )
    others = ordered[COLORED:]
    if others:
        part = f"<small>{_percent(sum(usage.part for usage in others))}</small>"
        entries += f'<li><i class="co"></i>{count(len(others), "other workload")} {part}</li>'
    if any(any(node.daemons.values()) for node in report.nodes):
        entries += '<li><i class="cd"></i>DaemonSets</li>'
    return (
        '<p class="quiet">The colored part of a bar is requested. The larger a node in its group, the longer '
        "its bar (by the square root, and at least a third). Open a node for what is on it.</p>"
        '<ul class="legend" aria-label="Colors, and what each workload takes of all processors and memory">'
        f"{entries}</ul>{drawn}"
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.01 or not part else "&lt; 1 %"


def _workloads(report: Report, ordered: Sequence[Usage], palette: Palette) -> str:
    table, number = workloads_table(report.landings, ordered, palette)
    return _folded(table, number)


def _folded(table: str, number: int) -> str:
    if not table:
        return ""
    return (
        f'<details class="fold"{" open" if number <= ROWS_SHOWN else ""}>'
        f"<summary>{count(number, 'row')}</summary>{table}</details>"
    )
