"""The changelog: cutting a version from what is unreleased, and the section of a version.

The form is that of Keep a Changelog: `## [Unreleased]`, then `## [X.Y.Z] - YYYY-MM-DD`, newest first.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from infra.release.settings import ReleaseError, parse_version

UNRELEASED: Final = "## [Unreleased]"
_SECTION: Final = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    Attributes:
        name: A version, or Unreleased.
        body: What is below the heading, without empty lines around it.
        start: Where the heading begins.
        end: Where the next one begins, or the text ends.
    """

    name: str
    body: str
    start: int
    end: int


def sections(text: str) -> list[Section]:
    """The sections in their order."""
    found = [*_SECTION.finditer(text)]
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [
        Section(match["name"], text[match.end() : end].strip(), match.start(), end)
        for match, end in zip(found, ends, strict=True)
    ]


def released_versions(text: str) -> list[str]:
    """The versions that have a section, newest first as they are written."""
    return [each.name for each in sections(text) if each.name != "Unreleased"]


def section(text: str, version: str) -> str:
    """What the changelog says of a version.

    Raises:
        ReleaseError: It has no such section.
    """
    for each in sections(text):
        if each.name == version:
            return each.body
    raise ReleaseError(
        f"CHANGELOG.md has no section [{version}]; hint: python -m infra.release cut {version}, and commit"
    )


def cut(text: str, version: str, day: date) -> str:
    """The changelog with what is unreleased as the section of `version`, below a new empty one.

    Args:
        text: The changelog.
        version: X.Y.Z. A version that has its section already changes nothing.
        day: Date of the release.

    Raises:
        ReleaseError: Nothing is unreleased, the version is not greater than every released one, or the
            changelog has no section for what is unreleased.
    """
    wanted = parse_version(version)
    if version in released_versions(text):
        return text
    higher = [each for each in released_versions(text) if parse_version(each) >= wanted]
    if higher:
        raise ReleaseError(
            f"{version} is not greater than {higher[0]}, a version in CHANGELOG.md; hint: take a greater one"
        )
    waiting = next((each for each in sections(text) if each.name == "Unreleased"), None)
    if waiting is None:
        raise ReleaseError(f"CHANGELOG.md has no line {UNRELEASED!r}; hint: add it above the newest version")
    if not _has_content(waiting.body):
        raise ReleaseError(
            f"CHANGELOG.md has nothing below {UNRELEASED!r}; hint: write what a user notices, then release"
        )
    made = f"{UNRELEASED}\n\n## [{version}] - {day.isoformat()}\n\n{waiting.body}\n"
    rest = text[waiting.end :]
    return text[: waiting.start] + made + (f"\n{rest}" if rest else "")


def _has_content(body: str) -> bool:
    """Whether there is an entry: a heading alone says nothing, nor does a line of the introduction."""
    return re.search(r"^\s*[-*] \S", body, re.MULTILINE) is not None
