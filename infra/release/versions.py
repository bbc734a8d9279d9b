"""Every place that names the version or the image: all follow the project file of the workspace.

Two kinds of places: declarations, which must be there (`DECLARED`), and references by which people and
examples name what is released (`REFERENCES`), wherever they are among the files that git knows. Files
that are generated from these have their own checks (`python -m pulumi_nodeless generate --check` and
`python -m infra.image sbom --check`).
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.release.settings import ROOT, SOURCE, ReleaseError, Settings, read_settings

VERSION: Final = r"(?P<version>\d+\.\d+\.\d+[\w.+-]*?)"
_REPOSITORY: Final = r"(?P<image>[\w.:/-]+)"
_LINE: Final = re.MULTILINE


@dataclass(frozen=True, slots=True)
class Declaration:
    """A line that must be there once.

    Attributes:
        path: File, relative to the checkout.
        pattern: The line, with a group named `version`, `image` or `charts`.
    """

    path: str
    pattern: re.Pattern[str]


def _line(path: str, pattern: str) -> Declaration:
    return Declaration(path, re.compile(f"^{pattern}$", _LINE))


DECLARED: Final = (
    *(
        _line(f"{folder}pyproject.toml", rf'version = "{VERSION}"')
        for folder in ("", "controller/", "components/")
    ),
    _line("localenv/pyproject.toml", rf'version = "{VERSION}"'),
    _line("pyproject.toml", rf'image = "{_REPOSITORY}"'),
    _line("pyproject.toml", r'charts = "(?P<charts>[\w.:/-]+)"'),
    _line("controller/nodeless/__init__.py", rf'__version__ = "{VERSION}"'),
    _line("components/pulumi_nodeless/__init__.py", rf'__version__ = "{VERSION}"'),
    _line("components/pulumi_nodeless/names.py", rf'IMAGE_REPOSITORY = "{_REPOSITORY}"'),
    _line("controller/Dockerfile", rf"ARG VERSION={VERSION}"),
    _line("charts/nodeless/values.yaml", rf"    repository: {_REPOSITORY}"),
    *(
        _line(f"charts/{chart}/Chart.yaml", f"{key}: {VERSION}")
        for chart in ("nodeless", "nodeless-crd")
        for key in ("version", "appVersion")
    ),
)
"""The declarations; the version of the workspace among them, which `set` writes like the others."""

_END: Final = r"(?![\w+-]|\.\w)"
REFERENCES: Final = (
    (
        "/controller:",
        re.compile(rf"(?<![\w./-])(?P<image>[\w.-]+(?::\d+)?(?:/[\w.-]+)*/controller):{VERSION}{_END}"),
    ),
    ("nodeless", re.compile(rf"\b(?:nodeless-provisioner|pulumi-nodeless)(?:\[\w+\])?=={VERSION}{_END}")),
    ("/sdk/go", re.compile(rf"/pulumi-nodeless/sdk/go v{VERSION}{_END}")),
    (
        "oci://",
        re.compile(
            rf"oci://(?P<charts>[a-z0-9._:/-]+)/nodeless(?:-crd)?(?![\w-])(?:.*--version {VERSION}{_END})?"
        ),
    ),
)
"""Names of what is released: an image by tag, a pinned distribution, the Go module, a chart in its registry.

Each with a text that a file has where it has such a name: expressions are slow on long files.
"""

_ELSEWHERE: Final = re.compile(
    r"CHANGELOG\.md$|(^|/)tests/|(^|/)go\.sum$|\.lock$|\.json$|\.(png|svg)$|^infra/release/"
)
"""Not read: history, examples of other versions, locks, and what is generated."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place that does not say what the project file says."""

    path: str
    line: int
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found}, where {SOURCE} says {self.wanted}"


def differences(root: Path = ROOT) -> list[Difference]:
    """Places that differ from the project file of the workspace.

    Raises:
        ReleaseError: A declaration is missing, or is there twice.
    """
    wanted = read_settings(root)
    return [each for path in _paths(root) for each in differences_in(path, _read(root / path), wanted)]


def differences_in(path: str, text: str, wanted: Settings) -> list[Difference]:
    """Places of one file that differ, by line. Errors as `differences`."""
    found = [
        Difference(path, text.count("\n", 0, match.start(part)) + 1, match[part], getattr(wanted, part))
        for match in _matches(path, text)
        for part in match.groupdict()
        if match[part] is not None and match[part] != getattr(wanted, part)
    ]
    return sorted(found, key=lambda each: each.line)


def write_settings(settings: Settings, root: Path = ROOT) -> list[str]:
    """Has every place say what `settings` says; gives the files that changed, without the generated ones.

    Raises:
        ReleaseError: As `differences`; then nothing is written.
    """
    texts = {path: _read(root / path) for path in _paths(root)}
    changed: list[str] = []
    for path, text in texts.items():
        new = text
        # Backwards, so that what comes before keeps its place.
        matches = sorted(_matches(path, text), key=lambda match: match.start(), reverse=True)
        for match in matches:
            for part in sorted(match.groupdict(), key=match.start, reverse=True):
                if match[part] is not None:
                    new = new[: match.start(part)] + getattr(settings, part) + new[match.end(part) :]
        if new != text:
            (root / path).write_text(new)
            changed.append(path)
    return changed


def _paths(root: Path) -> list[str]:
    """Files that may name a version; every declaration's is among them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    there = {path for path in listed if path and not _ELSEWHERE.search(path) and (root / path).is_file()}
    missing = sorted({each.path for each in DECLARED} - there)
    if missing:
        raise ReleaseError(
            f"{', '.join(missing)}: not among the files that git knows, and must name the version"
        )
    return sorted(there)


def _matches(path: str, text: str) -> Iterator[re.Match[str]]:
    for declaration in DECLARED:
        if declaration.path == path:
            found = [*declaration.pattern.finditer(text)]
            if len(found) != 1:
                raise ReleaseError(
                    f"{path}: {len(found)} lines are like {declaration.pattern.pattern!r}, one is needed; "
                    "hint: restore the line, or change the table in infra/release/versions.py"
                )
            yield found[0]
    for literal, pattern in REFERENCES:
        if literal in text:
            yield from pattern.finditer(text)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except UnicodeDecodeError:
        return ""
