"""`nodeless schema`: the JSON Schemas of the documents that commands write."""

import json
from typing import Annotated

import typer

from nodeless.cli.commands.terms import refuse

schemas = typer.Typer()


@schemas.command(name="schema", rich_help_panel="Manifests")
def schema(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="Kind of the document, such as PlanReport.")
    ] = "",
) -> None:
    """Print the JSON Schema of a document that a command writes with -o json. Without a kind, list all kinds.

    nodeless schema PlanReport
    """
    # Imported here: the types of all reports stand behind them.
    from nodeless.cli.document_schemas import document_schema, kinds  # noqa: PLC0415

    if not kind:
        for name in kinds():
            typer.echo(name)
        return
    if kind not in kinds():
        refuse(f"{kind!r} is not a kind of document; hint: {', '.join(kinds())}")
    typer.echo(json.dumps(document_schema(kind), indent=2))
