"""Failpoints: where a process may die between two instructions, named so that a test can let it.

Every instruction has two boundaries, before and after; a launch has one more, when the cloud has
answered and nothing records it yet. `Hands` and `Launcher` call the failpoint at each of them. In
production it does nothing; the chaos suite passes one that kills the process, and enumerates
`boundaries()`, so that a new instruction is tried from the day on which it is written.
"""

from collections.abc import Callable
from typing import Literal, get_args

from nodeless.model.instructions import Instruction, LaunchInstance

Moment = Literal["before", "unrecorded", "after"]
Failpoint = Callable[[Moment, Instruction], None]


def pass_by(_moment: Moment, _instruction: Instruction) -> None:
    """The failpoint of production: nothing happens."""


def boundary(moment: Moment, kind: type[Instruction]) -> str:
    """The name of a boundary, such as `before CreateClaim`."""
    return f"{moment} {kind.__name__}"


def boundaries() -> tuple[str, ...]:
    """All boundaries of all instructions, in the order in which the instructions are listed."""
    return tuple(
        boundary(moment, kind)
        for kind in get_args(Instruction)
        for moment in get_args(Moment)
        if moment != "unrecorded" or kind is LaunchInstance
    )
