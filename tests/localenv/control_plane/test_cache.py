from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from localenv.cache import cache_directory, get_or_make, hold_lock, source_digest
from localenv.progress import StreamReport, silent


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODELESS_CACHE", str(tmp_path / "cache"))


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("NODELESS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "nodeless"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "nodeless"


def test_a_changed_source_has_another_digest(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "main.go").write_text("package main")
    before = source_digest(source)

    assert source_digest(source) == before
    (source / "main.go").write_text("package other")
    changed = source_digest(source)
    assert changed != before
    (source / "main.go").rename(source / "renamed.go")
    assert source_digest(source) not in {before, changed}


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "program").write_text("x")

    first = get_or_make("entry-1", make, silent)
    second = get_or_make("entry-1", make, silent)

    assert first == second
    assert (first / "program").read_text() == "x"
    assert len(made) == 1


def test_what_fails_halfway_is_not_published() -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise RuntimeError("compiler says no")

    with pytest.raises(RuntimeError, match="compiler says no"):
        get_or_make("entry-2", make, silent)

    assert [path.name for path in cache_directory().iterdir() if path.is_dir()] == []


def test_a_second_process_waits_for_the_first_and_says_so() -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from localenv.cache import hold_lock; from localenv.progress import silent\n"
            "with hold_lock('entry-3', silent): print('held', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    said: list[str] = []
    waiting = threading.Event()

    def report(line: str, *, transient: bool = False) -> None:
        said.append(line)
        waiting.set()

    got: list[Path] = []
    second = threading.Thread(target=lambda: got.append(get_or_make("entry-3", lambda _: None, report)))
    second.start()
    assert waiting.wait(10)
    assert got == []
    holder.communicate("\n", timeout=10)
    second.join(10)

    assert [path.name for path in got] == ["entry-3"]
    assert said[0].startswith("waiting for another process that builds entry-3")


def test_a_killed_holder_frees_its_lock() -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from localenv.cache import hold_lock; from localenv.progress import silent\n"
            "with hold_lock('entry-4', silent): print('held', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    with hold_lock("entry-4", silent):
        pass


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_its_line_on_a_terminal() -> None:
    terminal = _Terminal()
    report = StreamReport(terminal)
    report("ten seconds", transient=True)
    report("two", transient=True)
    report("done")

    assert terminal.getvalue() == "\rten seconds\rtwo        \rdone\n"


def test_progress_is_rare_in_a_log() -> None:
    log, now = io.StringIO(), [0.0]
    report = StreamReport(log, clock=lambda: now[0])
    for second in range(40):
        now[0] = float(second)
        report(f"{second} s", transient=True)
    report("done")

    assert log.getvalue().split("\n") == ["0 s", "15 s", "30 s", "done", ""]
