"""Values that somebody has to fill in before the file is applied: `${NAME}`, `$NAME`, `<NAME>`, `{{ .x }}`.

A selector with such a value finds nothing, and a role of such a name does not exist; the API server accepts
both.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.rule_codes import RuleCode

#: `<<NAME>>`, `<your-name>`, `${NAME}`, `$NAME`, `{{ .Values.name }}`, `%%NAME%%`, `__NAME__`, `YOUR_NAME`,
#: and what Helm calls a release without a name.
_PLACEHOLDER = re.compile(
    r"<<[^<>\n]{1,100}>>|<[A-Za-z][\w .:/-]{0,100}>"
    r"|\$\{[^{}\n]{1,100}\}|\$[A-Z][A-Z0-9_]{1,100}\b|\{\{[^{}\n]{1,100}\}\}"
    r"|\bRELEASE-NAME\b|%%[A-Za-z]\w{0,100}%%|\b__[A-Z][A-Z0-9_]{0,100}__\b|\bYOUR[-_][A-Z][A-Z0-9_-]{0,100}\b"
)
#: Longer texts are no names that somebody fills in.
_LONGEST = 2000
#: A script has variables of its own, and tags such as `<powershell>`.
_SCRIPTS = frozenset({"userData"})


def placeholder_warnings(value: Any, path: str) -> Iterator[FieldError]:
    """A warning for each value below `path`, and each key of a map, that has a placeholder."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            where = at(path, str(key))
            if isinstance(key, str):
                yield from _warnings(key, where)
            if key not in _SCRIPTS:
                yield from placeholder_warnings(member, where)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from placeholder_warnings(item, at(path, position))
    elif isinstance(value, str):
        yield from _warnings(value, path)


def _warnings(text: str, path: str) -> Iterator[FieldError]:
    if len(text) <= _LONGEST and (found := _PLACEHOLDER.search(text)):
        message = f"contains the placeholder {found.group()}, which nothing has replaced"
        hint = "replace it before you apply the file, for example with envsubst or `helm template`"
        yield FieldError(path, text, message, hint, warning=True, code=RuleCode.UNFILLED_PLACEHOLDER)
