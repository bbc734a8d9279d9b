"""The annotation `pulumi.com/waitFor`: what a program itself wants an object to be before it counts as made.

`condition=TYPE[=STATUS]` (True by default) or `jsonpath={PATH}[=VALUE]` (anything by default), or a JSON
array of such, all of which must hold. It takes the place of what the kind is waited for otherwise.

Source: pulumi/pulumi-kubernetes v4, `ReadyCondition` in `provider/pkg/metadata/overrides.go` and
`provider/pkg/await/condition`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from jsonpath_ng import JSONPath
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse

from localenv.kubernetes import Object
from localenv.pulumi.resources import ResourceFailed

WAIT_FOR: Final = "pulumi.com/waitFor"
_JSONPATH, _CONDITION = "jsonpath=", "condition="
_EXPRESSION = re.compile(r"\{(?P<path>[^{}]+)\}(?:=(?P<value>.*))?", re.DOTALL)

Missing = Callable[[Object], str | None]


def find_missing(annotation: str) -> Missing:
    """What an object still lacks of what its annotation asks for; None: nothing.

    Raises:
        ResourceFailed: The annotation is no such expression.
    """
    checks = [_check(expression) for expression in _expressions(annotation)]

    def missing(obj: Object) -> str | None:
        return next((text for check in checks if (text := check(obj)) is not None), None)

    return missing


def _expressions(annotation: str) -> Sequence[str]:
    try:
        values = json.loads(annotation)
    except ValueError:
        return [annotation]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return [annotation]
    if not values:
        raise ResourceFailed(f"{WAIT_FOR}: at least one condition must be specified")
    return values


def _check(expression: str) -> Missing:
    if expression.startswith(_CONDITION):
        kind, _, status = expression.removeprefix(_CONDITION).partition("=")
        return lambda obj: _lacks_condition(obj, kind, status or "True")
    if expression.startswith(_JSONPATH):
        return _path_check(expression)
    raise ResourceFailed(f'{WAIT_FOR}: expected a "jsonpath=" or "condition=" prefix, got "{expression}"')


def _lacks_condition(obj: Object, kind: str, status: str) -> str | None:
    found = {condition["type"]: condition for condition in (obj.get("status") or {}).get("conditions") or []}
    if str(found.get(kind, {}).get("status", "")).lower() == status.lower():
        return None
    return f"{obj['kind']} {obj['metadata']['name']} has no condition {kind}={status}"


def _path_check(expression: str) -> Missing:
    path, value = _parse_expression(expression)

    def missing(obj: Object) -> str | None:
        found = next((each.value for each in path.find(obj)), None)
        if found is not None and value in (None, _text(found)):
            return None
        shown = "nothing" if found is None else _text(found)
        return f"{obj['kind']} {obj['metadata']['name']} waits for {expression} (found {shown})"

    return missing


def _parse_expression(expression: str) -> tuple[JSONPath, str | None]:
    """The path, and the value that is asked for there; None: any."""
    parsed = _EXPRESSION.fullmatch(expression.removeprefix(_JSONPATH))
    if parsed is None:
        raise ResourceFailed(f"{WAIT_FOR}: {expression!r} is not of the form jsonpath={{PATH}}=VALUE")
    try:
        return parse("$" + parsed["path"]), parsed["value"]
    except JSONPathError as error:
        raise ResourceFailed(f"{WAIT_FOR}: {expression!r}: {error}") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
