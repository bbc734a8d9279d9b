"""YAML as kubectl reads it: what is a string there is one here, and a key that is given twice is a fault.

PyYAML by itself makes dates of `2026-01-01` and numbers of `12:30`, keeps the last of two equal keys, follows
aliases until memory ends, and ends itself where nesting is deep.
"""

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from nodeless.api.yaml_bounds import check_yaml

_INTEGER = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]*|[-+]?[1-9][0-9_]*|[-+]?0x[0-9a-fA-F_]+)$")
_FLOAT = re.compile(
    r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_REPLACED = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """A loader of its own, for resolvers belong to the class."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        "while reading an object",
                        node.start_mark,
                        f"{key.value} is given twice",
                        key.start_mark,
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


def read_documents(text: str) -> Iterator[Any]:
    """The documents of a file, empty ones left out. Raises yaml.YAMLError."""
    for document, _ in read_nodes(text):
        yield document


def read_nodes(text: str) -> Iterator[tuple[Any, yaml.Node]]:
    """The same, each with its node, which knows the lines. Raises yaml.YAMLError.

    JSON objects one after the other are read as kubectl reads them, too.
    """
    try:
        found = list(_read(text))
    except yaml.YAMLError:
        pieces = _json_pieces(text)
        if len(pieces) < 2:
            raise
        found = [pair for piece in pieces for pair in _read(piece)]
    yield from found


def problem_of(error: yaml.YAMLError) -> str:
    """What is wrong with a text, and where, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark or error.context_mark):
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or error.context}"
    return " ".join(str(error).split())


def _read(text: str) -> Iterator[tuple[Any, yaml.Node]]:
    check_yaml(text)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                break
            document = loader.construct_document(node)
            if document is not None:
                yield document, node
    finally:
        loader.dispose()


def _json_pieces(text: str) -> list[str]:
    """The JSON values of a text that holds nothing else, each on its own lines; empty when it holds more."""
    decoder, pieces, position = json.JSONDecoder(), [], 0
    while rest := text[position:].lstrip():
        start = len(text) - len(rest)
        try:
            _, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return []
        pieces.append("\n" * text.count("\n", 0, start) + text[start:position])
    return pieces
