"""Descriptions of a definition's fields: the string literals that stand below them in its source.

Python keeps a class's own docstring at run time, but not those of its attributes;
they are read from the source here. `schema` puts them into the resource definitions.
"""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


def describe(definition: type) -> str:
    """The docstring of a definition, on one line."""
    return " ".join(inspect.getdoc(definition).split()) if definition.__doc__ else ""  # type: ignore[union-attr]


@cache
def describe_fields(definition: type) -> dict[str, str]:
    """Python name of each described field to its description, inherited ones included."""
    described: dict[str, str] = {}
    for base in reversed(definition.__mro__):
        if base.__module__.startswith("nodeless."):
            described |= _own(base)
    return described


def _own(definition: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(definition)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for statement, following in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            found[statement.target.id] = " ".join(following.value.value.split())
    return found
