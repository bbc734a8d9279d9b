"""What a leader without memory finds on the objects is the plan of the one before, in full."""

from dataclasses import replace
from random import Random

from immutables import Map

from nodeless.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, PLANNED_PODS, SPOT, ZONE
from nodeless.model.pods import HostPort, NodeSelectorTerm
from nodeless.model.taints import Toleration
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import LOWEST_PRICE
from nodeless.state.expected import claims_to_note, expected_places, uid_digest
from tests.scheduling.factories import (
    beside,
    claim,
    needs,
    node,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)
from tests.scheduling.many_passes import World
from tests.scheduling.test_many_passes import RACK, TYPES

PORT = (HostPort("", 80, "TCP"),)
TOLERANT = (Toleration("team", "Exists"),)
SPOT_OR_Z3 = (term(needs(CAPACITY_TYPE, "In", SPOT)), term(needs(ZONE, "In", "z3")))


def named(*some):
    return ",".join(sorted(uid_digest(pod.uid) for pod in some))


def test_pods_are_named_by_the_claim_where_a_later_pass_put_them_and_by_no_other():
    first, second, third = pods(3)
    one = claim("one", annotations={PLANNED_PODS: named(first, second)})
    two = claim("two")
    seen = snapshot([first, second, third], pool(), one, two)
    notes = claims_to_note(seen, {first.key: "one", second.key: "two", third.key: "two"})
    assert notes == {"one": named(first), "two": named(second, third)}


def test_what_claims_name_already_is_not_written_again():
    first, refused = pods(2)
    one = claim("one", annotations={PLANNED_PODS: named(first, refused)})
    seen = snapshot([first, refused], pool(), one)
    assert claims_to_note(seen, {first.key: "one"}) == {}
    assert claims_to_note(seen, {}) == {}


def test_a_pod_on_a_node_is_named_by_the_claim_which_that_node_was():
    first, bound = pods(2)
    one = claim("one", provider_id="aws:///z1/i-n1")
    seen = snapshot([first, running(bound, "n1")], pool(), one, node("n1"), node("n2"))
    seen = replace(seen, node_names=Map({one.provider_id: "n1"}))
    assert claims_to_note(seen, {first.key: "n1", bound.key: "n1"}) == {"one": named(first)}
    assert claims_to_note(seen, {first.key: "n2"}) == {}, "nobody can say so"


def test_the_next_leader_finds_a_plan_whose_pods_came_at_different_times():
    """Pods of w6 joined a claim of w2: known of no more, they made room on a new node for one of w1."""
    own = pool("first", needs(RACK, "In", "r1"), limits={"cpu": "140"})
    world = World({own.key: own}, TYPES, LOWEST_PRICE, Random(0), mixed=True, remembered=False)
    reach = (NodeSelectorTerm((needs(ZONE, "In", "z3"),)),)
    world.volumes = [
        Volume("pv-w6", terms=reach),
        PersistentVolumeClaim("default", "w6", volume_name="pv-w6", bound=True, phase="Bound"),
    ]

    def come(number, cpu, memory, name, app, **rules):
        world.add(pods(number, cpu, memory, name=name, labels={"app": app}, **rules))

    any_rack = (term(needs(RACK, "Exists")),)
    come(6, "30", "0", "w1", "b", affinity=(beside(HOSTNAME, "c"),), required_terms=any_rack, host_ports=PORT)
    arm = (term(needs(ARCH, "In", "arm64")),)
    come(5, "50m", "0", "w2", "c", affinity=(beside(HOSTNAME, "b"),), required_terms=arm, host_ports=PORT)
    z1_or_z2 = (term(needs(ZONE, "In", "z1", "z2")),)
    apart = (spread(HOSTNAME, "a", min_domains=2),)
    come(4, "1500m", "6Gi", "w3", "b", spread=apart, required_terms=z1_or_z2, host_ports=PORT)
    anywhere = {"node_affinity_policy": "Ignore"}
    come(2, "3", "0", "w4", "a", spread=(spread(CAPACITY_TYPE, "c", **anywhere),), tolerations=TOLERANT)
    come(1, "1", "1Gi", "w5", "b", spread=(spread(ZONE, "b"),), required_terms=SPOT_OR_Z3)
    world.look()
    come(
        5,
        "50m",
        "0",
        "w6",
        "c",
        spread=(spread(CAPACITY_TYPE, "c", node_taints_policy="Honor", **anywhere),),
        affinity=(beside(RACK, "c"),),
        required_terms=SPOT_OR_Z3,
        tolerations=TOLERANT,
        claims=("w6",),
    )
    come(3, "500m", "6Gi", "w7", "c", host_ports=PORT)
    come(
        3,
        "3",
        "1Gi",
        "w8",
        "a",
        spread=(spread(HOSTNAME, "a", **anywhere),),
        affinity=(beside(CAPACITY_TYPE, "c", weight=10),),
        required_terms=SPOT_OR_Z3,
    )
    world.look()
    joined = {key: world.homes[key] for key in ("default/w6-0", "default/w6-1", "default/w6-2")}
    assert set(joined.values()) == {world.homes["default/w2-0"]}
    seen = world.seen()
    assert expected_places(seen, [world.pending]) == world.homes
    again = world.look()
    assert not again.new_nodes
    assert again.placements == world.homes
