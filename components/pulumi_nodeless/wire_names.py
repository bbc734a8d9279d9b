"""Faults by the names that arguments have outside Python: `zoneCount` for `zone_count`.

Stacks' configuration and the other languages name arguments in camelCase. What is found wrong is told by
those names, in paths as well as in messages and hints; keys of maps, of labels say, are the user's own and
stay.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin, is_typeddict

from pulumi_nodeless.arguments import ArgumentError, Problem
from pulumi_nodeless.shapes import kinds

_QUOTED = r"'[^']*'|\"[^\"]*\""


def wire_name(name: str) -> str:
    """An argument's name outside Python: `vpc_cidr` is `vpcCidr`."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


def wire_problems(error: ArgumentError, shape: type) -> list[Problem]:
    """What an error tells, by the names outside Python.

    Args:
        error: raised by a component.
        shape: the type of that component's arguments.
    """
    known = sorted({*_members(shape)}, key=len, reverse=True)
    words = re.compile(rf"{_QUOTED}|\b(?:{'|'.join(known)})\b")

    def outside(text: str) -> str:
        return words.sub(lambda found: found[0] if found[0][0] in "'\"" else wire_name(found[0]), text)

    return [
        Problem(wire_path(problem.path, shape), outside(problem.message), outside(problem.hint))
        for problem in error.problems
    ]


def wire_path(path: str, kind: Any) -> str:
    """A path within arguments of this kind, its members named as outside Python."""
    if is_typeddict(kind) and (found := re.match(r"(\.?)(\w+)", path)):
        inner = kinds(kind).get(found[2], Any)
        return found[1] + wire_name(found[2]) + wire_path(path[found.end() :], inner)
    if get_origin(kind) is Sequence and (found := re.match(r"\[\d+\]", path)):
        return found[0] + wire_path(path[found.end() :], get_args(kind)[0])
    return path


def _members(kind: Any) -> Iterator[str]:
    """The names of all members, at any depth."""
    if is_typeddict(kind):
        for name, inner in kinds(kind).items():
            yield name
            yield from _members(inner)
    else:
        for inner in get_args(kind):
            yield from _members(inner)
