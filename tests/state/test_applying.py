"""Given events in any order, is the snapshot what the cluster is?"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply, pool_usage
from tests.factories import NOW, a_claim, a_launched_claim, a_node, a_pod, a_pool, an_initialized_claim

NAMES = st.sampled_from(["a", "b", "c"])
PODS = st.builds(lambda name, node: a_pod(name, node_name=node), NAMES, st.sampled_from(["", "n1", "n2"]))
NODES = st.builds(
    lambda name, provider: a_node(name, provider_id=provider), NAMES, st.sampled_from(["", "p1", "p2", "p3"])
)
EVENTS = st.one_of(
    st.builds(events.PodSeen, PODS),
    st.builds(lambda name: events.PodGone(f"default/{name}"), NAMES),
    st.builds(events.NodeSeen, NODES),
    st.builds(lambda name: events.NodeGone(f"node-{name}"), NAMES),
)


def replay(history):
    snapshot = Snapshot()
    for event in history:
        snapshot = apply(snapshot, event)
    return snapshot


@given(st.lists(EVENTS, max_size=30))
def test_the_pods_of_a_node_are_exactly_those_bound_to_it(history):
    snapshot = replay(history)
    expected: dict[str, set[str]] = {}
    for key, pod in snapshot.pods.items():
        if pod.node_name:
            expected.setdefault(pod.node_name, set()).add(key)
    assert {name: set(keys) for name, keys in snapshot.pods_of_node.items()} == expected


@given(st.lists(EVENTS, max_size=30))
def test_the_index_by_provider_id_names_living_nodes_only(history):
    snapshot = replay(history)
    for provider_id, name in snapshot.node_names.items():
        assert snapshot.nodes[name].provider_id == provider_id
    for node in snapshot.nodes.values():
        assert not node.provider_id or node.provider_id in snapshot.node_names


@given(st.lists(EVENTS, min_size=1, max_size=20))
def test_the_same_event_twice_changes_nothing(history):
    snapshot = replay(history)
    assert apply(snapshot, history[-1]) == snapshot


@given(st.data())
def test_how_the_watches_of_different_kinds_interleave_makes_no_difference(data):
    history = data.draw(st.lists(EVENTS, max_size=20))
    of_pods = [event for event in history if isinstance(event, events.PodSeen | events.PodGone)]
    of_nodes = [event for event in history if event not in of_pods]
    turns = data.draw(st.permutations([True] * len(of_pods) + [False] * len(of_nodes)))
    pods, nodes = iter(of_pods), iter(of_nodes)
    assert replay([next(pods if turn else nodes) for turn in turns]) == replay(history)


@given(st.lists(EVENTS, max_size=20), EVENTS)
def test_an_old_snapshot_stays_what_it_was(history, event):
    before = replay(history)
    pods = dict(before.pods)
    apply(before, event)
    assert dict(before.pods) == pods


def test_a_claim_finds_its_node_by_provider_id_and_the_node_its_claim():
    claim, node = a_launched_claim(), a_node()
    snapshot = replay([events.NodeSeen(node), events.ClaimSeen(claim)])
    assert snapshot.node_of(claim) == node
    assert snapshot.claim_of(node) == claim


def test_nominations_are_extended_never_shortened():
    claim = events.ClaimSeen(a_claim("a"))
    snapshot = replay([claim, events.Nominated("a", NOW + 20), events.Nominated("a", NOW + 10)])
    assert snapshot.is_nominated("a", NOW + 15)


def test_nothing_is_kept_of_nominations_of_what_is_gone():
    claim, node = events.ClaimSeen(a_claim("a")), events.NodeSeen(a_node("b"))
    gone = [events.ClaimGone("a"), events.NodeGone("node-b")]
    late = [events.Nominated("a", NOW + 20), events.Nominated("node-b", NOW + 20)]
    assert not replay([claim, node, *late, *gone, *late]).nominations


def test_of_two_nodes_of_one_machine_the_other_is_found_when_one_goes():
    old, new = a_node("old", provider_id="p1"), a_node("new", provider_id="p1")
    claim = a_launched_claim(provider_id="p1")
    both = replay([events.ClaimSeen(claim), events.NodeSeen(old), events.NodeSeen(new)])
    assert both.node_of(claim) == new
    assert apply(both, events.NodeGone("node-new")).node_of(claim) == old


def test_a_pool_counts_the_capacity_of_its_claims_that_stay():
    pool = a_pool()
    staying = an_initialized_claim("stays")
    leaving = replace(an_initialized_claim("leaves"), deletion_timestamp=NOW)
    snapshot = replay(
        [
            events.PoolSeen(pool),
            events.ClaimSeen(staying),
            events.ClaimSeen(leaving),
            events.NodeSeen(a_node("stays")),
            events.NodeSeen(a_node("leaves")),
        ]
    )
    assert pool_usage(snapshot, pool) == {"cpu": 2000, "pods": 29}


def test_mc_08_every_node_of_an_instance_is_known_to_its_end():
    first, second = a_node(name="first"), a_node(name="second", uid="uid-second")
    snapshot = apply(apply(Snapshot(), events.NodeSeen(first)), events.NodeSeen(second))
    assert snapshot.duplicates_of(second) == (first,)
    assert apply(snapshot, events.NodeGone("first")).duplicates_of(second) == ()
