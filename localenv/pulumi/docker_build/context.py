"""The build context: the files of a folder that a `.dockerignore` lets through, and their digests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Context:
    """What a build can copy.

    Attributes:
        digests: SHA-256 of every file, mode included, by its path below the context's root.
        sizes: Bytes of every file.
    """

    digests: Mapping[str, str]
    sizes: Mapping[str, int]

    def matching(self, source: str) -> list[str]:
        """The files that a source of COPY takes: itself, what lies below it, or what its pattern matches."""
        pattern = re.compile(_regular_expression(source.removeprefix("./").strip("/")))
        everything = source in {".", "./", "/"}
        return [path for path in self.digests if everything or any(map(pattern.fullmatch, _prefixes(path)))]

    def digest(self, paths: Iterable[str]) -> str:
        """One digest of these files with their paths."""
        lines = "".join(f"{path} {self.digests[path]}\n" for path in sorted(paths))
        return hashlib.sha256(lines.encode()).hexdigest()


def read_context(root: Path, dockerfile: Path) -> Context:
    """The context below `root`; the Dockerfile's own ignore file goes before that of the root."""
    own = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
    ignore = own if own.is_file() else root / ".dockerignore"
    rules = list(_rules(ignore.read_text() if ignore.is_file() else ""))
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
    kept = {name: path for name, path in found.items() if not _is_ignored(name, rules)}
    return Context(
        {name: _file_digest(path) for name, path in kept.items()},
        {name: path.stat().st_size for name, path in kept.items()},
    )


def _file_digest(path: Path) -> str:
    mode = f"{path.stat().st_mode & 0o777:o}".encode()
    return hashlib.sha256(mode + b"\0" + path.read_bytes()).hexdigest()


def _rules(text: str) -> Iterator[tuple[re.Pattern[str], bool]]:
    """Patterns in order, each with whether it lets through again what it matches."""
    for line in (line.strip() for line in text.splitlines()):
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!").strip("/")
            yield re.compile(_regular_expression(pattern)), line.startswith("!")


def _is_ignored(path: str, rules: list[tuple[re.Pattern[str], bool]]) -> bool:
    """Whether the last rule that matches the path, or a folder it lies in, ignores it."""
    ignored = False
    for pattern, kept in rules:
        if any(map(pattern.fullmatch, _prefixes(path))):
            ignored = not kept
    return ignored


def _prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _regular_expression(pattern: str) -> str:
    """Docker's patterns: rooted, `*` and `?` within one folder, `**` across any number of them."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    known = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(piece, re.escape(piece)) for piece in pieces)
