"""Given a pool that weighs savings against disturbance, which commands are worth it?"""

import math
from dataclasses import replace

import pytest

from nodeless.disruption import ConsolidationState, DisruptionPolicy
from nodeless.disruption.balance import Exchange, Totals, score
from nodeless.disruption.consolidation_state import LEAST_PAUSE
from nodeless.model.disruption import Command, DisruptionReason
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, ON_DEMAND, POD_DISRUPTION_COST
from nodeless.model.requirements import Requirements
from tests.disruption.world import a_node_pool, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import NOW, instance_type, needs

ON_DEMAND_ONLY = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])
BALANCED = a_node_pool(balanced=True, requirements=ON_DEMAND_ONLY)


@pytest.mark.parametrize(
    ("saving", "disturbance", "expected"),
    [
        pytest.param(20.0, 5.0, 4.0, id="DN-21-approved"),
        pytest.param(5.0, 50.0, 0.1, id="DN-21-rejected"),
        (0.0, 5.0, 0.0),
        (-1.0, 5.0, 0.0),
    ],
)
def test_a_score_is_the_part_of_the_price_saved_for_each_part_of_the_disturbance(
    saving, disturbance, expected
):
    assert score(saving, disturbance, Totals(100.0, 100.0)) == pytest.approx(expected)


def a_busy_node(pool, name, pods):
    return [node_of(pool, name, "2xlarge"), on(name, pods, cpu="100m", memory="50Mi")]


def a_kept_node(pool, name, kind="2xlarge"):
    """Full of work that must not be disrupted; it counts in the totals all the same."""
    return [node_of(pool, name, kind), on(name, cpu="14", annotations={DO_NOT_DISRUPT: "true"})]


def test_dn_21_a_saving_that_disturbs_much_more_than_its_part_is_not_made():
    """Of six equal nodes the one with 40 pods: a sixth of the price at most for most of the disturbance."""
    things = [a_busy_node(BALANCED, "busy", 40), *(a_kept_node(BALANCED, f"k{i}") for i in range(5))]
    decisions = decide(cluster(BALANCED, things))
    assert not decisions.commands
    verdict = decisions.verdicts["busy"]
    assert verdict.code == "Unbalanced"
    assert "NodePool/default is Balanced" in verdict.message
    assert "below 0.5" in verdict.message
    loose = a_node_pool(requirements=ON_DEMAND_ONLY)
    same = [a_busy_node(loose, "busy", 40), *(a_kept_node(loose, f"k{i}") for i in range(5))]
    assert only_command(decide(cluster(loose, same))).claims == ("busy",)


def test_dn_21_a_saving_that_disturbs_little_is_made():
    things = [a_busy_node(BALANCED, "calm", 1), *(a_kept_node(BALANCED, f"k{i}") for i in range(5))]
    assert only_command(decide(cluster(BALANCED, things))).claims == ("calm",)


def test_an_eviction_may_be_given_a_price():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    seen = cluster(pool, a_busy_node(pool, "busy", 8))
    assert decide(seen).commands
    decisions = decide(seen, eviction_price=1.5)
    assert not decisions.commands
    assert decisions.verdicts["busy"].code == "EvictionsTooDear"
    assert "8.0 at 1.5 USD" in decisions.verdicts["busy"].message


def test_pods_that_are_cheap_to_move_count_for_less():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    cheap = {POD_DISRUPTION_COST: str(-(2**27) * 9 // 10)}
    seen = cluster(
        pool, node_of(pool, "a", "2xlarge"), on("a", 8, cpu="100m", memory="50Mi", annotations=cheap)
    )
    assert decide(seen, eviction_price=1.5).commands


@pytest.mark.parametrize(("number", "commands"), [(2, 1), (60, 1), (240, 0)])
def test_hundreds_of_evictions_are_not_made_for_eleven_percent(number, commands):
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    dear = instance_type("dear", 64, 64, pods=300, price=1.0)
    near = instance_type("near", 64, 64, pods=300, price=0.89)
    node = node_of(pool, "a", "dear", types={"dear": dear})
    seen = cluster(pool, node, on("a", number, cpu="100m", memory="100Mi"))
    decisions = decide(seen, (dear, near))
    assert len(decisions.commands) == commands
    if not commands:
        assert "a command must save 15%" in decisions.verdicts["a"].message


@pytest.mark.parametrize(
    ("price", "seconds"), [(0.5, 90.0), (0.8, 360.0), (0.9, 810.0), (0.1, 10.0)], ids=lambda each: f"{each:g}"
)
@pytest.mark.parametrize("age", [0.0, 0.5, 0.99, 1.01, 50.0])
def test_a_replacement_is_made_once_its_node_has_run_for_as_long_as_it_takes_to_repay(price, seconds, age):
    """For 90 s both run, which costs 90 s of the new price, and each hour the difference is saved."""
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    dear, near = (instance_type(name, 4, 16, price=cost) for name, cost in (("dear", 1.0), ("near", price)))
    born = NOW - age * seconds
    seen = cluster(pool, node_of(pool, "a", "dear", types={"dear": dear}, created_at=born), on("a", 3))
    decisions = decide(seen, (dear, near))
    if age > 1:
        assert only_command(decisions).claims == ("a",)
        assert decisions.again_at == math.inf
        return
    assert not decisions.commands
    assert decisions.verdicts["a"].code == "NotRepaid"
    assert f"{1 - price:.4f} USD/h" in decisions.verdicts["a"].message
    assert decisions.again_at == pytest.approx(born + seconds)
    assert not decide(seen, (dear, near), now=decisions.again_at - 1).commands
    assert decide(seen, (dear, near), now=decisions.again_at).commands
    assert decide(seen, (dear, near), overlap=0.0).commands
    still = ConsolidationState.after(seen, DisruptionPolicy(), NOW, 1000.0, again_at=decisions.again_at)
    assert still.ends == pytest.approx(1000.0 + min(max(born + seconds - NOW, LEAST_PAUSE), 300.0))


def test_nodes_that_are_merged_repay_by_the_youngest_of_them():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    small, large = instance_type("small", 2, 8, price=1.0), instance_type("large", 6, 24, price=2.7)
    things = [
        [node_of(pool, name, "small", types={"small": small}, created_at=NOW - age), on(name, cpu="1500m")]
        for name, age in (("a", 5000.0), ("b", 700.0), ("c", 5000.0))
    ]
    seen = cluster(pool, things)
    decisions = decide(seen, (small, large))
    assert not decisions.commands
    assert decisions.again_at == pytest.approx(NOW - 700 + 90 * 2.7 / 0.3)
    assert only_command(decide(seen, (small, large), now=decisions.again_at)).claims == ("a", "b", "c")


def test_a_node_whose_pods_have_room_elsewhere_goes_however_young_it_is():
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)
    seen = cluster(
        pool, [node_of(pool, name, "large", created_at=NOW - 1) for name in "ab"], on("a"), on("b")
    )
    assert len(only_command(decide(seen)).claims) == 1


def test_of_two_moves_that_save_alike_the_one_with_fewer_evictions_goes_first():
    few, many = (
        Command(DisruptionReason.UNDERUTILIZED, (name,), (), 1.0, 0.5, number)
        for name, number in (("a", 3), ("b", 30))
    )
    worth = Exchange(0.01)
    assert worth.value(few) > worth.value(many)
    assert worth.value(replace(many, price_after=0.1)) > worth.value(few)
