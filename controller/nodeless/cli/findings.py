"""What a command found in manifests: data, lines of text, and annotations for a workflow on GitHub.

A line of text is `FILE:LINE:COL: error|warning: message [CODE]`, which editors and matchers of continuous
integration read; docs/rules.md has a paragraph for each code of a rule, docs/messages.md for each of a plan.
See `sarif` for the other form.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.rule_codes import RuleCode
from nodeless.api.validation import subject_of
from nodeless.cli.manifests.documents import Document, FaultLine, Problem, Region

VALID, INVALID, SKIPPED, UNREADABLE = "valid", "invalid", "skipped", "unreadable"
_PLACED = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL)
#: Rules whose faults are in the name of a member, not in its value.
_IN_NAMES = frozenset({RuleCode.UNKNOWN_FIELD, RuleCode.RESERVED_TAG, RuleCode.UNKNOWN_RESOURCE})


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or a warning, and where it is."""

    code: str
    """A RuleCode, or a plan's reason why pods have no place."""
    warning: bool
    path: str
    message: str
    hint: str
    text: str
    """Path, value, message and hint in one line."""
    region: Region

    @property
    def severity(self) -> str:
        """What the line says it is."""
        return "warning" if self.warning else "error"

    def to_json(self) -> dict[str, Any]:
        """The finding as a member of a ValidationReport."""
        return {
            "path": self.path,
            "line": self.region.line,
            "column": self.region.column,
            "severity": self.severity,
            "code": str(self.code),
            "message": self.message,
            "hint": self.hint,
            "text": f"warning: {self.text}" if self.warning else self.text,
        }


@dataclass(frozen=True, slots=True)
class Checked:
    """One object, or a part of a file that holds none, and what was found in it."""

    file: str
    """Empty where the object is in no file."""
    line: int
    subject: str
    result: str
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object as a member of a ValidationReport."""
        return {
            "file": self.file,
            "line": self.line,
            "object": self.subject,
            "result": self.result,
            "faults": [finding.to_json() for finding in self.findings],
        }


def checked(document: Document, faults: Sequence[FieldError], *, skipped: bool = False) -> Checked:
    """An object with its faults and warnings."""
    findings = tuple(_finding(fault, document) for fault in faults)
    result = INVALID if any(not finding.warning for finding in findings) else VALID
    subject = subject_of(document.value)
    return Checked(document.file, document.place()[0], subject, SKIPPED if skipped else result, findings)


def unreadable(problem: Problem) -> Checked:
    """A part of a file that is no manifest."""
    finding = Finding(
        problem.code, False, "", problem.message, "", problem.message, Region(problem.line, problem.column)
    )
    return Checked(problem.file, problem.line, "", UNREADABLE, (finding,))


def faulty(lines: Iterable[str]) -> tuple[list[Checked], list[str]]:
    """What lines `FILE:LINE:COL: what` say; and the lines that name no such place."""
    entries, problems = list[Checked](), list[str]()
    for line in lines:
        if (match := _PLACED.fullmatch(line)) is None:
            problems.append(line)
            continue
        code = line.code if isinstance(line, FaultLine) else RuleCode.INVALID_OBJECT
        region, text = Region(int(match["line"]), int(match["column"])), match["text"]
        finding = Finding(code, False, "", text, "", text, region)
        entries.append(Checked(match["file"], region.line, "", INVALID, (finding,)))
    return entries, problems


def fault_text(line: str) -> str:
    """A line `FILE:LINE:COL: what` as people read it, with its code; one without a place is as it was."""
    entries, _ = faulty([line])
    return next((_text_line(entry, finding) for entry in entries for finding in entry.findings), line)


def _finding(fault: FieldError, document: Document) -> Finding:
    text = str(fault).removeprefix("warning: ")
    named = fault.code in _IN_NAMES or fault.path.endswith(at("", str(fault.value)))
    region = document.region(fault.path, key=named)
    return Finding(fault.code, fault.warning, fault.path, fault.message, fault.hint, text, region)


def text_lines(entry: Checked) -> Iterator[str]:
    """The result, and a line for each finding."""
    yield (
        f"{entry.file}: {entry.subject}: {entry.result}" if entry.subject else f"{entry.file}: {entry.result}"
    )
    yield from (_text_line(entry, finding) for finding in entry.findings)


def _text_line(entry: Checked, finding: Finding) -> str:
    place = f"{entry.file}:{finding.region.line}:{finding.region.column}"
    return f"{place}: {finding.severity}: {finding.text} [{finding.code}]"


def github_lines(entry: Checked) -> Iterator[str]:
    """Workflow commands of GitHub Actions, which shows them on the lines of a pull request."""
    for finding in entry.findings:
        region = finding.region
        title = f"{entry.subject}: {finding.code}" if entry.subject else str(finding.code)
        options: dict[str, Any] = (
            {"file": entry.file, "line": region.line, "col": region.column} if entry.file else {}
        )
        if entry.file and region.end_line is not None and region.end_column is not None:
            options |= {"endLine": region.end_line, "endColumn": region.end_column}
        shown = _options({**options, "title": title}.items())
        yield f"::{finding.severity} {shown}::{_escaped(f'{finding.text} [{finding.code}]')}"


def _options(items: Iterable[tuple[str, Any]]) -> str:
    return ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in items)


def _escaped(text: str, more: str = "") -> str:
    """A text as workflow commands take it: percent-encoded where a character has a meaning there."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
