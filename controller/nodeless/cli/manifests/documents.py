"""YAML and JSON documents that know the line of each of their members."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from nodeless.cli.manifests.yaml_files import HELM_HINT, is_template, read_nodes

_LIST = "List"
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
        return f"{self.file}:{self.place(path)[0]}"

    def place(self, path: str = "") -> tuple[int, int]:
        """Line and column of a member, counted from 1, or of the nearest there is."""
        node = self.node
        for index, name in _STEP.findall(path.removeprefix("$").lstrip(".")):
            found = _member(node, index, name)
            if found is None:
                break
            node = found
        return node.start_mark.line + 1, node.start_mark.column + 1


def documents_of(file: str, text: str) -> Iterator[Document]:
    """Every object of a file, the items of Lists one by one. Raises BadManifests."""
    try:
        for value, node in read_nodes(text):
            yield from objects_of(file, value, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        hint = f"; {HELM_HINT}" if is_template(text) else ""
        raise BadManifests([f"{file}:{line}: not YAML: {error.problem or error.context}{hint}"]) from None
    except yaml.YAMLError as error:
        raise BadManifests([f"{file}: not YAML: {' '.join(str(error).split())}"]) from None


def objects_of(file: str, value: Any, node: yaml.Node) -> Iterator[Document]:
    """A document, or the items of one that is a List, one by one. Raises BadManifests.

    As kubectl has it, Lists may hold Lists, and the items of a DeploymentList need not say their kind.
    """
    if not (isinstance(value, dict) and str(value.get("kind", "")).endswith(_LIST) and "items" in value):
        yield Document(file, value, node)
        return
    items = value["items"]
    if not isinstance(items, list):
        at = Document(file, value, node).at("items")
        raise BadManifests([f"{at}: the items of a {value['kind']} are no list"])
    listed = _member(node, "", "items")
    for item, below in zip(items, listed.value if listed is not None else [node] * len(items), strict=True):
        yield from objects_of(file, _with_kind(item, value), below)


def _with_kind(item: Any, listed: dict[str, Any]) -> Any:
    """An item of the API server's lists, which say the kind once for all."""
    kind = str(listed["kind"]).removesuffix(_LIST)
    if not kind or not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}


def _member(node: yaml.Node, index: str, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode) and name:
        # What `<<` takes over stands before what replaces it.
        return next(
            (value for key, value in reversed(node.value) if getattr(key, "value", None) == name), None
        )
    if isinstance(node, yaml.SequenceNode) and index.isdigit() and int(index) < len(node.value):
        found: yaml.Node = node.value[int(index)]
        return found
    return None
