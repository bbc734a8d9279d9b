"""A pod without capacity is told, for each pool, the one thing that failed."""

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, HOSTNAME, ON_DEMAND, ZONE
from nodeless.model.pods import LabelSelector, PodAffinityTerm, TopologySpreadConstraint
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import (
    DEFAULT,
    beside,
    codes,
    daemon,
    instance_type,
    needs,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
    spread,
    term,
)

ONLY = (instance_type("one", 4, 16),)


def reason(*things, **fields):
    """The code and message of the only pool for the only pod."""
    (refusal,) = plan(*things, **fields).refusals
    (told,) = refusal.reasons
    assert refusal.code == told.code
    return told.code, told.message


def test_without_pools_that_is_the_reason():
    result = solve(snapshot(pods(2)), {}, Policy())
    assert codes(result) == ["NoPools", "NoPools"]
    assert str(result.refusals[0]) == "no pool exists; hint: create a Provisioner or a NodePool"


def test_a_problem_of_the_pool_is_passed_on():
    problem = "no subnet matches karpenter.sh/discovery=demo"
    assert reason(pods(1), policy=Policy(pool_problems={DEFAULT: problem})) == ("PoolUnavailable", problem)


def test_a_pool_with_a_problem_makes_no_nodes_and_another_does():
    result = plan(
        [pool("broken", weight=10), pool("fine")],
        pods(1),
        policy=Policy(pool_problems={"Provisioner/broken": "no subnet"}),
    )
    assert [new.pool.name for new in result.new_nodes] == ["fine"]


def test_a_pool_without_instance_types():
    assert reason(pods(1), types=()) == (
        "NoInstanceTypes",
        "the cloud offers no instance type to this pool",
    )


@pytest.mark.parametrize("key", ["example.com/rank", "karpenter.k8s.aws/instance-cpu", ZONE])
def test_no_label_is_larger_than_the_largest_number(key):
    largest = term(needs(key, "Gt", str(2**63 - 1)))
    ranked = pool("default", needs("example.com/rank", "Exists"))
    result = plan(ranked, pods(1, required_terms=(largest,)))
    assert codes(result) == ["RequirementsContradict"]
    assert "holds for no number" in str(result.refusals[0])


def test_a_pod_that_excludes_the_only_number_that_it_allows_contradicts_itself():
    last = term(
        needs("example.com/rank", "Gt", str(2**63 - 2)), needs("example.com/rank", "NotIn", str(2**63 - 1))
    )
    ranked = pool("default", needs("example.com/rank", "Exists"))
    assert codes(plan(ranked, pods(1, required_terms=(last,)))) == ["RequirementsContradict"]


def test_a_taint_that_is_not_tolerated():
    tainted = pool("default", taints=(Taint("team", "NoSchedule", "blue"),))
    assert reason(tainted, pods(1)) == ("TaintNotTolerated", "taint team=blue:NoSchedule is not tolerated")


def test_a_requirement_that_the_pool_contradicts():
    zonal = pool("default", needs(ZONE, "In", "z1"))
    assert reason(zonal, pods(1, selector={ZONE: "z2"})) == (
        "RequirementsConflict",
        f"{ZONE} In [z2] does not overlap with {ZONE} In [z1]",
    )


def test_a_label_that_nothing_defines():
    code, message = reason(pods(1, selector={"disk": "ssd"}))
    assert (code, message) == (
        "RequirementsConflict",
        "disk In [ssd] is asked for, but the label is not defined",
    )


def test_a_host_that_does_not_exist():
    assert reason(pods(1, selector={"kubernetes.io/hostname": "nowhere"}))[0] == "RequirementsConflict"


def test_a_value_that_no_instance_type_has():
    assert reason(pods(1, selector={ARCH: "riscv64"})) == (
        "RequirementsConflict",
        "no instance type satisfies kubernetes.io/arch In [riscv64]",
    )


def test_values_that_no_instance_type_has_together():
    types = (
        instance_type(
            "a", labels=[needs("example.com/disk", "In", "ssd"), needs("example.com/net", "In", "slow")]
        ),
        instance_type(
            "b", labels=[needs("example.com/disk", "In", "hdd"), needs("example.com/net", "In", "fast")]
        ),
    )
    code, message = reason(
        pods(1, selector={"example.com/disk": "ssd", "example.com/net": "fast"}), types=types
    )
    assert code == "RequirementsConflict"
    assert message == "no instance type satisfies example.com/net In [fast] with the other requirements"


def test_a_zone_where_nothing_is_offered():
    code, message = reason(pods(1, selector={ZONE: "z9"}))
    assert (code, message) == (
        "RequirementsConflict",
        f"none of the 5 matching instance types is offered for {ZONE} In [z9]",
    )


def test_offerings_that_are_sold_out():
    sold_out = instance_type("one", offerings=(Offering("z1", ON_DEMAND, 1.0, available=False),))
    code, message = reason(pods(1, selector={ZONE: "z1"}), types=(sold_out,))
    assert code == "NoOfferingAvailable"
    assert message == f"no offering of the 1 matching instance types is available now for {ZONE} In [z1]"


def test_a_pod_that_is_too_large_names_the_resource_the_request_and_the_most_there_is():
    assert reason(pods(1, "1", "2Ti"), types=ONLY) == (
        "InsufficientResources",
        "memory: 2Ti requested, but the largest matching instance type (one) allocates 16374Mi",
    )


def test_a_pod_whose_resources_fit_only_one_by_one():
    types = (instance_type("cpu", 8, 4), instance_type("memory", 2, 32))
    assert reason(pods(1, "6", "16Gi"), types=types) == (
        "InsufficientResources",
        "no single matching instance type has room for cpu 6, memory 16Gi at once",
    )


def test_different_reasons_of_different_pools_are_all_told():
    pools = [pool("zonal", needs(ZONE, "In", "z1")), pool("tainted", taints=(Taint("team", "NoSchedule"),))]
    (refusal,) = plan(pools, pods(1, selector={ZONE: "z2"})).refusals
    assert refusal.code == "NoPoolFits"
    assert [(told.pool.name, told.code) for told in refusal.reasons] == [
        ("tainted", "TaintNotTolerated"),
        ("zonal", "RequirementsConflict"),
    ]


SELECTOR = LabelSelector((("app", "web"),))


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ({"claims": ("data",)}, "VolumeClaimNotFound"),
        (
            {"required_terms": (term(needs("a", "In", "x"), needs("a", "In", "y")),)},
            "RequirementsContradict",
        ),
    ],
)
def test_constraints_that_cannot_be_planned_yet_are_named_and_make_no_node(shape, code):
    result = plan(pods(1, **shape))
    assert codes(result) == [code]
    assert not result.new_nodes
    assert str(result.refusals[0])


@pytest.mark.parametrize(
    "shape",
    [
        {"spread": (TopologySpreadConstraint(ZONE, 1, "ScheduleAnyway", SELECTOR),)},
        {"affinity": (PodAffinityTerm(ZONE, SELECTOR, weight=1),)},
        {"anti_affinity": (PodAffinityTerm(ZONE, SELECTOR, weight=1),)},
    ],
)
def test_soft_constraints_between_pods_keep_no_pod_pending(shape):
    assert plan(pods(1, **shape)).new_nodes


def test_one_pod_that_cannot_be_planned_stops_no_other():
    result = plan(pods(1, claims=("data",), name="stuck"), pods(2))
    assert [refusal.pod for refusal in result.refusals] == ["default/stuck-0"]
    assert result.new_nodes[0].pods == ("default/web-0", "default/web-1")


@pytest.mark.parametrize(("field", "value"), [("packing", "tightest"), ("max_alternatives", 0)])
def test_a_policy_that_makes_no_sense_is_refused_with_a_hint(field, value):
    with pytest.raises(ValueError, match="hint: "):
        Policy(**{field: value})


@pytest.mark.parametrize(
    "more", [{}, {"anti_affinity": (beside(HOSTNAME),)}, {"spread": (spread(HOSTNAME),)}]
)
def test_of_several_rules_the_one_is_told_that_leaves_no_zone_of_the_pool(more):
    """Zones that the types are sold in count for nothing where the pool makes no nodes."""
    over_zones = (*more.get("spread", ()), spread(ZONE, min_domains=3))
    asked = pods(3, **{**more, "spread": over_zones})
    code, message = reason(asked, pool("default", needs(ZONE, "In", "z1", "z2")))
    assert code == "TopologySpread"
    assert message.startswith(f"topologySpreadConstraints on {ZONE}: ")
    assert message.endswith("(z1: 1, z2: 1)")


def test_rules_that_leave_no_zone_only_together_are_told_together():
    standing = [node(f"in-{zone}", "1", labels={**node("any").labels, ZONE: zone}) for zone in ("z1", "z2")]
    apart = running(pods(1, "1", name="apart", anti_affinity=(beside(ZONE),))[0], "in-z2")
    web = running(pods(1, "1", name="old", labels={"app": "web"})[0], "in-z1")
    code, message = reason(
        standing, apart, web, pods(1, spread=(spread(ZONE),)), pool("default", needs(ZONE, "In", "z1", "z2"))
    )
    assert code == "PodAntiAffinity"
    assert message == (
        f"podAntiAffinity on {ZONE} of other pods and topologySpreadConstraints on {ZONE}: "
        "together they leave no domain where a node can be made"
    )


def test_a_daemon_set_that_no_type_has_room_for_is_told_though_the_pod_asks_for_nothing_of_it():
    """For each node counts with the pods of its DaemonSets, and so nobody has room."""
    needy = daemon("needy", "100m", extra={"example.com/fuse": "1"})
    code, message = reason(pods(1), needy, types=ONLY)
    assert code == "InsufficientResources"
    assert message == (
        "example.com/fuse: daemons use 1, but the largest matching instance type (one) allocates 0; "
        "hint: keep the DaemonSet off such nodes by node affinity"
    )
