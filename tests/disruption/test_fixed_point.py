"""On a steady workload commands end by themselves, and none of them ever costs money."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from nodeless.model.requirements import Requirements
from tests.disruption.replay import carried_out, price_of, until_still
from tests.disruption.world import a_node_pool, a_provisioner, cluster, decide, node_of, on
from tests.scheduling.factories import FAMILY, needs

KINDS = st.sampled_from([kind.name for kind in FAMILY])
PODS = st.lists(st.sampled_from(["100m", "300m", "700m", "1500m"]), max_size=6)
NODES = st.lists(
    st.tuples(KINDS, st.sampled_from(["z1", "z2"]), st.sampled_from([ON_DEMAND, SPOT]), PODS),
    min_size=1,
    max_size=6,
)
POOLS = st.sampled_from(
    [
        a_provisioner(),
        a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])),
        a_node_pool(),
    ]
)
SHORT = {"small": 900, "medium": 1900, "large": 3900, "xlarge": 7900, "2xlarge": 15900}


def a_cluster(pool, nodes):
    things = [pool]
    for number, (kind, zone, capacity_type, requests) in enumerate(nodes):
        name, left = f"n{number}", SHORT[kind]
        things.append(node_of(pool, name, kind, zone=zone, capacity_type=capacity_type))
        for place, cpu in enumerate(requests):
            left -= int(cpu.removesuffix("m"))
            if left >= 0:
                things.append(on(name, cpu=cpu, memory="10Mi", app=f"app{place}"))
    return cluster(things)


#: Three replacements are filled to the last tenth of a CPU: their pods have room only as they were planned.
FULL = [
    ("2xlarge", "z1", ON_DEMAND, ["700m", "300m", "300m", "700m", "700m"]),
    ("xlarge", "z1", ON_DEMAND, ["300m", "100m", "1500m"]),
    ("xlarge", "z2", SPOT, ["700m", "300m", "700m"]),
    ("xlarge", "z1", SPOT, []),
    ("xlarge", "z1", SPOT, ["700m", "700m", "1500m", "700m", "1500m", "300m"]),
    ("large", "z2", SPOT, []),
]


@settings(max_examples=25, deadline=None)
@given(POOLS, NODES)
@example(a_provisioner(), FULL)
def test_moves_end_and_every_one_of_them_saves_money_and_loses_no_pod(pool, nodes):
    seen = a_cluster(pool, nodes)
    price = price_of(seen, FAMILY)
    for _ in range(2 * len(nodes) + 2):
        decisions = decide(seen)
        if not decisions.commands:
            break
        for command in decisions.commands:
            assert command.saving > 0
            assert command.price_before - command.price_after >= 0.03 * command.price_before * bool(
                command.replacements
            )
        after = carried_out(seen, decisions, FAMILY)
        assert set(after.pods) == set(seen.pods)
        assert all(pod.node_name in after.nodes for pod in after.pods.values())
        cheaper = price_of(after, FAMILY)
        assert cheaper < price
        seen, price = after, cheaper
    assert not decide(seen).commands


@settings(max_examples=10, deadline=None)
@given(POOLS, NODES)
def test_the_same_cluster_gives_the_same_decisions(pool, nodes):
    assert decide(a_cluster(pool, nodes)) == decide(a_cluster(pool, list(nodes)))


def test_a_cluster_that_wastes_is_still_after_a_few_moves():
    pool = a_provisioner()
    nodes = [("large", "z1", ON_DEMAND, ["100m", "300m"])] * 8
    story = until_still(a_cluster(pool, nodes), FAMILY)
    assert story.price_after < story.price_before / 4
    assert story.commands <= 4
