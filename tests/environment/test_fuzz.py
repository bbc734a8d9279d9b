"""Whatever the API server accepts, the controller lives, answers and serves the others (long: make fuzz)."""

from __future__ import annotations

import os
import time
from random import SystemRandom

import pytest

from localenv.environment import Environment
from tests.fuzz.run import Fuzz

pytestmark = [pytest.mark.environment, pytest.mark.drawn("environments of their own")]

#: How long it throws; what broke something once is a test of its own, where its subject is tested.
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))


def test_whatever_is_thrown_the_controller_goes_on(environment: Environment) -> None:
    seed = int(os.environ.get("FUZZ_SEED", SystemRandom().randrange(10**6)))
    print(f"seed {seed}: FUZZ_SEED={seed} throws the same")  # noqa: T201
    throwing = Fuzz(environment, seed)
    found = throwing.run(lambda _: time.monotonic() > throwing.began + SECONDS)
    assert not found.broken, found.report()
    assert found.accepted.total() > 100
    assert found.among
