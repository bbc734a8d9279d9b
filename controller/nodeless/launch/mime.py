"""MIME archives as cloud-init reads them: several documents in one user data.

Written by hand: Python's `email` adds headers and folds lines, and the text is compared
byte for byte (the launch template's name depends on it).
"""

import email
from collections.abc import Iterable
from email.message import Message
from typing import NamedTuple

BOUNDARY = "//"
SHELL = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG = "application/node.eks.aws"


#: Headers of a part that are written anew, or say nothing once its text is decoded.
_WRITTEN = ("content-type", "content-transfer-encoding", "mime-version")
_NOT_ENCODED = ("", "7bit", "8bit", "binary")


class Part(NamedTuple):
    """A document of an archive."""

    content_type: str
    text: str
    headers: tuple[tuple[str, str], ...] = ()
    """All but the content type: how cloud-init merges it, what its file is called, how it is encoded."""


class MimeError(ValueError):
    """A user data that begins as a MIME archive but is none."""


def is_archive(text: str) -> bool:
    """Whether a text presents itself as a MIME archive."""
    return text.strip().startswith(("MIME-Version:", "Content-Type:"))


def archive(parts: Iterable[Part]) -> str:
    """The archive of some parts, lines ended by LF alone."""
    listed = [part._replace(text=part.text.replace("\r", "")) for part in parts]
    boundary = _boundary(part.text for part in listed)
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for part in listed:
        headers = (("Content-Type", part.content_type), *part.headers)
        lines += [f"--{boundary}", *(f"{name}: {' '.join(value.split())}" for name, value in headers)]
        lines += ["", part.text]
    lines.append(f"--{boundary}--")
    return "\n".join(lines) + "\n"


def _boundary(texts: Iterable[str]) -> str:
    """Karpenter's boundary, unless a part has it in itself: then a longer one that no part has."""
    whole, boundary = "\n".join(["", *texts]), BOUNDARY
    while f"\n--{boundary}" in whole:
        boundary += "/"
    return boundary


def parts_of(text: str) -> list[Part]:
    """The parts of an archive, nested ones unfolded; what is no text stays encoded as it is.

    Raises:
        MimeError: It is not multipart.
    """
    message = email.message_from_string(text.strip().replace("\r", ""))
    if not message.is_multipart():
        raise MimeError(
            "user data begins as a MIME archive but has no parts; "
            "hint: its Content-Type must be multipart/mixed with a boundary"
        )
    return [_read(part) for part in message.walk() if not part.is_multipart()]


def _read(part: Message) -> Part:
    content_type = str(part.get("Content-Type", "text/plain"))
    headers = tuple((name, str(value)) for name, value in part.items() if name.lower() not in _WRITTEN)
    encoding, text = str(part.get("Content-Transfer-Encoding", "")), str(part.get_payload())
    if encoding.strip().lower() in _NOT_ENCODED:
        return Part(content_type, text, headers)
    payload = part.get_payload(decode=True)
    try:
        return Part(content_type, payload.decode() if isinstance(payload, bytes) else "", headers)
    except UnicodeDecodeError:
        return Part(content_type, text, (*headers, ("Content-Transfer-Encoding", encoding)))
