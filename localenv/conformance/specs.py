"""Specs of a suite: listed by a dry run, run one by one, read from ginkgo's report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from localenv.processes import spawn

#: Seconds after a spec's bound until its process is killed: it cleans up after itself meanwhile.
_GRACE = 90.0
#: Seconds that a spec, and then each step of its clean-up, has once its bound is reached.
_STEP_GRACE = 10
#: Of a spec that its process did not come to, and of one that it ended in.
_NOT_RUN = "it was not run"
_TIME_OVER = "A suite timeout occurred"
#: Before the failure of a check that a container makes once its specs have run; the last of them tells it.
CLOSING = "after all specs of its container: "
#: Characters that are kept of a failure.
_LONGEST = 400
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


class Outcome(StrEnum):
    """What became of a spec."""

    PASS = "pass"
    FAIL = "fail"
    DIFFERS = "differs"
    NOT_HERE = "not here"


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec.

    Attributes:
        suite: Name of its suite's folder.
        description: Of the suite, as ginkgo puts it before each name.
        text: Its name, those of its containers before it.
    """

    suite: str
    description: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.suite}: {self.text}"

    @property
    def focus(self) -> str:
        """A regular expression of Go that fits this spec alone."""
        escaped = _SPECIAL.sub(r"\\\1", f"{self.description} {self.text}")
        return f"^{escaped}$"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one spec, after how many seconds, and why it did not pass."""

    outcome: Outcome
    seconds: float = 0.0
    message: str = ""


class SuiteFailed(RuntimeError):
    """A suite's program could not be run at all."""


def specs_of(binary: Path, suite: str, folder: Path) -> tuple[Spec, ...]:
    """Every spec of a suite, in ginkgo's order. Raises SuiteFailed."""
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.json"
        done = subprocess.run(
            [binary, "-ginkgo.dry-run", "-ginkgo.seed=1", f"-ginkgo.json-report={report}"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            raise SuiteFailed(
                f"the suite {suite} does not list its specs: {done.stdout[-500:]}{done.stderr[-500:]}"
            )
        document = json.loads(report.read_text())
    return tuple(
        Spec(suite, described, _text(entry)) for described, entry in _entries(document) if _is_spec(entry)
    )


def run_specs(
    binary: Path,
    specs: Sequence[Spec],
    folder: Path,
    environment: Mapping[str, str],
    bound: float,
    log: Path,
    arguments: Sequence[str] = (),
) -> list[Result]:
    """Run specs of one suite in one process, for so many seconds in all; its output is kept in `log`."""
    focus = "|".join(spec.focus for spec in specs)
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.json"
        command = [
            str(binary),
            *(f"-ginkgo.focus={focus}", f"-ginkgo.json-report={report}", "-ginkgo.no-color"),
            *(f"-ginkgo.timeout={bound:.0f}s", f"-ginkgo.grace-period={_STEP_GRACE}s"),
            *(f"-test.timeout={bound + _GRACE:.0f}s", "-ginkgo.v"),
            *arguments,
        ]
        with log.open("wb") as output:
            process = spawn(command, cwd=folder, environment={**os.environ, **environment}, stdout=output)
            try:
                process.wait(bound + _GRACE)
            except subprocess.TimeoutExpired:
                return [Result(Outcome.FAIL, bound, f"did not end within {bound:.0f} s")] * len(specs)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not report.exists():
            return [Result(Outcome.FAIL, 0.0, "the suite ended without a report")] * len(specs)
        document = json.loads(report.read_text())
        return [read_result(document, spec) for spec in specs]


def read_result(document: list[dict[str, Any]], spec: Spec) -> Result:
    """What a report of ginkgo says of a spec; whatever failed around it counts as its own failure.

    The failure of what a container asserts after all of its specs begins with `CLOSING`.
    """
    failure = ""
    for described, entry in _entries(document):
        ours = _is_spec(entry) and described == spec.description and _text(entry) == spec.text
        state = entry["State"]
        if ours and state in {"passed", "pending"}:
            outcome = Outcome.PASS if state == "passed" else Outcome.NOT_HERE
            return Result(outcome, entry["RunTime"] / 1e9, "" if state == "passed" else "pending upstream")
        if ours and state == "skipped" and _message(entry):
            return Result(Outcome.NOT_HERE, entry["RunTime"] / 1e9, _message(entry))
        if ours and state != "skipped":
            closing = (entry.get("Failure") or {}).get("FailureNodeType") == "AfterAll"
            said = (CLOSING if closing else "") + (_message(entry) or state)
            return Result(Outcome.FAIL, entry["RunTime"] / 1e9, said)
        if not _is_spec(entry) and state not in {"passed", "skipped"}:
            failure = failure or _message(entry)
    return Result(Outcome.FAIL, 0.0, failure or _NOT_RUN)


def is_cut_short(result: Result) -> bool:
    """Whether the time that was meant for several specs was over before this one's own."""
    return result.outcome == Outcome.FAIL and result.message.startswith((_NOT_RUN, _TIME_OVER))


def _entries(document: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for suite in document:
        for entry in suite.get("SpecReports") or ():
            yield suite["SuiteDescription"], entry


def _is_spec(entry: Mapping[str, Any]) -> bool:
    return bool(entry["LeafNodeType"] == "It")


def _text(entry: Mapping[str, Any]) -> str:
    texts = [*(entry.get("ContainerHierarchyTexts") or ()), entry.get("LeafNodeText", "")]
    return " ".join(text for text in texts if text)


def _message(entry: Mapping[str, Any]) -> str:
    """The failure in one line, with the line of the suite where it happened."""
    failure = entry.get("Failure") or {}
    # What a spec that came to its bound was waiting for, as gomega tells it.
    waiting = (failure.get("ProgressReport") or {}).get("AdditionalReports") or ()
    said = " ".join(" ".join((str(failure.get("Message", "")), *map(str, waiting))).split())
    where = failure.get("Location") or {}
    file = Path(str(where.get("FileName", ""))).name
    return f"{said} ({file}:{where.get('LineNumber', 0)})" if said and file else said


def shorten(text: str) -> str:
    """Beginning and end of a long failure: what was expected comes last."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
