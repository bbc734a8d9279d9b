"""How large a document may be before anything is built of it: counted in its bytes, without parsing.

A byte of JSON becomes up to thirty bytes of Python, and every pass over it costs seconds where a text of the
same length costs nothing. So values are counted before they exist. Two expressions that cannot back-track
do it; they read any bytes, JSON or not, and never fail.
"""

import re
from dataclasses import dataclass

#: A string to its end, or to the end of the text; neither an escaped quote nor a missing one is read twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_NEITHER_OPENED_NOR_CLOSED = re.compile(rb"[^][}{]++")


class DocumentTooLargeError(ValueError):
    """A document beyond a bound; the text says which, and what was found."""


@dataclass(frozen=True, slots=True)
class DocumentBounds:
    """What is read of a document in one piece.

    Attributes:
        values: Values in it, each object, list, string, number, truth value and null counted.
        depth: Objects and lists inside one another.
    """

    values: int
    depth: int


def check_json(text: bytes, bounds: DocumentBounds) -> int:
    """How many values a JSON text holds, or a few more. Raises DocumentTooLargeError.

    A text that is no JSON passes, or not: whether it is any is for its reader to say.
    """
    bare = _STRING.sub(b"", text)
    # One value more than there are commas and beginnings: each of these is followed by one, or by an end.
    values = 1 + bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > bounds.values:
        raise DocumentTooLargeError(f"it holds up to {values} values; at most {bounds.values} are read")
    depth = _deepest(_NEITHER_OPENED_NOR_CLOSED.sub(b"", bare), bounds.depth)
    if depth > bounds.depth:
        raise DocumentTooLargeError(f"it is nested more than {bounds.depth} deep")
    return values


def _deepest(brackets: bytes, enough: int) -> int:
    """The deepest level, or the first one beyond `enough`."""
    depth = deepest = 0
    for bracket in brackets:
        if bracket in b"[{":
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > enough:
                    break
        else:
            depth -= 1
    return deepest
