"""Whatever stands in pods, pools and catalogs: a plan with reasons, never an exception, never a hang."""

import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.kube.decoding import decode_pod
from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, ZONE
from nodeless.model.requirements import Requirement
from nodeless.scheduling import Policy, pods_to_place, solve
from nodeless.scheduling.capacity.pricing import PriceAdjustment
from tests.scheduling.factories import (
    FAMILY,
    codes,
    daemon,
    instance_type,
    needs,
    node,
    plan,
    pods,
    pool,
    snapshot,
)

QUANTITIES = st.sampled_from(
    ["1", "100m", "0", "2Gi", "-1", "1e30", "9e18", "9" * 40, "999999Ei", "", "much", "1.5", "1e-9", "1_000"]
)
KEYS = st.sampled_from([ZONE, ARCH, HOSTNAME, INSTANCE_TYPE, "team", "beta.kubernetes.io/arch", ""])
VALUES = st.lists(st.sampled_from(["z1", "amd64", "a", "5", "-3", "1_0", "9" * 30, ""]), max_size=3)
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "Near", ""])
EXPRESSIONS = st.lists(
    st.fixed_dictionaries({"key": KEYS, "operator": OPERATORS, "values": VALUES}), max_size=3
)
TERMS = st.fixed_dictionaries({}, optional={"matchExpressions": EXPRESSIONS, "matchFields": EXPRESSIONS})
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(
            st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b"]), max_size=2
        ),
        "matchExpressions": EXPRESSIONS,
    },
)
POD_TERMS = st.fixed_dictionaries(
    {"topologyKey": KEYS},
    optional={"labelSelector": SELECTORS, "namespaces": st.just(["x"]), "namespaceSelector": SELECTORS},
)


def either(required, preferred):
    return st.fixed_dictionaries(
        {},
        optional={
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    )


WEIGHTS = st.sampled_from([1, 0, -5, 100, 10**12])
POD_AFFINITIES = either(
    st.lists(POD_TERMS, max_size=2),
    st.lists(st.fixed_dictionaries({"weight": WEIGHTS, "podAffinityTerm": POD_TERMS}), max_size=2),
)
SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "resources": st.fixed_dictionaries(
                        {},
                        optional={
                            name: st.dictionaries(
                                st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]),
                                QUANTITIES,
                                max_size=3,
                            )
                            for name in ("requests", "limits")
                        },
                    ),
                    "ports": st.lists(
                        st.fixed_dictionaries({"hostPort": st.sampled_from([0, -1, 80, 10**9])}), max_size=2
                    ),
                },
            ),
            max_size=2,
        )
    },
    optional={
        "nodeSelector": st.dictionaries(KEYS, st.sampled_from(["z1", "a", ""]), max_size=2),
        "tolerations": st.lists(
            st.fixed_dictionaries({"operator": st.sampled_from(["Exists", "Equal", "Near"])}), max_size=1
        ),
        "affinity": st.fixed_dictionaries(
            {},
            optional={
                "nodeAffinity": either(
                    st.fixed_dictionaries({"nodeSelectorTerms": st.lists(TERMS, max_size=3)}),
                    st.lists(st.fixed_dictionaries({"weight": WEIGHTS, "preference": TERMS}), max_size=2),
                ),
                "podAffinity": POD_AFFINITIES,
                "podAntiAffinity": POD_AFFINITIES,
            },
        ),
        "topologySpreadConstraints": st.lists(
            st.fixed_dictionaries(
                {"topologyKey": KEYS},
                optional={
                    "maxSkew": st.sampled_from([1, 0, -1, 10**9]),
                    "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "Perhaps"]),
                    "minDomains": st.sampled_from([None, 0, -1, 7, 10**9]),
                    "labelSelector": SELECTORS,
                    "matchLabelKeys": st.lists(st.sampled_from(["app", ""]), max_size=2),
                },
            ),
            max_size=2,
        ),
        "volumes": st.lists(
            st.sampled_from([{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]), max_size=1
        ),
    },
)


def pending(index, spec):
    document = {
        "metadata": {
            "name": f"odd-{index}",
            "namespace": "default",
            "uid": str(index),
            "labels": {"app": "a"},
        },
        "spec": spec,
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    }
    return decode_pod(json.dumps(document).encode())


@settings(deadline=None, max_examples=150)
@given(st.lists(SPECS, max_size=4), st.booleans())
def test_every_pod_is_placed_or_refused_with_a_reason_whatever_it_says(specs, with_node):
    odd = [pending(index, spec) for index, spec in enumerate(specs)]
    seen = snapshot(odd, pods(2, "500m"), pool(), daemon("agent", "100m"), [node("one")] if with_node else [])
    result = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy())
    answers = Counter(key for new in result.new_nodes for key in new.pods)
    answers.update(result.placements.keys())
    answers.update(refusal.pod for refusal in result.refusals)
    assert answers == Counter(pod.key for pod in pods_to_place(seen, 0.0))
    assert all(refusal.code and str(refusal) for refusal in result.refusals)
    assert {"default/web-0", "default/web-1"}.isdisjoint(refusal.pod for refusal in result.refusals)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "team", "operator": "Near", "values": ["a"]}]}
                            ]
                        }
                    }
                }
            },
            "unknown operator 'Near'",
        ),
        ({"containers": [{"resources": {"requests": {"cpu": "much"}}}]}, "'much' is not a quantity"),
        ({"containers": [{"resources": {"requests": {"cpu": "-1"}}}]}, "requests -1 of cpu"),
    ],
)
def test_a_pod_that_cannot_be_read_is_told_why(spec, words):
    (refusal,) = plan([pending(0, {"containers": [], **spec})]).refusals
    assert refusal.code == "InvalidPod"
    assert words in str(refusal)


@pytest.mark.parametrize("values", [[], ["five"], ["1", "2"], ["1_000"], ["9" * 5000]])
def test_a_bound_that_is_no_number_is_refused_with_a_hint(values):
    with pytest.raises(ValueError, match="hint: give one whole number"):
        Requirement.of("team", "Gt", values)


@pytest.mark.parametrize("amount", ["1e25", "999999Ei"])
def test_an_absurd_amount_is_one_that_no_type_has(amount):
    assert codes(plan(pods(3, "1", amount))) == ["InsufficientResources"] * 3
    assert codes(plan(pods(1, "0", extra={"nvidia.com/gpu": amount}))) == ["InsufficientResources"]


def test_an_absurd_limit_is_none():
    assert plan(pool("default", limits={"cpu": "1e25", "memory": "999999Ei"}), pods(1)).new_nodes


def test_absurd_daemons_leave_no_room_and_do_not_wrap_around():
    greedy = [daemon(f"greedy-{i}", "1e25", "1e25") for i in range(20)]
    assert codes(plan(greedy, pods(1))) == ["InsufficientResources"]


@pytest.mark.parametrize("price", [math.nan, math.inf, -1.0, None])
@pytest.mark.parametrize(
    "policy", [Policy(), Policy(node_fee=1.0, price_adjustments=(PriceAdjustment(percent=-50.0),))]
)
def test_what_has_no_price_is_not_bought(price, policy):
    unpriced = instance_type("unpriced", 4, 16, offerings=(Offering("z1", ON_DEMAND, price),))
    result = plan(pods(1), types=(unpriced,), policy=policy)
    assert codes(result) == ["NoOfferingAvailable"]
    beside = plan(pods(1), types=(unpriced, *FAMILY), policy=policy)
    assert {a.instance_type for new in beside.new_nodes for a in new.alternatives}.isdisjoint({"unpriced"})


def test_an_empty_catalog_and_a_pool_without_types_are_reasons():
    seen = snapshot(pool(), pods(2))
    for catalog in ({}, dict.fromkeys(seen.pools, ())):
        result = solve(seen, catalog, Policy())
        assert codes(result) == ["NoInstanceTypes"] * 2


def test_a_type_that_is_smaller_than_its_overhead_holds_nothing():
    hollow = instance_type("hollow", 0, 0)
    assert codes(plan(pods(1, "0"), types=(hollow,))) == ["InsufficientResources"]


def test_contradicting_requirements_are_told():
    both = pods(1, selector={ZONE: "z1"}, required_terms=())
    result = plan(pool("default", needs(ZONE, "In", "z2")), both)
    assert codes(result) == ["RequirementsConflict"]


def test_fifty_thousand_equal_pods_are_planned_as_one_class():
    result = plan(pods(50_000, "100m"))
    assert sum(len(new.pods) for new in result.new_nodes) == 50_000
