"""Reading a component's arguments: unknown names, wrong kinds and bad values, all reported at once.

Arguments reach a component as a plain dictionary, from Python as well as from other languages, where
whole numbers arrive as floats and nothing has been checked but the presence of required names. Every
component turns its dictionary into a frozen dataclass with the reader below, so that a fault is named
before the first resource is registered. Values that the engine does not know yet (`pulumi.Output`)
pass unchecked. What the values mean is the business of the components' own modules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import isawaitable
from math import isfinite
from typing import Any, Final

import pulumi

from pulumi_nodeless import names
from pulumi_nodeless.cidr import is_network

MARKING_TAGS: Final = (
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "nodeless.dev/",
    "kubernetes.io/cluster/",
    "kubernetes.io/role/",
    "eks:",
)
"""Beginnings of tags by which Kubernetes, EKS and the controller find what is theirs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a component's arguments."""

    path: str
    """Path of the argument, for example `provisioners[0].name`."""
    message: str
    """What is wrong, with the value."""
    hint: str = ""
    """What to write instead."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" (hint: {self.hint})" if self.hint else "")


class ArgumentError(ValueError, pulumi.RunError):
    """A component was given arguments it cannot work with; `problems` holds every fault found.

    The engine shows its text alone: where the component is made is in the program, what is wrong is here.
    """

    def __init__(self, component: str, problems: Sequence[Problem]) -> None:
        self.component = component
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{component}: {len(self.problems)} invalid argument(s)\n{lines}")


class ArgumentReader:
    """Reads one dictionary of arguments, collecting problems until `check` raises them."""

    def __init__(self, component: str, args: Mapping[str, Any], shape: type, path: str = "") -> None:
        self.component = component
        self.problems: list[Problem] = []
        self._args = args
        self._prefix = f"{path}." if path else ""
        known = tuple(shape.__annotations__)
        for name in args:
            if name not in known:
                close = get_close_matches(str(name), known, 1)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
                self.report(name, "no such argument", hint)
        for name in sorted(getattr(shape, "__required_keys__", ())):
            if args.get(name) is None:
                self.report(name, "required argument is missing")

    def report(self, name: str, message: str, hint: str = "") -> None:
        """Records a problem of the argument `name`."""
        self.problems.append(Problem(f"{self._prefix}{name}", message, hint))

    def check(self) -> None:
        """Raises `ArgumentError` when any problem was recorded."""
        if self.problems:
            raise ArgumentError(self.component, self.problems)

    def value(self, name: str, default: Any = None) -> Any:
        """The argument as given: a plain value, or an output that is not known yet."""
        given = self._args.get(name)
        return default if given is None else given

    def text(self, name: str, default: str = "") -> str:
        """A plain text."""
        given = self.value(name, default)
        if isinstance(given, str):
            return given
        self.report(name, f"expected text, got {type(given).__name__}", _plain_hint(given))
        return default

    def cluster_name(self) -> str:
        """The argument `cluster_name`: a plain text that EKS accepts."""
        self.check_cluster_name()
        return self.text("cluster_name")

    def check_cluster_name(self) -> None:
        """Reports a `cluster_name` that EKS would refuse; one that is not known yet passes."""
        given = self._args.get("cluster_name")
        if isinstance(given, str) and not names.valid_cluster_name(given):
            self.report(
                "cluster_name",
                f"{given!r} is not a name that EKS accepts",
                f"up to {names.CLUSTER_NAME_LIMIT} letters, digits, - and _, a letter or digit first",
            )

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """A plain text out of a closed list."""
        given = self.text(name, default)
        if given not in allowed:
            self.report(name, f"{given!r} is not one of {', '.join(allowed)}")
        return given

    def integer(self, name: str, default: int, minimum: int, maximum: int) -> int:
        """A plain whole number within bounds; other languages send 2 as 2.0."""
        given = self.value(name, default)
        if isinstance(given, bool) or not isinstance(given, int | float) or given != int(given):
            self.report(name, f"expected a whole number, got {given!r}", _plain_hint(given))
            return default
        if not minimum <= given <= maximum:
            self.report(name, f"{int(given)} is not between {minimum} and {maximum}")
        return int(given)

    def flag(self, name: str, default: bool) -> bool:
        """A plain truth value."""
        given = self.value(name, default)
        if isinstance(given, bool):
            return given
        self.report(name, f"expected true or false, got {given!r}", _plain_hint(given))
        return default

    def texts(self, name: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        """A plain list of texts."""
        given = self.value(name, default)
        if isinstance(given, str) or not isinstance(given, Sequence):
            self.report(name, f"expected a list, got {type(given).__name__}", _plain_hint(given))
            return tuple(default)
        if not all(isinstance(item, str) for item in given):
            self.report(name, f"expected a list of texts, got {list(given)!r}")
        return tuple(given)

    def report_repeated(self, name: str, given: Sequence[str]) -> None:
        """Reports texts that are given twice, where a resource is named after each of them."""
        for text in dict.fromkeys(each for index, each in enumerate(given) if each in given[:index]):
            self.report(name, f"{text!r} is given twice")

    def networks(self, name: str) -> tuple[str, ...]:
        """A plain list of networks in CIDR notation."""
        given = self.texts(name)
        for block in given:
            if not is_network(block):
                self.report(name, f"{block!r} is not a network", "write it as 10.0.0.0/16")
        return given

    def mapping(self, name: str) -> dict[str, Any]:
        """A map from names to values; the values may be outputs."""
        given = self.value(name, {})
        if not isinstance(given, Mapping):
            self.report(name, f"expected a map, got {type(given).__name__}", _plain_hint(given))
            return {}
        return dict(given)

    def text_mapping(self, name: str) -> dict[str, Any]:
        """A map from names to texts, of which some may be outputs.

        Configuration turns what looks like a number or a truth value into one, and other languages send 30
        as 30.0; such a value becomes the text that was written.
        """
        read: dict[str, Any] = {}
        for key, given in self.mapping(name).items():
            if isinstance(given, pulumi.Output) or isawaitable(given):
                read[key] = given
            elif (text := as_text(given)) is not None:
                read[key] = text
            else:
                self.report(f"{name}.{key}", f"expected text, got {given!r}", "write it as one text")
        return read

    def tags(self, name: str) -> dict[str, Any]:
        """Tags for every resource; those that mark single ones, or that AWS keeps to itself, are faults."""
        given = self.text_mapping(name)
        for key in sorted(given):
            if key.lower().startswith("aws:"):
                self.report(f"{name}.{key}", "tags that begin with aws: are reserved by AWS", "another key")
            elif key.startswith(MARKING_TAGS):
                self.report(
                    f"{name}.{key}",
                    "is reserved: it identifies single resources",
                    "another key",
                )
        return given


def as_text(given: object) -> str | None:
    """A text, or that of a truth value or number as YAML and JSON write it; none of anything else."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, float):
        return str(int(given) if given.is_integer() else given) if isfinite(given) else None
    return str(given) if isinstance(given, str | int) else None


def _plain_hint(given: object) -> str:
    if isinstance(given, pulumi.Output):
        return (
            "this value shapes the resources, so it must be known before they are: pass it from configuration"
        )
    return ""
