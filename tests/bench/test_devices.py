"""The bench of claims on devices compares the same work: pods land alike by claims and by the resource."""

from bench.devices import by_claims, by_resource, gpu_types
from nodeless.scheduling import Policy, solve


def test_both_ways_are_planned_alike():
    """The same pods on the nodes, as many new nodes at the same price."""
    types = gpu_types()
    seen = (by_claims(types), by_resource(types))
    plans = [solve(each, dict.fromkeys(each.pools, types), Policy(time_box=0)) for each in seen]
    figures = [
        (len(plan.placements), len(plan.new_nodes), round(sum(new.price for new in plan.new_nodes), 6))
        for plan in plans
    ]
    assert figures[0] == figures[1]
    assert not plans[0].refusals
    assert len(types) > 40
