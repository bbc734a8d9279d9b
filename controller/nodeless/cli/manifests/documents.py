"""YAML and JSON documents that know the line of each of their members."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from nodeless.api.yaml_bounds import check_yaml
from nodeless.cli.manifests.yaml_loader import Loader

_STEP = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)")


class BadManifests(ValueError):
    """Input that cannot be used; `faults` has one line for each fault, `FILE:LINE: what`."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file; `node` is where it stands in it."""

    file: str
    value: Any
    node: yaml.Node

    def at(self, path: str = "") -> str:
        """`FILE:LINE` of a member (`spec.replicas`, `$.spec.containers[0]`), or the nearest there is."""
        node = self.node
        for index, name in _STEP.findall(path.removeprefix("$").lstrip(".")):
            found = _member(node, index, name)
            if found is None:
                break
            node = found
        return f"{self.file}:{node.start_mark.line + 1}"


def documents_of(file: str, text: str) -> Iterator[Document]:
    """Every object of a file, the items of a List one by one. Raises BadManifests."""
    try:
        check_yaml(text, loader=Loader)
        for root in yaml.compose_all(text, Loader=Loader):
            yield from _objects(file, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadManifests([f"{file}:{line}: not YAML: {error.problem or error.context}"]) from None
    except yaml.YAMLError as error:
        raise BadManifests([f"{file}: not YAML: {' '.join(str(error).split())}"]) from None


def _objects(file: str, root: yaml.Node) -> Iterator[Document]:
    value = _built(root)
    if value is None:
        return
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value:
        items = _member(root, "", "items")
        if not isinstance(items, yaml.SequenceNode):
            at = Document(file, value, root).at("items")
            raise BadManifests([f"{at}: the items of a {value['kind']} are no list"])
        for node in items.value:
            yield Document(file, _built(node), node)
        return
    yield Document(file, value, root)


def _built(node: yaml.Node) -> Any:
    """The value of a node, as kubectl reads it."""
    loader = Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _member(node: yaml.Node, index: str, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode) and name:
        return next((value for key, value in node.value if getattr(key, "value", None) == name), None)
    if isinstance(node, yaml.SequenceNode) and index.isdigit() and int(index) < len(node.value):
        found: yaml.Node = node.value[int(index)]
        return found
    return None
