"""The report of a plan as one HTML page that needs nothing but itself."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from nodeless.explain.picture import colors, picture
from nodeless.explain.report import MONTH, Launch, RelaxedPreferences, Report, Unplaced, holding, where, zones
from nodeless.explain.together import Together
from nodeless.explain.words import count, listed
from nodeless.model.workloads import Workload

#: Workloads named in the legend.
LEGEND = 24
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #67717f; --line: #e3e7ec; --paper: #ffffff;
  --page: #f4f6f8;
  --free: #e9edf1; --daemons: #b4bcc6; --new: #2f9e6e; --standing: #8c97a5; --starting: #d99a2b;
  --bad: #c24141; --good: #2f7d57; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --quiet: #96a1ae; --line: #2c343e;
  --paper: #181e26;
  --page: #10151b; --free: #28303a; --daemons: #5b6673; --bad: #ef7d7d; --good: #66c79a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em; } h2 { font-size: 17px;
  margin: 0 0 14px; }
.quiet, footer { color: var(--quiet); } .quiet { margin: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px;
  margin: 26px 0; }
.card, section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; }
.card { padding: 14px 18px; } .card b { display: block; font-size: 25px; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: 13px; }
section { padding: 22px 24px; margin-bottom: 18px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--quiet); font-size: 13px; }
  th, td { padding: 7px 18px 7px 0; vertical-align: top; }
tbody tr { border-top: 1px solid var(--line); } .number { text-align: right; }
td:nth-child(-n+3) { white-space: nowrap; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 0 0 16px; padding: 0;
  list-style: none; font-size: 13px; }
.legend i, td i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 7px; background: var(--daemons); }
.legend .badge { width: 6px; } .legend .new { background: var(--new); }
.legend .existing { background: var(--standing); } .legend .starting { background: var(--starting); }
.next { display: block; white-space: nowrap; } small { color: var(--quiet); font-size: 12px; }
svg.nodes { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font-size: 12px; }
svg .type { font-weight: 600; font-size: 14px; } svg .times { fill: var(--quiet); font-weight: 500; }
svg .place, svg .amount { fill: var(--quiet); } svg .axis { fill: var(--quiet); text-anchor: end; }
svg .free { fill: var(--free); } svg .daemons { fill: var(--daemons); }
svg .badge.new { fill: var(--new); } svg .badge.existing { fill: var(--standing); }
  svg .badge.starting { fill: var(--starting); }
.refused { border-left: 4px solid var(--bad); } .refused h2 { color: var(--bad); }
.given-up { border-left: 4px solid var(--starting); } .given-up ul { margin: 0; padding-left: 20px; }
.refused ul { margin: 0 0 14px; padding-left: 20px; } code { font-size: 13px; color: var(--quiet); }
  .remedy { color: var(--good); }
@media print { body { background: none; } section, .card { break-inside: avoid; } }
"""


def page(report: Report, at: datetime) -> str:
    """The page.

    Args:
        report: What it tells.
        at: When the report was made.
    """
    palette = colors(share.workload for node in report.nodes for share in node.shares)
    parts = (
        _cards(report),
        *(_refused(group) for group in report.unplaced),
        _relaxed(report.relaxed),
        _together(report.together),
        _nodes(report, palette),
        _launches(report.launches),
        _landings(report, palette),
        _notes(report.notes),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>nodeless plan: {escape(_headline(report))}</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body><main>\n"
        f'<h1>{escape(_headline(report))}</h1>\n<p class="quiet">nodeless plan, {at:%Y-%m-%d %H:%M} UTC</p>\n'
        + "\n".join(part for part in parts if part)
        + "\n</main></body>\n</html>\n"
    )


def _headline(report: Report) -> str:
    refused = sum(len(group.pods) for group in report.unplaced)
    launched = sum(launch.count for launch in report.launches)
    if not report.landings:
        return count(launched, "new node") if launched else "Nothing to plan"
    done = f"{count(launched, 'new node')} for {count(report.pods - refused, 'pod')}"
    return f"{done}, {refused} not placed" if refused else done


def _cards(report: Report) -> str:
    cost = report.cost
    cards = [
        (f"{cost.before:,.2f} → {cost.after:,.2f}", "USD an hour, before and after"),
        (f"{cost.added * MONTH:+,.0f}", "USD a month"),
        (str(sum(launch.count for launch in report.launches)), "nodes to launch"),
        (f"{report.pods - sum(len(group.pods) for group in report.unplaced)} / {report.pods}", "pods placed"),
    ]
    if cost.gap is not None and cost.added > 0:
        cards.append((f"{100 * cost.gap:.1f} %", "most that any other plan could save"))
    inner = "".join(
        f"<div class='card'><b>{escape(value)}</b><span>{name}</span></div>" for value, name in cards
    )
    return f'<div class="cards">{inner}</div>'


def _refused(group: Unplaced) -> str:
    names = listed([str(workload) for workload, _ in group.workloads], 3)
    reasons = "".join(
        f"<li>{escape(f'{listed(obstacle.pools, 3)}: ' if obstacle.pools else '')}{escape(obstacle.message)} "
        f"<code>{escape(obstacle.code)}</code></li>"
        for obstacle in group.obstacles
    )
    fits = "".join(f'<li class="remedy">would fit: {escape(remedy)}</li>' for remedy in group.remedies)
    title = f"{count(len(group.pods), 'pod')} of {names} not placed"
    remedies = f"<ul>{fits}</ul>" if fits else ""
    return f'<section class="refused"><h2>{escape(title)}</h2><ul>{reasons}</ul>{remedies}</section>'


def _relaxed(losses: Sequence[RelaxedPreferences]) -> str:
    items = "".join(
        f"<li>{escape(holding(loss.workloads))}: {escape(loss.message)} <code>{escape(loss.code)}</code></li>"
        for loss in losses
    )
    if not items:
        return ""
    title = "Preferences relaxed so that pods can be scheduled"
    return f'<section class="given-up"><h2>{title}</h2><ul>{items}</ul></section>'


def _together(groups: Sequence[Together]) -> str:
    items = "".join(f"<li>{escape(str(group))}</li>" for group in groups)
    if not items:
        return ""
    return (
        f'<section class="given-up"><h2>Kept together by required pod affinity</h2><ul>{items}</ul></section>'
    )


def _nodes(report: Report, palette: dict[Workload, str]) -> str:
    drawn = picture(report.nodes, palette)
    if not drawn:
        return ""
    entries = "".join(
        f'<li><i style="background:{color}"></i>{escape(str(workload))}</li>'
        for workload, color in list(palette.items())[:LEGEND]
    )
    more = len(palette) - LEGEND
    entries += f"<li>and {more} others: point at a piece for its name</li>" if more > 0 else ""
    daemons = "<li><i></i>DaemonSets</li>" if any(node.daemons for node in report.nodes) else ""
    states = sorted({node.state for node in report.nodes})
    badges = "".join(f'<li><i class="badge {state}"></i>{state}</li>' for state in states)
    legend = f"{entries}{daemons}{badges if len(states) > 1 else ''}"
    return f'<section><h2>Nodes and their fill</h2><ul class="legend">{legend}</ul>{drawn}</section>'


def _launches(launches: Sequence[Launch]) -> str:
    body = "".join(
        f'<tr><td class="number">{launch.count}</td><td>{escape(launch.instance_type)}</td>'
        f"<td>{escape(launch.capacity_type)}, {escape(zones(launch.zones))}</td>"
        f'<td class="number">{launch.price:.4f}</td><td>{escape(launch.pool)}</td>'
        f"<td>{escape(holding(launch.workloads))}</td><td>{_next_best(launch)}</td></tr>"
        for launch in launches
    )
    heads = "<th>type</th><th>offering</th><th class='number'>USD/h each</th><th>pool</th><th>holds</th>"
    head = f"<thead><tr><th class='number'>nodes</th>{heads}<th>next best</th></tr></thead>"
    return _section("To launch", f"<table>{head}<tbody>{body}</tbody></table>") if body else ""


def _next_best(launch: Launch) -> str:
    """The types that would have come next, each on a line of its own that never breaks."""
    lines = [
        f"{escape(alternative.instance_type)} {alternative.price:.4f}"
        + (
            f" <small>+{100 * (alternative.price / launch.price - 1):.1f} %</small>"
            if launch.price > 0
            else ""
        )
        for alternative in launch.next_best
    ]
    more = launch.types - 1 - len(lines)
    lines += [f"<small>and {count(more, 'other')}</small>"] if more > 0 else []
    return "".join(f'<span class="next">{line}</span>' for line in lines) or "<small>no other type</small>"


def _landings(report: Report, palette: dict[Workload, str]) -> str:
    if not report.landings:
        return ""
    body = "".join(
        f'<tr><td><i style="background:{palette.get(landing.workload, "transparent")}"></i>'
        f"{escape(str(landing.workload))}</td>"
        f'<td class="number">{landing.pods}</td><td>{escape(where(landing.on_new) or "-")}</td>'
        f"<td>{escape(where(landing.on_existing) or '-')}</td>"
        f'<td class="number">{landing.refused or "-"}</td></tr>'
        for landing in report.landings
    )
    heads = "<th>workload</th><th class='number'>pods</th><th>on new nodes</th><th>on existing nodes</th>"
    head = f"<thead><tr>{heads}<th class='number'>not placed</th></tr></thead>"
    return _section("Where workloads land", f"<table>{head}<tbody>{body}</tbody></table>")


def _notes(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<footer><p>What this rests on</p><ul>{items}</ul></footer>" if items else ""


def _section(title: str, inner: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inner}</section>"
