"""Plans of some dozens of pods: never dearer with more time, as cheap as all ways to fill nodes allow."""

import json
import os
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.model.labels import HOSTNAME
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import beside, instance_type, node, pods, pool, snapshot
from tests.scheduling.test_few_nodes import TYPES, a_batch, least_price

EXAMPLE = Path(__file__).parents[2] / "examples" / "plan"
WORLDS = int(os.environ.get("EVERY_FILLING", "12"))


def test_the_example_costs_what_its_cheapest_nodes_cost():
    made = CliRunner().invoke(app, ["plan", str(EXAMPLE), "--json"])
    assert json.loads(made.stdout)["cost"]["perHour"]["added"] <= 1.14


def a_world(seed):
    """A drawn cluster of up to a few dozen pods."""
    chance = Random(seed)
    groups = [
        (
            chance.randint(200, 6000),
            chance.choice([1, 2, 4, 8]),
            chance.randint(1, 6),
            chance.choice([0, 0, 1]),
        )
        for _ in range(chance.randint(1, 6))
    ]
    there = [node(f"n{number}", cpu="3", memory="8Gi") for number in range(chance.choice([0, 0, 2]))]
    limits = chance.choice([None, None, {"cpu": "200"}])
    return snapshot(a_batch(groups), [pool(limits=limits)], there)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_more_time_never_makes_a_plan_dearer(seed):
    seen = a_world(seed)
    plans = [
        solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(time_box=box)) for box in (0, 0.5, 1, 2, 5, 10)
    ]
    assert not any(made.faults for made in plans)
    prices = [made.cost_per_hour for made in plans]
    assert all(later <= earlier * (1 + 1e-4) for earlier, later in pairwise(prices)), prices


@pytest.mark.parametrize("seed", range(WORLDS))
def test_few_pods_cost_what_trying_everything_says_and_their_bound_is_no_higher(seed):
    chance = Random(seed)
    batch = a_batch(
        [
            (chance.randint(200, 6000), chance.choice([1, 2, 4, 8]), 2, chance.choice([0, 0, 1]))
            for _ in range(chance.randint(1, 3))
        ]
    )
    own = pool()
    made = solve(snapshot(batch, [own]), {own.key: TYPES}, Policy())
    least = least_price(batch, [], len(batch))
    assert not made.refusals
    assert made.cost_per_hour == pytest.approx(least)
    assert made.lower_bound <= least + 1e-9


@pytest.mark.parametrize("lonely", [3, 8])
def test_pods_that_keep_off_each_other_stay_apart_whatever_that_costs(lonely):
    types = (instance_type("small", 2, 8, price=0.1), instance_type("large", 32, 128, price=0.11))
    waiting = [
        *pods(lonely, "500m", "1Gi", name="lone", anti_affinity=(beside(HOSTNAME, "lone"),)),
        *pods(20, "1", "2Gi", name="other"),
    ]
    own = pool()
    made = solve(snapshot(waiting, [own]), {own.key: types}, Policy())
    assert not made.refusals
    assert max(sum("lone" in key for key in new.pods) for new in made.new_nodes) == 1
    assert len(made.new_nodes) == lonely
