"""Rules that the API server enforces by itself (CEL), each with a twin in Python.

A definition carries the expression in its schema, under `x-kubernetes-validations`, and
so does the custom resource definition. `schema_validation` meets it there and asks the twin, so
that a file on disk and a webhook's complete list of faults hold what the server would
say, at the exact member. A test holds both sides to the same verdicts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from nodeless.api.errors import FieldError, at
from nodeless.api.rule_codes import RuleCode

VALIDATIONS = "x-kubernetes-validations"

Offenders: TypeAlias = Callable[[Any], "Iterable[str | int] | bool"]
"""Given a value of the right form: the members at fault, or whether the value itself is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the expression for the API server, and its twin."""

    expression: str
    message: str
    offenders: Offenders | None
    hint: str
    code: RuleCode

    def schema(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        message = f"{self.message}; hint: {self.hint}" if self.hint else self.message
        return {"rule": self.expression, "message": message}


_RULES: dict[tuple[str, str], Rule] = {}


def rule(
    expression: str, message: str, offenders: Offenders | None, hint: str = "", *, code: RuleCode
) -> Rule:
    """A rule for `rules`.

    Args:
        expression: What must hold, in CEL.
        message: What is wrong when it does not hold.
        offenders: The same in Python; None for an expression about `oldSelf`, which needs the former state.
        hint: What to do then.
        code: What programs know the fault by.
    """
    made = Rule(expression, message, offenders, hint, code)
    entry = made.schema()
    _RULES[entry["rule"], entry["message"]] = made
    return made


def rules(*several: Rule, **extra: Any) -> dict[str, Any]:
    """The schema members that carry rules; more of them may be given."""
    return {**extra, VALIDATIONS: [each.schema() for each in several]}


def broken_rules(value: Any, entries: Iterable[dict[str, str]], path: str) -> Iterator[FieldError]:
    """The faults of a value whose form is right."""
    for entry in entries:
        broken = _RULES.get((entry["rule"], entry["message"]))
        if broken is None or broken.offenders is None:
            continue
        offenders = broken.offenders(value)
        if isinstance(offenders, bool):
            if offenders:
                yield FieldError(path, value, broken.message, broken.hint, code=broken.code)
            continue
        for member in offenders:
            found = value[member]
            yield FieldError(at(path, member), found, broken.message, broken.hint, code=broken.code)
