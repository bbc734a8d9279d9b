"""Rules of the code that no linter knows: caches and copies are explicit."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTROLLER = ROOT / "controller" / "nodeless"
MODULES = sorted(CONTROLLER.rglob("*.py"))
#: The key that keeps the objects that it stands for.
IDENTITY = CONTROLLER / "model" / "identity.py"


def called(node: ast.AST) -> str:
    """The name of the function that a call calls."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def identities(tree: ast.AST) -> Iterator[int]:
    """Lines that take the identity of an object as a number, which another object may get."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load):
            yield node.lineno


def hidden_copies(tree: ast.AST) -> Iterator[int]:
    """Lines that copy an object past its constructor."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__new__")) or called(node) in (
            "copy",
            "copy.copy",
        ):
            yield node.lineno


def lines(rule: Callable[[ast.AST], Iterator[int]], modules: list[Path]) -> list[str]:
    """Where modules break a rule."""
    return [
        f"{module.relative_to(ROOT)}:{line}"
        for module in modules
        for line in rule(ast.parse(module.read_text()))
    ]


def test_no_answer_is_kept_by_the_number_of_an_object() -> None:
    assert lines(identities, [module for module in MODULES if module != IDENTITY]) == []


def test_objects_are_copied_by_their_fields() -> None:
    assert lines(hidden_copies, MODULES) == []


@pytest.mark.parametrize("line", ["memo[id(types)] = table", "seen = set(map(id, nodes))"])
def test_the_number_of_an_object_is_noticed(line: str) -> None:
    assert list(identities(ast.parse(line))) == [1]


@pytest.mark.parametrize(
    "line", ["twin.__dict__.update(self.__dict__)", "Node.__new__(Node)", "twin = copy.copy(node)"]
)
def test_a_hidden_copy_is_noticed(line: str) -> None:
    assert 1 in hidden_copies(ast.parse(line))
