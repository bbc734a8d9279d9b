"""Rules between pods that select the pods of a DaemonSet, which every new node gets before other pods."""

from random import Random

import pytest

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from nodeless.model.taints import Taint
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.beside_daemons import APART, DISK, DISKS, EVERYWHERE, NEAR
from tests.scheduling.factories import (
    FAMILY,
    beside,
    daemon,
    needs,
    node,
    pods,
    pool,
    running,
    spread,
    term,
)
from tests.scheduling.many_passes import World

BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])


def world(packing, *things, pools=(), types=FAMILY):
    """A cluster with DaemonSets, nodes and pods; the pools default to one."""
    made = World({one.key: one for one in pools or (pool(),)}, types, packing, Random(7))
    for thing in things:
        if isinstance(thing, list):
            made.add(thing)
        elif hasattr(thing, "provider_id"):
            made.nodes[thing.name] = thing
        else:
            made.daemon_sets[thing.key] = thing
    return made


def refusal(made):
    """The only refusal's words, for the one pool; nothing is bought for the pod."""
    plan = made.look()
    assert not plan.new_nodes and not plan.placements
    (refused,) = plan.refusals
    (reason,) = refused.reasons
    assert refused.code == reason.code
    return str(reason.code), reason.message


def settled(made):
    """Where each pod that is not a daemon's runs in the end, by its key."""
    made.settle(as_planned=True)
    assert not made.pending
    return {key: pod.node_name for key, pod in made.pods.items() if not pod.owned_by_daemon_set}


@BOTH
def test_nothing_is_bought_for_a_pod_apart_from_a_daemon_of_every_node(packing):
    code, message = refusal(world(packing, daemon("agent", "100m"), pods(1, **APART)))
    assert code == "PodAntiAffinity"
    assert "selects the pods of DaemonSet default/agent" in message
    assert "every node that this pool could make for the pod gets a pod of that DaemonSet" in message


@BOTH
def test_nothing_is_bought_for_a_pod_that_a_daemon_of_every_node_wants_to_be_apart_from(packing):
    lonely = daemon("agent", "100m", anti_affinity=(beside(HOSTNAME, "web"),))
    code, message = refusal(world(packing, lonely, pods(1)))
    assert code == "PodAntiAffinity"
    assert "of DaemonSet default/agent selects the pod" in message


@BOTH
def test_a_zone_gets_a_daemon_with_its_first_node(packing):
    code, _ = refusal(
        world(packing, daemon("agent", "100m"), pods(1, anti_affinity=(beside(ZONE, "agent"),)))
    )
    assert code == "PodAntiAffinity"


@BOTH
@pytest.mark.parametrize(
    "chosen",
    [
        {"selector": {DISK: "fast"}},
        {"required_terms": (term(needs(DISK, "In", "fast")),)},
        {"required_terms": (term(needs(DISK, "NotIn", "slow")),)},
        {"required_terms": (term(needs(DISK, "In", "fast")), term(needs(DISK, "In", "faster")))},
    ],
    ids=["selector", "in", "not-in", "either"],
)
def test_a_pod_apart_from_a_daemon_gets_a_node_that_the_daemon_leaves_out(packing, chosen):
    made = world(
        packing,
        daemon("agent", "100m", **chosen),
        pods(3, **APART),
        pools=[DISKS],
    )
    places = settled(made)
    assert {made.nodes[name].labels[DISK] for name in places.values()} == {"slow"}


@BOTH
def test_a_pod_apart_from_a_daemon_of_one_zone_runs_in_another(packing):
    made = world(packing, daemon("agent", "100m", selector={ZONE: "z1"}), pods(2, **APART))
    places = settled(made)
    assert all(made.nodes[name].labels[ZONE] != "z1" for name in places.values())


@BOTH
def test_a_pod_apart_from_a_daemon_of_large_types_gets_a_small_one(packing):
    large = tuple(kind.name for kind in FAMILY[2:])
    agent = daemon("agent", "100m", required_terms=(term(needs(INSTANCE_TYPE, "In", *large)),))
    made = world(packing, agent, pods(4, "500m", **APART))
    places = settled(made)
    assert {made.nodes[name].labels[INSTANCE_TYPE] for name in places.values()} <= {"small", "medium"}


@BOTH
def test_a_pod_apart_from_a_daemon_uses_the_pool_whose_taint_keeps_it_off(packing):
    tainted = pool("tainted", taints=(Taint("team", "NoSchedule"),))
    made = world(
        packing,
        daemon("agent", "100m"),
        pods(2, tolerations=EVERYWHERE, **APART),
        pools=[pool("default", weight=10), tainted],
    )
    places = settled(made)
    assert {made.claims[name].pool.name for name in places.values()} == {"tainted"}


@BOTH
def test_daemons_with_different_selectors_are_all_left_out(packing):
    made = world(
        packing,
        daemon("agent", "100m", selector={DISK: "fast"}),
        daemon("probe", "100m", required_terms=(term(needs(ZONE, "In", "z1", "z2")),)),
        pods(2, anti_affinity=(beside(HOSTNAME, "agent"), beside(HOSTNAME, "probe"))),
        pools=[DISKS],
    )
    places = settled(made)
    found = {(made.nodes[name].labels[DISK], made.nodes[name].labels[ZONE]) for name in places.values()}
    assert found == {("slow", "z3")}


@BOTH
@pytest.mark.parametrize("chosen", [{}, {"selector": {DISK: "fast"}}], ids=["everywhere", "some-nodes"])
def test_a_pod_beside_a_daemon_gets_a_node_with_one(packing, chosen):
    made = world(
        packing,
        daemon("agent", "100m", **chosen),
        pods(3, **NEAR),
        pools=[DISKS],
    )
    places = settled(made)
    if chosen:
        assert {made.nodes[name].labels[DISK] for name in places.values()} == {"fast"}


@BOTH
def test_a_pod_beside_a_daemon_that_tolerates_no_taint_uses_the_pool_without(packing):
    tainted = pool("tainted", taints=(Taint("team", "NoSchedule"),), weight=10)
    made = world(
        packing,
        daemon("agent", "100m"),
        pods(2, tolerations=EVERYWHERE, **NEAR),
        pools=[pool("default"), tainted],
    )
    places = settled(made)
    assert {made.claims[name].pool.name for name in places.values()} == {"default"}


@BOTH
def test_no_node_is_bought_for_a_pod_beside_a_daemon_that_nobody_gets(packing):
    made = world(packing, daemon("agent", "100m", selector={"nobody": "has-it"}), pods(1, **NEAR))
    code, _ = refusal(made)
    assert code == "PodAffinity"


@BOTH
def test_a_pod_beside_a_daemon_takes_the_node_that_is_there(packing):
    one = node("here")
    agent = daemon("agent", "100m")
    there = running(pods(1, "100m", name="agent")[0], "here", daemon_set="agent")
    made = world(packing, one, agent, [there], pods(1, **NEAR))
    assert settled(made) == {"default/web-0": "here"}
    assert not made.bought


@BOTH
def test_a_pod_apart_from_a_daemon_takes_the_node_that_has_none(packing):
    one = node("here", taints=(Taint("team", "NoSchedule"),))
    made = world(packing, one, daemon("agent", "100m"), pods(1, tolerations=EVERYWHERE, **APART))
    assert settled(made) == {"default/web-0": "here"}
    assert not made.bought


@BOTH
def test_pods_beside_a_daemon_wait_for_the_claim_that_is_on_its_way(packing):
    made = world(packing, daemon("agent", "100m"), pods(2, "200m", **NEAR))
    made.look()
    bought = made.bought
    made.add(pods(1, "200m", name="more", **NEAR))
    made.settle(as_planned=True)
    assert not made.pending
    assert made.bought == bought == 1


@BOTH
@pytest.mark.parametrize("key", [ZONE, CAPACITY_TYPE, DISK])
def test_no_second_node_is_bought_for_a_pod_beside_a_daemon_over_another_label(packing, key):
    made = world(
        packing,
        daemon("agent", "100m"),
        pods(2, "200m", affinity=(beside(key, "agent"),)),
        pools=[DISKS],
    )
    for _ in range(3):
        made.look()
    assert made.bought == 1
    settled(made)
    assert made.bought == 1


@BOTH
def test_pods_apart_from_a_daemon_do_not_wait_for_a_claim_that_gets_one(packing):
    made = world(
        packing,
        daemon("agent", "100m", selector={DISK: "fast"}),
        pods(1, name="other", selector={DISK: "fast"}),
        pools=[DISKS],
    )
    made.look()
    made.add(pods(1, "100m", **APART))
    places = settled(made)
    assert made.nodes[places["default/web-0"]].labels[DISK] == "slow"


@BOTH
def test_a_pod_may_be_beside_a_daemon_or_a_deployment_that_the_rule_selects(packing):
    """Pods that wait keep the rule as well: theirs is the node, where the DaemonSet has none."""
    made = world(
        packing,
        daemon("agent", "100m", labels={"app": "store"}, selector={DISK: "fast"}),
        pods(1, name="store"),
        pods(1, affinity=(beside(HOSTNAME, "store"),)),
    )
    places = settled(made)
    assert len(set(places.values())) == 1


@BOTH
def test_a_daemon_that_is_not_selected_changes_nothing(packing):
    made = world(packing, daemon("probe", "100m"), pods(2, **APART))
    assert len(settled(made)) == 2


@BOTH
def test_several_rules_at_once_hold_with_a_daemon(packing):
    made = world(
        packing,
        daemon("agent", "100m", selector={DISK: "fast"}),
        pods(6, spread=(spread(ZONE),), **APART),
        pools=[DISKS],
    )
    places = settled(made)
    zones = [made.nodes[name].labels[ZONE] for name in places.values()]
    assert sorted(zones.count(zone) for zone in set(zones)) == [2, 2, 2]
    assert {made.nodes[name].labels[DISK] for name in places.values()} == {"slow"}
