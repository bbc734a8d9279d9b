"""Lines of text as wide as the terminal; in a pipe each is whole, for whoever reads it there."""

import shutil
import sys
import textwrap

import typer


def folded(text: str, width: int, indent: int = 0) -> list[str]:
    """The lines of a text, those after the first indented by two more; no word is broken.

    Args:
        text: One line; the spaces that it begins with count as indent.
        width: Columns that there are.
        indent: Columns before the text.
    """
    bare = text.lstrip(" ")
    indent += len(text) - len(bare)
    return textwrap.wrap(
        bare,
        max(width, indent + 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def echo_folded(text: str, indent: int = 0) -> None:
    """Write a line to stdout, folded where that is a terminal."""
    if not sys.stdout.isatty():
        typer.echo(" " * indent + text)
        return
    for line in folded(text, shutil.get_terminal_size().columns, indent):
        typer.echo(line)
