"""YAML as kubectl reads it (sigs.k8s.io/yaml over go-yaml v2), by PyYAML's parser in C.

What is a string there is one here: dates, `12:30`, `=`. As there, `yes`, `on` and `y` are booleans, `017`
and `0o17` octal numbers, `0189` and `2e5` decimal ones; binary values are the text they encode; keys are
strings, whatever they look like; what `<<` takes over replaces members that stand before it. Unlike there, a
key that is given twice is a fault: kubectl keeps the last, which nobody means.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP, _VALUE = (
    f"{_TAG}{name}" for name in ("bool", "int", "float", "null", "timestamp", "value")
)
_MERGE = f"{_TAG}merge"
_INTEGER = re.compile(r"^[-+]?_*(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
#: Digits after a 0 that are no octal number are a decimal one, as `0089`: those of accounts, for example.
_DECIMAL = re.compile(
    r"^(?:[-+]?_*(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]*[0-9][0-9_]*)(?:[eE][-+]?[0-9_]*[0-9][0-9_]*)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_BASES = {"0b": 2, "0o": 8, "0x": 16}

#: From here on Go writes numbers of JSON with an exponent.
_LARGE = 1e21

_BOOLEANS = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


class Loader(yaml.CSafeLoader):
    """A loader of its own, for resolvers and constructors belong to the class."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._checked: set[yaml.Node] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the members that `<<` takes over into its place, once a node's own are checked.

        Of two members of one key the last one counts. Raises yaml.YAMLError.
        """
        if node in self._checked:
            return
        self._checked.add(node)
        _check_keys(node)
        node.value = [
            member
            for key, value in node.value
            for member in (self._taken_over(value) if key.tag == _MERGE else [(key, value)])
        ]

    def _taken_over(self, node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
        """The members of an object, or of several, of which the first one has the last word."""
        members: list[tuple[yaml.Node, yaml.Node]] = []
        for below in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(below, yaml.MappingNode):
                problem = "<< takes over objects only"
                raise yaml.constructor.ConstructorError(None, None, problem, below.start_mark)
            self.flatten_mapping(below)
            members += below.value
        return members

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The object of a node. Raises yaml.YAMLError."""
        read: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        if all(isinstance(key, str) for key in read):
            return read
        return {_key(key): value for key, value in read.items()}


def _check_keys(node: yaml.MappingNode) -> None:
    """Raises yaml.YAMLError where a key is given twice, or is empty."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        if key.value in seen:
            problem = f"{key.value} is given twice"
            raise yaml.constructor.ConstructorError(
                "while reading an object", node.start_mark, problem, key.start_mark
            )
        seen.add(key.value)
        if key.tag == _NULL:
            raise yaml.constructor.ConstructorError(
                "while reading an object", node.start_mark, "a key is empty", key.start_mark
            )


def _key(key: Hashable) -> Hashable:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, int | float) else key


def _boolean(loader: Loader, node: yaml.ScalarNode) -> bool:
    text = str(loader.construct_scalar(node)).lower()
    if text not in _BOOLEANS:
        problem = f"{node.value!r} is not a boolean"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return _BOOLEANS[text]


def _number(loader: Loader, node: yaml.ScalarNode) -> int | float:
    try:
        found: int | float = (
            _whole(str(loader.construct_scalar(node)))
            if node.tag == _INT
            else loader.construct_yaml_float(node)
        )
    except (ValueError, IndexError):
        problem = f"{node.value!r} is not a number"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
    # As JSON, which kubectl makes of it, has no other way to write a whole number.
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < _LARGE else found


def _whole(text: str) -> int:
    digits = text.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 8 if digits.startswith("0") else 10)
    return sign * int(digits, base)


def reads_as_text(text: str) -> bool:
    """Whether a text without quotes is read as this text, and not as a number, a boolean or nothing."""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
    return bool(tag == f"{_TAG}str")


def _text(loader: Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _binary(loader: Loader, node: yaml.ScalarNode) -> str:
    return loader.construct_yaml_binary(node).decode("utf-8", "replace")


_REPLACED = (_INT, _FLOAT, _TIMESTAMP, _VALUE)
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(_INT, _INTEGER, list("-+0123456789"))
Loader.add_implicit_resolver(_FLOAT, _DECIMAL, list("-+0123456789."))
Loader.add_implicit_resolver(_BOOL, re.compile("^[yYnN]$"), list("yYnN"))
Loader.add_constructor(_BOOL, _boolean)
Loader.add_constructor(_INT, _number)
Loader.add_constructor(_FLOAT, _number)
Loader.add_constructor(_TIMESTAMP, _text)
Loader.add_constructor(f"{_TAG}binary", _binary)
_RESOLVER: Any = Loader("")
