"""Writes words for bash: whatever the text is, the shell reads it back as that one word.

A quoted word stays on its line and in ASCII: a line of its own could end the part of the MIME archive that
the script stands in. Which texts are sensible is not asked here; whoever checked them may have been wrong.
"""

import re

_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_BEYOND_QUOTES = re.compile(r"[^ -~]")


class ShellError(ValueError):
    """A text that no shell can hold."""


def bare(text: str) -> str:
    """The text as one word, in quotes only when it needs them. Raises ShellError."""
    return text if _NEEDS_NO_QUOTES.fullmatch(text) else quote_word(text)


def quote_word(text: str) -> str:
    """The text in quotes, as one word. Raises ShellError for a NUL, which no argument can hold."""
    if "\0" in text:
        raise ShellError(f"user data: {text!r} holds a NUL; hint: write it without")
    if _BEYOND_QUOTES.search(text) is None:
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_escape_byte, text.encode())) + "'"


def _escape_byte(byte: int) -> str:
    """One byte within `$'...'`, where three octal digits are always one byte."""
    if byte in b"'\\":
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
