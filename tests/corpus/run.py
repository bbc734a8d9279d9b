"""Read every manifest of a folder as `nodeless plan` and `nodeless validate` do, and say what came of each.

`python -m tests.corpus.run FOLDER` prints one line a file and totals; `--json` a document for machines. It is
a test for crashes, too: the exit code is 1 only where something was raised that nobody foresaw.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nodeless.cli.bounded_files import files_below
from tests.corpus.reading import FileResult, read_file


def main(arguments: Sequence[str] | None = None, read: Callable[[Path], FileResult] = read_file) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.run", description="Read every manifest.")
    parser.add_argument("folder", type=Path, help="a folder of .yaml, .yml and .json files")
    parser.add_argument("--json", action="store_true", help="one document for machines")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        parser.error(f"{given.folder} is no folder")
    results: dict[str, FileResult] = {}
    crashed: dict[str, str] = {}
    for path in files_below(given.folder):
        name = str(path.relative_to(given.folder))
        try:
            results[name] = read(path)
        except Exception as error:
            crashed[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        if not given.json:
            _say(_line(name, results[name]) if name in results else f"{name}: CRASHED: {crashed[name]}")
    if given.json:
        files = {name: result.as_dict() for name, result in results.items()}
        _say(json.dumps({"totals": _totals(results, crashed), "files": files, "crashed": crashed}, indent=2))
    else:
        _say("; ".join(f"{name} {number}" for name, number in _totals(results, crashed).items()))
    return 1 if crashed else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _line(name: str, result: FileResult) -> str:
    """One line: what was read, or why it is refused."""
    parts = [f"{result.pods} pods"] if result.pods else []
    parts += [f"{len(result.daemon_sets)} daemon sets"] if result.daemon_sets else []
    parts += result.pools + result.node_classes
    if result.skipped:
        kinds = ", ".join(f"{kind} ({number})" for kind, number in result.skipped.items())
        parts.append(f"skipped {kinds}")
    parts += [f"refused {fault}" for fault in dict.fromkeys((*result.faults, *result.invalid))]
    parts += [f"warning {warning}" for warning in result.warnings]
    return f"{name}: {'; '.join(parts) or 'nothing'}"


def _totals(read: dict[str, FileResult], crashed: dict[str, str]) -> dict[str, Any]:
    skipped: Counter[str] = Counter()
    for result in read.values():
        skipped.update(result.skipped)
    return {
        "files": len(read) + len(crashed),
        "pods": sum(result.pods for result in read.values()),
        "skipped": sum(skipped.values()),
        "refused": sum(1 for result in read.values() if result.faults or result.invalid),
        "warnings": sum(len(result.warnings) for result in read.values()),
        "crashed": len(crashed),
    }


if __name__ == "__main__":
    sys.exit(main())
