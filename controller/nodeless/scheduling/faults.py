"""Faults that nobody foresaw, kept to the pods in whose planning they showed.

An exception in the middle of placing a class may leave counters half counted. So the plan is made anew
without that class, and its pods are refused with the exception as the reason; the next pass tries them
again. What only makes plans cheaper or tells more about them is done without where it fails.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from nodeless.model.plan import Refusal, RefusalCode

#: Classes that may fail in one pass before the pass itself does.
MOST_FAILURES = 20
_LONGEST = 300
T = TypeVar("T")


class ClassFailed(Exception):
    """Planning a class of pods raised something that was not foreseen, which is the cause of this."""

    def __init__(self, pods: Sequence[str], cause: Exception) -> None:
        super().__init__(one_line(cause))
        self.pods = tuple(pods)
        """Keys of all its pods."""

    def refusals(self) -> list[Refusal]:
        """One for each pod."""
        message = f"planning the pod failed, the others are planned without it: {self}"
        return [Refusal(key, RefusalCode.PLANNING_FAILED, (), message) for key in self.pods]


@contextmanager
def about(pods: Sequence[str]) -> Iterator[None]:
    """What is raised inside concerns a class with these pods. Raises ClassFailed."""
    try:
        yield
    except ClassFailed:
        raise
    except Exception as error:
        raise ClassFailed(pods, error) from error


def or_without(make: Callable[[], T], otherwise: T, faults: list[str]) -> T:
    """What is made, or what does in its place when that fails; the fault is added to `faults`."""
    try:
        return make()
    except Exception as error:
        faults.append(one_line(error))
        return otherwise


def one_line(error: Exception) -> str:
    """What was raised, and where, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{text[:_LONGEST]}{where}"
