"""Problems of ten drawn families: what is answered can be carried out, and time makes no plan dearer."""

import json
import random

import pytest

from bench import families
from bench.packing import answer_of, checker
from nodeless.cli.commands.packing import answer_to, load_problem
from tests.scheduling.drawn_problems import CATALOG, FAMILIES, drawn_problem, write_problem
from tests.scheduling.made_problems import batch_problem
from tests.scheduling.problems import FOLDER


@pytest.mark.drawn
@pytest.mark.parametrize("family", FAMILIES)
def test_plans_can_be_carried_out_and_cost_no_more_with_more_time(family, tmp_path):
    # The seed of the run decides.
    seed = str(random.randrange(1_000_000))
    path = write_problem(family, seed, tmp_path)
    dearest = float("inf")
    for box in (0.0, 0.5, 1.0):
        answer = answer_to(load_problem(path), improve=box)
        assert checker(path).faults(answer) == [], (family, seed, box)
        assert answer["unscheduledPods"] == 0, (family, seed, box)
        found = families.searched_price(answer)
        assert found <= dearest + 1e-6, (family, seed, box)
        assert answer["totalHourlyPrice"] >= (answer["lowerBound"] or 0.0) - 1e-6, (family, seed, box)
        assert answer["totalHourlyPrice"] <= 1.01 * found + 1e-6, (family, seed, box)
        dearest = found


@pytest.mark.parametrize("seed", ["699642", "638854"])
def test_what_is_cheap_and_limited_is_filled_well_and_used_up(seed, tmp_path):
    """Greedy fillings of large pods, and limits in which no node fits any more, cost 5 to 7 % here."""
    path = write_problem("limited pool", seed, tmp_path)
    assert answer_to(load_problem(path), improve=1.0)["gap"] < 0.035


@pytest.mark.parametrize(
    ("seed", "most"), [("452891", 0.06), ("83723", 0.03), ("7002", 0.05), ("933651", 0.059)]
)
def test_many_pods_that_keep_off_others_on_their_host_are_searched_for(seed, most, tmp_path):
    """8 % dearer than the bound where such pods are not exchanged; 5 % where a proof has most of the box.

    And 9 % where the rest of a dive has as much time as the greedy cover of all pods, which is made in lots;
    6.1 % where the bound is looked for in short turns.
    """
    path = write_problem("spread apps", seed, tmp_path)
    answer = answer_to(load_problem(path), improve=1.0)
    # Fewer nodes for a little more money are chosen once the search is over.
    assert 1 - answer["lowerBound"] / families.searched_price(answer) < most


@pytest.mark.parametrize(("box", "most"), [(1.0, 0.04), (5.0, 0.015)])
def test_a_bound_knows_each_of_many_existing_nodes(box, most, tmp_path):
    """7.2 % where they are one with the room of all, in which pods are divided, however long it takes."""
    path = write_problem("beside nodes", "41077", tmp_path)
    assert answer_to(load_problem(path), improve=box)["gap"] < most


def test_a_bound_knows_each_of_many_kinds_of_pods(tmp_path):
    """8.3 % where a program of each kind and type is too large, and the resources of all kinds are one."""
    path = write_problem("diverse jobs", "41077", tmp_path)
    assert answer_to(load_problem(path), improve=1.0)["gap"] < 0.02


@pytest.mark.parametrize(("pods", "kinds"), [(10_000, 300), (5_000, 500)])
def test_many_kinds_of_pods_are_bought_evenly(pods, kinds, tmp_path):
    """3.6 and 3.8 % where a lot is filled with any of them: some are used up soon, and the rest is odd."""
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(batch_problem(pods, kinds, str(FOLDER / CATALOG))))
    assert answer_to(load_problem(path), improve=1.0)["gap"] < 0.02


@pytest.mark.parametrize(("seed", "box", "most"), [("7010", 1.0, 0.005), ("7005", 2.5, 0.026)])
def test_few_nodes_are_chosen_by_a_program_once_their_configurations_are_known(seed, box, most, tmp_path):
    """1.1 and 3.5 % dearer than the bound where dives alone round up nodes."""
    path = write_problem("spread apps", seed, tmp_path)
    assert answer_to(load_problem(path), improve=box)["gap"] < most


@pytest.mark.parametrize("seed", ["699642", "638854"])
def test_the_plan_is_the_same_whatever_processor_it_is_made_on(seed, tmp_path, monkeypatch):
    """By the rounding of BLAS for each kind of processor, plans for the first seed cost 6.36 or 6.51 USD/h.

    Where OpenBLAS does not know these, the plans are compared all the same.
    """
    path = write_problem("limited pool", seed, tmp_path)
    plans = []
    for processor in ("Haswell", "Sandybridge"):
        monkeypatch.setenv("OPENBLAS_CORETYPE", processor)
        answer = answer_of(path, "1")
        plans.append({key: answer[key] for key in ("newNodes", "totalHourlyPrice", "lowerBound")})
    assert plans[0] == plans[1]


def test_a_seed_draws_the_same_problem_again_and_another_seed_another():
    for family in FAMILIES:
        assert drawn_problem(family, "7") == drawn_problem(family, "7")
        assert drawn_problem(family, "7") != drawn_problem(family, "8")


def answer(price, *, gap=0.0, seconds=0.1, fewer=None):
    return {
        "totalHourlyPrice": price,
        "gap": gap,
        "solveCpuSeconds": seconds,
        "pods": 5,
        "fewerNodes": fewer,
    }


def test_figures_that_miss_what_is_promised_are_named():
    dearer = answer(4.03, fewer={"nodes": 1, "perHour": 0.03})
    answers = {
        "small team 1": {0.0: answer(5.0), 0.5: answer(4.5), 1.0: answer(4.0, gap=0.01), 5.0: dearer},
        "GPUs 1": {
            0.0: answer(9.0, seconds=0.2),
            0.5: answer(9.0),
            1.0: answer(8.0, gap=0.08, seconds=1.8),
            5.0: answer(8.5, gap=0.02),
        },
    }
    assert list(families.summary(answers, (0.0, 0.5, 1.0, 5.0))) == [
        "box 1: gap 4.50 % on average (promised 3 %), 8.00 % at worst (promised 6 %): GPUs 1",
        "  missed by 1 of 2: GPUs 1",
        "  more processor time than 1.5 times the box: GPUs 1",
        "box 5: gap 1.00 % on average (promised 1.5 %), 2.00 % at worst (promised 3 %): GPUs 1",
        "more time made a plan dearer: GPUs 1 (1 to 5 s)",
        "half a second saves 25 % of what one saves",
    ]
