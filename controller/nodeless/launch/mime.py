"""MIME archives as cloud-init reads them: several documents in one user data.

Written by hand: Python's `email` adds headers and folds lines, and the text is compared
byte for byte (the launch template's name depends on it).
"""

import email
from collections.abc import Iterable

BOUNDARY = "//"
SHELL = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG = "application/node.eks.aws"


class MimeError(ValueError):
    """A user data that begins as a MIME archive but is none."""


def is_archive(text: str) -> bool:
    """Whether a text presents itself as a MIME archive."""
    return text.strip().startswith(("MIME-Version:", "Content-Type:"))


def archive(parts: list[tuple[str, str]]) -> str:
    """The archive of (content type, text) parts, lines ended by LF alone."""
    parts = [(" ".join(kind.split()), text.replace("\r", "")) for kind, text in parts]
    boundary = _boundary(text for _, text in parts)
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for content_type, text in parts:
        lines += [f"--{boundary}", f"Content-Type: {content_type}", "", text]
    lines.append(f"--{boundary}--")
    return "\n".join(lines) + "\n"


def _boundary(texts: Iterable[str]) -> str:
    """Karpenter's boundary, unless a part has it in itself: then a longer one that no part has."""
    whole, boundary = "\n".join(["", *texts]), BOUNDARY
    while f"\n--{boundary}" in whole:
        boundary += "/"
    return boundary


def parts_of(text: str) -> list[tuple[str, str]]:
    """The (content type, text) parts of an archive, nested ones unfolded.

    Raises:
        MimeError: It is not multipart.
    """
    message = email.message_from_string(text.strip().replace("\r", ""))
    if not message.is_multipart():
        raise MimeError(
            "user data begins as a MIME archive but has no parts; "
            "hint: its Content-Type must be multipart/mixed with a boundary"
        )
    parts = []
    for part in message.walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            content = payload.decode(errors="replace") if isinstance(payload, bytes) else ""
            parts.append((str(part.get("Content-Type", "text/plain")), content))
    return parts
