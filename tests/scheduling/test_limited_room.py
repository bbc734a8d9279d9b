"""Limits refuse nobody who would still have a place in the plan that comes out."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import ARCH, ZONE
from nodeless.model.plan import Plan, PlannedNode
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.resources import Resources, add, fits
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from tests.scheduling.factories import instance_type, needs, pods, pool, snapshot, term

TYPES = (
    *(instance_type(f"m{cpu}", cpu, 4 * cpu) for cpu in (1, 2, 4, 8, 16)),
    *(instance_type(f"a{cpu}", cpu, 2 * cpu, arch="arm64", price=0.15 * cpu) for cpu in (2, 6, 12)),
    instance_type("dense", 3, 64, price=0.1),
)
BY_NAME = {kind.name: kind for kind in TYPES}
ARM, AMD, ZONE_ONE = needs(ARCH, "In", "arm64"), needs(ARCH, "In", "amd64"), needs(ZONE, "In", "z1")


@st.composite
def workloads(draw: st.DrawFn) -> list[Pod]:
    result: list[Pod] = []
    for index in range(draw(st.integers(1, 4))):
        result += pods(
            draw(st.integers(1, 6)),
            f"{draw(st.sampled_from([100, 400, 900, 1500, 3000, 5000]))}m",
            f"{draw(st.sampled_from([0, 500, 3000, 20000]))}Mi",
            name=f"w{index}",
            required_terms=draw(st.sampled_from([(), (), (term(ARM),), (term(AMD),), (term(ZONE_ONE),)])),
        )
    return result


@st.composite
def pools_of(draw: st.DrawFn) -> list[Pool]:
    amounts = st.sampled_from(
        [
            {"cpu": "3"},
            {"cpu": "7"},
            {"cpu": "13"},
            {"nodes": "2"},
            {"memory": "40Gi"},
            {"cpu": "9", "nodes": "3"},
        ]
    )
    first = pool("first", weight=draw(st.sampled_from([0, 5])), limits=draw(amounts))
    second = pool("second", *draw(st.sampled_from([[], [ARM], [AMD]])), limits=draw(amounts))
    return draw(st.sampled_from([[first], [first, second]]))


def most(new: PlannedNode, name: str) -> int:
    """What a planned node may come to count against a limit."""
    if name == "nodes":
        return 1
    return max(BY_NAME[each.instance_type].capacity[name] for each in new.alternatives)


def left(own: Pool, result: Plan) -> Resources:
    """What is left of a pool's limits, whatever is launched."""
    mine = [new for new in result.new_nodes if new.pool == own.reference]
    return {name: limit - sum(most(new, name) for new in mine) for name, limit in (own.limits or {}).items()}


def places(pod: Pod, pools: list[Pool], result: Plan) -> Iterator[str]:
    """Where a refused pod could still go: on a planned node, or on one more within the limits."""
    wanted = [term.expressions for term in pod.shape.required_terms] or [()]
    for own in pools:
        mine = [new for new in result.new_nodes if new.pool == own.reference]
        for new in mine:
            for each in new.alternatives:
                kind = BY_NAME[each.instance_type]
                labels = {
                    **new.requirements.single_values(),
                    ARCH: next(iter(kind.requirements[ARCH].values)),
                }
                held = any(all(labels.get(one.key) in one.values for one in some) for some in wanted)
                if held and fits(add(new.requests, pod.requests), kind.allocatable):
                    yield f"{new.instance_type} of {own.name} as {kind.name}"
        rest = left(own, result)
        for kind in TYPES:
            arch = next(iter(kind.requirements[ARCH].values))
            held = any(all(one.key != ARCH or arch in one.values for one in some) for some in wanted)
            allowed = ARCH not in own.requirements or arch in own.requirements[ARCH].values
            room = all((1 if name == "nodes" else kind.capacity[name]) <= rest[name] for name in rest)
            if held and allowed and room and fits(pod.requests, kind.allocatable):
                yield f"one more {kind.name} of {own.name}"


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(wanted=workloads(), pools=pools_of())
def test_who_is_refused_for_limits_has_no_place_in_the_plan(
    packing: str, wanted: list[Pod], pools: list[Pool]
) -> None:
    seen = snapshot(wanted, pools)
    result = solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(packing=packing))
    assert_no_place(seen, pools, result)


def assert_no_place(seen: Snapshot, pools: list[Pool], result: Plan) -> None:
    for refusal in result.refusals:
        found = list(places(seen.pods[refusal.pod], pools, result))
        told = [(each.name, each.requests, each.shape.required_terms) for each in seen.pods.values()]
        assert not found, (refusal.pod, found, told, [own.limits for own in pools])


IN_ZONE_ONE = {"required_terms": (term(ZONE_ONE),)}


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize(
    ("workloads", "limits"),
    [
        pytest.param(
            [
                (18, "400m", "500Mi", {}),
                (20, "900m", "20000Mi", {}),
                (30, "3", "3000Mi", IN_ZONE_ONE),
                (38, "400m", "500Mi", {}),
            ],
            {"nodes": "5"},
            id="few-nodes",
        ),
        pytest.param(
            [(32, "400m", "3000Mi", {}), (40, "3", "500Mi", IN_ZONE_ONE), (30, "3", "500Mi", {})],
            {"nodes": "4"},
            id="fewer-nodes",
        ),
        pytest.param(
            [(38, "5", "0", IN_ZONE_ONE), (24, "900m", "0", {}), (39, "900m", "3000Mi", {})],
            {"cpu": "61", "nodes": "8"},
            id="processors-and-nodes",
        ),
    ],
)
def test_what_a_cheaper_plan_leaves_of_the_limits_is_for_those_who_were_left_over(
    packing: str, workloads: list[tuple[int, str, str, dict[str, Any]]], limits: dict[str, str]
) -> None:
    """More pods than are worked out at once."""
    wanted = [
        pod
        for index, (number, cpu, memory, asked) in enumerate(workloads)
        for pod in pods(number, cpu, memory, name=f"w{index}", **asked)
    ]
    own = pool("first", limits=limits)
    seen = snapshot(wanted, own)
    assert_no_place(seen, [own], solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(packing=packing)))
