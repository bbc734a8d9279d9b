"""A group of commands whose modules are imported when one of them is used.

The help of the group, and the completion of a command's name, need a line for each command and no more.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


@dataclass(frozen=True, slots=True)
class Entry:
    """A command as the group's help shows it, and where it is."""

    name: str
    summary: str
    """The first paragraph of the command's own help."""
    panel: str
    app: str
    """`MODULE:NAME` of the typer application that it is a command of."""

    def load(self) -> Any:
        """The command itself; imports its module."""
        module, _, name = self.app.partition(":")
        application: typer.Typer = getattr(importlib.import_module(module), name)
        command = get_group(application).commands[self.name]
        # A line of the source is none of the terminal, which is narrower or wider.
        command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
        return command

    def stub(self) -> TyperCommand:
        """The command's line of the group's help."""
        return TyperCommand(self.name, help=self.summary, rich_help_panel=self.panel)


def group_of(entries: Sequence[Entry]) -> type[TyperGroup]:
    """The class of a group of these commands."""
    by_name = {entry.name: entry for entry in entries}

    class Group(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {entry.name: entry.stub() for entry in entries}

        # The classes of a context and a command are private to typer.
        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            return name, by_name[name].load() if name in by_name else command, rest

    return Group
