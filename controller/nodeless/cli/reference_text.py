"""What the generated pages of docs/ have in common: the page, its notice, tables."""

from collections.abc import Iterable

MADE = "<!-- Made by `nodeless reference docs` from the tables in the code: change those. -->"


def page(title: str, *parts: str) -> str:
    """A page with its notice, the parts separated by blank lines."""
    return "\n\n".join((f"# {title}", MADE, *parts)) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def code(text: str) -> str:
    """As code; nothing for nothing."""
    return f"`{text}`" if text else ""


def listed(names: Iterable[str], *, as_code: bool = True) -> str:
    """Names separated by commas."""
    return ", ".join(code(name) if as_code else name for name in names)


def plain(text: str) -> str:
    """Text in one line, without what Markdown would take for markup outside of code."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [
        part.replace("*", "\\*").replace("<", "&lt;").replace("[", "\\[").replace("_", "\\_")
        for part in parts[::2]
    ]
    return "`".join(parts)
