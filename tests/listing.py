"""Which tests there are, for those that say where a row of docs/acceptance is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARK = "tests: "
#: Every test, by its identifier, and whether it runs on the API server; only where all were collected.
COLLECTED = pytest.StashKey[dict[str, bool]]()
#: Options with which files are passed over.
_PARTS = ("lf", "testmon", "ignore", "ignore_glob")


def listing(items: Iterable[pytest.Item]) -> dict[str, bool]:
    """The identifiers of tests, and whether each runs on the API server."""
    return {item.nodeid: item.get_closest_marker("cluster") is not None for item in items}


def remember(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Keep what was collected, before some of it is left out, if that is all there is."""
    given = {Path(config.rootpath, arg).resolve() for arg in config.args}
    if given == {ROOT / "tests"} and not any(config.getoption(part, None) for part in _PARTS):
        config.stash[COLLECTED] = listing(items)


class Listing:
    """A plugin of pytest that prints what was collected."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        sys.stdout.write(f"\n{MARK}{json.dumps(listing(session.items))}\n")


def listed_tests(folders: Sequence[str], config: pytest.Config) -> dict[str, bool]:
    """Every test of some folders: as this run collected them, or a process of its own where it did not."""
    if (known := config.stash.get(COLLECTED, None)) is not None:
        within = tuple(f"{folder}/" for folder in folders)
        return {name: on_server for name, on_server in known.items() if name.startswith(within)}
    code = "import sys, pytest; from tests.listing import Listing; "
    code += "sys.exit(pytest.main(sys.argv[1:], plugins=[Listing()]))"
    command = [sys.executable, "-c", code, "--collect-only", "-q", "-p", "no:cacheprovider", *folders]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=True)
    (listed,) = [line for line in answer.stdout.splitlines() if line.startswith(MARK)]
    found: dict[str, bool] = json.loads(listed.removeprefix(MARK))
    return found
