"""`python -m infra.conformance`: run the specs that have no result yet, one by one, and write the page."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from infra.conformance.adaptations import AdaptationFailed
from infra.conformance.binaries import is_built, suite_binary
from infra.conformance.cluster import clean, cluster, variables
from infra.conformance.modules import (
    PROVIDER,
    SUITES,
    ModuleUnusable,
    Source,
    assert_as_published,
    fetch,
    go_command,
    unpacked,
)
from infra.conformance.reasons import explained, not_here
from infra.conformance.results import Results, keep_result, page, read_results, results_file, write_results
from infra.conformance.specs import Outcome, Result, Spec, SuiteFailed, run_spec, specs_of
from infra.local.cache import cache_directory
from infra.local.environment import EnvironmentFailed
from infra.local.golang import BuildFailed, ToolchainMissing
from infra.local.progress import Report, StreamReport

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
_SPEC_SECONDS = 300.0
_FAULTS = (ModuleUnusable, AdaptationFailed, SuiteFailed, BuildFailed, ToolchainMissing, EnvironmentFailed)


def main(arguments: list[str] | None = None) -> int:
    """Run; give the exit code: 0 well, 1 a spec failed, 2 it could not run, 130 interrupted."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    report = StreamReport()
    try:
        return _run(options, report)
    except _FAULTS as error:
        report(f"conformance: {error}")
        return 2
    except KeyboardInterrupt:
        report("conformance: interrupted; results are kept, the next run goes on from here")
        return 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.conformance", description=__doc__)
    parser.add_argument(
        "--spec", default="", help="part of `suite: name`: run these, also those with a result"
    )
    parser.add_argument("--suite", action="append", help="a suite; all by default")
    parser.add_argument("--failed", action="store_true", help="run again what failed")
    parser.add_argument("--fresh", action="store_true", help="forget all results first")
    parser.add_argument("--build", action="store_true", help="compare and build the suites, run nothing")
    parser.add_argument("--seconds", type=float, default=_SPEC_SECONDS, help="bound of one spec")
    parser.add_argument("--minutes", type=float, default=0.0, help="start no spec after so many; 0: no bound")
    return parser


def _run(options: argparse.Namespace, report: Report) -> int:
    go = go_command(report)
    source = unpacked(PROVIDER, fetch(PROVIDER, go), report)
    report(f"{source.module}: {assert_as_published(source)} files of suites are as published")
    suites = options.suite or source.module.suites
    # The page tells of every suite that is there, also when some are run alone.
    listed = [each for each in source.module.suites if each in suites or is_built(source, each)]
    binaries = {suite: suite_binary(source, suite, go, report) for suite in listed}
    if options.build:
        return 0
    specs = [
        spec for suite, binary in binaries.items() for spec in specs_of(binary, suite, _folder(source, suite))
    ]
    file = results_file(source.module)
    results = {} if options.fresh else read_results(file)
    for spec in specs:
        if reason := not_here(spec):
            results[spec.name] = Result(Outcome.NOT_HERE, 0.0, reason)
    wanted = [spec for spec in specs if spec.suite in suites and _is_wanted(spec, results, options)]
    report(f"{len(specs)} specs, {len(wanted)} to run")
    if wanted:
        write_results(file, results)
        _run_specs(wanted, binaries, source, go, file, options, report)
        results = read_results(file)
    PAGE.write_text(page(source.module, specs, results))
    failed = [spec for spec in wanted if results.get(spec.name, Result(Outcome.PASS)).outcome == Outcome.FAIL]
    return int(bool(failed))


def _is_wanted(spec: Spec, results: Results, options: argparse.Namespace) -> bool:
    if options.spec:
        return options.spec.lower() in spec.name.lower()
    known = results.get(spec.name)
    return known is None or (options.failed and known.outcome == Outcome.FAIL)


def _run_specs(
    wanted: list[Spec],
    binaries: dict[str, Path],
    source: Source,
    go: Path,
    file: Path,
    options: argparse.Namespace,
    report: Report,
) -> None:
    """Run specs one after the other; an environment that one has spoiled is replaced."""
    logs = cache_directory() / "conformance" / "logs"
    logs.mkdir(exist_ok=True)
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    waiting = list(wanted)
    while waiting and time.monotonic() < until:
        with cluster(source, go, report) as environment:
            usable = True
            while waiting and usable and time.monotonic() < until:
                spec = waiting.pop(0)
                log = logs / f"{len(wanted) - len(waiting):03}-{spec.suite}.log"
                folder = _folder(source, spec.suite)
                result = run_spec(
                    binaries[spec.suite], spec, folder, variables(environment), options.seconds, log
                )
                result = explained(spec, result)
                keep_result(file, spec.name, result)
                report(f"{result.outcome:8} {result.seconds:4.0f} s  {spec.name}  {result.message}")
                usable = clean(environment)


def _folder(source: Source, suite: str) -> Path:
    return source.folder / SUITES / suite


if __name__ == "__main__":
    sys.exit(main())
