"""What a command found in manifests, in SARIF 2.1.0: the form in which code hosts take findings of checks.

The standard: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, with Errata 01.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nodeless import DISTRIBUTION, __version__
from nodeless.api.rule_codes import RuleCode
from nodeless.cli.bounded_files import STDIN
from nodeless.cli.findings import Checked, Finding
from nodeless.cli.rule_index import RULES

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: Files are named from the folder in which the command was run.
_ROOT = "%SRCROOT%"
#: Of the identity of a finding; another way to make it gets another name.
_FINGERPRINT = "nodelessFinding/v1"


def sarif(entries: Sequence[Checked], problems: Sequence[str]) -> dict[str, Any]:
    """One run.

    Args:
        entries: What was checked.
        problems: Why files could not be read at all.
    """
    codes = sorted({finding.code for entry in entries for finding in entry.findings})
    ranks = {code: rank for rank, code in enumerate(codes)}
    seen: Counter[str] = Counter()
    results = [_result(entry, finding, ranks, seen) for entry in entries for finding in entry.findings]
    driver: dict[str, Any] = {"name": "nodeless", "version": __version__, "rules": list(map(_rule, codes))}
    if address := _address("Homepage"):
        driver["informationUri"] = address
    invocation: dict[str, Any] = {"executionSuccessful": not problems}
    if problems:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": problem}} for problem in problems
        ]
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        # PyYAML counts characters.
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    level, meaning, remedy, page = _texts(code)
    described: dict[str, Any] = {
        "id": str(code),
        "name": str(code),
        "shortDescription": {"text": meaning},
        "help": {"text": remedy},
        "defaultConfiguration": {"level": level},
    }
    if address := _address("Documentation"):
        described["helpUri"] = f"{address}/{page}#{code.lower()}"
    return described


def _texts(code: str) -> tuple[str, str, str, str]:
    """Level, meaning and remedy of a code, and its page."""
    if isinstance(code, RuleCode):
        rule = RULES[code]
        return rule.level, rule.meaning, rule.remedy, "rules.md"
    # Imported here: the controllers' codes stand behind it, and rules do without.
    from nodeless.cli.message_index import REFUSALS, entries  # noqa: PLC0415

    meaning, remedy = next(
        ((entry.meaning, entry.remedy) for entry in entries() if entry.code == code), (str(code), "")
    )
    return "error" if code in REFUSALS else "warning", meaning, remedy, "messages.md"


def _result(entry: Checked, finding: Finding, ranks: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": finding.region.line, "startColumn": finding.region.column}
    if finding.region.end_line is not None and finding.region.end_column is not None:
        region |= {"endLine": finding.region.end_line, "endColumn": finding.region.end_column}
    location: dict[str, Any] = {}
    if entry.file:
        location["physicalLocation"] = {"artifactLocation": _artifact(entry.file), "region": region}
    if entry.subject:
        location["logicalLocations"] = [{"fullyQualifiedName": entry.subject, "kind": "object"}]
    return {
        "ruleId": str(finding.code),
        "ruleIndex": ranks[finding.code],
        "level": finding.severity,
        "message": {"text": finding.text},
        "locations": [location],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(entry, finding, seen)},
    }


def _fingerprint(entry: Checked, finding: Finding, seen: Counter[str]) -> str:
    """What stays the same when lines above the finding come and go: file, object, rule and field."""
    parts = (_uri(entry.file) if entry.file else "", entry.subject, str(finding.code), finding.path)
    made = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
    seen[made] += 1
    return made if seen[made] == 1 else f"{made}:{seen[made]}"


def _artifact(file: str) -> dict[str, str]:
    uri = _uri(file)
    return {"uri": uri} if ":" in uri.partition("/")[0] else {"uri": uri, "uriBaseId": _ROOT}


def _uri(file: str) -> str:
    """A file as seen from the current folder; one that is not below it has its whole address."""
    if file == STDIN:
        return "stdin"
    path, here = Path(file).resolve(), Path.cwd().resolve()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


@cache
def _address(name: str) -> str:
    """An address of the project, as its distribution declares it."""
    try:
        declared = metadata(DISTRIBUTION).get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((line.partition(", ")[2] for line in declared if line.startswith(f"{name}, ")), "")
