"""Askers of one window share a call: when windows close, and that everyone gets an answer of their own."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.cloudprovider.aws.batching import Batcher
from tests.virtual_time import run_in_virtual_time

IDLE, LONGEST, LIMIT = 0.1, 1.0, 500


class Clerk:
    """Carries batches out and notes when, what for and, of each window, for how long it was open."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.batches: list[tuple[float, list[str]]] = []
        self.observed: list[tuple[str, int, float]] = []
        self.batcher: Batcher[int, tuple[str, int]] = Batcher(
            "asked",
            self.carry_out,
            LookupError("error making call"),
            idle=IDLE,
            longest=LONGEST,
            limit=limit,
            observe=lambda *reported: self.observed.append(reported),
        )

    async def carry_out(self, asked: Mapping[str, int]) -> Mapping[str, tuple[str, int]]:
        self.batches.append((asyncio.get_running_loop().time(), list(asked)))
        await asyncio.sleep(0.2)
        return {key: (key, number) for key, number in asked.items() if number >= 0}

    async def ask(self, at: float, key: str, number: int = 0, bucket: str = "") -> tuple[str, int]:
        await asyncio.sleep(at)
        return await self.batcher.ask(key, number, bucket=bucket)

    async def ask_all(self, asks: Sequence[tuple[float, str]]) -> None:
        await asyncio.gather(*(self.ask(at, key) for at, key in asks))


@pytest.mark.parametrize(
    ("asks", "batches"),
    [
        pytest.param([(0.0, "a")], [(0.1, 1)], id="one alone: after the idle time"),
        pytest.param([(0.0, "a"), (0.09, "b")], [(0.19, 2)], id="another starts the idle time anew"),
        pytest.param([(0.0, "a"), (0.11, "b")], [(0.1, 1), (0.21, 1)], id="too late: the next window"),
        pytest.param(
            [(number * 0.09, f"k{number:02}") for number in range(14)],
            [(1.0, 12), (1.27, 2)],
            id="never idle: after the longest time",
        ),
        pytest.param(
            [(0.0, f"k{number:03}") for number in range(501)],
            [(0.0, 500), (0.1, 1)],
            id="full: at once",
        ),
    ],
)
def test_aws_7_3_a_window_closes_when_it_is_idle_or_long_open_or_full(
    asks: list[tuple[float, str]], batches: list[tuple[float, int]]
) -> None:
    clerk = Clerk()
    run_in_virtual_time(clerk.ask_all(asks))
    assert [(round(at, 6), len(keys)) for at, keys in clerk.batches] == batches
    assert [(name, size) for name, size, _ in clerk.observed] == [("asked", size) for _, size in batches]
    assert max(seconds for _, _, seconds in clerk.observed) <= LONGEST


@settings(max_examples=60, deadline=None)
@given(
    asks=st.lists(
        st.tuples(
            st.floats(0, 3, allow_nan=False), st.sampled_from("abcdefgh"), st.sampled_from(["", "other"])
        ),
        max_size=40,
    ),
    limit=st.integers(1, 5),
)
def test_aws_14_3_every_caller_gets_exactly_one_answer_its_own_within_the_longest_time(
    asks: list[tuple[float, str, str]], limit: int
) -> None:
    clerk = Clerk(limit)

    async def everyone() -> list[float]:
        loop = asyncio.get_running_loop()
        took = []
        for coroutine in asyncio.as_completed([one(*ask) for ask in asks]):
            took.append(await coroutine)
        assert loop.time() <= 3 + LONGEST + 0.2 + 1e-6
        return took

    async def one(at: float, key: str, bucket: str) -> float:
        assert await clerk.ask(at, key, 7, bucket) == (key, 7)
        return asyncio.get_running_loop().time() - at

    assert all(took <= LONGEST + 0.2 + 1e-6 for took in run_in_virtual_time(everyone()))
    assert all(len(keys) == len(set(keys)) <= limit for _, keys in clerk.batches)
    assert {key for _, keys in clerk.batches for key in keys} == {key for _, key, _ in asks}
    assert sum(size for _, size, _ in clerk.observed) <= len(asks)


def test_aws_7_3_who_gets_no_answer_is_told_so_and_the_others_are_not_disturbed() -> None:
    clerk = Clerk()

    async def both() -> list[tuple[str, int] | BaseException]:
        return await asyncio.gather(
            clerk.ask(0, "lost", -1), clerk.ask(0, "found", 1), return_exceptions=True
        )

    lost, found = run_in_virtual_time(both())
    assert isinstance(lost, LookupError)
    assert str(lost) == "error making call"
    assert found == ("found", 1)
