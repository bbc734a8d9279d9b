"""Volumes: rows VO-01 to VO-10, and PE-10 to PE-14 of the validation of claims."""

from dataclasses import replace

import pytest

from nodeless.model.labels import INSTANCE_TYPE, ZONE
from nodeless.model.pods import NodeSelectorTerm, Pod
from nodeless.model.volumes import CsiNode, PersistentVolumeClaim, StorageClass, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy
from tests.scheduling.factories import (
    beside,
    carried_out,
    claim,
    codes,
    domains,
    instance_type,
    needs,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
)

EBS = "ebs.csi.aws.com"
OTHER = "csi.example.com"
BIG = instance_type("big", 64, 256)


def storage_class(name="gp3", *zones, driver=EBS, **fields):
    terms = (NodeSelectorTerm((needs(ZONE, "In", *zones),)),) if zones else ()
    fields.setdefault("binding_mode", "WaitForFirstConsumer")
    return StorageClass(name, driver, terms=terms, **fields)


def unbound(name, storage_class="gp3", **fields):
    return PersistentVolumeClaim("default", name, storage_class, **fields)


def bound(name, *zones, driver=EBS, storage_class="gp3", volume=None):
    """A claim with its volume, which is reached in the zones, each of them an alternative."""
    terms = tuple(NodeSelectorTerm((needs(ZONE, "In", zone),)) for zone in zones)
    made = volume or Volume(f"pv-{name}", driver, terms, storage_class)
    return [PersistentVolumeClaim("default", name, storage_class, made.name, bound=True, phase="Bound"), made]


def stateful(number, per_pod=1, cpu="100m", name="db", **fields):
    """Pods with claims of their own."""
    return [
        replace(pod, shape=replace(pod.shape, claims=tuple(f"data-{pod.name}-{i}" for i in range(per_pod))))
        for pod in pods(number, cpu, name=name, **fields)
    ]


def claims_of(wanted: list[Pod], make=unbound):
    return [made for pod in wanted for key in pod.shape.claims for made in [make(key)]]


def zones_of(result):
    return [new.requirements[ZONE].values if ZONE in new.requirements else None for new in result.new_nodes]


def with_limit(kind, limit, driver=EBS):
    return replace(kind, volume_limits={driver: limit})


def only_the_valid_one(*things):
    """The plan of a pod that mounts `data`, and one that mounts nothing; the first is refused."""
    result = plan(pods(1, claims=("data",), name="stuck"), pods(1, name="valid"), *things)
    assert [new.pods for new in result.new_nodes] == [("default/valid-0",)]
    (refusal,) = result.refusals
    assert refusal.pod == "default/stuck-0"
    return refusal


def test_vo_01_pods_that_an_existing_node_cannot_attach_get_a_node():
    wanted = stateful(6, per_pod=2)
    result = plan(
        wanted,
        claims_of(wanted),
        storage_class(),
        node("there"),
        CsiNode("there", ((EBS, 10),)),
        types=(BIG,),
    )
    assert list(result.placements.values()) == ["there"] * 5
    assert len(result.new_nodes) == 1


def test_vo_01_volumes_of_running_pods_count_once_each():
    """Two running pods share one claim: nine of ten attachments are left."""
    sharing = [running(pod, "there") for pod in pods(2, "100m", name="sharing", claims=("shared",))]
    wanted = stateful(10)
    result = plan(
        wanted,
        claims_of(wanted),
        sharing,
        bound("shared"),
        storage_class(),
        node("there"),
        CsiNode("there", ((EBS, 10),)),
        types=(BIG,),
    )
    assert len(result.placements) == 9


def test_a_node_that_attaches_more_than_its_driver_now_says_takes_pods_without_volumes():
    """CSI drivers may lower the count while volumes are attached (`MutableCSINodeAllocatableCount`)."""
    attached = [running(pod, "there") for pod in stateful(3, name="old")]
    new = stateful(1)
    result = plan(
        attached,
        [bound(f"data-{pod.name}-0") for pod in attached],
        new,
        claims_of(new),
        storage_class(),
        pods(2, "100m", name="plain"),
        node("there"),
        CsiNode("there", ((EBS, 2),)),
    )
    assert sorted(result.placements) == ["default/plain-0", "default/plain-1"]
    assert [made.pods for made in result.new_nodes] == [("default/db-0",)]


@pytest.mark.parametrize("limits", [(), ((EBS, None),)], ids=["no driver", "driver without a count"])
def test_vo_01_a_node_that_publishes_no_limit_has_none(limits):
    wanted = stateful(12)
    result = plan(wanted, claims_of(wanted), storage_class(), node("there"), CsiNode("there", limits))
    assert len(result.placements) == 12


@pytest.mark.parametrize(
    "volume",
    [Volume("nfs"), Volume("static", OTHER, storage_class="gp3")],
    ids=["NFS", "another driver than the class has"],
)
def test_vo_02_a_volume_that_the_class_did_not_make_keeps_no_pod_pending(volume):
    result = plan(pods(1, claims=("data",)), bound("data", volume=volume), storage_class())
    assert len(result.new_nodes) == 1


def ephemeral(number, class_name):
    return pods(number, "100m", ephemeral_volumes=(("scratch", class_name),))


@pytest.mark.parametrize(
    ("class_name", "classes", "counted"),
    [
        ("gp3", [storage_class()], EBS),
        (None, [storage_class(default=True)], EBS),
        (
            None,
            [
                storage_class("old", default=True, driver=OTHER, created_at=1.0),
                storage_class("new", default=True, created_at=2.0),
            ],
            EBS,
        ),
    ],
    ids=["named class", "default class", "newest of two default classes"],
)
def test_vo_03_an_ephemeral_volume_is_attached_by_the_driver_of_its_class(class_name, classes, counted):
    limits = {EBS: 99, OTHER: 99, counted: 2}
    limited = replace(BIG, volume_limits=limits)
    result = plan(ephemeral(6, class_name), classes, types=(limited,))
    assert [len(new.pods) for new in result.new_nodes] == [2, 2, 2]


def test_vo_04_an_ephemeral_volume_of_a_missing_class_makes_no_node():
    result = plan(ephemeral(1, "nowhere"), storage_class())
    assert codes(result) == ["StorageClassNotFound"]
    assert not result.new_nodes
    assert "nowhere" in str(result.refusals[0])


def test_vo_05_a_class_for_one_zone_keeps_its_pods_there():
    things = (unbound("data"), storage_class("gp3", "z1"))
    assert zones_of(plan(pods(1, claims=("data",)), *things)) == [{"z1"}]
    result = plan(pods(1, claims=("data",), selector={ZONE: "z2"}), *things)
    assert codes(result) == ["VolumeUnreachable"]
    assert not result.new_nodes


def test_vo_06_a_pod_follows_the_volume_that_its_claim_is_bound_to():
    assert zones_of(plan(pods(1, claims=("data",)), bound("data", "z3"))) == [{"z3"}]
    result = plan(pods(1, claims=("data",), selector={ZONE: "z1"}), bound("data", "z3"))
    assert codes(result) == ["VolumeUnreachable"]
    assert "z3" in str(result.refusals[0])


def test_vo_06_an_existing_node_of_another_zone_is_not_used():
    result = plan(pods(1, claims=("data",)), bound("data", "z3"), node("in-z1"))
    assert not result.placements
    assert zones_of(result) == [{"z3"}]


def test_vo_07_a_limit_of_the_type_divides_a_hundred_pods_among_ten_nodes():
    wanted = stateful(100)
    result = plan(wanted, claims_of(wanted), storage_class(), types=(with_limit(BIG, 10),))
    assert [len(new.pods) for new in result.new_nodes] == [10] * 10


def sharing(number, *claims, name="web", **fields):
    return pods(number, "100m", name=name, claims=claims, **fields)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("limit", [1, 10])
def test_vo_07_a_claim_that_a_hundred_pods_share_is_attached_once(packing, limit):
    wanted = sharing(100, "shared")
    policy = Policy(packing=packing)
    result = plan(wanted, unbound("shared"), storage_class(), types=(with_limit(BIG, limit),), policy=policy)
    assert [len(new.pods) for new in result.new_nodes] == [100]


@pytest.mark.parametrize(("limit", "nodes"), [(11, 1), (10, 2), (6, 2), (5, 3), (3, 5), (2, 10)])
def test_vo_07_volumes_of_their_own_count_beside_the_one_that_pods_share(limit, nodes):
    """Ten pods with a volume each, and one for all of them: a node holds one pod less than it attaches."""
    own = stateful(10)
    both = [replace(pod, shape=replace(pod.shape, claims=(*pod.shape.claims, "shared"))) for pod in own]
    things = (claims_of(own), unbound("shared"), storage_class())
    assert len(plan(both, *things, types=(with_limit(BIG, limit),)).new_nodes) == nodes


@pytest.mark.parametrize(("limit", "nodes"), [(6, 1), (4, 2), (3, 2), (2, 3), (1, 6)])
def test_vo_07_each_of_several_shared_claims_counts_once_a_node(limit, nodes):
    groups = [sharing(4, f"of-{index}", name=f"app-{index}") for index in range(6)]
    claims = [unbound(f"of-{index}") for index in range(6)]
    result = plan(groups, claims, storage_class(), types=(with_limit(BIG, limit),))
    assert len(result.new_nodes) == nodes
    for new in result.new_nodes:
        assert len({key.rpartition("-")[0] for key in new.pods}) <= limit


@pytest.mark.parametrize(("taken", "placed"), [(True, 3), (False, 0)])
def test_vo_07_a_node_that_has_a_shared_volume_attached_takes_more_of_its_pods(taken, placed):
    """All that the node can attach is attached."""
    there = [running(pod, "there") for pod in sharing(1, "shared" if taken else "other", name="first")]
    result = plan(
        there,
        sharing(3, "shared"),
        bound("shared"),
        bound("other"),
        storage_class(),
        node("there"),
        CsiNode("there", ((EBS, 1),)),
        types=(with_limit(BIG, 1),),
    )
    assert len(result.placements) == placed
    assert len(result.new_nodes) == (0 if taken else 1)


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("there", [False, True], ids=["new-nodes", "a-node-that-is-there"])
def test_vo_07_pods_of_every_size_that_share_a_claim_attach_it_once(there, packing):
    """They differ in what they ask for, so that one kind of them finds what another has attached."""
    sizes = [pods(2, cpu, name=f"of-{cpu}", claims=("shared",)) for cpu in ("100m", "300m", "700m")]
    standing = [node("there", cpu="8"), CsiNode("there", ((EBS, 1),))] if there else []
    things = (bound("shared"), storage_class(), standing)
    result = plan(*sizes, *things, types=(with_limit(BIG, 1),), policy=Policy(packing=packing))
    assert len(result.placements) == (6 if there else 0)
    assert [len(new.pods) for new in result.new_nodes] == ([] if there else [6])


def test_vo_07_claims_of_one_name_in_two_namespaces_are_two():
    groups = [sharing(2, "shared"), sharing(2, "shared", name="theirs", namespace="other")]
    claims = [unbound("shared"), replace(unbound("shared"), namespace="other")]
    assert len(plan(groups, claims, storage_class(), types=(with_limit(BIG, 1),)).new_nodes) == 2


def test_vo_07_what_is_asked_of_the_cloud_names_no_attachments():
    wanted = stateful(1)
    (new,) = plan(wanted, claims_of(wanted), storage_class()).new_nodes
    assert new.requests == {"cpu": 100, "pods": 1}


def test_vo_07_claims_of_their_own_do_not_make_classes_of_their_own():
    """Members of a StatefulSet share nodes though no two of them mount the same claim."""
    wanted = stateful(100)
    result = plan(wanted, claims_of(wanted), storage_class(), types=(BIG,))
    assert len(result.new_nodes) == 1


@pytest.mark.parametrize("launched", [False, True])
def test_vo_07_a_claim_in_flight_attaches_what_its_type_can(launched):
    limited = with_limit(BIG, 10)
    fields = {"provider_id": "aws:///z1/i-1", "labels": {INSTANCE_TYPE: "big"}} if launched else {}
    wanted = stateful(12)
    result = plan(
        wanted,
        claims_of(wanted),
        storage_class(),
        claim("coming", "big", allocatable=limited.allocatable, **fields),
        types=(limited,),
    )
    assert list(result.placements.values()) == ["coming"] * 10
    assert [len(new.pods) for new in result.new_nodes] == [2]


def test_vo_08_a_pod_with_more_volumes_than_any_type_attaches_stays_pending():
    wanted = stateful(1, per_pod=11)
    result = plan(wanted, claims_of(wanted), storage_class(), types=(with_limit(BIG, 10),))
    assert codes(result) == ["InsufficientResources"]
    assert EBS in str(result.refusals[0])


def test_vo_09_a_limit_of_another_driver_does_not_count():
    wanted = stateful(20)
    result = plan(wanted, claims_of(wanted), storage_class(), types=(with_limit(BIG, 1, OTHER),))
    assert [len(new.pods) for new in result.new_nodes] == [20]


def test_vo_10_a_volume_with_two_zones_lets_repelling_pods_into_both():
    wanted = pods(2, claims=("data",), anti_affinity=(beside(ZONE),))
    seen = snapshot(wanted, pool(), bound("data", "z1", "z2"))
    result = plan(wanted, pool(), bound("data", "z1", "z2"))
    assert not result.refusals
    assert domains(carried_out(seen, result), ZONE) == {"z1": 1, "z2": 1}


def test_vo_10_terms_that_are_more_than_a_list_are_alternatives_too():
    small = NodeSelectorTerm((needs(ZONE, "In", "z1"), needs(INSTANCE_TYPE, "In", "small")))
    large = NodeSelectorTerm((needs(ZONE, "In", "z2"), needs(INSTANCE_TYPE, "In", "large")))
    volume = Volume("pv", EBS, (small, large))
    result = plan(pods(1, "3", claims=("data",)), bound("data", volume=volume))
    assert zones_of(result) == [{"z2"}]


def test_volumes_in_two_zones_are_reached_by_no_node():
    result = plan(pods(1, claims=("a", "b")), bound("a", "z1"), bound("b", "z2"))
    assert codes(result) == ["VolumesApart"]


def test_volumes_that_share_a_zone_bring_their_pod_there():
    result = plan(pods(1, claims=("a", "b")), bound("a", "z1", "z2"), bound("b", "z2", "z3"))
    assert zones_of(result) == [{"z2"}]


def test_an_absurd_number_of_places_is_cut_short():
    """Thirty volumes with twenty alternatives each: 20^30 combinations, of which a few are followed."""
    terms = tuple(
        NodeSelectorTerm((needs(ZONE, "In", "z1"), needs(f"example.com/{i}", "DoesNotExist")))
        for i in range(20)
    )
    claims = tuple(f"c{i}" for i in range(30))
    made = [
        bound(name, volume=Volume(f"pv-{name}", EBS, terms[i % 20 :] + terms[: i % 20]))
        for i, name in enumerate(claims)
    ]
    assert len(plan(pods(1, claims=claims), *made).new_nodes) == 1


def test_pe_10_a_missing_claim_stops_only_its_own_pod():
    assert only_the_valid_one().code == "VolumeClaimNotFound"


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (unbound("data", "nowhere"), "StorageClassNotFound"),
        (
            PersistentVolumeClaim("default", "data", "gp3", "nothing", bound=True, phase="Bound"),
            "VolumeNotFound",
        ),
    ],
    ids=["storage class", "volume"],
)
def test_pe_11_a_missing_class_or_volume_stops_only_its_own_pod(made, code):
    assert only_the_valid_one(made, storage_class()).code == code


def test_pe_12_a_bound_claim_without_a_class_is_planned():
    result = plan(pods(1, claims=("data",)), bound("data", "z1", storage_class=""))
    assert len(result.new_nodes) == 1


@pytest.mark.parametrize("class_name", ["", None], ids=["empty class", "no class, none the default"])
def test_pe_13_an_unbound_claim_without_a_class_is_refused_with_a_reason(class_name):
    refusal = only_the_valid_one(unbound("data", class_name))
    assert refusal.code == "VolumeClaimNotUsable"
    assert "default/data" in str(refusal)


@pytest.mark.parametrize(
    "made",
    [
        [unbound("data", deletion_timestamp=1.0)],
        [unbound("data", phase="Lost")],
        [unbound("data", "now")],
        [unbound("data", volume_name="pv"), Volume("pv")],
        bound("data", volume=Volume("pv", EBS, deletion_timestamp=1.0)),
    ],
    ids=["deleting", "Lost", "Immediate and unbound", "not bound yet", "volume deleting"],
)
def test_pe_14_a_claim_that_no_node_can_help_is_refused_with_a_reason(made):
    refusal = only_the_valid_one(made, storage_class(), storage_class("now", binding_mode="Immediate"))
    assert refusal.code == "VolumeClaimNotUsable"
    assert "data" in str(refusal)
