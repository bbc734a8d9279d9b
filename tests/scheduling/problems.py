"""The shared packing problems, where their folder lies beside the checkout; it may be absent."""

from pathlib import Path

from nodeless.api.packing_problem import Problem
from nodeless.cli.commands.packing import load_problem

FOLDER = Path(__file__).parents[2].parent / "shared" / "problems"


def available() -> bool:
    return FOLDER.is_dir()


def load(name: str, folder: Path = FOLDER) -> Problem:
    """A problem by name, without suffix."""
    return load_problem(folder / f"{name}.json.gz")
