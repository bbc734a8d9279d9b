"""What of a command may be written at the same time: the marks of twenty nodes, not a mark and its end."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from nodeless.model.instructions import (
    AnnotateClaim,
    CreateClaim,
    DeleteClaim,
    Instruction,
    PublishEvent,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.snapshot import Snapshot

#: What is done after one of these, or before it, waits for it.
_BARRIERS = (AnnotateClaim, CreateClaim, DeleteClaim)
Sequences = tuple[tuple[Instruction, ...], ...]


def batch_instructions(instructions: Sequence[Instruction], snapshot: Snapshot) -> Iterator[Sequences]:
    """Cut instructions into parts that follow each other; the sequences of a part do not touch each other.

    All annotations, creations, marks or deletions that stand together are a part: replacements are written
    before nodes are marked, and marks before the end begins. A sequence is about one claim and its node, in
    the order given.
    """
    for _, part in groupby(_with_kinds(instructions), lambda entry: entry[0]):
        yield _by_claim((instruction for _, instruction in part), snapshot)


def _with_kinds(instructions: Sequence[Instruction]) -> list[tuple[str, Instruction]]:
    """Each with what it does to the cluster; an event does nothing, and goes with what comes after it."""
    kinds = []
    kind = ""
    for instruction in reversed(instructions):
        kind = kind if isinstance(instruction, PublishEvent) and kind else _kind(instruction)
        kinds.append((kind, instruction))
    return kinds[::-1]


def _kind(instruction: Instruction) -> str:
    return type(instruction).__name__ if isinstance(instruction, _BARRIERS) else "mark"


def _by_claim(instructions: Iterable[Instruction], snapshot: Snapshot) -> Sequences:
    found: dict[str, list[Instruction]] = {}
    for instruction in instructions:
        found.setdefault(_claim(instruction, snapshot), []).append(instruction)
    return tuple(tuple(group) for group in found.values())


def _claim(instruction: Instruction, snapshot: Snapshot) -> str:
    """The claim that an instruction is about; all that are about none are one sequence."""
    match instruction:
        case CreateClaim(_, claim):
            return claim.name
        case AnnotateClaim(_, name) | DeleteClaim(_, name) | UpdateClaimStatus(_, name):
            return name
        case UpdateNode(_, name) | PublishEvent(_, "Node", name):
            node = snapshot.nodes.get(name)
            owner = snapshot.claim_of(node) if node is not None else None
            return owner.name if owner is not None else name
    return ""
