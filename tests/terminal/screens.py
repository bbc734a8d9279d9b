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

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WIDTHS = (80, 120, 200)
COMMANDS = {
    "plan": ("plan", "examples/plan"),
    "why-pod": ("why", "deploy/model-server", "examples/plan"),
    "why-node": ("why", "new-1", "examples/plan"),
    "migrate": ("migrate", "tests/migration/input"),
    "advise": ("advise", "examples/plan"),
    "validate": ("validate", "tests/terminal/input/faulty.yaml"),
}
SCREENS = tuple((name, width) for name in COMMANDS for width in WIDTHS)
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
        stdin=subprocess.DEVNULL,
        stdout=there,
        # What a command does is shown there once it takes two seconds, which a busy machine makes of any.
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
    ):
        os.close(there)
        shown = b""
        with suppress(OSError):  # its end, on Linux
            while part := os.read(here, 65536):
                shown += part
    os.close(here)
    return _STYLE.sub("", shown.decode()).replace("\r\n", "\n")


def held(name: str, width: int) -> Path:
    """The file that holds it."""
    return HERE / "screens" / f"{name}-{width}.txt"
