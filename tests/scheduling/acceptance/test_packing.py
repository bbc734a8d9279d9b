"""Basic packing and the choice of types: rows SC-01 to SC-38."""

import json

import pytest

from nodeless.kube.decoding import decode_pod
from nodeless.launch.claims import claims_for
from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    DO_NOT_CONSOLIDATE,
    HOSTNAME,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    PROVISIONER_NAME,
    SPOT,
    ZONE,
)
from nodeless.model.pods import HostPort
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import FEWEST_NODES, Policy, solve
from tests.scheduling.acceptance.catalogs import (
    GPU_A,
    GPU_B,
    INTEGER,
    MATRIX,
    SIZE,
    SPECIAL,
    F,
    a_type,
    ladder,
    planned,
)
from tests.scheduling.factories import (
    NOW,
    codes,
    daemon,
    instance_type,
    needs,
    new_types,
    node,
    pods,
    pool,
    running,
    snapshot,
    term,
)


def types_of(*things, **fields):
    result = planned(*things, **fields)
    assert not result.refusals
    return new_types(result)


def claims_of(result, *pools):
    return [create.claim for create in claims_for(result, {str(one.reference): one for one in pools}, NOW)]


def pod_with(containers, init_containers=()):
    """A pending pod as the API server has it; containers and init containers as (cpu, memory)."""

    def made(amounts):
        return [
            {"name": f"c{i}", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
            for i, (cpu, memory) in enumerate(amounts)
        ]

    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    document = {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"containers": made(containers), "initContainers": made(init_containers)},
        "status": {"conditions": [refused]},
    }
    return decode_pod(json.dumps(document).encode())


@pytest.mark.parametrize("memory", ["100M", "2000M"])
def test_sc_01_a_small_pod_gets_the_small_type(memory):
    assert types_of(pods(1, "0", memory)) == ["small"]


def test_sc_02_five_tiny_pods_share_one_small_node():
    assert types_of(pods(5, "0", "10M")) == ["small"]


def test_sc_03_forty_pods_fill_twenty_nodes_of_two():
    assert types_of(pods(40, "0", "1800M", selector={ARCH: "amd64"})) == ["default"] * 20


def test_sc_04_two_pods_that_share_no_type_get_two():
    first, second = types_of(pods(1, "4500m", name="a"), pods(1, "1", name="b"), types=ladder(5))
    assert first != second


def test_sc_05_a_request_of_zero_of_an_unknown_resource_is_no_matter():
    assert types_of(pods(1, "100m", extra={"example.com/unknown": "0"})) == ["small"]


def test_sc_06_a_pod_of_two_tebibytes_is_refused_by_resource():
    result = planned(pods(1, memory="2Ti"))
    assert codes(result) == ["InsufficientResources"]
    assert "memory: 2Ti requested" in str(result.refusals[0])


def test_sc_07_the_larger_of_containers_and_init_containers_counts():
    assert types_of([pod_with([("1", "1Gi")], [("2", "1Gi")])]) == ["default"]


def test_sc_08_an_init_container_too_large_for_any_type_keeps_its_pod_pending():
    assert codes(planned([pod_with([("1", "1Gi")], [("1", "1Ti")])])) == ["InsufficientResources"]


def test_sc_09_the_cheapest_type_wins_even_when_it_is_the_largest():
    types = (
        a_type("small", 1, "1Gi", price=2.0),
        a_type("medium", 2, "2Gi", price=3.0),
        a_type("large", 4, "4Gi", price=1.0),
    )
    (new,) = planned(pods(1, "100m"), types=types).new_nodes
    assert [alternative.instance_type for alternative in new.alternatives] == ["large", "small", "medium"]


def test_sc_10_pods_that_ask_for_gpus_by_limit_get_the_vendors_types():
    def by_limit(name, resource):
        document = {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {resource: "1"}}}]},
            "status": {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]},
        }
        return decode_pod(json.dumps(document).encode())

    assert sorted(types_of([by_limit("a", GPU_A), by_limit("b", GPU_B)])) == ["gpu-a", "gpu-b"]


def test_sc_11_a_type_of_one_pod_holds_one_pod():
    only = pool("default", needs(INSTANCE_TYPE, "In", "single-pod"))
    assert types_of(only, pods(3, "100m")) == ["single-pod"] * 3


@pytest.mark.parametrize(
    ("key", "values"),
    [
        pytest.param(ARCH, ("amd64", "arm64"), id="SC-12"),
        pytest.param(ZONE, ("z1", "z2"), id="SC-13"),
        pytest.param(INSTANCE_TYPE, ("small", "default"), id="SC-14"),
    ],
)
def test_pods_that_select_different_nodes_get_one_each(key, values):
    result = planned(*(pods(1, "100m", name=value, selector={key: value}) for value in values))
    assert {min(new.requirements[key].values) for new in result.new_nodes} == set(values)
    assert len(result.new_nodes) == 2


@pytest.mark.parametrize(
    "expression",
    [
        needs(INSTANCE_TYPE, "NotIn", *(kind.name for kind in F if kind.name != "arm")),
        needs(OS, "In", "ios"),
    ],
    ids=["all but arm", "ios"],
)
def test_sc_15_a_pod_that_leaves_only_one_type_gets_it(expression):
    assert types_of(pods(1, "100m", required_terms=(term(expression),))) == ["arm"]


def test_sc_16_a_selected_label_of_the_types_is_on_the_node():
    result = planned(pods(1, "100m", selector={SIZE: "large"}))
    assert new_types(result) == ["arm"]
    (made,) = claims_of(result, pool())
    assert made.labels[SIZE] == "large"


def test_sc_17_a_label_and_a_type_that_contradict_keep_the_pod_pending():
    assert codes(planned(pods(1, selector={SIZE: "large", INSTANCE_TYPE: "small"}))) == [
        "RequirementsConflict"
    ]


def test_sc_18_a_label_that_only_large_types_carry():
    assert types_of(pods(1, "100m", selector={SPECIAL: "optional"})) == ["arm"]
    absent = pods(1, "100m", required_terms=(term(needs(SPECIAL, "DoesNotExist")),))
    assert types_of(absent) == ["small"]


@pytest.mark.parametrize(("operator", "chosen"), [("Gt", ["arm"]), ("Lt", ["small"])])
def test_sc_19_numbers_are_compared_as_numbers(operator, chosen):
    assert types_of(pods(1, "100m", required_terms=(term(needs(INTEGER, operator, "8")),))) == chosen


@pytest.mark.parametrize("side", ["pool", "pod"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (ARCH, "arm64"),
        (ARCH, "amd64"),
        (OS, "windows"),
        (OS, "linux"),
        (ZONE, "z2"),
        (CAPACITY_TYPE, SPOT),
        (CAPACITY_TYPE, ON_DEMAND),
    ],
)
def test_sc_20_every_type_offered_meets_the_constraint_and_the_cheapest_is_the_cheapest(side, key, value):
    constraint = needs(key, "In", value)
    result = planned(
        pool("default", *([constraint] if side == "pool" else [])),
        pods(1, "100m", required_terms=(term(constraint),) if side == "pod" else ()),
        types=MATRIX,
    )
    (new,) = result.new_nodes
    meeting = {kind.name: kind for kind in MATRIX if kind.requirements[key].overlaps(constraint)}
    assert {alternative.instance_type for alternative in new.alternatives} <= set(meeting)
    large_enough = [kind for kind in meeting.values() if kind.allocatable["cpu"] >= 100]
    assert new.price == min(offering.price for kind in large_enough for offering in kind.offerings)


def test_sc_21_a_value_that_no_type_has_keeps_the_pod_pending():
    assert codes(planned(pods(1, "100m", selector={ARCH: "arm"}), types=MATRIX)) == ["RequirementsConflict"]


@pytest.mark.parametrize("most", [60, 100, 600])
def test_sc_22_a_plan_keeps_the_cheapest_types_up_to_the_number_allowed(most):
    policy = Policy(packing=FEWEST_NODES, max_alternatives=most)
    (new,) = planned(pods(1, "100m"), types=MATRIX, policy=policy).new_nodes
    by_price = sorted((kind.offerings[0].price, kind.name) for kind in MATRIX)
    assert [alternative.instance_type for alternative in new.alternatives] == [
        name for _, name in by_price[:most]
    ]


def test_sc_23_a_host_that_is_not_there_cannot_be_made():
    assert codes(planned(pods(1, selector={HOSTNAME: "elsewhere"}))) == ["RequirementsConflict"]


TEAM = "example.com/team"


@pytest.mark.parametrize(
    ("first", "second", "nodes"),
    [
        (needs(TEAM, "In", "a", "b"), needs(TEAM, "NotIn", "b"), 1),
        (needs(TEAM, "Exists"), needs(TEAM, "In", "b"), 1),
        (needs(TEAM, "In", "a"), needs(TEAM, "In", "b"), 2),
    ],
)
def test_sc_24_labels_of_ones_own_share_a_node_when_they_go_together(first, second, nodes):
    result = planned(
        pool("default", needs(TEAM, "In", "a", "b", "c")),
        pods(1, "100m", name="one", required_terms=(term(first),)),
        pods(1, "100m", name="two", required_terms=(term(second),)),
    )
    assert len(result.new_nodes) == nodes


def test_sc_25_the_heaviest_pool_takes_all_but_those_that_select_another():
    pools = [pool("none"), pool("light", weight=20), pool("heavy", weight=100)]
    result = planned(pools, pods(5, "100m"))
    assert {new.pool.name for new in result.new_nodes} == {"heavy"}
    chosen = planned(pools, pods(1, "100m", selector={PROVISIONER_NAME: "none"}))
    assert [new.pool.name for new in chosen.new_nodes] == ["none"]


QUIET = (Taint("quiet", "PreferNoSchedule"),)


def test_sc_26_a_pool_that_prefers_to_be_left_alone_is_passed_over():
    result = planned([pool("a-quiet", taints=QUIET), pool("open")], pods(1, "100m"))
    assert [new.pool.name for new in result.new_nodes] == ["open"]


def test_sc_27_a_pool_that_prefers_to_be_left_alone_takes_what_no_other_takes():
    quiet = pool("quiet", taints=QUIET)
    result = planned(quiet, pods(1, "100m"))
    assert not result.refusals
    assert claims_of(result, quiet)[0].taints == QUIET


def test_sc_28_a_deleting_pool_is_ignored_and_alone_it_is_as_none():
    ending = pool("ending", weight=100, deletion_timestamp=1.0)
    result = planned([ending, pool("open")], pods(1, "100m"))
    assert [new.pool.name for new in result.new_nodes] == ["open"]
    assert codes(planned([ending], pods(1, "100m"))) == ["NoPools"]


def test_sc_29_labels_and_annotations_of_the_pool_are_on_the_claim():
    labeled = pool("default", labels={TEAM: "a"}, annotations={DO_NOT_CONSOLIDATE: "true"})
    (made,) = claims_of(planned(labeled, pods(1, "100m")), labeled)
    assert made.labels[TEAM] == "a"
    assert made.annotations[DO_NOT_CONSOLIDATE] == "true"


def test_sc_30_requirements_on_labels_of_ones_own_become_labels():
    key = "example.com/{}".format
    open_to = pool(
        "default",
        needs(key("in"), "In", "v"),
        needs(key("not-in"), "NotIn", "v"),
        needs(key("lt"), "Lt", "4"),
        needs(key("gt"), "Gt", "5"),
        needs(key("exists"), "Exists"),
        needs(key("absent"), "DoesNotExist"),
    )
    (made,) = claims_of(planned(open_to, pods(1, "100m")), open_to)
    assert made.labels[key("in")] == "v"
    assert made.labels[key("not-in")] != "v"
    assert int(made.labels[key("lt")]) < 4
    assert int(made.labels[key("gt")]) > 5
    assert made.labels[key("exists")]
    assert key("absent") not in made.labels


def test_sc_31_well_known_labels_are_left_to_the_cloud():
    zonal = pool("default", needs(ZONE, "In", "z1"), needs(ARCH, "In", "amd64"))
    (made,) = claims_of(planned(zonal, pods(1, "100m")), zonal)
    assert not {ZONE, ARCH, INSTANCE_TYPE, CAPACITY_TYPE} & set(made.labels)


def test_sc_32_a_claim_lists_the_types_of_its_pods_and_counts_daemons():
    wanted = pods(1, "1", required_terms=(term(needs(INSTANCE_TYPE, "In", "small", "default")),))
    one = pool()
    (made,) = claims_of(planned(one, wanted, daemon("agent", "500m")), one)
    assert made.requirements[INSTANCE_TYPE].values == {"small", "default"}
    assert made.requests["cpu"] == 1500
    assert made.pool == one.reference


@pytest.mark.parametrize(
    ("toleration", "scheduled"),
    [
        (Toleration("team", "Exists"), True),
        (Toleration("team", "Equal", "blue"), True),
        (None, False),
        (Toleration("other", "Exists"), False),
        (Toleration("team", "Equal", "red"), False),
    ],
)
def test_sc_33_a_taint_lets_in_who_tolerates_it(toleration, scheduled):
    tainted = pool("default", taints=(Taint("team", "NoSchedule", "blue"),))
    wanted = pods(1, "100m", tolerations=(toleration,) if toleration else ())
    assert bool(planned(tainted, wanted).new_nodes) is scheduled


def test_sc_34_a_startup_taint_need_not_be_tolerated():
    starting = pool("default", startup_taints=(Taint("starting", "NoSchedule"),))
    assert len(planned(starting, pods(1, "100m")).new_nodes) == 1


def test_sc_35_a_broad_toleration_adds_no_taints():
    one = pool()
    broad = pods(1, "100m", tolerations=(Toleration("", "Exists"),))
    (made,) = claims_of(planned(one, broad), one)
    assert (made.taints, made.startup_taints) == ((), ())


@pytest.mark.parametrize(
    ("first", "second", "nodes"),
    [
        pytest.param(HostPort("", 80, "TCP"), HostPort("", 80, "TCP"), 2, id="SC-36-same"),
        pytest.param(HostPort("", 80, "TCP"), HostPort("", 80, "UDP"), 1, id="SC-36-protocols"),
        pytest.param(HostPort("10.0.0.1", 80, "TCP"), HostPort("0.0.0.0", 80, "TCP"), 2, id="SC-37-any"),
        pytest.param(HostPort("10.0.0.1", 80, "TCP"), HostPort("10.0.0.2", 80, "TCP"), 1, id="SC-37-two"),
    ],
)
def test_host_ports_that_collide_need_a_node_each(first, second, nodes):
    result = planned(
        pods(1, "100m", name="a", host_ports=(first,)), pods(1, "100m", name="b", host_ports=(second,))
    )
    assert len(result.new_nodes) == nodes


def test_sc_38_the_lab_gets_one_2xlarge_beside_its_medium():
    t3a = tuple(
        instance_type(f"t3a.{size}", cpu, gib)
        for size, cpu, gib in (("medium", 2, 4), ("large", 2, 8), ("xlarge", 4, 16), ("2xlarge", 8, 32))
    )
    system = running(pods(1, "1100m", name="system")[0], "lab")
    agents = daemon("aws-node", "200m")
    seen = snapshot(pool(), node("lab", "2", "4Gi"), system, agents, pods(5, "1"))
    result = solve(seen, dict.fromkeys(seen.pools, t3a), Policy(packing=FEWEST_NODES))
    assert [(new.instance_type, len(new.pods)) for new in result.new_nodes] == [("t3a.2xlarge", 5)]
    assert not result.placements
