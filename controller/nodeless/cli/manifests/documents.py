"""YAML and JSON documents that know the line of each of their members."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from nodeless.api.rule_codes import RuleCode
from nodeless.cli.manifests.yaml_files import HELM_HINT, is_template, read_apart

_LIST = "List"
#: `[2]`, `["karpenter.sh/do-not-disrupt"]`, `spec`.
_STEP = re.compile(r'\[(\d+|\.\.\.)\]|\[("(?:[^"\\]|\\.)*")\]|([^.\[\]]+)')


class FaultLine(str):
    """A line on a fault, `FILE:LINE:COL: what`, that knows the rule which is broken."""

    code: RuleCode = RuleCode.INVALID_OBJECT

    @classmethod
    def of(cls, line: str, code: RuleCode) -> "FaultLine":
        """The line, with its code."""
        made = cls(line)
        made.code = code
        return made


class BadManifests(ValueError):
    """Input that cannot be used; `faults` has one line for each fault, `FILE:LINE:COL: what`.

    Those that are no FaultLine break no rule that has a code of its own.
    """

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a file, from its first character to the one behind its last; lines and columns from 1.

    What spans lines has no end: its first line says enough.
    """

    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file; `node` is where it stands in it."""

    file: str
    value: Any
    node: yaml.Node

    def at(self, path: str = "") -> str:
        """`FILE:LINE:COL` of a member (`spec.replicas`, `$.spec.containers[0]`), or the nearest there is."""
        line, column = self.place(path)
        return f"{self.file}:{line}:{column}"

    def place(self, path: str = "") -> tuple[int, int]:
        """Line and column of a member, counted from 1, or of the nearest there is."""
        region = self.region(path)
        return region.line, region.column

    def region(self, path: str = "", *, key: bool = False) -> Region:
        """Where a member is, or the nearest there is; with `key`, where its name is."""
        node, name_node = self.node, None
        for index, quoted, plain in _STEP.findall(path.removeprefix("$").lstrip(".")):
            found = _member(node, index, json.loads(quoted) if quoted else plain)
            if found is None:
                return _region(node)
            name_node, node = found
        return _region(name_node if key and name_node is not None else node)


def documents_of(file: str, text: str) -> Iterator[Document]:
    """Every object of a file, the items of Lists one by one. Raises BadManifests with every fault of form."""
    found, problems = readable_documents(file, text)
    if problems:
        raise BadManifests(
            [
                FaultLine.of(
                    f"{problem.file}:{problem.line}:{problem.column}: {problem.message}", problem.code
                )
                for problem in problems
            ]
        )
    yield from found


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a part of a file cannot be read.

    Attributes:
        file: Its name.
        line: Where it begins, counted from 1.
        column: The same.
        message: What is wrong, and a hint.
        code: The rule that it breaks.
    """

    file: str
    line: int
    column: int
    message: str
    code: RuleCode

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: error: {self.message} [{self.code}]"


def readable_documents(file: str, text: str) -> tuple[list[Document], list[Problem]]:
    """The objects of a file, and what is wrong with the parts of it that are none."""
    documents: list[Document] = []
    read, faults = read_apart(text)
    problems = [_problem(file, text, fault) for fault in faults]
    for value, node in read:
        _collect(Document(file, value, node), documents, problems)
    return documents, problems


def _problem(file: str, text: str, fault: yaml.YAMLError) -> Problem:
    mark = fault.problem_mark or fault.context_mark if isinstance(fault, yaml.MarkedYAMLError) else None
    what = (fault.problem or fault.context) if isinstance(fault, yaml.MarkedYAMLError) else None
    hint = f"; {HELM_HINT}" if is_template(text) else ""
    if mark and _character(text, mark) == "\t":
        what, hint = "a tab where a value or spaces are expected", "; hint: indent by spaces"
    return Problem(
        file,
        mark.line + 1 if mark else 1,
        mark.column + 1 if mark else 1,
        f"not YAML: {what or ' '.join(str(fault).split())}{hint}",
        RuleCode.INVALID_YAML,
    )


def _character(text: str, mark: yaml.Mark) -> str:
    """What stands where a fault is."""
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return line[mark.column : mark.column + 1]


def _collect(document: Document, documents: list[Document], problems: list[Problem]) -> None:
    """A document, or the items of one that is a List, one by one.

    As kubectl has it, Lists may hold Lists, and the items of a DeploymentList need not say their kind.
    """
    value, node = document.value, document.node
    if not (isinstance(value, dict) and str(value.get("kind", "")).endswith(_LIST) and "items" in value):
        documents.append(document)
        return
    items = value["items"]
    if items is None:
        return
    if not isinstance(items, list):
        message = f"the items of a {value['kind']} are not a list"
        line, column = document.place("items")
        problems.append(Problem(document.file, line, column, message, RuleCode.INVALID_LIST))
        return
    listed = _member(node, "", "items")
    for item, below in zip(items, listed[1].value if listed else [node] * len(items), strict=True):
        _collect(Document(document.file, _with_kind(item, value), below), documents, problems)


def _with_kind(item: Any, listed: dict[str, Any]) -> Any:
    """An item of the API server's lists, which say the kind once for all."""
    kind = str(listed["kind"]).removesuffix(_LIST)
    if not kind or not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}


def _member(node: yaml.Node, index: str, name: str) -> tuple[yaml.Node | None, yaml.Node] | None:
    """The name of a member, which items of lists have none of, and the member."""
    if isinstance(node, yaml.MappingNode) and name:
        # What `<<` takes over stands before what replaces it.
        return next(
            ((key, value) for key, value in reversed(node.value) if getattr(key, "value", None) == name), None
        )
    if isinstance(node, yaml.SequenceNode) and index.isdigit() and int(index) < len(node.value):
        return None, node.value[int(index)]
    return None


def _region(node: yaml.Node) -> Region:
    begin, end = node.start_mark, node.end_mark
    if end.line != begin.line:
        return Region(begin.line + 1, begin.column + 1)
    return Region(begin.line + 1, begin.column + 1, end.line + 1, end.column + 1)
