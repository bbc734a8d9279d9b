"""YAML as kubectl reads it: what is a string there is one here, and a key that is given twice is a fault.

PyYAML by itself makes dates of `2026-01-01` and numbers of `12:30`, and keeps the last of two equal keys.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

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
    for document in yaml.load_all(text, Loader=_Loader):
        if document is not None:
            yield document
