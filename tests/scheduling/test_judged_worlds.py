"""Clusters in which the judge of many passes found pods bought for again, as they were at that pass."""

from dataclasses import replace

import pytest

from nodeless.launch.claims import labels_of
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    ON_DEMAND,
    PLANNED_PODS,
    SPOT,
    ZONE,
)
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import HostPort, NodeSelectorTerm
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Toleration
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.state.expected import uid_digest
from tests.scheduling.factories import NOW, beside, daemon, needs, pods, pool, snapshot, spread, term
from tests.scheduling.test_many_passes import RACK, TEAM, TYPES

PORT = (HostPort("", 80, "TCP"),)
EVERYWHERE = {"tolerations": (Toleration("", "Exists"),)}
ANY_RACK = (term(needs(RACK, "Exists")),)
A, B, C = ({"labels": {"app": app}} for app in "abc")
ARM = {"required_terms": (term(needs(ARCH, "In", "arm64")),)}
TOLERANT = {"tolerations": (Toleration("team", "Exists"),)}
SPOT_OR_Z3 = (term(needs(CAPACITY_TYPE, "In", SPOT)), term(needs(ZONE, "In", "z3")))


def under_way(name, own, types, requests, *for_pods, **where):
    """A claim that was written and not launched; `for_pods` are named on it."""
    labels = {"rack": RACK, "capacity": CAPACITY_TYPE, "zone": ZONE}
    known = [needs(labels[key], "In", *values.split()) for key, values in where.items()]
    requirements = Requirements([*known, needs(INSTANCE_TYPE, "In", *types.split())])
    digests = sorted(uid_digest(pod.uid) for pod in for_pods)
    return NodeClaim(
        name=name,
        pool=own.reference,
        node_class=own.node_class,
        requirements=requirements,
        requests=requests,
        labels=labels_of(requirements, own),
        annotations={PLANNED_PODS: ",".join(digests)} if digests else {},
        taints=own.taints,
        created_at=NOW - 10,
    )


def launched(name, own, type_, requests):
    """A claim whose instance starts, on spot in zone z1 and rack r1."""
    claim = under_way(name, own, type_, requests, rack="r1", zone="z1", capacity=SPOT)
    (kind,) = (each for each in TYPES if each.name == type_)
    return replace(
        claim, provider_id=f"aws:///z1/i-{name}", capacity=kind.capacity, allocatable=kind.allocatable
    )


def volume_in(zone, name):
    reach = (NodeSelectorTerm((needs(ZONE, "In", zone),)),)
    return [
        Volume(f"pv-{name}", terms=reach),
        PersistentVolumeClaim("default", name, volume_name=f"pv-{name}", bound=True, phase="Bound"),
    ]


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("policy", ["Honor", "Ignore"])
def test_pods_beside_which_others_were_put_later_keep_the_claims_that_were_made_for_them(policy, remembered):
    first = pool("first", needs(RACK, "In", "r1"), weight=5)
    second = pool("second", taints=(TEAM,))
    on_disk = pods(1, "100m", "1Gi", name="w1", labels={"app": "b"}, required_terms=ANY_RACK, claims=("w1",))
    plain = pods(4, "1500m", "1Gi", name="w2", labels={"app": "b"})
    one_each = pods(
        6,
        "60",
        "0",
        name="w3",
        labels={"app": "c"},
        spread=(spread(HOSTNAME, "c", node_affinity_policy=policy),),
        affinity=(beside(RACK, "a"),),
        host_ports=PORT,
        required_terms=ANY_RACK,
    )
    together = pods(
        4,
        "50m",
        "6Gi",
        name="w4",
        labels={"app": "c"},
        spread=(spread(ZONE, "c", 2, soft=True, min_domains=2, node_affinity_policy=policy),),
        affinity=(beside(ZONE, "c"),),
        required_terms=SPOT_OR_Z3,
    )
    leader = pods(1, "60", "1Gi", name="w5", labels={"app": "a"}, affinity=(beside(ZONE, "b"),))
    nowhere = pods(
        4,
        "7",
        "1Gi",
        name="w8",
        labels={"app": "a"},
        affinity=(beside(HOSTNAME, "a"),),
        required_terms=(term(needs(ARCH, "In", "arm64")),),
        claims=("w8",),
    )
    large = pods(4, "15", "0", name="w7", labels={"app": "c"})
    guests = pods(
        4, "1500m", "1Gi", name="w9", labels={"app": "c"}, affinity=(beside(HOSTNAME, "c", weight=10),)
    )
    by_zone = pods(
        2,
        "15",
        "0",
        name="w10",
        labels={"app": "c"},
        spread=(spread(ZONE, "b", min_domains=2, node_affinity_policy=policy),),
    )
    huge = ("c64 m64", {"cpu": 60600, "pods": 3})
    wide = ("c32 c64 m16 m64 spot-only", {"cpu": 15600, "pods": 3})
    spot_z1, spot_z2 = ({"rack": "r1", "capacity": SPOT, "zone": zone} for zone in ("z1", "z2"))
    homes = [
        *(("first-l2lrd", one_each[0:1]), ("first-zist5", one_each[1:2]), ("first-dscsf", one_each[3:4])),
        ("first-exptb", one_each[5:6]),
        *(("first-43gqu", [one_each[2], *guests[2:]]), ("first-2bnbt", [one_each[4], *guests[:2]])),
    ]
    claims = [under_way(name, first, *huge, *some, **spot_z1) for name, some in homes]
    for pod, name in zip(large, ("pmkc7", "xk3zj", "e4e5l", "5amkb"), strict=True):
        homes.append((f"first-{name}", [pod]))
        claims.append(under_way(f"first-{name}", first, *wide, pod, **spot_z1))
    for pod, name in zip(by_zone, ("7hnxo", "xj43j"), strict=True):
        homes.append((f"first-{name}", [pod]))
        claims.append(under_way(f"first-{name}", first, *wide, pod, **spot_z2))
    homes += [("first-rnpfk", leader), ("first-fimaf", on_disk), ("first-rrims", [*plain, *together])]
    any_in_z1 = {"rack": "r1", "zone": "z1"}
    claims += [
        under_way("first-rnpfk", first, "c64 m64", {"cpu": 60600, "pods": 3}, *leader, **any_in_z1),
        under_way(
            "first-fimaf", first, "c2 c4 c8 few m1 m2 m4 m8", {"cpu": 700, "pods": 3}, *on_disk, **any_in_z1
        ),
        under_way(
            "first-rrims",
            first,
            "c32 c64 m16 m64 m8 spot-only",
            {"cpu": 6800, "memory": 28 << 30, "pods": 10},
            *plain,
            *together,
            **spot_z1,
        ),
    ]
    placed = [on_disk, plain, one_each, together, leader, large, guests, by_zone]
    daemons = [daemon("agent-0", "500m"), daemon("agent-1", "100m")]
    seen = snapshot(
        placed, nowhere, first, second, claims, daemons, volume_in("z1", "w1"), volume_in("z1", "w8")
    )
    expected = {pod.key: name for name, some in homes for pod in some}
    plan = passed(seen, expected if remembered else {})
    assert not plan.new_nodes
    assert plan.placements == expected
    assert {refusal.pod for refusal in plan.refusals} == {pod.key for pod in nowhere}


@pytest.mark.parametrize("policy", ["Honor", "Ignore"])
@pytest.mark.parametrize("tolerations", [{}, EVERYWHERE])
def test_a_leader_leaves_its_followers_the_claims_that_were_made_for_them_though_nothing_tells_so(
    policy, tolerations
):
    first = pool("first", needs(RACK, "In", "r1", "r2"), weight=5, limits={"cpu": "140"})
    second = pool("second", needs(ZONE, "In", "z1", "z2"), taints=(TEAM,), limits={"cpu": "140"})
    near = (beside(CAPACITY_TYPE, "c"),)
    followers = pods(
        3,
        "3",
        "1Gi",
        name="w1",
        labels={"app": "b"},
        spread=(spread(RACK, "b", node_affinity_policy=policy),),
        affinity=near,
        host_ports=PORT,
    )
    leader = pods(
        1,
        "100m",
        "6Gi",
        name="w2",
        labels={"app": "c"},
        spread=(spread(CAPACITY_TYPE, "a", soft=True, node_affinity_policy=policy),),
        affinity=near,
    )
    on_disk = pods(5, "1", "1Gi", name="w3", labels={"app": "a"}, required_terms=SPOT_OR_Z3, claims=("w3",))
    for_followers = {"cpu": 4000, "memory": 1 << 30, "pods": 3}
    claims = [
        *(
            under_way(name, first, "c8 few m8", for_followers, rack=rack, capacity=ON_DEMAND)
            for name, rack in (("first-5csol", "r1"), ("first-7foe3", "r1"), ("first-agzf3", "r2"))
        ),
        under_way(
            "first-ffe4f",
            first,
            "arm c4 c8 few m2 m4 m8",
            {"cpu": 1100, "memory": 6 << 30, "pods": 3},
            rack="r1 r2",
            capacity=ON_DEMAND,
        ),
        under_way(
            "first-hdunl",
            first,
            "c8 m16 m8 spot-only",
            {"cpu": 6000, "memory": 5 << 30, "pods": 7},
            rack="r1 r2",
            capacity=SPOT,
            zone="z1",
        ),
    ]
    daemons = [daemon("agent-0", "500m", **tolerations), daemon("agent-1", "500m", **tolerations)]
    seen = snapshot(followers, leader, on_disk, first, second, claims, daemons, volume_in("z1", "w3"))
    plan = passed(seen, {})
    assert not plan.new_nodes
    assert not plan.refusals
    assert plan.placements[leader[0].key] == "first-ffe4f"


@pytest.mark.parametrize("nowhere", [0, 4])
def test_groups_find_their_claims_again_though_further_followers_could_go_nowhere(nowhere):
    own = pool("second", needs(ZONE, "In", "z1", "z2"))
    leaders = pods(
        3, "30", "0", name="w1", labels={"app": "w1"}, spread=(spread(ZONE, "w1", 2),), claims=("w1",)
    )
    followers = pods(
        3,
        "1500m",
        "0",
        name="w3",
        labels={"app": "w3"},
        spread=(spread(HOSTNAME, "w3", soft=True),),
        affinity=(beside(HOSTNAME, "w1"),),
        host_ports=PORT,
        required_terms=(term(needs(ZONE, "In", "z1", "z2")),),
    )
    further = pods(
        nowhere,
        "1",
        "6Gi",
        name="w5",
        affinity=(beside(HOSTNAME, "w3"),),
        host_ports=PORT,
        required_terms=(term(needs(ARCH, "In", "arm64")),),
    )
    small = pods(2, "50m", "1Gi", name="w6", claims=("w6",))
    room = {"cpu": 31500, "pods": 2}
    claims = [
        under_way(name, own, "c64 m64", room, zone="z1", capacity=SPOT)
        for name in ("second-45him", "second-5ymox", "second-mgm7b")
    ]
    disks = [*volume_in("z1", "w1"), *volume_in("z1", "w6")]
    plan = passed(snapshot(leaders, followers, further, small, own, claims, disks), {})
    assert not plan.new_nodes
    assert len(plan.placements) == 2 + 2 + 2, "one zone has two leaders at most"
    assert len(plan.refusals) == 1 + 1 + nowhere


def test_pods_of_which_some_can_never_be_placed_leave_claims_to_those_that_have_no_other():
    own = pool("first")
    arm = pods(4, "3", "1Gi", name="w7", required_terms=(term(needs(ARCH, "In", "arm64")),))
    by_zone = {"spread": (spread(ZONE, "w1", 2),), "required_terms": SPOT_OR_Z3, "claims": ("w1",)}
    plain = pods(4, "3", "1Gi", name="w1", labels={"app": "w1"}, **by_zone)
    large = pods(1, "7", "1Gi", name="w0")
    room = {"cpu": 3000, "memory": 1 << 30, "pods": 1}
    claims = [
        *(under_way(f"first-{name}", own, "arm", room, zone="z3") for name in ("a", "b", "c", "d")),
        *(under_way(f"first-{name}", own, "arm c4 few m4", room, zone="z3") for name in ("e", "f")),
        under_way("first-0", own, "c8 m8", {"cpu": 7000, "memory": 1 << 30, "pods": 1}, zone="z3"),
    ]
    plan = passed(snapshot(arm, plain, large, own, claims, volume_in("z3", "w1")), {})
    assert not plan.new_nodes
    assert len(plan.placements) == 4 + 2 + 1
    assert len(plan.refusals) == 2, "z1 and z2 have none, and the volume is in z3"


@pytest.mark.parametrize("names", ["abcd", "acbd", "cadb", "cdab"])
@pytest.mark.parametrize("others", [0, 5])
def test_claims_that_do_not_tell_their_pods_are_filled_to_the_last_place(others, names):
    """There is room for each of them, and none to spare: no order by size finds it."""
    own = pool("first")
    plain = pods(6, "1", "0", name="w1", labels={"app": "a"})
    near = pods(6, "500m", "0", name="w2", labels={"app": "a"}, affinity=(beside(ZONE, "a"),))
    arm = pods(others, "50m", "0", name="w3", required_terms=(term(needs(ARCH, "In", "arm64")),))
    large = "few c4 spot-only c8 m4 m8 c32 m16 c64 m64"
    wanted = [(large, 3000), (large, 3000), (f"c2 m2 {large}", 1500), (f"c2 m2 {large}", 1500)]
    claims = [
        under_way(f"first-{name}", own, types, {"cpu": cpu, "pods": 3}, zone="z1")
        for name, (types, cpu) in zip(names, wanted, strict=True)
    ]
    if others:
        claims.append(under_way("first-e", own, "arm", {"cpu": 50 * others, "pods": others}, zone="z3"))
    plan = passed(snapshot(plain, near, arm, own, claims), {})
    assert not plan.new_nodes
    assert len(plan.placements) == 12 + others


def followers_of_three_apps(last):
    """Pods that follow those of others, or keep off them. `last`: what the largest followers are called."""
    return [
        pods(3, "30", "1Gi", name="w3", anti_affinity=(beside(ZONE, "b"),), claims=("w3",), **ARM, **A),
        pods(3, "30", "6Gi", name="w4", spread=(spread(ZONE, "a"),), affinity=(beside(HOSTNAME, "a"),), **B),
        pods(6, "1500m", "1Gi", name="w5", required_terms=SPOT_OR_Z3, **B),
        pods(
            5,
            "3",
            "1Gi",
            name="w7",
            spread=(spread(CAPACITY_TYPE, "c", 2),),
            affinity=(beside(HOSTNAME, "c"),),
            claims=("w7",),
            **A,
        ),
        pods(3, "50m", "0", name="w8", claims=("w8",), **TOLERANT, **A),
        pods(
            6,
            "15",
            "6Gi",
            name=last,
            affinity=(beside(HOSTNAME, "a"),),
            host_ports=PORT,
            required_terms=(term(needs(ZONE, "NotIn", "z1")),),
            **TOLERANT,
            **C,
        ),
        pods(
            6,
            "50m",
            "6Gi",
            name="w10",
            affinity=(beside(HOSTNAME, "c", weight=10),),
            anti_affinity=(beside(ZONE, "c"),),
            required_terms=SPOT_OR_Z3,
            **A,
        ),
    ]


def test_no_node_is_kept_for_followers_that_go_elsewhere_while_claims_would_take_its_pods():
    """Those whom `followers` may join were spread over new nodes for them, and none of them has a place."""
    first, second = pool("first"), pool("second")
    waiting = [
        pods(2, "50m", "6Gi", name="w1", spread=(spread(HOSTNAME, "b"),), **ARM, **A),
        pods(2, "60", "1Gi", name="w2", affinity=(beside(ZONE, "a"),), **TOLERANT, **B),
        pods(3, "1", "6Gi", name="w6", claims=("w6",), **TOLERANT, **C),
        *followers_of_three_apps("followers"),
    ]
    large = "c64 m64"
    claims = [
        under_way("first-a", first, large, {"cpu": 39100, "pods": 9}, zone="z1", capacity=SPOT),
        under_way("first-b", first, large, {"cpu": 63000, "pods": 4}, zone="z3", capacity=ON_DEMAND),
        under_way("first-c", first, "arm", {"cpu": 100, "pods": 2}, zone="z3", capacity=ON_DEMAND),
        under_way("first-d", first, large, {"cpu": 60050, "pods": 3}, zone="z1", capacity=SPOT),
        under_way("first-e", first, large, {"cpu": 60300, "pods": 7}, zone="z2", capacity=SPOT),
    ]
    where = {"w3": "z3", "w6": "z3", "w7": "z1", "w8": "z1"}
    volumes = [each for name, zone in where.items() for each in volume_in(zone, name)]
    daemons = [daemon("one", "500m"), daemon("two", "100m", **EVERYWHERE)]
    seen = snapshot(waiting, first, second, claims, volumes, daemons)
    plan = passed(seen, {}, packing=FEWEST_NODES)
    assert len(plan.new_nodes) <= 1, "one for the pod of 60 CPU whose claim smaller ones took"
    assert {f"default/w1-{number}": "first-c" for number in (0, 1)}.items() <= plan.placements.items()


def test_a_leader_joins_a_claim_that_takes_some_of_its_followers_before_a_node_is_bought_for_it():
    """Each claim keeps out one kind of followers, by the zone of its volume or by its own terms."""
    first, second = pool("first"), pool("second", needs(CAPACITY_TYPE, "In", ON_DEMAND))
    waiting = [
        pods(
            2,
            "1500m",
            "6Gi",
            name="w1",
            spread=(spread(HOSTNAME, "b"),),
            claims=("w1",),
            **ARM,
            **TOLERANT,
            **A,
        ),
        pods(2, "1", "6Gi", name="leader", host_ports=PORT, required_terms=SPOT_OR_Z3, **TOLERANT, **A),
        pods(
            3, "1", "6Gi", name="w6", anti_affinity=(beside(HOSTNAME, "a"),), claims=("w6",), **TOLERANT, **C
        ),
        *followers_of_three_apps("w9"),
    ]
    large = "c64 m64"
    claims = [
        under_way("first-a", first, large, {"cpu": 40000, "pods": 8}, zone="z2", capacity=SPOT),
        under_way("first-b", first, f"c32 m16 {large}", {"cpu": 1400, "pods": 9}, zone="z1", capacity=SPOT),
        under_way(
            "first-c", first, f"m8 c32 m16 {large}", {"cpu": 3000, "pods": 3}, zone="z3", capacity=ON_DEMAND
        ),
        under_way("first-d", first, "arm", {"cpu": 3000, "pods": 2}, zone="z3", capacity=ON_DEMAND),
        under_way("first-e", first, large, {"cpu": 60050, "pods": 3}, zone="z2", capacity=SPOT),
    ]
    where = {"w1": "z3", "w3": "z3", "w6": "z3", "w7": "z1", "w8": "z1"}
    volumes = [each for name, zone in where.items() for each in volume_in(zone, name)]
    daemons = [daemon("one", "500m"), daemon("two", "100m", **EVERYWHERE)]
    plan = passed(snapshot(waiting, first, second, claims, volumes, daemons), {}, packing=FEWEST_NODES)
    assert not plan.new_nodes
    assert len(plan.refusals) == 3 + 5 + 6, "w3, w7 and w9 have no node that they may share"


def test_a_plan_that_was_tried_without_some_nodes_leaves_those_of_others_as_they_are():
    """Without either new node that is not needed is tried first, without one of them then."""
    first = pool("first", needs(RACK, "In", "r1", "r2"), limits={"cpu": "140"})
    near = (term(needs(ZONE, "In", "z1", "z2")),)

    def own(name):
        return {"name": name, "labels": {"app": name}}

    def following(name, key=HOSTNAME, weight=10):
        return (beside(key, name, weight=weight),)

    waiting = [
        pods(4, "30", "0", affinity=following("w1"), required_terms=SPOT_OR_Z3, **own("w1")),
        pods(2, "3", "0", anti_affinity=(beside(HOSTNAME, "w1"),), claims=("w2",), **own("w2")),
        pods(
            4,
            "1",
            "1Gi",
            affinity=following("w3"),
            required_terms=near,
            claims=("w3",),
            **TOLERANT,
            **own("w3"),
        ),
        pods(3, "30", "6Gi", required_terms=ANY_RACK, **own("w4")),
        pods(1, "3", "0", affinity=following("w5", weight=None), required_terms=near, **own("w5")),
        pods(
            5,
            "7",
            "1Gi",
            affinity=following("w6", CAPACITY_TYPE),
            anti_affinity=(beside(CAPACITY_TYPE, "w6"),),
            required_terms=ANY_RACK,
            claims=("w6",),
            **TOLERANT,
            **own("w6"),
        ),
        pods(
            6,
            "500m",
            "6Gi",
            spread=(spread(RACK, "w7", soft=True, node_affinity_policy="Ignore"),),
            anti_affinity=(beside(CAPACITY_TYPE, "w5"),),
            **own("w7"),
        ),
    ]
    gone = {"w1-2", "w2-0", "w3-2", "w4-0", "w6-2", "w6-4"}
    waiting = [pod for some in waiting for pod in some if pod.name not in gone]
    claims = [
        launched("first-a", first, "c64", {"cpu": 60000, "pods": 2}),
        launched("first-b", first, "c64", {"cpu": 60000, "pods": 2}),
        launched("first-c", first, "m8", {"cpu": 6000, "pods": 2}),
    ]
    volumes = [each for name in ("w2", "w3", "w6") for each in volume_in("z1", name)]
    plan = passed(snapshot(waiting, first, pool("second"), claims, volumes), {})
    bought = [key for new in plan.new_nodes for key in new.pods]
    refused = [refusal.pod for refusal in plan.refusals]
    assert sorted([*bought, *plan.placements, *refused]) == sorted(pod.key for pod in waiting)


def passed(seen, places, packing=LOWEST_PRICE):
    catalog = dict.fromkeys(seen.pools, TYPES)
    return solve(seen, catalog, Policy(packing=packing, time_box=0, places=places))


@pytest.mark.parametrize(("alone", "together"), [("first-a", "first-b"), ("first-b", "first-a")])
@pytest.mark.parametrize("other", ["500m", "3500m"], ids=["a small one", "a large one"])
def test_the_first_of_a_group_stays_where_nobody_else_of_it_is_expected(alone, together, other):
    """Elsewhere pods of another workload are expected that count, too: once they are kept, it is too late."""
    own = pool("first", limits={"nodes": "2"})
    group = pods(4, "3", "0", name="w1", affinity=(beside(HOSTNAME, "c"),), **C)
    joined = pods(1, other, "0", name="w2", **C)
    claims = [
        under_way(alone, own, "m8", {"cpu": 6000, "pods": 2}, *group[:2]),
        under_way(together, own, "m16", {"cpu": 9500, "pods": 3}, *group[2:], *joined),
    ]
    places = {pod.key: alone for pod in group[:2]} | {pod.key: together for pod in (*group[2:], *joined)}
    plan = passed(snapshot(group, joined, own, claims), places, FEWEST_NODES)
    assert (dict(plan.placements), plan.new_nodes, plan.refusals) == (places, (), ())
