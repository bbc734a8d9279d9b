"""Results kept between runs outside the checkout, and the page made of them."""

from __future__ import annotations

import fcntl
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from localenv.cache import cache_directory
from localenv.conformance.controllers import NODELESS
from localenv.conformance.modules import DEFAULT_RELEASE, Release
from localenv.conformance.reasons import is_beyond
from localenv.conformance.specs import Outcome, Result, Spec

Results = dict[str, Result]
"""By `suite: text` of the spec."""

_RESULT_ROW = re.compile(rf"\| (.*) \| ({'|'.join(Outcome)}) \| (\d+) \| (.*) \|")


def results_file(release: Release, controller: str = NODELESS) -> Path:
    """Where the results of a release's suites with one controller are kept."""
    folder = cache_directory() / "conformance"
    folder.mkdir(exist_ok=True)
    whose = "" if controller == NODELESS else f"-{controller}"
    return folder / f"{release.provider.path.rsplit('/', 1)[-1]}-{release.name}{whose}.json"


def read_results(file: Path) -> Results:
    """Those of earlier runs; none where there is no file."""
    if not file.exists():
        return {}
    document = json.loads(file.read_text())
    return {
        name: Result(Outcome(each["outcome"]), each["seconds"], each["message"])
        for name, each in document.items()
    }


def write_results(file: Path, results: Mapping[str, Result]) -> None:
    """Replace the file in one step: an interrupted run loses no result."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({name: asdict(result) for name, result in sorted(results.items())}, indent=1))
    new.replace(file)


def keep_result(file: Path, name: str, result: Result) -> None:
    """Add a result to those that the file has, also when other runs do at the same time."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_results(file, {**read_results(file), name: result})


def read_page(text: str) -> Results:
    """The results that a page has: a machine that keeps none goes on from those that were published.

    Seconds are whole ones there, and no line break is left in a message.
    """
    results: Results = {}
    suite = ""
    for line in text.splitlines():
        if line.startswith("## "):
            suite = line.removeprefix("## ")
        elif row := _RESULT_ROW.fullmatch(line):
            name, outcome, seconds, message = (cell.replace("\\|", "|") for cell in row.groups())
            results[f"{suite}: {name}"] = Result(Outcome(outcome), float(seconds), message)
    return results


def page_of(release: Release, controller: str) -> str:
    """The name of the page below docs/ that holds a controller's results with the suites of a release."""
    whose = "" if controller == NODELESS else f"-{controller}"
    which = "" if release == DEFAULT_RELEASE else f"-{release.name}"
    return f"conformance{whose}{which}.md"


def page(
    release: Release,
    specs: Iterable[Spec],
    results: Mapping[str, Result],
    controller: str = NODELESS,
) -> str:
    """The page of a controller: each suite with its counts, each spec with its result."""
    listed = tuple(specs)
    lines = [
        *(_introduction if controller == NODELESS else _introduction_of_karpenter)(release),
        "",
        *_summary(listed, results),
        "",
        _share(listed, results),
    ]
    for suite in dict.fromkeys(spec.suite for spec in listed):
        lines += ["", f"## {suite}", "", "| spec | result | seconds | why |", "|---|---|---|---|"]
        lines += [_row(spec, results.get(spec.name)) for spec in listed if spec.suite == suite]
    lines += [
        "",
        "## Adapted environment code",
        "",
        "| file | original | adapted | reason |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {adaptation.file} | `{_cell(adaptation.old)}` | `{_cell(adaptation.new)}` | {adaptation.reason} |"
        for module in release.modules
        for adaptation in module.adaptations
    ]
    return "\n".join([*lines, ""])


def _introduction(release: Release) -> list[str]:
    return [
        f"# Karpenter's own end-to-end suites, {release.name}",
        "",
        f"`{_command(release)}` runs the suites of {_name_modules(release)}",
        "against this controller in the local environment and writes this page. Their assertions are",
        "compared with the published archives before they are built; only environment code is adapted, as",
        "listed at the end. A line without a result was not run; `differs` is a failure that",
        "[compatibility.md](compatibility.md) explains, or one where upstream contradicts itself.",
        "[The real Karpenter's results](conformance-karpenter.md) in the same environment show whether a",
        "failure is the environment's.",
    ]


def _introduction_of_karpenter(release: Release) -> list[str]:
    return [
        f"# The real Karpenter {release.name} in the local environment",
        "",
        f"`{_command(release, '--controller karpenter')}` runs the suites of {_name_modules(release)}",
        "against the real Karpenter controller of the same version, in a pod of the local environment where",
        "[nodeless passes them](conformance.md), and writes this page. It judges the environment: where the",
        "real controller fails, the local AWS, cluster or kubelets do not behave like the real ones.",
        "A line without a result was not run; `differs` is a failure for a reason that is known, and named.",
    ]


def _name_modules(release: Release) -> str:
    return " and ".join(f"`{module}`" for module in release.modules)


def _command(release: Release, *options: str) -> str:
    """What runs a release's suites: the default one is run unless another is named."""
    named = () if release == DEFAULT_RELEASE else (f"--release {release.name}",)
    given = " ".join((*named, *options))
    return f'make conformance ARGS="{given}"' if given else "make conformance"


def _summary(specs: tuple[Spec, ...], results: Mapping[str, Result]) -> list[str]:
    lines = [
        "| suite | specs | pass | fail | differs | not here | not run yet |",
        "|---|---|---|---|---|---|---|",
    ]
    for suite in (*dict.fromkeys(spec.suite for spec in specs), ""):
        own = [spec for spec in specs if suite in ("", spec.suite)]
        counts = Counter(results[spec.name].outcome for spec in own if spec.name in results)
        numbers = [len(own), *(counts[each] for each in Outcome), len(own) - counts.total()]
        lines.append(f"| {suite or 'all'} | {' | '.join(map(str, numbers))} |")
    return lines


def _share(specs: tuple[Spec, ...], results: Mapping[str, Result]) -> str:
    """How many of the specs that could run anywhere but at scale or on real hardware can run here."""
    counted = [spec for spec in specs if not is_beyond(spec)]
    left = [
        spec for spec in counted if spec.name in results and results[spec.name].outcome == Outcome.NOT_HERE
    ]
    runs = len(counted) - len(left)
    percent = 100 * runs / max(len(counted), 1)
    return (
        f"Of the {len(counted)} specs that are neither scale tests nor in need of real hardware, {runs} can "
        f"run here ({percent:.1f} %)."
    )


def _row(spec: Spec, result: Result | None) -> str:
    if result is None:
        return f"| {_cell(spec.text)} | | | |"
    return f"| {_cell(spec.text)} | {result.outcome} | {result.seconds:.0f} | {_cell(result.message)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
