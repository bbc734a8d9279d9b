"""Faults of an object: where, what was found there, what is wrong with it, what to do."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nodeless.api.rule_codes import RuleCode

_SHOWN = 80
_ENCODER = json.JSONEncoder(ensure_ascii=False)
#: The longest key that Kubernetes knows has 253 characters, a slash and 63 more.
_LONGEST_KEY = 320


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault.

    Attributes:
        path: The exact field, as `spec.requirements[2].operator`.
        value: What was found there; `ABSENT` when there was nothing.
        message: What is wrong.
        hint: What to do about it; may be empty.
        warning: The API would accept this much; it is no reason for a refusal of its own.
        code: The rule that it breaks, which docs/rules.md explains.
    """

    path: str
    value: Any
    message: str
    hint: str = ""
    warning: bool = False
    code: RuleCode = field(kw_only=True)

    def __str__(self) -> str:
        shown = "" if self.value is ABSENT else f"{_show(self.value)} "
        start = "warning: " if self.warning else ""
        end = f"; hint: {self.hint}" if self.hint else ""
        return f"{start}{self.path}: {shown}{self.message}{end}"


class _Absent:
    """The value of a field that is not there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class InvalidObject(ValueError):
    """An object that breaks rules; `errors` holds all of its faults."""

    def __init__(self, subject: str, errors: Iterable[FieldError]) -> None:
        self.subject = subject
        self.errors = tuple(errors)
        super().__init__("\n".join([f"{subject} is invalid:", *(f"  {error}" for error in self.errors)]))


def in_order(errors: Iterable[FieldError]) -> list[FieldError]:
    """Sorted by path, positions of lists as numbers; equal faults once."""
    unique = {(error.path, str(error)): error for error in errors}
    return sorted(unique.values(), key=lambda error: (_natural(error.path), str(error)))


def at(path: str, key: str | int) -> str:
    """The path of a member of the object or list at `path`; a key that is no plain name is quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if len(key) > _LONGEST_KEY:
        key = f"{key[:_SHOWN]}…"
    if key.isascii() and key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def _natural(path: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", path)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _show(value: Any) -> str:
    """The beginning of a value. Of a large one nothing but the beginning is written."""
    text = ""
    try:
        for piece in _ENCODER.iterencode(value[: _SHOWN + 1] if isinstance(value, str) else value):
            text += piece[: _SHOWN + 1]
            if len(text) > _SHOWN:
                break
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


#: Characters of what is wrong with an object that are kept of an error which may quote all of it.
_LONGEST_PROBLEM = 2000


def problem_of(error: Exception) -> str:
    """What is wrong with an object, by the error that its reading ended with; 2,000 characters at most.

    The name of the error stands before it unless it was written for the object's owner.
    """
    text = str(error)
    problem = text if isinstance(error, InvalidObject | ValueError) else f"{type(error).__name__}: {text}"
    return problem if len(problem) <= _LONGEST_PROBLEM else f"{problem[:_LONGEST_PROBLEM]}..."
