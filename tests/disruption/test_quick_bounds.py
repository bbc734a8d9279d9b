"""A pass over a large cluster that cannot be improved is cheap; what it skips changes no command."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeless.disruption import consolidation, controller
from nodeless.disruption.consolidation import Consolidation
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND
from nodeless.model.pods import NodeSelectorTerm, Owner
from nodeless.model.requirements import Requirements
from tests.disruption.world import BY_NAME, FAMILY, a_provisioner, cluster, decide, node_of, on
from tests.scheduling.factories import beside, daemon, needs

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


def test_full_nodes_of_one_kind_are_left_alone_without_a_look_at_the_whole_cluster():
    seen = cluster(POOL, nodes_with([4] * 59 + [3]))
    with simulated() as sizes:
        decisions = decide(seen)
    assert not decisions.commands
    # Deletions are not tried at all; replacements with the nodes in question and the one that has room.
    assert max(sizes) < 60
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
