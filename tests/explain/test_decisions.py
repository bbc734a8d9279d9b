"""Saved situations: what is read back is what was written, and so is the plan that is made of it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import DisruptionPolicy
from nodeless.explain.decisions import Situation, read, same_plan, write
from nodeless.explain.differences import differences
from nodeless.explain.price_terms import PriceTerms
from nodeless.model.bill import Bill, BillPart, PriceSource
from nodeless.model.commitments import Commitment
from nodeless.model.disruption import PodDisruptionBudget
from nodeless.model.instance_types import Offering
from nodeless.model.pods import Pod
from nodeless.model.subnets import SubnetRoom
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import disruption_policy_of
from nodeless.scheduling import Policy, PriceAdjustment
from nodeless.state.saving import SavedFormatError, build_value, plain
from tests.factories import a_claim, a_launched_claim, a_node, a_pool, conditions
from tests.scheduling.factories import (
    FAMILY,
    claim,
    daemon,
    instance_type,
    node,
    pods,
    pool,
    running,
    selecting,
    snapshot,
)
from tests.scheduling.worlds import DAEMONS, TYPES, existing_things, pools_of, workloads


def a_situation(*things: object, types: object = FAMILY, **policy: object) -> Situation:
    seen = snapshot(*things)
    return Situation(seen, dict.fromkeys(seen.pools, types), Policy(**policy), 1_700_000_000.123456)


@pytest.mark.parametrize("always", [False, True])
def test_a_budget_comes_back_with_what_it_says_of_pods_that_are_not_ready(always):
    budget = PodDisruptionBudget("default", "web", selecting(app="web"), 0, always)
    situation = a_situation(budget)
    assert dict(read(write(situation, "test")).situation.snapshot.disruption_budgets) == {budget.key: budget}


@given(workloads(), pools_of(), existing_things(), DAEMONS)
@settings(max_examples=25, deadline=None)
def test_any_situation_comes_back_as_it_was(
    work: list[Pod], pools: list[object], existing: list[object], daemons: list[object]
) -> None:
    situation = a_situation(work, pools, existing, daemons, types=TYPES)
    plan = situation.plan()
    content = write(situation, "1.2.3", plan)
    saved = read(content)

    assert saved.situation == situation
    assert saved.plan == plan
    assert same_plan(saved.situation.plan(), plan)
    assert write(saved.situation, "1.2.3", saved.plan) == content


def test_what_prices_go_by_is_kept_and_files_without_it_have_the_defaults() -> None:
    adjustments = (PriceAdjustment(pools=("batch",), percent=-20.0),)
    prices = PriceTerms(frozenset(("volumes",)), "standard", 40.0, adjustments, 0, '{"licenses": {}}')
    situation = replace(a_situation(pods(1), pool()), prices=prices)
    document = json.loads(write(situation, ""))

    assert read(json.dumps(document).encode()).situation == situation
    del document["prices"]
    assert read(json.dumps(document).encode()).situation.prices == PriceTerms()


def test_how_disruption_is_judged_is_kept_and_files_without_it_have_the_defaults() -> None:
    settings = GlobalSettings(
        "demo",
        drift_enabled=True,
        spot_to_spot=True,
        terminate_first_drift=True,
        node_repair=True,
        repair_toleration=60,
        eviction_price=0.5,
    )
    situation = replace(a_situation(pods(1), pool()), disruption=disruption_policy_of(settings))
    document = json.loads(write(situation, ""))

    assert read(json.dumps(document).encode()).situation == situation
    del document["disruption"]
    assert read(json.dumps(document).encode()).situation.disruption == DisruptionPolicy()


def test_equal_shapes_types_and_catalogs_are_written_once_and_are_one_object_again() -> None:
    situation = a_situation(pods(50), pool("a"), pool("b"))
    content = write(situation, "")
    saved = read(content).situation

    assert content.count(b'"2xlarge"') == 2  # its name, and the label that says the same
    assert saved.catalog["Provisioner/a"] is saved.catalog["Provisioner/b"]
    assert len({id(pod.shape) for pod in saved.snapshot.pods.values()}) == 1


def test_everything_that_a_claim_a_node_and_a_pool_know_is_kept() -> None:
    given_claim = a_launched_claim(annotations={"a": "b"}, expire_after=3600, node_name="n")
    given_node = a_node(unschedulable=True, deletion_timestamp=1.5)
    given_pool = a_pool(
        weight=7, limits={"cpu": 1000}, status_resources={"cpu": 5}, conditions=conditions("Ready")
    )
    for value in (given_claim, given_node, given_pool, a_claim("other")):
        assert build_value(type(value), plain(value)) == value


def test_addresses_and_reservations_come_back_as_they_were() -> None:
    reserved = instance_type("large", offerings=(Offering("z1", "reserved", 1e-8, True, "cr-1", 3),))
    room = {"Provisioner/default": (SubnetRoom("subnet-1", "z1", 12),)}
    situation = a_situation(pods(9), pool(), types=(reserved,), subnets=room)
    saved = read(write(situation, "")).situation

    assert saved == situation
    assert same_plan(saved.plan(), situation.plan())


def test_commitments_come_back_as_they_were() -> None:
    commitments = (
        Commitment("plan", dollars=0.3, discount=28.0, region="z", end=1.8e9),
        Commitment("zonal", instance_types=("large",), instances=2.0, zones=("z1",)),
    )
    situation = a_situation(pods(9), pool(), commitments=commitments)
    saved = read(write(situation, "")).situation

    assert saved == situation
    assert same_plan(saved.plan(), situation.plan())


def test_what_is_at_its_default_takes_no_room() -> None:
    assert plain(pods(1)[0]).keys() == {"uid", "namespace", "name", "shape", "labels", "unschedulable"}


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "not JSON"),
        (b"[1, 2]", "not a saved situation"),
        (b"apiVersion: v1", "not JSON"),
        (b'{"format": "nodeless/situation", "version": 7}', "version 7 is not known"),
    ],
)
def test_what_is_no_saved_situation_is_told(content: bytes, reported: str) -> None:
    with pytest.raises(SavedFormatError, match=reported):
        read(content)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_file_with_damage_is_refused_or_read_but_never_breaks(data: st.DataObject) -> None:
    content = bytearray(write(a_situation(pods(2), pool(), node("n1"), running(pods(1)[0], "n1")), ""))
    start = data.draw(st.integers(0, len(content) - 1))
    content[start : start + data.draw(st.integers(1, 9))] = data.draw(st.binary(max_size=4))
    try:
        read(bytes(content))
    except SavedFormatError as error:
        assert "hint: " in str(error)


def test_a_plan_with_another_node_differs_by_two_lines() -> None:
    situation = a_situation(pods(3), pool())
    before, after = situation.plan(), replace(situation, snapshot=snapshot(pods(9), pool())).plan()

    lines = differences(before, after)

    assert differences(before, before) == ()
    assert [line[0] for line in lines[:2]] == ["-", "+"]
    assert lines[0].startswith("- node of Provisioner/default: ")
    assert "cost: " in lines[-1]


def test_placements_and_refusals_that_changed_are_told() -> None:
    with_room = a_situation(pods(1), pods(1, "64", name="huge"), pool(), node("n1")).plan()
    without = a_situation(pods(1), pods(1, "1", name="huge"), pool(), claim("c1"), daemon()).plan()

    text = "\n".join(differences(with_room, without))

    assert "- default/web-0 on n1" in text
    assert "- default/huge-0 refused: Provisioner/default: cpu: 64 requested" in text


def catalog_parts(situation: Situation) -> list[tuple[BillPart, ...]]:
    return [
        offering.parts
        for types in situation.catalog.values()
        for kind in types
        for offering in kind.offerings
    ]


def test_who_named_a_price_and_when_is_saved_and_makes_no_other_plan() -> None:
    def priced_at(time: str, dollars: float) -> Situation:
        source = PriceSource("AWS Price List API", time)
        bill = Bill(1.0, (BillPart("volumes", dollars, "20 GiB gp3", (source,)),))
        offer = Offering("z1", "on-demand", 1.0 + dollars, bill=bill, source=source)
        return a_situation(pool(), *pods(1), types=(instance_type("a", offerings=(offer,)),))

    first, later, dearer = priced_at("10:00", 0.1), priced_at("11:00", 0.1), priced_at("10:00", 0.2)
    saved = read(write(first, "test")).situation
    assert catalog_parts(saved) == catalog_parts(first)
    back = saved.plan()
    assert back.new_nodes
    assert same_plan(back, later.plan())
    assert not same_plan(back, dearer.plan())
