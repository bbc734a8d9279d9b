"""`python -m tests.mutants ROOM`: draw mutants of a room, and list those that no test notices.

Every mutant is tried on a copy of the checkout. Tests that need a control plane are left out. The exit code
is 1 when a smaller part of them is noticed than `--least` asks for.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.mutants.mutations import Mutant, mutants
from tests.mutants.rooms import ROOMS, Room

_tell = partial(print, flush=True)
_ROOT = Path(__file__).parents[2]
_COPIED = ("components", "controller", "infra", "policy", "stacks", "tests", "docs", "examples")
_UNIT = "not cluster and not environment"
#: Seconds beyond three times the undisturbed run after which a mutant counts as noticed: it never ends.
_PATIENCE = 20.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", choices=sorted(ROOMS))
    parser.add_argument("--number", type=int, default=30, help="how many mutants")
    parser.add_argument("--seed", type=int, help="of the draw; a new one by default")
    parser.add_argument("--least", type=float, default=0.0, help="part that must be noticed, 0 to 1")
    parser.add_argument("--only", default="", help="part of a file's path: mutants of these files only")
    options = parser.parse_args(arguments)
    room = ROOMS[options.room]
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    drawn = draw(room, options.number, seed, options.only)
    _tell(f"seed {seed}: {len(drawn)} mutants of {room.code}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as made:
        survivors = try_all(room, drawn, Path(made))
    noticed = 1 - len(survivors) / max(len(drawn), 1)
    _tell(f"seed {seed}: {noticed:.0%} of {len(drawn)} noticed")
    return int(noticed < options.least)


def draw(room: Room, number: int, seed: int, only: str = "") -> list[tuple[Path, Mutant]]:
    """So many mutants of a room's files, each with its file's path below the checkout."""
    everything = [
        (file.relative_to(_ROOT), mutant)
        for file in sorted((_ROOT / room.code).rglob("*.py"))
        if only in str(file.relative_to(_ROOT))
        for mutant in mutants(file.read_text())
    ]
    return random.Random(seed).sample(everything, min(number, len(everything)))


def try_all(room: Room, drawn: list[tuple[Path, Mutant]], folder: Path) -> list[tuple[Path, Mutant]]:
    """The mutants that no test notices; each is printed when it is found.

    Raises:
        SystemExit: the tests fail without any mutant.
    """
    for name in _COPIED:
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in _ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, folder)
    began = time.monotonic()
    if not passes(room, folder, None):
        sys.exit(f"the tests of {room.code} fail on the code as it is")
    limit = 3 * (time.monotonic() - began) + _PATIENCE
    survivors = []
    for path, mutant in drawn:
        original = (folder / path).read_text()
        (folder / path).write_text(mutant.source)
        if passes(room, folder, limit):
            survivors.append((path, mutant))
            before, after = (" ".join(text.split())[:100] for text in (mutant.before, mutant.after))
            _tell(f"{path}:{mutant.line}: {before!r} -> {after!r}")
        (folder / path).write_text(original)
    return survivors


def passes(room: Room, folder: Path, limit: float | None) -> bool:
    """Whether the tests of a room pass on the copy; those that do not end within `limit` seconds do not."""
    paths = os.pathsep.join(str(folder / name) for name in ("", "controller", "components"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    try:
        done = subprocess.run(
            [*command, "-m", _UNIT, *room.tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
