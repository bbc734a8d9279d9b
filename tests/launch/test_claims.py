"""Claims: names that never change, labels that are settled before the instance is known."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.writing import write_claim
from nodeless.launch.claims import claim_name, claims_for, labels_of
from nodeless.launch.variants import needs_efa
from nodeless.model.bill import Bill, BillPart
from nodeless.model.devices import EFA_INTERFACES
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_OVERLAY_APPLIED,
    INSTANCE_TYPE,
    LAUNCHED_FOR_GANG,
    LAUNCHED_FOR_REQUEST,
    PRICE_OVERLAY_APPLIED,
    PROVISIONER_NAME,
    RESERVATION_LABELS,
    ZONE,
)
from nodeless.model.plan import Alternative, Plan, PlannedNode
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import Taint
from tests.factories import NOW, PROVISIONER, TEMPLATE, a_pool
from tests.scheduling.factories import instance_type

DNS_LABEL = re.compile(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")


def a_planned_node(
    types: int = 1, requirements: Requirements | None = None, pods: tuple[str, ...] = ()
) -> PlannedNode:
    return PlannedNode(
        pool=PROVISIONER,
        node_class=TEMPLATE,
        requirements=requirements or Requirements(),
        requests={"cpu": 1000, "pods": 1},
        pods=pods,
        alternatives=tuple(
            Alternative(f"m5.{number:03}", Offering("us-east-1a", "on-demand", 0.1 + number))
            for number in range(types)
        ),
    )


def claims_of(*nodes: PlannedNode, pool: Pool | None = None, now: float = NOW, **options: object) -> list:
    pool = pool or a_pool()
    return [each.claim for each in claims_for(Plan(new_nodes=nodes), {pool.key: pool}, now, **options)]


def test_the_same_pass_gives_the_same_names_and_another_pass_gives_others() -> None:
    nodes = (a_planned_node(pods=("default/a",)), a_planned_node(pods=("default/b",)))
    first = [claim.name for claim in claims_of(*nodes)]
    assert first == [claim.name for claim in claims_of(*nodes)]
    assert len(set(first)) == 2
    assert not set(first) & {claim.name for claim in claims_of(*nodes, now=NOW + 1)}


def test_what_overlays_say_of_any_type_of_a_claim_is_noted_on_it() -> None:
    kinds = [instance_type(f"m5.{number:03}") for number in range(70)]
    kinds[1] = replace(kinds[1], price_overlays=("cheap",))
    # Beyond the types that a claim names.
    kinds[65] = replace(kinds[65], capacity_overlays=("sliced",))
    catalog = {str(PROVISIONER): tuple(kinds)}

    (claim,) = claims_of(a_planned_node(types=70), catalog=catalog)
    (plain,) = claims_of(a_planned_node(types=1), catalog=catalog)

    marks = {PRICE_OVERLAY_APPLIED, CAPACITY_OVERLAY_APPLIED}
    assert {key: claim.annotations[key] for key in marks & set(claim.annotations)} == {
        PRICE_OVERLAY_APPLIED: "true"
    }
    assert not marks & set(plain.annotations)


def test_a_name_that_is_taken_is_not_given_again() -> None:
    node = a_planned_node()
    (name,) = [claim.name for claim in claims_of(node)]
    (other,) = [claim.name for claim in claims_of(node, taken={name})]
    assert other != name


@given(st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?\Z"), st.text(max_size=20))
def test_every_pool_name_gives_a_dns_label(pool: str, identity: str) -> None:
    name = claim_name(pool, identity)
    assert len(name) <= 63
    assert DNS_LABEL.match(name), name


def test_a_claim_keeps_the_sixty_cheapest_types() -> None:
    asked = Requirements([Requirement.of(INSTANCE_TYPE, "Exists", min_values=2)])
    (claim,) = claims_of(a_planned_node(types=80, requirements=asked))
    requirement = claim.requirements[INSTANCE_TYPE]
    assert requirement.values == {f"m5.{number:03}" for number in range(60)}
    assert requirement.min_values == 2


def a_bought(name: str, instance: float, more: float) -> Alternative:
    bill = Bill(instance, (BillPart("CPU credits", more),))
    return Alternative(name, Offering("us-east-1a", "on-demand", instance + more, bill=bill))


def test_a_claim_offers_ec2_nothing_that_it_would_take_first_and_that_costs_more() -> None:
    bought = (
        a_bought("m7a.medium", 0.058, 0.0),
        a_bought("m6i.large", 0.06, 0.03),
        a_bought("t3a.medium", 0.0376, 0.08),
        a_bought("m5.large", 0.096, 0.03),
    )
    (claim,) = claims_of(replace(a_planned_node(), alternatives=bought))
    assert claim.requirements[INSTANCE_TYPE].values == {"m7a.medium", "m6i.large", "m5.large"}


def test_a_claim_that_needs_different_values_keeps_all_types() -> None:
    bought = (a_bought("m7a.medium", 0.058, 0.0), a_bought("t3a.medium", 0.0376, 0.08))
    families = Requirement(INSTANCE_TYPE, False, frozenset(("m7a.medium", "t3a.medium")), min_values=2)
    node = replace(a_planned_node(requirements=Requirements([families])), alternatives=bought)
    (claim,) = claims_of(node)
    assert claim.requirements[INSTANCE_TYPE].values == {"m7a.medium", "t3a.medium"}


@pytest.mark.parametrize("key", RESERVATION_LABELS)
def test_a_claim_says_nothing_of_reservations_unless_it_is_for_one_or_its_pool_does(key: str) -> None:
    absent = Requirement.of(key, "DoesNotExist")
    (claim,) = claims_of(a_planned_node(requirements=Requirements([absent])))
    assert key not in claim.requirements
    own = a_pool(requirements=Requirements([absent]))
    (claim,) = claims_of(a_planned_node(requirements=Requirements([absent])), pool=own)
    assert claim.requirements[key] == absent
    reserved = Requirement.of(key, "In", ["cr-1"])
    (claim,) = claims_of(a_planned_node(requirements=Requirements([reserved])))
    assert claim.requirements[key] == reserved


def test_a_claim_carries_what_its_pool_gives_to_nodes() -> None:
    taints, startup = (Taint("gpu", "NoSchedule"),), (Taint("cni", "NoExecute"),)
    pool = a_pool(labels={"team": "a"}, annotations={"note": "x"}, taints=taints, startup_taints=startup)
    (claim,) = claims_of(a_planned_node(), pool=pool)
    assert claim.labels == {PROVISIONER_NAME: "default", "team": "a"}
    assert (claim.annotations["note"], claim.taints, claim.startup_taints) == ("x", taints, startup)
    assert claim.finalizers == ("karpenter.sh/termination",)
    assert claim.requests == {"cpu": 1000, "pods": 1}


def test_a_claim_has_the_life_spans_of_its_pool() -> None:
    spans = {"ttl_seconds_until_expired": 3600, "termination_grace_period": 90}
    (claim,) = claims_of(a_planned_node(), pool=a_pool(**spans))
    assert (claim.expire_after, claim.termination_grace_period) == (3600, 90)
    assert write_claim(claim)["spec"]["terminationGracePeriod"] == "90s"


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["b", "a"], "a"),
        ("Gt", ["4"], "5"),
        ("Lt", ["3"], "0"),
        ("Exists", [], "0"),
        ("NotIn", ["0", "1"], "2"),
        ("DoesNotExist", [], None),
    ],
)
def test_an_open_label_gets_one_settled_value(operator: str, values: list[str], expected: str | None) -> None:
    requirement = Requirement.of("example.com/tier", operator, values)
    assert requirement.some_value() == expected
    pool = a_pool(requirements=Requirements([requirement]))
    assert labels_of(pool.requirements, pool).get("example.com/tier") == expected


def test_well_known_labels_and_absences_asked_by_pods_are_left_alone() -> None:
    requirements = Requirements(
        [Requirement.of(ZONE, "In", ["us-east-1a"]), Requirement.of("other", "NotIn", ["x"])]
    )
    assert labels_of(requirements, a_pool()) == {PROVISIONER_NAME: "default"}


def test_why_a_node_is_planned_can_stand_on_its_claim() -> None:
    pool = a_pool()
    (create,) = claims_for(
        Plan((a_planned_node(),)), {pool.key: pool}, NOW, reason=lambda node: node.instance_type
    )
    assert create.claim.annotations["nodeless.dev/planned-because"] == a_planned_node().instance_type


def test_a_claim_names_the_gangs_for_whose_pods_it_is_launched() -> None:
    keys = [f"default/{name}" for name in "abcd"]
    nodes = (a_planned_node(pods=tuple(keys[:3])), a_planned_node(pods=(keys[3],)))
    gangs = {keys[0]: "default/train", keys[1]: "default/more", keys[2]: "default/train"}
    first, second = claims_of(*nodes, gangs=gangs)
    assert first.annotations[LAUNCHED_FOR_GANG] == "default/more,default/train"
    assert LAUNCHED_FOR_GANG not in second.annotations


def test_a_claim_names_the_provisioning_requests_for_which_it_is_launched() -> None:
    nodes = (a_planned_node(pods=("default/job^0", "default/job^1")), a_planned_node(pods=("default/web",)))
    requests = {"default/job^0": "default/job", "default/job^1": "default/job"}
    first, second = claims_of(*nodes, requests=requests)
    assert first.annotations[LAUNCHED_FOR_REQUEST] == "default/job"
    assert LAUNCHED_FOR_REQUEST not in second.annotations


@pytest.mark.parametrize("claimed", [True, False])
def test_a_node_for_pods_that_claim_efa_interfaces_is_launched_with_them(claimed: bool) -> None:
    """The claim says so by an annotation: no kubelet reports such devices as a resource."""
    requests = {"cpu": 1000, **({EFA_INTERFACES: 4} if claimed else {})}
    (claim,) = claims_of(replace(a_planned_node(), requests=requests))
    assert claim.requests == {"cpu": 1000}
    assert needs_efa(claim) is claimed
