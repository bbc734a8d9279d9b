"""Running the programs that a release needs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.release.settings import ROOT, ReleaseError

_LINES = 12
"""Last lines of a failed command that are shown."""


class NotHere(Exception):
    """A step cannot run on this machine; says what is missing."""


def run(
    command: Sequence[str | Path],
    *,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    expected: int = 0,
    merged: bool = False,
) -> str:
    """What a command writes to its standard output.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        environment: Laid over that of this process.
        expected: Exit code that is right.
        merged: Whether what it writes to standard error is given as well.

    Raises:
        ReleaseError: It ended with another one; with its last lines.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != expected:
        lines = (done.stdout + done.stderr).strip().splitlines()[-_LINES:]
        shown = " ".join(Path(each).name if isinstance(each, Path) else each for each in command[:4])
        raise ReleaseError(
            f"{shown} ... failed with exit code {done.returncode}:\n    " + "\n    ".join(lines)
        )
    return done.stdout + (done.stderr if merged else "")


def program(name: str, hint: str) -> Path:
    """A program of our environment, or on PATH.

    Raises:
        NotHere: There is none; with the hint.
    """
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if found is None:
        raise NotHere(f"there is no {name} on PATH; hint: {hint}")
    return Path(found)
