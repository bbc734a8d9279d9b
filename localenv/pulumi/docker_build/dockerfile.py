"""A Dockerfile as data: its stages and instructions. Pure.

What BuildKit's front end reads before it runs anything, for the instructions of plain Dockerfiles; here
documents and `ONBUILD` are refused, for nobody here would carry them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

INSTRUCTIONS = frozenset(
    {
        *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"),
        *("LABEL", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
    }
)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class DockerfileError(ValueError):
    """A Dockerfile that cannot be read; names the line."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, continuation lines joined.

    Attributes:
        line: Where it begins, from 1.
        name: In capitals.
        text: What follows the name.
    """

    line: int
    name: str
    text: str

    @property
    def flags(self) -> dict[str, str]:
        """The options before the operands, such as `from` of COPY."""
        words = [word for word in self.text.split() if word.startswith("--")]
        return dict(word[2:].partition("=")[::2] for word in words)

    @property
    def operands(self) -> list[str]:
        """The words after the options."""
        return [word for word in self.text.split() if not word.startswith("--")]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its name ("" without one), the reference it starts from, and what it does."""

    name: str
    base: str
    line: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """The stages in order, and the arguments declared before the first of them with their defaults."""

    arguments: Mapping[str, str]
    stages: tuple[Stage, ...]

    @property
    def final(self) -> Stage:
        """The stage that becomes the image."""
        return self.stages[-1]

    def declared_arguments(self) -> frozenset[str]:
        """Every build argument that some ARG declares."""
        each = [
            instruction
            for stage in self.stages
            for instruction in stage.instructions
            if instruction.name == "ARG"
        ]
        return frozenset(self.arguments) | {one.text.partition("=")[0] for one in each}

    def base(self, stage: Stage, given: Mapping[str, str]) -> str:
        """The reference that a stage starts from, variables filled in.

        Raises:
            DockerfileError: A variable that no ARG before the first stage declares.
        """
        values = {name: given.get(name, default) for name, default in self.arguments.items()}

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not values.get(name):
                raise DockerfileError(f"line {stage.line}: FROM {stage.base}: {name} has no value")
            return values[name]

        return _VARIABLE.sub(value, stage.base)


def parse(text: str) -> Dockerfile:
    """Read a Dockerfile.

    Raises:
        DockerfileError: It has no stage, or something that is no instruction.
    """
    arguments: dict[str, str] = {}
    stages: list[tuple[Instruction, list[Instruction]]] = []
    for instruction in _instructions(text):
        if instruction.name == "FROM":
            stages.append((instruction, []))
        elif stages:
            stages[-1][1].append(instruction)
        elif instruction.name == "ARG":
            name, _, default = instruction.text.partition("=")
            arguments[name] = default
        else:
            raise DockerfileError(f"line {instruction.line}: {instruction.name} before the first FROM")
    if not stages:
        raise DockerfileError("the Dockerfile has no FROM")
    return Dockerfile(arguments, tuple(_stage(begin, tuple(rest)) for begin, rest in stages))


def _stage(begin: Instruction, instructions: tuple[Instruction, ...]) -> Stage:
    words = begin.operands
    named = len(words) == 3 and words[1].upper() == "AS"
    if len(words) != 1 and not named:
        raise DockerfileError(f"line {begin.line}: FROM {begin.text}: expected `image` or `image AS name`")
    return Stage(words[2] if named else "", words[0], begin.line, instructions)


def _instructions(text: str) -> Iterator[Instruction]:
    pending, begin = "", 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.lstrip().startswith("#") or (not pending and not line.strip()):
            continue
        begin = begin if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending.removesuffix("\\")
            continue
        name, _, rest = pending.partition(" ")
        pending = ""
        if name.upper() not in INSTRUCTIONS:
            raise DockerfileError(f"line {begin}: {name} is an instruction that is not supported here")
        if "<<" in rest:
            raise DockerfileError(f"line {begin}: here documents are not supported here")
        yield Instruction(begin, name.upper(), rest.strip())
