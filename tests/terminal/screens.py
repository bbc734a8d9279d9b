"""A command on a terminal of a given width, and the file that holds what it shows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

from nodeless import __version__
from nodeless.explain.decisions import Situation, write
from nodeless.scheduling import Policy
from tests.scheduling.factories import FAMILY, pods, pool, snapshot

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WIDTHS = (80, 120, 200)
COMMANDS = {
    "plan": ("plan", "examples/plan"),
    "plan-preferences": ("plan", "tests/terminal/input/preferences.yaml"),
    "why-preferences": ("why", "deploy/web", "tests/terminal/input/preferences.yaml"),
    "why-pod": ("why", "deploy/model-server", "examples/plan"),
    "why-node": ("why", "new-1", "examples/plan"),
    "migrate": ("migrate", "tests/migration/input"),
    "advise": ("advise", "examples/plan"),
    "validate": ("validate", "tests/terminal/input/faulty.yaml"),
    "windows": ("windows", "tests/terminal/input/budgets.yaml", "--from", "2026-03-27T12:00", "--days", "3"),
    "solve": ("solve", "--problem", "tests/terminal/input/problem.json", "--improve", "0"),
    "replay": ("replay", "-"),
}
SCREENS = tuple((name, width) for name in COMMANDS for width in WIDTHS)
#: What differs from run to run and from release to release, as wide as it was.
_VARYING = (
    (re.compile(r"\b0\.\d{3} s"), "0.000 s"),
    (re.compile(rf"\b{re.escape(__version__)}\b"), "X.Y.Z"),
)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
#: Rows of the terminal: none of the commands looks at them.
_ROWS = 50


def screen(name: str, width: int) -> str:
    """What a command prints on a terminal of so many columns: lines as they were written, without styles."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "nodeless", *COMMANDS[name]],
        stdin=subprocess.PIPE,
        stdout=there,
        # What a command does is shown there once it takes two seconds, which a busy machine makes of any.
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
    ) as process:
        os.close(there)
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(recorded_decision() if name == "replay" else b"")
        shown = b""
        with suppress(OSError):  # its end, on Linux
            while part := os.read(here, 65536):
                shown += part
    os.close(here)
    text = _STYLE.sub("", shown.decode()).replace("\r\n", "\n")
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def recorded_decision() -> bytes:
    """A plan of an older release that this one does not make: it put the pods on fewer and larger nodes."""
    own = pool()
    situations = [
        Situation(snapshot(own, pods(number, cpu, name="web")), {own.key: FAMILY}, Policy(time_box=0.0), 0.0)
        for number, cpu in ((6, "3"), (6, "1"))
    ]
    return write(situations[0], "0.0.9", situations[1].plan())


def held(name: str, width: int) -> Path:
    """The file that holds it."""
    return HERE / "screens" / f"{name}-{width}.txt"
