"""What is on its way counts, whatever state it is in: rows IF-06, AF-01, AF-02 and AF-12 with larger pods."""

from random import Random

import pytest

from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.factories import beside, instance_type, pods, pool, spread
from tests.scheduling.many_passes import World

TYPES = (
    *(instance_type(f"m{cpu}", cpu, 4 * cpu) for cpu in (1, 2, 4, 8, 16, 32, 64)),
    *(instance_type(f"c{cpu}", cpu, 2 * cpu, price=0.15 * cpu) for cpu in (1, 2, 4, 8, 16, 32, 64)),
)
BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
CPU = pytest.mark.parametrize("cpu", ["1", "2", "3500m", "8"])
STATES = ("written", "launched", "registered", "ready", "some of each", "some gone")
IN_STATES = pytest.mark.parametrize("state", STATES)


def world(packing, *batch):
    made = World({own.key: own for own in [pool()]}, TYPES, packing, Random(7))
    for some in batch:
        made.add(some)
    return made


def brought(made, state):
    """The claims of the last pass in a state; each launched as any of its types."""
    for index, name in enumerate(made.unlaunched()):
        stage = (
            ("written", "launched", "registered", "ready")[index % 4] if state.startswith("some") else state
        )
        if stage != "written":
            made.launch(name, made.chance.randrange(60))
        if stage in ("registered", "ready"):
            made.register(name)
        if stage == "ready":
            made.ready(name)
    if state == "some gone":
        made.fail(sorted(made.claims)[0])
    return made


@BOTH
@CPU
@IN_STATES
def test_if_06_spread_pods_count_on_each_node_on_its_way_once(cpu, packing, state):
    seen = world(packing, pods(4, cpu, spread=(spread(HOSTNAME),)))
    assert [len(new.pods) for new in seen.look().new_nodes] == [1] * 4
    brought(seen, state)
    seen.add(pods(5, cpu, name="more", labels={"app": "web"}, spread=(spread(HOSTNAME),)))
    result = seen.look()
    gone = state == "some gone"
    assert sorted(result.placements.values()) == sorted(set(result.placements.values()))
    assert len(result.placements) == 4 - gone
    assert [len(new.pods) for new in result.new_nodes] == [1] * (5 + gone)


@BOTH
@CPU
@IN_STATES
@pytest.mark.parametrize("groups", ["AF-01", "AF-02", "AF-02 in a zone", "AF-12"])
def test_a_group_on_its_way_is_bought_once(cpu, packing, state, groups):
    batches = {
        "AF-01": [
            pods(10, cpu, spread=(spread(HOSTNAME),)),
            pods(1, cpu, name="target"),
            pods(1, cpu, name="friend", affinity=(beside(HOSTNAME, "target"),)),
        ],
        "AF-02": [pods(3, cpu, affinity=(beside(HOSTNAME),))],
        "AF-02 in a zone": [pods(3, cpu, affinity=(beside(ZONE),))],
        "AF-12": [
            pods(1, cpu, name="ui", affinity=(beside(HOSTNAME, "cache"),)),
            pods(1, cpu, name="cache", affinity=(beside(HOSTNAME, "web"),)),
            pods(1, cpu, name="web", affinity=(beside(HOSTNAME, "db"),)),
            pods(1, cpu, name="db"),
        ],
    }
    seen = world(packing, *batches[groups])
    assert not seen.look().refusals
    brought(seen, state)
    again = seen.look()
    assert not again.refusals
    assert len(again.new_nodes) <= (state == "some gone")
    seen.settle(as_planned=True)
    assert not seen.pending


@BOTH
@CPU
def test_batch_after_batch_spreads_over_what_is_on_its_way(cpu, packing):
    seen = world(packing)
    for batch, state in enumerate(STATES):
        some = pods(3, cpu, name=f"b{batch}", labels={"app": "web"}, spread=(spread(HOSTNAME), spread(ZONE)))
        seen.add(some)
        seen.look()
        brought(seen, state)
    seen.settle(as_planned=True)
    assert not seen.pending
