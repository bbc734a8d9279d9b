"""How a command writes its answer: `-o` with the same words everywhere, and documents that say what they are.

A command has the forms that make sense for it, and refuses the others by naming its own.

A document begins with `apiVersion` and `kind`. Within a version members are added; none goes, changes its
name or its meaning.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.terms import refuse, remark
from nodeless.cli.findings import Checked, fault_text, faulty, github_lines

API_VERSION = "cli.nodeless.dev/v1"
TABLE, WIDE, JSON, YAML, HTML = "table", "wide", "json", "yaml", "html"
#: Findings, as annotations of a workflow's run on GitHub, and for code scanning.
GITHUB, SARIF = "github", "sarif"
DOCUMENTS = (JSON, YAML)
FINDINGS = (GITHUB, SARIF)
#: Of most commands, the usual form first; `table` is what people read, lines of text where it is no table.
PLAIN = (TABLE, *DOCUMENTS)
#: Other names of forms.
_ALIASES = {"text": TABLE}
_MEANINGS = {
    TABLE: "table (or text)",
    WIDE: "wide (all columns, whatever the width of the terminal)",
    HTML: "html (one page)",
    GITHUB: "github (annotations of a workflow run)",
    SARIF: "sarif (for code scanning)",
}


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def output_option(*forms: str) -> Any:
    """The option `-o` of a command with some forms."""
    return typer.Option(
        "--output",
        "-o",
        help=f"Format of the output: {_either([_MEANINGS.get(form, form) for form in forms])}.",
        rich_help_panel="Output",
        autocompletion=lambda: list(forms),
    )


OutputOption = Annotated[str, output_option(*PLAIN)]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json.", rich_help_panel="Output")]


def format_of(output: str, *, as_json: bool = False, formats: Sequence[str] = PLAIN) -> str:
    """The format that is asked for; ends the command with exit code 2 where it has no such format.

    Args:
        output: The value of `-o`.
        as_json: Whether `--json` is given.
        formats: What the command has, the usual one first.
    """
    output = _ALIASES.get(output, output)
    if output in _MEANINGS and output not in formats:
        refuse(f"this command has no --output {output}; hint: it has {_either(formats)}")
    if output not in formats:
        refuse(f"--output {output!r} is not known; hint: {_either(formats)}")
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
        from nodeless.cli.manifests.yaml_writer import yaml_text  # noqa: PLC0415

        # Through JSON: YAML would write tuples and enumerations in a form of Python's own.
        data = json.loads(json.dumps(document))
        typer.echo(yaml_text(data), nl=False)
    else:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def write_findings(entries: Sequence[Checked], problems: Sequence[str], output: str) -> None:
    """Write what was found in manifests to stdout.

    Args:
        entries: The objects with their findings.
        problems: Why files could not be read at all.
        output: `github` or `sarif`.
    """
    if output == SARIF:
        # Imported here: the texts of all rules go into it.
        from nodeless.cli.sarif import sarif  # noqa: PLC0415

        typer.echo(json.dumps(sarif(entries, problems), indent=2, ensure_ascii=False))
        return
    for entry in entries:
        for line in github_lines(entry):
            typer.echo(line)


def refuse_faults(faults: Sequence[str], where: str, output: str) -> NoReturn:
    """End with the faults of the input: lines on stderr, or findings on stdout where these are asked for.

    Args:
        faults: A line for each, `FILE:LINE:COL: what` where the place is known.
        where: What they are in, as `the manifests`.
        output: The form that is asked for.
    """
    entries, problems = faulty(faults)
    if output in FINDINGS:
        write_findings(entries, problems, output)
    for fault in problems if output in FINDINGS else faults:
        remark(fault_text(fault))
    hint = "see stdout" if output in FINDINGS and entries else "see the lines above"
    number = f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'}"
    refuse(f"{number} in {where}; hint: {hint}")


def write_page(text: str, file: str) -> None:
    """Write an HTML page to a file, or to stdout for `-`; ends the command where it cannot be written."""
    if file == STDIN:
        typer.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror or error}; hint: the folder must exist")
    remark(f"report written to {file}")
