"""What a command shows of long work: on a real terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
import yaml

from tests.api.manifests import ec2_node_class, node_pool
from tests.controllers.planning import EXAMPLES, a_workload

#: The command that shows its work at once: how long a plan takes is the machine's affair.
#: The line is there at once: its library is loaded before, lest short work be over sooner.
AT_ONCE = """
import rich.console, rich.progress
import nodeless.cli.progress as progress
progress.PATIENCE = 0.0
from nodeless.cli.main import main
main()
"""
COMMAND = [sys.executable, "-m", "nodeless"]
_CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


@contextlib.contextmanager
def terminal():
    """Both ends of a terminal: what is read, and what a command writes to."""
    screen, end = pty.openpty()
    try:
        yield screen, end
    finally:
        os.close(screen)


def rest_of(screen: int) -> bytes:
    shown = b""
    with contextlib.suppress(OSError):  # the last reader of a terminal is told so
        while more := os.read(screen, 65536):
            shown += more
    return shown


def manifests(*more) -> bytes:
    return yaml.safe_dump_all([node_pool(), ec2_node_class(), *more]).encode()


def started(*arguments: str | Path, stderr: int, how=COMMAND, **more: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **more}
    return subprocess.Popen(
        [*how, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env
    )


def ended(process: subprocess.Popen[bytes]) -> bytes:
    """What the command has written to stdout, once it has ended."""
    assert process.stdout is not None
    with process.stdout as stdout:
        written = stdout.read()
    process.wait(timeout=120)
    return written


def given(stdin: IO[bytes] | None, text: bytes) -> None:
    assert stdin is not None
    stdin.write(text)
    stdin.close()


def test_what_takes_longer_than_two_seconds_is_shown_on_the_terminal_until_it_is_done():
    """The input comes once the line is there."""
    with terminal() as (screen, end):
        process = started("plan", "-", stderr=end)
        os.close(end)
        shown = b""
        while b"reading the files" not in shown:
            shown += os.read(screen, 65536)
        # Two seconds are over by then.
        assert re.search(rb"0:00:0[2-9]", shown + os.read(screen, 65536))
        given(process.stdin, manifests(a_workload()))
        shown += rest_of(screen)
        stdout = ended(process)
    assert process.returncode == 0, shown
    assert b"Placed 1 of 1 pod." in stdout
    assert b"\x1b[" not in stdout
    # The line goes away: it is erased, and nothing else is left.
    assert b"\x1b[2K" in shown


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["plan", EXAMPLES], b"reading the files"),
        (["why", "nobody", EXAMPLES], b"reading the files"),
        (["advise", EXAMPLES], b"trying what would save money"),
        (["migrate", EXAMPLES], b"comparing the current state"),
        (["validate", EXAMPLES], b"checking the files"),
        (["top", "--once", EXAMPLES], b"looking at the nodes"),
    ],
)
def test_each_command_says_what_it_does(arguments, what):
    with terminal() as (screen, end):
        process = started(*arguments, stderr=end, how=[sys.executable, "-c", AT_ONCE])
        os.close(end)
        given(process.stdin, b"")
        shown = rest_of(screen)
        ended(process)
    assert what in shown, shown
    assert b"Traceback" not in shown


@pytest.mark.parametrize(
    ("arguments", "what", "text"),
    [
        (["convert", "-"], b"reading the files", manifests()),
        (["solve", "--problem", "-"], b"reading the problem", b"{}"),
    ],
)
def test_what_waits_for_its_input_says_so(arguments, what, text):
    """The input comes once the line is there."""
    with terminal() as (screen, end):
        process = started(*arguments, stderr=end, how=[sys.executable, "-c", AT_ONCE])
        os.close(end)
        shown = b""
        while what not in shown:
            shown += os.read(screen, 65536)
        given(process.stdin, text)
        shown += rest_of(screen)
        ended(process)
    assert b"Traceback" not in shown


@pytest.mark.parametrize("arguments", [["plan"], ["advise"], ["validate"]])
def test_nothing_of_it_is_in_pipes(arguments):
    process = started(*arguments, EXAMPLES, stderr=subprocess.PIPE, how=[sys.executable, "-c", AT_ONCE])
    stdout, stderr = process.communicate(timeout=120)
    assert b"\x1b" not in stdout + stderr
    assert b"0:00:0" not in stderr


def test_nothing_of_it_is_on_a_terminal_that_cannot_erase():
    with terminal() as (screen, end):
        process = started("plan", EXAMPLES, stderr=end, how=[sys.executable, "-c", AT_ONCE], TERM="dumb")
        os.close(end)
        given(process.stdin, b"")
        shown = rest_of(screen)
        ended(process)
    assert shown == b""


def test_remarks_stay_whole_beside_it(tmp_path):
    with terminal() as (screen, end):
        process = started("plan", tmp_path, stderr=end, how=[sys.executable, "-c", AT_ONCE])
        os.close(end)
        given(process.stdin, b"")
        shown = _CONTROLS.sub(b"", rest_of(screen))
        ended(process)
    assert process.returncode == 2
    assert b"contains no file that ends in" in b" ".join(shown.split())
