"""Nodes that are paid for already stay, others move into what is left of a commitment, and no further."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nodeless.disruption import DisruptionPolicy, disrupt
from nodeless.disruption.target import target
from nodeless.model.bill import VOLUMES, Bill, BillPart
from nodeless.model.commitments import Commitment
from nodeless.model.disruption import VerdictCode
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from nodeless.model.pools import Budget
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy
from tests.disruption.replay import carried_out
from tests.disruption.test_fixed_point import NODES, a_cluster
from tests.disruption.world import NOW, a_provisioner, cluster, node_of, on
from tests.scheduling.factories import FAMILY, instance_type, needs, node

TYPES = (
    instance_type("a.large", 2, 8, price=0.1),
    instance_type("a.xlarge", 4, 16, price=0.2),
    instance_type("a.2xlarge", 8, 32, price=0.4),
    instance_type("b.xlarge", 4, 16, price=0.18),
)
BY_NAME = {kind.name: kind for kind in TYPES}
NEVER_SPOT = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
POOL = a_provisioner()


def reserved(kind, instances=1, **fields):
    return Commitment("reserved", instance_types=(kind,), instances=instances, **fields)


def a_node(name, kind="a.xlarge", *, pool=NEVER_SPOT, pods=3, cpu="1", **fields):
    return [*node_of(pool, name, kind, types=BY_NAME, **fields), *on(name, pods, cpu)]


def with_volumes(kinds, dollars):
    """The types with volumes that no commitment pays."""
    return tuple(
        replace(
            kind,
            offerings=tuple(
                each.billed(Bill(each.price, (BillPart(VOLUMES, dollars),))) for each in kind.offerings
            ),
        )
        for kind in kinds
    )


def policy(*commitments):
    return DisruptionPolicy(solving=Policy(time_box=0.0, commitments=commitments))


def decide(seen, *commitments, types=TYPES):
    return disrupt(seen, dict.fromkeys(seen.pools, types), policy(*commitments), NOW)


def ended(decisions):
    return sorted(name for command in decisions.commands for name in command.claims)


def test_a_covered_node_is_not_replaced_by_a_cheaper_one():
    seen = cluster(NEVER_SPOT, a_node("a", "a.2xlarge", pods=1))
    assert ended(decide(seen)) == ["a"]
    decisions = decide(seen, reserved("a.2xlarge"))
    assert ended(decisions) == []
    assert decisions.verdicts["a"].code == VerdictCode.COMMITTED
    assert "paid for by reserved" in decisions.verdicts["a"].message


def test_a_covered_node_goes_for_what_is_still_paid_of_it():
    """A Reserved Instance pays no volume."""
    types = with_volumes(TYPES, 0.2)
    seen = cluster(NEVER_SPOT, a_node("a", pods=1), a_node("b", pods=2))
    (command,) = decide(seen, reserved("a.xlarge", 2), types=types).commands
    assert command.claims == ("a",)
    assert not command.replacements
    assert command.saving == pytest.approx(0.2)


def test_covered_nodes_become_one_that_what_they_free_covers():
    types = with_volumes(TYPES, 0.2)
    seen = cluster(NEVER_SPOT, a_node("a"), a_node("b"))
    (command,) = decide(seen, reserved("a.xlarge", 2, size_flexible=True), types=types).commands
    assert command.claims == ("a", "b")
    assert [new.instance_type for new in command.replacements] == ["a.2xlarge"]
    assert command.saving == pytest.approx(0.2)


def test_a_covered_node_stays_of_which_hardly_anything_is_paid():
    types = with_volumes(TYPES, 0.004)
    seen = cluster(NEVER_SPOT, a_node("a", pods=1), a_node("b", pods=2))
    decisions = decide(seen, reserved("a.xlarge", 2), types=types)
    assert ended(decisions) == []
    assert decisions.verdicts["a"].code == VerdictCode.COMMITTED
    assert decisions.verdicts["a"].message.endswith("the other 0.0040 USD/h are not worth a command")


def test_pods_move_from_what_costs_something_to_room_on_what_is_paid_for():
    seen = cluster(NEVER_SPOT, a_node("paid", pods=2), a_node("bought", "b.xlarge", pods=1))
    decisions = decide(seen, reserved("a.xlarge"))
    (command,) = decisions.commands
    assert command.claims == ("bought",)
    assert not command.replacements
    assert command.saving == pytest.approx(0.18)


def test_of_equal_nodes_the_one_with_fewer_pods_is_the_one_that_is_not_covered():
    seen = cluster(NEVER_SPOT, a_node("a", pods=1), a_node("b", pods=2))
    decisions = decide(seen, reserved("a.xlarge"))
    assert ended(decisions) == ["a"]
    assert decisions.commands[0].saving == pytest.approx(0.2)


def test_nodes_that_are_not_ours_have_used_their_part():
    """Nobody ends them, so they use it as long as they run."""
    theirs = node("theirs", labels={INSTANCE_TYPE: "a.xlarge", ZONE: "z1"}, provider_id="")
    bought = a_node("a", "a.xlarge", pods=1)
    decisions = decide(cluster(NEVER_SPOT, theirs, bought), reserved("a.xlarge"))
    assert "a" not in decisions.verdicts or decisions.verdicts["a"].code != VerdictCode.COMMITTED
    assert ended(decisions) == ["a"]


def test_an_empty_node_goes_although_it_is_covered():
    assert ended(decide(cluster(NEVER_SPOT, a_node("a", pods=0)), reserved("a.xlarge"))) == ["a"]


@pytest.mark.parametrize("capacity_type", [SPOT, ON_DEMAND])
def test_a_node_moves_into_what_is_left_of_a_commitment(capacity_type):
    seen = cluster(POOL, a_node("a", "b.xlarge", pool=POOL, capacity_type=capacity_type))
    (command,) = decide(seen, reserved("a.2xlarge")).commands
    (new,) = command.replacements
    assert new.instance_type == "a.2xlarge"
    assert new.requirements[CAPACITY_TYPE].values == {ON_DEMAND}
    assert command.price_after == pytest.approx(0.0)


def test_no_more_nodes_move_than_the_commitment_covers():
    """A covered node would be the cheapest place for each, but two of them would cost 0.4."""
    nodes = [a_node(name, "b.xlarge", pool=POOL, capacity_type=SPOT) for name in ("a", "b", "c")]
    seen = cluster(POOL, nodes)
    decisions = decide(seen, reserved("a.xlarge"))
    (command,) = decisions.commands
    assert len(command.claims) == 1
    (new,) = command.replacements
    assert new.instance_type == "a.xlarge"
    assert command.price_after == pytest.approx(0.0)


def test_nothing_moves_into_a_commitment_that_is_used_up():
    full = a_node("paid", pods=3)
    seen = cluster(POOL, full, a_node("a", "b.xlarge", pool=POOL, capacity_type=SPOT))
    assert ended(decide(seen, reserved("a.xlarge"))) == []


def test_a_node_that_leaves_frees_its_part_for_another():
    going = a_node("going", pods=0, deletion_timestamp=NOW - 10)
    other = a_node("a", "b.xlarge", pool=POOL, capacity_type=SPOT)
    (command,) = decide(cluster(POOL, going, other), reserved("a.xlarge")).commands
    assert command.claims == ("a",)
    assert command.replacements[0].price == pytest.approx(0.0)


def test_a_commitment_that_covers_a_part_of_a_node_lowers_what_its_end_saves():
    seen = cluster(NEVER_SPOT, a_node("a", "a.2xlarge", pods=1))
    half = Commitment("plan", dollars=0.2, instance_types=("a.2xlarge",))
    (command,) = decide(seen, half).commands
    assert command.price_before == pytest.approx(0.2)
    assert command.price_after == pytest.approx(0.1)


def test_pools_that_are_balanced_count_what_is_paid():
    balanced = replace(NEVER_SPOT, balanced=True)
    seen = cluster(balanced, a_node("paid", pods=2, pool=balanced), a_node("b", pods=1, pool=balanced))
    assert ended(decide(seen, reserved("a.xlarge"))) == ["b"]


def test_the_distance_to_the_target_is_what_can_be_saved_beside_commitments():
    seen = cluster(NEVER_SPOT, a_node("paid", pods=2), a_node("bought", "b.xlarge", pods=1))
    found = target(seen, dict.fromkeys(seen.pools, TYPES), policy(reserved("a.xlarge")), NOW)
    assert (found.price, found.whole) == (pytest.approx(0.18), pytest.approx(0.0))


def test_a_cluster_within_its_commitments_is_at_its_target():
    seen = cluster(NEVER_SPOT, a_node("a"), a_node("b"))
    found = target(seen, dict.fromkeys(seen.pools, TYPES), policy(reserved("a.xlarge", 2)), NOW)
    assert (found.price, found.distance) == (0.0, 0.0)


def test_budgets_hold_for_moves_into_commitments():
    held = replace(POOL, budgets=(Budget("0"),))
    seen = cluster(held, a_node("a", "b.xlarge", pool=held, capacity_type=SPOT))
    assert ended(decide(seen, reserved("a.2xlarge"))) == []


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    NODES,
    st.sampled_from([0.1, 0.4, 1.0, 3.0]),
    st.sampled_from([0, 30]),
    st.sampled_from([0.0, 0.05, 0.5]),
)
def test_moves_end_and_each_of_them_lowers_the_bill(nodes, dollars, discount, volumes):
    """The bill of a Savings Plan for everything can be said without any of our code."""
    plan = Commitment("plan", dollars=dollars, discount=discount)
    covers = dollars / (1 - discount / 100)
    types = with_volumes(FAMILY, volumes) if volumes else FAMILY
    seen = a_cluster(a_provisioner(), nodes)
    bill = bill_of(seen, covers, volumes)
    for _ in range(2 * len(nodes) + 2):
        decisions = decide(seen, plan, types=types)
        if not decisions.commands:
            break
        # A node for what the scheduler leaves over is the one that was reckoned with, not the dearest.
        spilled = any(not each.replacements and each.price_after for each in decisions.commands)
        after = carried_out(seen, decisions, types, intended=spilled)
        assert all(pod.node_name in after.nodes for pod in after.pods.values())
        lower = bill_of(after, covers, volumes)
        saved = sum(command.saving for command in decisions.commands)
        assert lower <= bill - saved + 1e-5
        seen, bill = after, lower
    assert not decide(seen, plan, types=types).commands


def bill_of(seen, covers, volumes):
    """Spot in full, of on-demand what the Savings Plan leaves, and the volumes."""
    prices = {kind.name: kind.offerings[-1].price for kind in FAMILY}
    listed = {ON_DEMAND: 0.0, SPOT: 0.0}
    for own in seen.nodes.values():
        listed[own.capacity_type] += prices[own.instance_type]
    paid = listed[SPOT] / 2 + max(0.0, listed[ON_DEMAND] - covers)
    return paid + volumes * len(seen.nodes)
