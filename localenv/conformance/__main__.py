"""`python -m localenv.conformance`: run the specs that have no result yet, one by one, and write the page."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from localenv.cache import cache_directory
from localenv.cli import FAULTS, run_command
from localenv.conformance.adaptations import AdaptationFailed
from localenv.conformance.binaries import is_built, suite_binary
from localenv.conformance.cluster import clean, cluster, node_class_arguments, variables
from localenv.conformance.controllers import KARPENTER, NODELESS
from localenv.conformance.karpenter import KarpenterFailed, run_karpenter_instead
from localenv.conformance.modules import (
    DEFAULT_RELEASE,
    RELEASES,
    SUITES,
    ModuleUnusable,
    Release,
    Source,
    go_command,
    homes_of,
)
from localenv.conformance.reasons import explain_failure, is_for_small_machines, not_here, patience
from localenv.conformance.results import (
    Results,
    keep_result,
    page,
    page_of,
    read_page,
    read_results,
    results_file,
    write_results,
)
from localenv.conformance.specs import (
    Outcome,
    Result,
    Spec,
    SuiteFailed,
    is_cut_short,
    run_specs,
    shorten,
    specs_of,
)
from localenv.environment import Environment
from localenv.karpenter import karpenter, karpenter_version
from localenv.progress import Report, StreamReport
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE

_DOCS = Path(__file__).parents[2] / "docs"
_SPEC_SECONDS = 300.0
_FAULTS = (*FAULTS, ModuleUnusable, AdaptationFailed, SuiteFailed, KarpenterFailed)


def main(arguments: list[str] | None = None) -> int:
    """Run; give the exit code: 0 well, 1 a spec failed, 2 it could not run, 130 interrupted."""
    return run_command(
        _parser(), arguments, faults=_FAULTS, interrupted="results are kept, the next run goes on from here"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localenv.conformance", description=__doc__)
    parser.add_argument(
        "--spec", default="", help="part of `suite: name`: run these, also those with a result"
    )
    parser.add_argument(
        "--release",
        choices=RELEASES,
        help=f"by default {DEFAULT_RELEASE.name}; of the real controller the one that is built",
    )
    suites = {suite: None for release in RELEASES.values() for suite in release.suites}
    parser.add_argument("--suite", action="append", choices=suites, help="a suite; all by default")
    parser.add_argument(
        "--together", action="store_true", help="run the specs of each suite in one process, in its order"
    )
    parser.add_argument("--failed", action="store_true", help="run again what failed")
    parser.add_argument(
        "--quick", action="store_true", help="leave out specs that need longer than the bound"
    )
    parser.add_argument("--fresh", action="store_true", help="forget all results first")
    parser.add_argument("--build", action="store_true", help="compare and build the suites, run nothing")
    parser.add_argument(
        "--packing", choices=(LOWEST_PRICE, FEWEST_NODES), default=LOWEST_PRICE, help="of the controller"
    )
    parser.add_argument(
        "--controller",
        choices=(NODELESS, KARPENTER),
        default=NODELESS,
        help="which one is judged: karpenter is the real one, and judges the local environment",
    )
    parser.add_argument("--seconds", type=float, default=_SPEC_SECONDS, help="bound of one spec")
    parser.add_argument("--minutes", type=float, default=0.0, help="start no spec after so many; 0: no bound")
    parser.set_defaults(run=_run)
    return parser


@dataclass(frozen=True, slots=True)
class _Bench:
    """What specs are run with.

    Attributes:
        release: Which one is run.
        homes: The module of each suite.
        binaries: The program of each suite that is built.
        karpenter: The folder of the real controller's program; None while nodeless is judged.
        file: Where results are kept.
        go: The go command.
        options: Of the command line.
        report: Hears of it.
    """

    release: Release
    homes: dict[str, Source]
    binaries: dict[str, Path]
    karpenter: Path | None
    file: Path
    go: Path
    options: argparse.Namespace
    report: Report

    def explain_result(self, spec: Spec, result: Result, *, alone: bool = False) -> Result:
        """The result, and what it is for where that is known of the controller."""
        return explain_failure(spec, result, alone=alone, controller=self.options.controller)

    @property
    def provider(self) -> Source:
        """The provider's module, whose defaults are those of every suite."""
        return self.homes[self.release.provider.suites[0]]

    def folder(self, suite: str) -> Path:
        """Where a suite's program expects to be."""
        return self.homes[suite].folder / SUITES / suite

    def specs(self) -> list[Spec]:
        """Every spec of the suites that are built."""
        built = self.binaries.items()
        return [spec for suite, binary in built for spec in specs_of(binary, suite, self.folder(suite))]


def _run(options: argparse.Namespace) -> int:
    report = StreamReport()
    bench = _bench(options, report)
    if options.build:
        return 0
    specs = bench.specs()
    file = _DOCS / page_of(bench.release, options.controller)
    published = file.read_text() if file.exists() else ""
    results = {} if options.fresh else read_results(bench.file) or read_page(published)
    for spec in specs:
        if reason := not_here(spec):
            results[spec.name] = Result(Outcome.NOT_HERE, 0.0, reason)
        elif known := results.get(spec.name):
            # What is told of differences may have changed since.
            results[spec.name] = bench.explain_result(spec, known)
    suites = options.suite or bench.homes
    wanted = [spec for spec in specs if spec.suite in suites and _is_wanted(spec, results, options)]
    report(f"{len(specs)} specs, {len(wanted)} to run")
    write_results(bench.file, results)
    if wanted:
        _run_specs(wanted, bench)
        results = read_results(bench.file)
    file.write_text(page(bench.release, specs, results, options.controller))
    failed = [spec for spec in wanted if results.get(spec.name, Result(Outcome.PASS)).outcome == Outcome.FAIL]
    return int(bool(failed))


def _bench(options: argparse.Namespace, report: Report) -> _Bench:
    """Fetch and compare the modules, and build the suites that are asked for."""
    release = _release(options)
    go = go_command(release, report)
    homes = homes_of(release, go, report)
    wanted = options.suite or homes
    # The page tells of every suite that is there, also when some are run alone.
    listed = [suite for suite, source in homes.items() if suite in wanted or is_built(source, suite)]
    binaries = {suite: suite_binary(homes[suite], suite, go, report) for suite in listed}
    peer = karpenter(report) if options.controller == KARPENTER else None
    file = results_file(release, options.controller)
    return _Bench(release, homes, binaries, peer, file, go, options, report)


def _release(options: argparse.Namespace) -> Release:
    """The release whose suites are run. Raises KarpenterFailed where the real controller is of another."""
    if options.controller != KARPENTER:
        return RELEASES[options.release or DEFAULT_RELEASE.name]
    built = karpenter_version()
    if options.release not in (None, built):
        raise KarpenterFailed(
            f"the controller that is built is {built}, which the suites of {options.release} do not judge; "
            f"leave --release out, or require {options.release} in localenv/karpenter/source/go.mod"
        )
    return RELEASES[built]


def _is_wanted(spec: Spec, results: Results, options: argparse.Namespace) -> bool:
    if options.quick and patience(spec, options.seconds) > options.seconds:
        return False
    if options.together and not_here(spec):
        return False
    if options.spec:
        return options.spec.lower() in spec.name.lower()
    known = results.get(spec.name)
    return known is None or (options.failed and known.outcome == Outcome.FAIL)


def _run_specs(wanted: list[Spec], bench: _Bench) -> None:
    """Run specs one after the other; an environment that one has spoiled is replaced."""
    options = bench.options
    logs = cache_directory() / "conformance" / "logs" / options.controller
    logs.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    waiting = list(wanted)
    while waiting and time.monotonic() < until:
        with cluster(bench.release, bench.provider, bench.go, options.packing, bench.report) as environment:
            if bench.karpenter is not None:
                run_karpenter_instead(environment, bench.karpenter)
            usable = True
            while waiting and usable and time.monotonic() < until:
                specs = _next(waiting, together=options.together)
                suite = specs[0].suite
                results = run_specs(
                    bench.binaries[suite],
                    specs,
                    bench.folder(suite),
                    variables(environment),
                    sum(patience(spec, options.seconds) for spec in specs),
                    logs / f"{len(wanted) - len(waiting):03}-{suite}.log",
                    _arguments(bench, environment, specs[0]),
                )
                for spec, told in zip(specs, results, strict=True):
                    if len(specs) == 1 or not is_cut_short(told):
                        _keep(bench, spec, bench.explain_result(spec, told, alone=len(specs) == 1))
                usable = clean(environment)


def _next(waiting: list[Spec], *, together: bool) -> list[Spec]:
    """Take the specs that are run next: one, or all that wait of its suite."""
    specs = [waiting[0]]
    if together:
        first = waiting[0]
        alike = is_for_small_machines(first)
        specs = [
            each for each in waiting if each.suite == first.suite and is_for_small_machines(each) == alike
        ]
    waiting[:] = [spec for spec in waiting if spec not in specs]
    return specs


def _arguments(bench: _Bench, environment: Environment, spec: Spec) -> tuple[str, ...]:
    if bench.homes[spec.suite].module != bench.release.core:
        return ()
    small = is_for_small_machines(spec)
    return *node_class_arguments(environment, bench.provider, small=small), *bench.release.arguments


def _keep(bench: _Bench, spec: Spec, result: Result) -> None:
    result = replace(result, message=shorten(result.message))
    keep_result(bench.file, spec.name, result)
    bench.report(f"{result.outcome:8} {result.seconds:4.0f} s  {spec.name}  {result.message}")


if __name__ == "__main__":
    sys.exit(main())
