"""The documents of a YAML text, each with its node; JSON objects one after the other are read, too."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from nodeless.api.yaml_bounds import check_yaml
from nodeless.cli.manifests.yaml_loader import Loader

#: An escape of JSON; in the group a surrogate, with its other half where it has one.
_ESCAPE = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)

#: A line that ends a document and begins one, whatever stands around it.
_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)

HELM_HINT = "hint: if this is a Helm template, check what `helm template` prints"


def read_documents(text: str) -> Iterator[Any]:
    """The documents of a file, empty ones left out. Raises yaml.YAMLError."""
    for document, _ in read_nodes(text):
        yield document


def read_nodes(text: str) -> Iterator[tuple[Any, yaml.Node]]:
    """The same, each with its node, which knows the lines. Raises yaml.YAMLError.

    JSON objects one after the other are read as kubectl reads them, too, and so are characters that JSON
    writes as a pair of escapes.
    """
    try:
        found = list(_read(text))
    except yaml.YAMLError:
        pieces = _json_pieces(text)
        if not pieces:
            raise
        found = [pair for piece in pieces for pair in _read(piece)]
    yield from found


def read_apart(text: str) -> tuple[list[tuple[Any, yaml.Node]], list[yaml.YAMLError]]:
    """The same as far as it can be read: the documents that are YAML, and what is wrong with the others."""
    try:
        return list(read_nodes(text)), []
    except yaml.YAMLError as error:
        found: list[tuple[Any, yaml.Node]] = []
        faults: list[yaml.YAMLError] = []
        pieces = _pieces(text)
        if len(pieces) == 1:
            return [], [error]
        for piece in pieces:
            try:
                found += _read(piece)
            except yaml.YAMLError as fault:
                faults.append(fault)
        return found, faults


def _pieces(text: str) -> list[str]:
    """The documents of a text, each on its own lines."""
    starts = [0, *(match.start() for match in _DOCUMENT.finditer(text)), len(text)]
    return [
        "\n" * text.count("\n", 0, start) + text[start:end]
        for start, end in pairwise(starts)
        if text[start:end].strip()
    ]


def is_template(text: str) -> bool:
    """Whether a text holds expressions as Helm's templates do; rules of Prometheus and dashboards do, too."""
    return "{{" in text


def _read(text: str) -> Iterator[tuple[Any, yaml.Node]]:
    check_yaml(text, loader=Loader)
    loader = Loader(text)
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
        before = text[:start]
        place = "\n" * before.count("\n") + " " * (start - before.rfind("\n") - 1)
        pieces.append(place + _ESCAPE.sub(_unpaired, text[start:position]))
    return pieces


def _unpaired(escape: re.Match[str]) -> str:
    """The character of a pair of surrogates, which YAML has no escape for; others stay as they are."""
    if not escape[1]:
        return escape[0]
    character: str = json.loads(f'"{escape[0]}"')
    return character if len(character) == 1 and not "\ud800" <= character <= "\udfff" else "\ufffd"
