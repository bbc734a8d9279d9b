"""The reference of the command line, out of the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from nodeless.cli.command_group import Entry
from nodeless.cli.reference_text import page, plain, table

#: What a paragraph of a command's help begins with that is an example.
_EXAMPLE = ("nodeless ", "kubectl ", "aws ")


def command_pages() -> dict[str, str]:
    """The page by its file name."""
    # The commands' list names the module that calls this.
    from nodeless.cli.main import ENTRIES  # noqa: PLC0415

    parts = [
        "`nodeless` makes plans without acting on them, checks and converts manifests, and runs the controller. It writes data "
        "to stdout and messages to stderr. Exit code 2 means wrong use or unusable input. The section of each command says what "
        "0 and 1 mean. `nodeless COMMAND --help` shows the same text in a terminal. `nodeless --version` prints the version.",
        "In a checkout, `make install` installs `nodeless` into `.venv/bin`. To install it anywhere else, run "
        "`pip install 'CHECKOUT/controller[controller]'`.",
        "If the folder with `nodeless` is on your `PATH`, you can use it as a plugin of kubectl: `kubectl nodeless plan`. With krew, you only need Python (3.11 to 3.13): run `kubectl krew install --manifest-url URL`, where `URL` is the address of `nodeless.yaml` in a release.",
    ]
    for panel in dict.fromkeys(entry.panel for entry in ENTRIES):
        parts.append(f"## {panel}")
        parts += [part for entry in ENTRIES if entry.panel == panel for part in _command(entry)]
    return {"cli.md": page("Command line", *parts)}


def _command(entry: Entry) -> Iterator[str]:
    command = entry.load()
    context = typer.Context(command, info_name=f"nodeless {entry.name}")
    yield f"### nodeless {entry.name}"
    usage = " ".join(["nodeless", entry.name, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```"
    for paragraph in (command.help or "").split("\n\n"):
        example = paragraph.strip().startswith(_EXAMPLE)
        yield f"```console\n$ {paragraph.strip()}\n```" if example else plain(paragraph)
    for title, kind in (("Argument", "argument"), ("Option", "option")):
        rows = [*_rows(command, context, kind)]
        if rows:
            yield table((title, "Meaning"), rows)


def _rows(command: Any, context: Any, kind: str) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        record = parameter.get_help_record(context) if parameter.param_type_name == kind else None
        if record is not None:
            name, meaning = record
            yield f"`{' '.join(name.split())}`", plain(meaning)
