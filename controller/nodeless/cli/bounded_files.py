"""Every file that a user names goes through here: what is read of it is bounded, and what is not is said.

A file may be a device without an end, a pipe, an archive that unpacks to a thousand times its size, or JSON
nested so deep that a parser ends the process. All commands have the same bounds and the same words for them.
"""

import codecs
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

from nodeless.api.bounds import DocumentBounds, DocumentTooLargeError, check_json

STDIN = "-"
#: How the names of files of manifests end.
ENDINGS = (".yaml", ".yml", ".json")
#: Bytes of one file, unpacked: all pods of a cluster of 5,000 nodes in JSON are less.
MOST_BYTES = 512 * 1024 * 1024
#: Nesting of JSON; saved situations nest 12 deep, objects of Kubernetes 30. Values are bounded by the bytes.
JSON_BOUNDS = DocumentBounds(values=MOST_BYTES, depth=200)
_GZIP = b"\x1f\x8b"
_GIVE = "hint: give YAML or JSON files, folders of them, or - for stdin"


class UnreadableFileError(ValueError):
    """A file of which nothing can be read; the text names the file, the reason and what to do."""


def files_below(folder: Path) -> list[Path]:
    """The files of manifests in a folder and below it, in the order of their paths."""
    return sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())


def read_bytes(name: str, hint: str = _GIVE) -> bytes:
    """The bytes of a file, or of stdin for `-`, uncompressed. Raises UnreadableFileError."""
    try:
        if name == STDIN:
            return _uncompressed(name, _bounded(name, sys.stdin.buffer))
        with Path(name).open("rb") as file:
            return _uncompressed(name, _bounded(name, file))
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, UnreadableFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFileError(f"{name} cannot be read: {reason}; {hint}") from None


def read_text(name: str, hint: str = _GIVE) -> str:
    """Its text: UTF-8, or UTF-16 with the mark that Windows puts before it. Raises UnreadableFileError."""
    content = read_bytes(name, hint)
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.object[error.start]:#04x} at {error.start} is not UTF-8"
        raise UnreadableFileError(f"{name} cannot be read: {problem}; hint: is it a text file?") from None


def read_json(name: str, hint: str) -> Any:
    """The document of a file. Raises UnreadableFileError."""
    content = read_bytes(name, hint)
    try:
        check_json(content, JSON_BOUNDS)
        return json.loads(content)
    except DocumentTooLargeError as error:
        raise UnreadableFileError(f"{name} cannot be read: {error}; {hint}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(f"{name} is not JSON: {error}; {hint}") from None


def _bounded(name: str, file: Any) -> bytes:
    content: bytes = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        mib = MOST_BYTES // (1024 * 1024)
        raise UnreadableFileError(
            f"{name} cannot be read: it is larger than {mib} MiB; hint: give fewer objects at a time"
        )
    return content


def _uncompressed(name: str, content: bytes) -> bytes:
    if not content.startswith(_GZIP):
        return content
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return _bounded(name, file)
