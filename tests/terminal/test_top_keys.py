"""`nodeless top` on a real terminal: what each key does, and that the terminal is as it was in the end."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import monotonic

import pytest

from nodeless.cli.commands.top_view import SORTS, View
from nodeless.cli.keyboard import keys_of
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from tests.controllers.planning import saved_events
from tests.scheduling.factories import claim, node, pods, pool, running

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HOME = "\x1b[H"
#: Makes the terminal that of the session, whose Ctrl-C reaches the command. A shell that runs tests in the
#: background has it ignored.
_ON_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
UP, DOWN, PAGE_DOWN, HOME, END = "\x1b[A", "\x1bOB", "\x1b[6~", "\x1b[H", "\x1b[4~"
#: Seconds after which a screen that does not come is missed.
PATIENCE = 120


class Terminal:
    """A command on a terminal, as a person sees and uses it."""

    def __init__(self, process, end, theirs):
        self._process, self._end, self._theirs, self._shown = process, end, theirs, ""

    @property
    def screen(self):
        """What the terminal shows: each picture begins at its upper left corner."""
        return _CONTROLS.sub("", self._shown.rpartition(_HOME)[2]).replace("\r", "")

    @property
    def styled(self):
        return self._shown.rpartition(_HOME)[2]

    def chosen(self):
        """The name of the node that is shown in reverse."""
        match = re.search(r"\x1b\[7m>(\S+)", self.styled)
        return match[1] if match else None

    def until(self, holds, what):
        deadline = monotonic() + PATIENCE
        while not holds():
            ready, _, _ = select.select([self._end], [], [], max(deadline - monotonic(), 0))
            assert ready, f"{what} is not shown, but: {self.screen}"
            self._shown += os.read(self._end, 65536).decode()
        return self.screen

    def shows(self, text):
        return self.until(lambda: text in self.screen and self.whole, text)

    @property
    def whole(self):
        """Whether the last line of the picture has come."""
        return self.screen.count("\n") == self.rows - 1

    def press(self, keys):
        os.write(self._end, keys.encode())

    def resize(self, rows, columns):
        self.rows = rows
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self):
        """What is left to read when the command has ended, and how it ended."""
        self.close_theirs()
        with suppress(OSError):  # the last reader of a terminal is told so
            self.until(lambda: False, "the end")
        return self._process.wait(timeout=PATIENCE)

    def close_theirs(self):
        """Hold the command's end of the terminal no more."""
        if self._theirs is not None:
            os.close(self._theirs)
            self._theirs = None

    def echoes(self):
        return bool(termios.tcgetattr(self._end)[3] & termios.ECHO)


@contextmanager
def top(*arguments, rows=24, columns=120):
    end, theirs = pty.openpty()
    environment = {
        key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")
    }

    process = subprocess.Popen(
        [sys.executable, "-c", _ON_TERMINAL, sys.executable, "-m", "nodeless", "top", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    terminal = Terminal(process, end, theirs)
    terminal.resize(rows, columns)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        terminal.close_theirs()
        os.close(end)


@pytest.fixture
def cluster(tmp_path):
    """Forty nodes; of the first, with three pods, the fill is the largest."""
    names = [f"n{number:02}" for number in range(40)]
    types = {"node.kubernetes.io/instance-type": "large"}
    seen = [
        node(name, created_at=float(-number), labels={**node(name).labels, **types})
        for number, name in enumerate(names)
    ]
    there = [*(running(pod, "n07") for pod in pods(3)), running(pods(1, name="db")[0], "n21")]
    return saved_events(
        tmp_path,
        PoolSeen(pool()),
        *(ClaimSeen(claim(f"default-{name}", provider_id=f"aws:///z1/i-{name}")) for name in names),
        *map(NodeSeen, seen),
        *map(PodSeen, there),
    )


def test_nodes_are_chosen_sorted_found_and_opened_by_keys(cluster):
    with top("--snapshot", cluster, "--watch", "--sort", "name") as terminal:
        assert "40 of 40 nodes by name" in terminal.shows("? help, q quit")
        assert terminal.chosen() == "n00"

        terminal.press(DOWN + "j" + UP)
        terminal.until(lambda: terminal.chosen() == "n01", "the second node")
        terminal.press(END)
        terminal.until(lambda: terminal.chosen() == "n39", "the last node")
        terminal.press(HOME + "k")
        terminal.until(lambda: terminal.chosen() == "n00", "the first node")

        terminal.press("SS")
        terminal.shows("40 of 40 nodes by pods")
        terminal.until(lambda: terminal.chosen() == "n00", "the node that was chosen")
        terminal.press("g")
        terminal.until(lambda: terminal.chosen() == "n07", "the node with most pods")

        terminal.press("/N2 unk")
        terminal.shows("with /N2 unk_")
        terminal.press("\x15n2\r")
        assert "10 of 40 nodes by pods, with /n2;" in terminal.shows("with /n2;")
        terminal.until(lambda: terminal.chosen() == "n21", "the first of those found")
        terminal.press("\r")
        opened = terminal.shows("escape goes back")
        assert "n21, existing, " in opened
        assert "default/db-0" in opened
        terminal.press("\x1b")
        terminal.shows("with /n2;")
        terminal.press("\x1b")
        terminal.shows("40 of 40 nodes by pods;")


def test_the_keys_are_told_and_leaving_gives_the_terminal_back(cluster):
    with top("--snapshot", cluster, "--watch") as terminal:
        before = terminal.echoes()
        terminal.shows("? help, q quit")
        assert not terminal.echoes()
        terminal.press("?")
        assert "page up / page down" in terminal.shows("sort by the next column")
        terminal.press("x")
        terminal.shows("? help, q quit")
        terminal.press("q")
        assert terminal.ended() == 0
        assert before
        assert terminal.echoes()


@pytest.mark.parametrize("rows", [8, 15, 40])
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_chosen_node_is_on_the_screen_of_any_size(cluster, rows, columns):
    with top("--snapshot", cluster, "--watch", "--sort", "name", rows=rows, columns=columns) as terminal:
        terminal.until(lambda: terminal.chosen() == "n00", "the first node")
        terminal.press("G")
        terminal.until(lambda: terminal.chosen() == "n39" and terminal.whole, "the last node")
        assert max(map(len, terminal.screen.splitlines())) <= columns


def test_another_size_of_the_terminal_is_filled_at_once(cluster):
    with top("--snapshot", cluster, "--watch", "--seconds", "3600") as terminal:
        terminal.shows("? help, q quit")
        terminal.resize(12, 90)
        terminal.until(
            lambda: terminal.whole and max(map(len, terminal.screen.splitlines())) <= 90, "12 rows"
        )


def test_a_look_that_fails_is_told_and_the_next_one_is_shown(cluster):
    good = cluster.read_bytes()
    with top("--snapshot", cluster, "--watch", "--seconds", "3600") as terminal:
        terminal.shows("40 of 40 nodes by price; ? help, q quit")
        cluster.write_text("{}")
        terminal.press("r")
        shown = terminal.shows("not refreshed: ")
        assert "40 of 40 nodes" in shown
        document = json.loads(good)
        document["now"] = 7200.0
        cluster.write_text(json.dumps(document))
        terminal.press("r")
        terminal.until(
            lambda: "not refreshed" not in terminal.screen and "2h" in terminal.screen, "the new look"
        )


def test_ctrl_c_leaves_too(cluster):
    with top("--snapshot", cluster, "--watch") as terminal:
        terminal.shows("? help, q quit")
        terminal.press("\x03")
        assert terminal.ended() == 0
        assert terminal.echoes()


def test_files_are_printed_once_unless_they_are_to_be_watched(cluster):
    with top("--snapshot", cluster) as terminal:
        assert terminal.ended() == 0
        assert "\x1b[?1049h" not in terminal._shown


def test_watching_is_for_a_terminal(cluster):
    refused = subprocess.run(
        [sys.executable, "-m", "nodeless", "top", "--snapshot", cluster, "--watch"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr == (
        "nodeless: --watch needs a terminal, and an input that can be read again; hint: leave it out\n"
    )


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x1b[A\x1bOBx", ["up", "down", "x"]),
        ("\x1b[5~\x1b[6~", ["page up", "page down"]),
        ("\x1b", ["escape"]),
        ("\x1b\x1b[B", ["escape", "down"]),
        ("\x1b[1;5A\x1b[200~j", ["j"]),
        ("\r\n\x7f\x15", ["enter", "enter", "backspace", "clear"]),
        ("ü\x00\x01", ["ü"]),
    ],
)
def test_what_terminals_send_is_keys(sent, keys):
    assert list(keys_of(sent)) == keys


def test_sorting_goes_round_in_both_ways():
    view = View()
    seen = []
    for _ in SORTS:
        view = view.pressed("s", [], 10)
        seen.append(view.sort)
    assert sorted(seen) == sorted(SORTS)
    assert view.pressed("S", [], 10).pressed("s", [], 10) == view


def test_moving_stays_among_the_nodes_and_keys_without_nodes_do_nothing():
    names = ["a", "b", "c"]
    view = View(chosen="gone")
    assert view.pressed("up", names, 10).chosen == "a"
    assert view.pressed("page down", names, 10).chosen == "c"
    assert replace(view, chosen="b").pressed("down", names, 10).chosen == "c"
    for key in ("down", "enter", "G", "x", "tab"):
        assert not view.pressed(key, [], 10).opened
