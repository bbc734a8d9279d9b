"""Faults that nobody foresaw, kept to the nodes that were being looked at when they showed.

A pass goes over many nodes. What is raised on the way concerns the one (or the few together) that it had come
to (`AtWork`): the pass is made anew without it, and its verdict is the fault.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeVar

from nodeless.model.disruption import Verdict, VerdictCode
from nodeless.scheduling.faults import one_line

#: Faults in one pass after which the pass itself has failed.
MOST_FAULTS = 20
T = TypeVar("T")


class AtWork:
    """Which claims a pass has come to."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def on(self, *names: str) -> None:
        """It is about these claims now; without names about the cluster."""
        self.names = names

    @contextmanager
    def isolate(self) -> Iterator[None]:
        """Raises CandidateFailed for what is raised inside about a claim."""
        try:
            yield
        except CandidateFailed:
            raise
        except Exception as error:
            if not self.names:
                raise
            raise CandidateFailed(self.names, error) from error


class CandidateFailed(Exception):
    """To look at some claims raised something that was not foreseen, which is `error`."""

    def __init__(self, names: tuple[str, ...], error: Exception) -> None:
        super().__init__(one_line(error))
        self.names = names
        self.error = error

    @property
    def verdict(self) -> Verdict:
        return failure_verdict(self.error)


def isolate_failures(
    decide: Callable[[Mapping[str, Verdict], AtWork], T],
    excluded: Mapping[str, Verdict] = MappingProxyType({}),
) -> tuple[T, dict[str, Exception]]:
    """What a pass gives, made anew without the claims at which it failed; and these, with their faults.

    Args:
        decide: Gets the verdicts of claims that are left out, and what is to know at which claim it is.
        excluded: Claims that are left out from the beginning.
    """
    faults: dict[str, CandidateFailed] = {}
    while True:
        at = AtWork()
        try:
            with at.isolate():
                found = decide({**excluded, **{name: fault.verdict for name, fault in faults.items()}}, at)
            return found, {name: fault.error for name, fault in faults.items()}
        except CandidateFailed as fault:
            if len(faults) >= MOST_FAULTS or faults.keys() >= set(fault.names):
                raise fault.error from fault
            faults |= dict.fromkeys(fault.names, fault)


def failure_verdict(error: Exception) -> Verdict:
    """Why a claim is left alone that could not be looked at."""
    return Verdict(
        VerdictCode.FAILED, f"looking at it failed, the others are looked at without it: {one_line(error)}"
    )
