"""AWS may answer whatever it likes, or nothing but refusals: nobody restarts, and nothing is bought twice."""

from __future__ import annotations

import os
import time
from collections import Counter
from random import SystemRandom

import pytest

from localenv.environment import NAMESPACE, Environment
from tests.environment.user import CLAIMS, User

pytestmark = pytest.mark.environment

#: How long answers are garbled, or calls throttled (`AWS_FAULT_SECONDS`, for a long run).
SECONDS = float(os.environ.get("AWS_FAULT_SECONDS", "20"))
#: Seconds until what was learned of garbled answers is forgotten, and throttled calls are made again.
RECOVERY = 180.0
#: One node holds the pods; that another one comes in place of one that was misread has an end.
MOST_INSTANCES = 3
#: Refusals of one operation: four attempts of each caller at first, side by side, then one in up to 20 s.
MOST_REFUSALS = 60 + SECONDS


def replicas(environment: Environment) -> dict[str, int]:
    """Process ids of the controller's replicas."""
    return {pod: environment.kubelets.pid_of(NAMESPACE, pod) for pod in environment.controller_pods()}


def wait_out(user: User, before: dict[str, int]) -> None:
    """Wait until the fault has lasted for its time, or a replica is another process."""
    ends = time.monotonic() + SECONDS
    user.api.wait(
        lambda: replicas(user.environment),
        lambda found: found != before or time.monotonic() > ends,
        timeout=SECONDS + 60,
        what="the end of the fault",
    )
    assert replicas(user.environment) == before


def test_garbled_answers_end_nobody_and_are_soon_forgotten(user: User, environment: Environment) -> None:
    seed = int(os.environ.get("GARBLED_SEED", SystemRandom().randrange(10**6)))
    print(f"seed {seed}: GARBLED_SEED={seed} garbles the same")  # noqa: T201
    before = replicas(environment)
    environment.aws.set_faults(garbled={"chance": 0.4, "seed": seed, "principal": "assumed-role"})
    user.pool()
    user.deploy("web", 2)
    wait_out(user, before)
    environment.aws.set_faults()
    user.runs("web", 2, timeout=RECOVERY)
    assert replicas(environment) == before
    assert len(user.launched()) <= MOST_INSTANCES


def test_throttling_of_every_call_is_named_costs_few_calls_and_buys_nothing(
    user: User, environment: Environment
) -> None:
    before, started = replicas(environment), time.time()
    former = {each["InstanceId"] for each in environment.aws.instances()}
    environment.aws.set_faults(throttle=10**9)
    user.pool()
    user.deploy("web", 2)
    user.logged("RequestLimitExceeded", "ec2:")
    wait_out(user, before)
    assert {each["InstanceId"] for each in environment.aws.instances()} <= former
    environment.aws.set_faults()
    refused = Counter(
        f"{call['service']}:{call['action']}"
        for call in environment.aws.calls()
        if call["time"] >= started
        and call.get("error") in ("RequestLimitExceeded", "Throttling")
        and "assumed-role" in (call["principal"] or "")
    )
    assert refused
    assert max(refused.values()) <= MOST_REFUSALS, refused
    user.runs("web", 2, timeout=RECOVERY)
    assert replicas(environment) == before
    # One node holds the pods. What garbled answers of another test said may still count, so a second may
    # come in place of one that was misread; never one that no claim is for.
    assert 1 <= len(user.launched()) <= MOST_INSTANCES
    claims = user.api.list(CLAIMS)
    claimed = {claim["status"].get("providerID", "").rpartition("/")[2] for claim in claims}
    assert set(user.instances()) - former <= claimed
