"""How a command writes its answer: `-o` with the same words everywhere, and documents that say what they are.

A document begins with `apiVersion` and `kind`. Within a version members are added; none goes, changes its
name or its meaning.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.terms import refuse, remark

API_VERSION = "cli.nodeless.dev/v1"
TEXT, WIDE, JSON, YAML = "text", "wide", "json", "yaml"
DOCUMENTS = (JSON, YAML)
#: Of commands whose text is a table.
TABLES = (TEXT, WIDE, *DOCUMENTS)

OutputOption = Annotated[
    str, typer.Option("--output", "-o", help="text, json or yaml", rich_help_panel="Output")
]
WideOutputOption = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="text, wide (every column, however wide the terminal is), json or yaml",
        rich_help_panel="Output",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json", rich_help_panel="Output")]


def format_of(output: str, *, as_json: bool = False, formats: Sequence[str] = (TEXT, JSON, YAML)) -> str:
    """The format that is asked for; ends the command with exit code 2 where it has no such format.

    Args:
        output: The value of `-o`.
        as_json: Whether `--json` is given.
        formats: What the command has, the usual one first.
    """
    if output not in formats:
        refuse(f"--output {output!r} is not known; hint: {', '.join(formats[:-1])} or {formats[-1]}")
    if as_json and output not in (formats[0], JSON):
        refuse(f"--json and --output {output} exclude each other; hint: give one of them")
    return JSON if as_json else output


def write_document(kind: str, body: Mapping[str, Any], output: str) -> None:
    """Write a document to stdout.

    Args:
        kind: What it is, e.g. `PlanReport`.
        body: Its members.
        output: `json` or `yaml`.
    """
    document = {"apiVersion": API_VERSION, "kind": kind, **body}
    if output == YAML:
        # Imported here: most calls do without it.
        import yaml  # noqa: PLC0415

        # Through JSON: YAML would write tuples and enumerations in a form of Python's own.
        data = json.loads(json.dumps(document))
        typer.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120), nl=False)
    else:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def write_page(text: str, file: str) -> None:
    """Write an HTML page to a file, or to stdout for `-`; ends the command where it cannot be written."""
    if file == STDIN:
        typer.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror or error}; hint: the folder has to be there")
    remark(f"report written to {file}")
