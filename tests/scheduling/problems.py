"""Packing problems with known answers: `reference_problems/README.md` says what they are."""

from pathlib import Path

from nodeless.api.packing_problem import Problem
from nodeless.cli.commands.packing import load_problem

FOLDER = Path(__file__).parent / "reference_problems"


def load(name: str, folder: Path = FOLDER) -> Problem:
    """A problem by name, without suffix."""
    return load_problem(folder / f"{name}.json.gz")
