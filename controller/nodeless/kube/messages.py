"""What a list and a watch send: pages, and lines with one object each."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeless.kube.heads import head_of
from nodeless.kube.lines import CutLine


class ObjectTooLarge(ValueError):
    """An object of which only the beginning was read."""

    def __init__(self, line: CutLine) -> None:
        super().__init__(
            f"it is {line.size / 2**20:.1f} MiB as JSON, more than the {len(line) // 2**20} MiB that are read"
            "; hint: move large values into a ConfigMap or Secret"
        )


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's spelling
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct):
    metadata: _Metadata


class Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class _PageMetadata(msgspec.Struct, rename={"continues": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the API's spelling
    continues: str = ""


class Page(msgspec.Struct):
    metadata: _PageMetadata
    items: list[msgspec.Raw] = []


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


def open_message(line: bytes) -> tuple[str, bytes, Mapping[str, Any]]:
    """Type, object and metadata of a line; of one that cannot be read, what its beginning tells.

    Raises ValueError for a line that is none of a watch.
    """
    if not isinstance(line, CutLine):
        try:
            envelope = _ENVELOPE.decode(line)
            raw = bytes(envelope.object)
            metadata = _BOOKMARK.decode(raw).metadata if envelope.type != "ERROR" else _Metadata()
            return envelope.type, raw, msgspec.to_builtins(metadata)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # nested too deeply, say: its beginning still says which object it is
    head = head_of(line)
    document, type_ = head.get("object"), head.get("type")
    fields = document.get("metadata") if isinstance(document, dict) else None
    if isinstance(type_, str) and isinstance(fields, dict):
        return type_, line, fields
    raise ValueError(f"this is no line of a watch: {line[:100]!r}")


def full_name(metadata: Mapping[str, Any]) -> str:
    """`namespace/name`, or the name alone."""
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}".removeprefix("/")
