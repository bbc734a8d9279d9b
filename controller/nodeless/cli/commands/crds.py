"""`nodeless crds`: the custom resource definitions, out of the typed kinds."""

from pathlib import Path
from typing import Annotated

import typer

from nodeless.api.crds import crd_files
from nodeless.cli.commands.terms import refuse

definitions = typer.Typer()


@definitions.command(rich_help_panel="For contributors")
def crds(
    directory: Annotated[Path, typer.Argument(help="Folder of the CRD files.")] = Path("controller/crds"),
    check: Annotated[
        bool, typer.Option("--check", help="Compare instead of writing. Exit code 1: there is a difference.")
    ] = False,
) -> None:
    """Write the custom resource definitions, which are generated from the typed kinds."""
    stale = []
    for name, text in crd_files().items():
        path = directory / name
        if check:
            if not path.exists() or path.read_text() != text:
                stale.append(str(path))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            typer.echo(path)
    if stale:
        refuse(
            f"not what the typed kinds generate: {', '.join(stale)}; hint: run `nodeless crds {directory}`",
            code=1,
        )
