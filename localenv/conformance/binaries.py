"""Suites as programs: built once for each module, version and set of adaptations, outside the checkout."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from localenv.cache import cache_directory, get_or_make
from localenv.conformance.modules import SUITES, Source
from localenv.golang import BuildFailed, go_environment
from localenv.progress import Report


def suite_binary(source: Source, suite: str, go: Path, report: Report) -> Path:
    """The program of a suite, built when it is not there yet.

    Raises:
        BuildFailed: The go command failed.
    """

    def make(folder: Path) -> None:
        _build(source, suite, go, folder, report)

    return get_or_make(_entry(source, suite), make, report) / suite


def is_built(source: Source, suite: str) -> bool:
    """Whether the program of a suite is there."""
    return (cache_directory() / _entry(source, suite)).is_dir()


def _entry(source: Source, suite: str) -> str:
    """The name of the source's folder tells the module, its version and what is adapted in it."""
    return f"{source.folder.name}-{suite}"


def _build(source: Source, suite: str, go: Path, folder: Path, report: Report) -> None:
    log = cache_directory() / "logs" / f"conformance-{suite}-build.log"
    log.parent.mkdir(exist_ok=True)
    report(f"building the suite {suite} of {source.module} (minutes the first time), log in {log}")
    started = time.monotonic()
    with log.open("wb") as messages:
        done = subprocess.run(
            [
                *(go, "test", "-c", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"),
                *("-o", folder / suite, f"./{SUITES}/{suite}"),
            ],
            cwd=source.folder,
            env=go_environment(),
            stdout=messages,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise BuildFailed(f"the suite {suite} of {source.module}", log)
    report(f"built the suite {suite} in {time.monotonic() - started:.0f} s")
