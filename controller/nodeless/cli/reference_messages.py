"""The index of messages: every code that events, conditions, plans and `nodeless why` show."""

from collections import defaultdict

from nodeless.cli.message_index import Entry, entries
from nodeless.cli.reference_text import page

_INTRODUCTION = """This page lists each code that nodeless writes into events, conditions, plans and the answers of `nodeless why`. It says where
the code occurs, what it means and what to do. "Nothing to do" means that nodeless handles the situation, or that the code only
informs you. If you want to start from what you see in the cluster, go to [troubleshooting](troubleshooting.md).

If a condition is true, its reason is its own name (`Registered`, `AMIsReady`). If a condition `Ready` is not true, another
condition is the cause. Its name and status form the reason: `LaunchedFalse`, `NodeClassReadyUnknown`."""


def message_pages() -> dict[str, str]:
    """The page by its file name."""
    by_code: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries():
        by_code[entry.code].append(entry)
    parts = [_INTRODUCTION]
    for name in sorted(by_code, key=str.lower):
        parts.append(f"## {name}")
        parts += [_paragraph(entry) for entry in by_code[name]]
    return {"messages.md": page("Messages", *parts)}


def _paragraph(entry: Entry) -> str:
    remedy = "Nothing to do." if entry.remedy == "Nothing." else f"**What to do:** {entry.remedy}"
    return f"*{entry.where}.* {entry.meaning} {remedy}"
