"""The folder the engine works in: a copy of the project's settings, its state, its own home.

The engine writes into the stack's settings file (its encryption salt), so it gets a
copy and the checkout stays as it is. What the caller configures is laid over the copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: The checkout: the folder with Pulumi.yaml.
ROOT = Path(__file__).resolve().parents[2]
#: Where the stacks' settings stand to be copied from, below the folder that the engine writes them into.
TEMPLATES = "templates"


@dataclass(frozen=True, slots=True)
class Project:
    """Where the engine finds everything.

    Attributes:
        work: Copy of Pulumi.yaml and the stacks' settings.
        state: Backend folder.
        home: The engine's own files.
        main: The program.
    """

    work: Path
    state: Path
    home: Path
    main: Path

    @classmethod
    def prepare(cls, directory: Path, root: Path, stack: str, config: Mapping[str, str]) -> Project:
        """Copy the project at `root` below `directory` and set the configuration of a stack.

        Args:
            directory: Folder of this stack's run; may hold a state already.
            root: Folder with Pulumi.yaml.
            stack: Name of the stack.
            config: `namespace:key` -> text; JSON text for objects and lists.

        Raises:
            FileNotFoundError: There is no Pulumi.yaml.
        """
        settings = root / "Pulumi.yaml"
        if not settings.is_file():
            raise FileNotFoundError(f"no Pulumi.yaml in {root}\nhint: give the folder of the Pulumi project")
        project: dict[str, Any] = yaml.safe_load(settings.read_text())
        program = root / project.pop("main", "") / "__main__.py"
        made = cls(directory / "project", directory / "state", directory / "home", program)
        for folder in (made.work, made.state, made.home):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # the state holds secrets, under a passphrase anyone can read here
        stacks = project.pop("stackConfigDir", ".")
        made._write_project(project)
        made._write_stack(stack, root / stacks / TEMPLATES / f"Pulumi.{stack}.yaml", config)
        return made

    def forget(self) -> None:
        """Delete everything, state included."""
        for folder in (self.work, self.state, self.home):
            shutil.rmtree(folder, ignore_errors=True)

    def _write_project(self, project: dict[str, Any]) -> None:
        # The program runs in this process: no virtual environment is looked for or made.
        project["runtime"] = {"name": "python"}
        (self.work / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))

    def _write_stack(self, stack: str, given: Path, config: Mapping[str, str]) -> None:
        mine = self.work / f"Pulumi.{stack}.yaml"
        kept = _load(mine)
        settings = _load(given)
        values = settings.get("config", {}) | {key: _value(text) for key, text in config.items()}
        salt = {"encryptionsalt": kept["encryptionsalt"]} if "encryptionsalt" in kept else {}
        mine.write_text(yaml.safe_dump(settings | salt | {"config": values}, sort_keys=False))


def _load(file: Path) -> dict[str, Any]:
    return (yaml.safe_load(file.read_text()) or {}) if file.is_file() else {}


def _value(text: str) -> Any:
    """Text as it would stand in a stack file: objects and lists as such, the rest as written."""
    return yaml.safe_load(text) if text.lstrip().startswith(("{", "[")) else text
