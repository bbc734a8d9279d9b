"""A pass over a large cluster that cannot be improved is cheap; what it skips changes no command."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.disruption import DisruptionPolicy, consolidation, controller
from nodeless.disruption.consolidation import Consolidation
from nodeless.disruption.controller import DisruptionMethods
from nodeless.disruption.least_prices import LeastPrices
from nodeless.disruption.node_capacity import NodeCapacity
from nodeless.disruption.simulation import simulate_scheduling
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND
from nodeless.model.pods import NodeSelectorTerm, Owner
from nodeless.model.requirements import Requirements
from nodeless.model.resources import CPU, MEMORY
from nodeless.scheduling import Policy
from tests.disruption.world import BY_NAME, FAMILY, a_provisioner, cluster, decide, node_of, on
from tests.scheduling.factories import NOW, beside, daemon, instance_type, needs

POOL = a_provisioner(
    requirements=Requirements(
        [
            needs(CAPACITY_TYPE, "In", ON_DEMAND),
            needs("node.kubernetes.io/instance-type", "In", "large"),
        ]
    )
)


@contextmanager
def simulated():
    """The number of nodes that each simulation has looked at."""
    sizes, real = [], consolidation.simulate_scheduling

    def counted(snapshot, *arguments):
        sizes.append(len(snapshot.nodes))
        return real(snapshot, *arguments)

    consolidation.simulate_scheduling = counted
    try:
        yield sizes
    finally:
        consolidation.simulate_scheduling = real


def nodes_with(counts, kind="large"):
    """Nodes of 3900m, each with so many pods of 900m; the others' free room is less or the same."""
    things = []
    for number, count in enumerate(counts):
        name = f"n{number:03}"
        things += [node_of(POOL, name, kind), *on(name, count, cpu="900m", memory="10Mi")]
    return things


def test_full_nodes_of_one_kind_are_left_alone_after_one_look_at_the_whole_cluster():
    seen = cluster(POOL, nodes_with([4] * 59 + [3]))
    with simulated() as sizes:
        decisions = decide(seen)
    assert not decisions.commands
    # Once for the target. Deletions are not tried at all; replacements with the nodes in question and the one
    # that has room.
    assert sizes.count(60) == 1
    assert sum(sizes) < 10 * 60


def daemons(cpu):
    """A DaemonSet as EKS installs it: on every node but Fargate's."""
    seen = daemon("kube-proxy", cpu=cpu, memory="10Mi")
    elsewhere = needs("eks.amazonaws.com/compute-type", "NotIn", "fargate")
    terms = (NodeSelectorTerm((elsewhere,)),)
    return replace(seen, shape=replace(seen.shape, required_terms=terms))


def test_nodes_as_full_as_their_daemons_let_them_be_are_left_alone_without_any_simulation():
    owner = Owner("apps/v1", "DaemonSet", "kube-proxy", controller=True)
    run = [
        on(f"n{number:03}", app="kube-proxy", cpu="1", memory="10Mi", owners=(owner,)) for number in range(20)
    ]
    seen = cluster(POOL, daemons("1"), nodes_with([3] * 20), run)
    with simulated() as sizes:
        decisions = decide(seen, (BY_NAME["large"],))
    assert not decisions.commands
    assert sizes == []


def only_on_demand(kind):
    return replace(
        kind, offerings=tuple(offering for offering in kind.offerings if offering.capacity_type == ON_DEMAND)
    )


@pytest.mark.parametrize(
    "types", [(only_on_demand(BY_NAME["large"]),), FAMILY], ids=["nothing else", "nothing else for the pool"]
)
def test_what_cannot_go_and_has_nothing_cheaper_is_not_tried_again(monkeypatch, types):
    tried, real = [], consolidation.simulate_scheduling

    def noted(snapshot, some, *arguments):
        tried.append([candidate.name for candidate in some])
        return real(snapshot, some, *arguments)

    monkeypatch.setattr(consolidation, "simulate_scheduling", noted)
    apart = {"anti_affinity": (beside(HOSTNAME),)}
    names = [f"n{number}" for number in range(9)]
    things = [(node_of(POOL, name, "large"), on(name, cpu="500m", app="web", shape=apart)) for name in names]
    assert not decide(cluster(POOL, things), types).commands
    # On nodes that stay, and on all others; the last one has no others.
    assert [tried.count([name]) for name in names] == [1, *(2,) * 7, 1]


def test_pods_of_which_one_needs_a_new_node_cost_that_whole_node():
    pool = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
    things = [
        (node_of(pool, name, "large"), on(name, pods, cpu="1500m")) for name, pods in (("a", 2), ("b", 1))
    ]
    decisions = decide(cluster(pool, things), (BY_NAME["small"], BY_NAME["large"]))
    price = BY_NAME["large"].cheapest(pool.requirements).price
    assert decisions.verdicts["a"].message == (
        "the other nodes have room for 1 of its 2 pods at most;"
        f" nothing cheaper holds its pods: they cost {price:.4f} USD/h at least against {price:.4f} USD/h now"
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"node_selector": (("disk", "fast"),)},
        {"required_terms": (NodeSelectorTerm((needs("disk", "Exists"),)),)},
        {"required_terms": (NodeSelectorTerm((needs("kubernetes.io/arch", "NotIn", "amd64"),)),)},
    ],
    ids=["selector", "label that nodes lack", "label that types have"],
)
def test_daemons_of_other_nodes_make_no_replacement_dearer(rule):
    seen = daemon("driver", cpu="10", memory="10Mi")
    pool = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
    wasteful = node_of(pool, "a", "2xlarge"), on("a", cpu="900m", memory="10Mi")
    elsewhere = replace(seen, shape=replace(seen.shape, **rule))
    (command,) = decide(cluster(pool, elsewhere, wasteful)).commands
    assert len(command.replacements) == 1


ON_DEMAND_POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
ON_DEMAND_PRICE = BY_NAME["large"].cheapest(ON_DEMAND_POOL.requirements).price


def at_price(kind, price):
    offerings = tuple(replace(offering, price=price) for offering in kind.offerings)
    return replace(kind, offerings=offerings)


def of_three_families(cpu):
    """Types of so many processors: much for the money is either processors, or memory, or some of both."""
    return tuple(
        instance_type(f"{family}{cpu}", cpu, gib * cpu, price=price * cpu)
        for family, gib, price in (("c", 2, 0.0425), ("m", 4, 0.0475), ("r", 8, 0.0625))
    )


FAMILIES = (*of_three_families(2), *of_three_families(4), *of_three_families(8))
OF_FAMILIES = {kind.name: kind for kind in FAMILIES}


def test_pods_that_need_much_of_processors_and_of_memory_cost_what_both_cost_together():
    things = [
        (
            node_of(ON_DEMAND_POOL, name, "m4", types=OF_FAMILIES),
            on(name, cpu="2600m", memory="2Gi", app="web"),
            on(name, cpu="1300m", memory="13Gi", app="cache"),
        )
        for name in ("a", "b", "c")
    ]
    with simulated() as sizes:
        decisions = decide(cluster(ON_DEMAND_POOL, things), of_three_families(4))
    # Processors alone would cost a tenth less with nodes of c4, and memory alone a third less with r4.
    # The one simulation is the target's.
    assert len(sizes) == 1
    assert not decisions.commands


def test_room_that_holds_not_one_of_the_pods_is_no_room_for_their_sum():
    things = []
    for number in range(20):
        name = f"n{number:03}"
        things.append(node_of(POOL, name, "large"))
        things += [on(name, cpu=cpu, memory="10Mi", app=f"app{cpu}") for cpu in ("1600m", "1500m", "700m")]
    # Together 1.9 processors are free, but a tenth of one on each node.
    with simulated() as sizes:
        decisions = decide(cluster(POOL, things))
    assert len(sizes) == 1
    assert not decisions.commands


def test_a_few_nodes_are_merged_where_all_together_save_too_little():
    as_dear = at_price(BY_NAME["xlarge"], ON_DEMAND_PRICE * 7.9 / 3.9)
    things = [(node_of(ON_DEMAND_POOL, f"n{each:02}"), on(f"n{each:02}", cpu="3900m")) for each in range(60)]
    things += [(node_of(ON_DEMAND_POOL, name), on(name, cpu="2100m")) for name in ("x", "y", "z")]
    (command,) = decide(cluster(ON_DEMAND_POOL, things), (BY_NAME["large"], as_dear)).commands
    assert command.claims == ("x", "y", "z")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([kind.name for kind in FAMILIES]),
            st.lists(st.tuples(st.sampled_from([0.3, 0.7, 1.6]), st.integers(1, 9)), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([None, "100m", "600m"]),
    st.sampled_from([FAMILIES, FAMILIES[:4], (at_price(FAMILIES[1], 0.0), *FAMILIES)]),
)
def test_no_bound_is_dearer_than_what_the_solver_buys(nodes, overhead, types):
    things = [daemons(overhead)] if overhead else []
    for number, (kind, requests) in enumerate(nodes):
        name, cpu, memory = (
            f"n{number}",
            OF_FAMILIES[kind].allocatable[CPU],
            OF_FAMILIES[kind].allocatable[MEMORY],
        )
        things.append(node_of(ON_DEMAND_POOL, name, kind, types=OF_FAMILIES))
        for place, (processors, gib) in enumerate(requests):
            cpu, memory = cpu - 1000 * processors, memory - gib * 2**30
            if min(cpu, memory) >= 0:
                things.append(on(name, cpu=f"{1000 * processors:.0f}m", memory=f"{gib}Gi", app=f"app{place}"))
    seen = cluster(ON_DEMAND_POOL, things)
    catalog = {ON_DEMAND_POOL.key: types}
    bounds = LeastPrices(catalog, NodeCapacity(seen, frozenset()), seen)
    candidates = DisruptionMethods(seen, catalog, DisruptionPolicy(), NOW).candidates
    for number in range(1, len(candidates) + 1):
        for some in combinations(candidates, number):
            found = simulate_scheduling(seen, some, catalog, Policy())
            if found.placed:
                assert bounds.of(some) <= sum(node.price for node in found.new_nodes) + 1e-9


def test_a_node_with_more_pods_than_the_others_have_places_for_says_so():
    decisions = decide(cluster(POOL, nodes_with([4, 4, 3])), (only_on_demand(BY_NAME["large"]),))
    assert decisions.verdicts["n000"].message == (
        "the other nodes have room for 1 of its 4 pods at most; nothing cheaper holds its pods:"
        " they cost 2.1180 USD/h at least against 2.1180 USD/h now"
    )


def test_a_node_whose_pods_go_to_the_last_free_places_still_goes():
    decisions = decide(cluster(POOL, nodes_with([4] * 20 + [3, 3, 3, 3])))
    (command,) = decisions.commands
    assert command.evictions == 3
    assert not command.replacements


class _NoBound:
    def of(self, _some):
        return 0.0


class _Thorough(Consolidation):
    """Simulates whatever it can, each time on the whole cluster."""

    _least_prices = _NoBound()

    def _crowded(self, _candidate, _capacity):
        return False

    def _relevant_nodes(self, _candidates):
        return None


KINDS = st.sampled_from(["small", "medium", "large", "2xlarge"])
SHORT = {"small": 900, "medium": 1900, "large": 3900, "2xlarge": 15900}
PODS = st.lists(st.sampled_from([300, 700, 900, 1500]), max_size=5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(KINDS, PODS), min_size=2, max_size=9), st.sampled_from([None, "100m", "600m"]))
@example([("large", [900] * 4)] * 5, None)
@example([("large", [900] * 3)] * 5, "600m")
@example([("2xlarge", [1500]), ("medium", [700, 300]), ("medium", [300, 700])], "600m")
@example([("2xlarge", [1500] * 2), ("2xlarge", [1500] * 2), ("large", [900] * 4), ("large", [900] * 4)], None)
def test_moves_are_those_that_simulations_alone_would_find(nodes, overhead):
    pool, things = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])), []
    if overhead:
        things.append(daemons(overhead))
    for number, (kind, requests) in enumerate(nodes):
        name, left = f"n{number}", SHORT[kind]
        things.append(node_of(pool, name, kind))
        for place, cpu in enumerate(requests):
            left -= cpu
            if left >= 0:
                things.append(on(name, cpu=f"{cpu}m", memory="10Mi", app=f"app{place}"))
    seen = cluster(pool, things)
    quick = decide(seen)
    real = controller.Consolidation
    controller.Consolidation = _Thorough
    try:
        thorough = decide(seen)
    finally:
        controller.Consolidation = real
    assert [(command.claims, command.saving) for command in quick.commands] == [
        (command.claims, command.saving) for command in thorough.commands
    ]
