"""NodeOverlays over what pools may buy: drawn ones against a small judge, and the rules one by one.

The judge knows no requirements: it asks of the labels of each offering whether they satisfy each line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from nodeless.launch.overlays import evaluate, in_order, laid_over
from nodeless.model.bill import PriceSource
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    INSTANCE_CPU,
    INSTANCE_TYPE,
    NODE_POOL,
    RESERVED,
    ZONE,
)
from nodeless.model.overlays import NodeOverlay, PriceChange
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, PROVISIONER, Pool, Reference
from nodeless.model.quantity import parse_units
from nodeless.model.requirements import Requirement, Requirements
from tests.scheduling.factories import instance_type, needs

Line = tuple[str, str, tuple[str, ...]]
GPU, SLICE = "nvidia.com/gpu", "example.com/gpu-slice"


def a_pool(name: str = "default", kind: str = NODE_POOL_KIND, **labels: str) -> Pool:
    return Pool(
        Reference(kind, name),
        Reference(EC2_NODE_CLASS, "default"),
        labels=labels,
        requirements=Requirements.from_labels(labels),
    )


def an_overlay(name: str = "cheap", *lines: Requirement, **fields: Any) -> NodeOverlay:
    return NodeOverlay(name, requirements=Requirements(lines), **fields)


def a_type(name: str, cpu: int, **fields: Any) -> InstanceType:
    return instance_type(name, cpu, labels=[needs(INSTANCE_CPU, "In", str(cpu))], **fields)


RESERVATION = Offering("z1", RESERVED, 1e-7, True, "cr-1", 3, "default")
SMALL, LARGE = a_type("small", 2), a_type("large", 8, **{GPU: "1"})
BOOKED = a_type("booked", 4)
BOOKED = replace(
    BOOKED,
    requirements=BOOKED.requirements.intersect(Requirements()),
    offerings=(*BOOKED.offerings, RESERVATION),
)
BOOKED = replace(
    BOOKED,
    requirements=Requirements(
        [
            *(each for each in BOOKED.requirements.values() if each.key != CAPACITY_TYPE),
            needs(CAPACITY_TYPE, "In", "spot", "on-demand", RESERVED),
        ]
    ),
)
TYPES = (SMALL, LARGE, BOOKED)
POOLS = (a_pool(), a_pool("batch", team="ai"), a_pool("old", PROVISIONER))
SOLD = [(pool, TYPES) for pool in POOLS]


# The judge.


def labels_of(pool: Pool, kind: InstanceType, offering: Offering) -> dict[str, str]:
    labels = {INSTANCE_TYPE: kind.name, INSTANCE_CPU: str(kind.capacity["cpu"] // 1000)}
    labels |= {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"} | dict(pool.labels)
    labels |= {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    if pool.reference.kind == NODE_POOL_KIND:
        labels[NODE_POOL] = pool.name
    if offering.reservation:
        labels |= {CAPACITY_RESERVATION_ID: "cr-1", CAPACITY_RESERVATION_TYPE: "default"}
    return labels


def holds(line: Line, labels: dict[str, str]) -> bool:
    key, operator, values = line
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not value.isdigit():
        return False
    number, bound = int(value), int(values[0])
    return {"Gt": number > bound, "Gte": number >= bound, "Lt": number < bound, "Lte": number <= bound}[
        operator
    ]


class Judge:
    """What must come of overlays, found the long way."""

    def __init__(self, drawn: list[tuple[NodeOverlay, list[Line]]]) -> None:
        self.accepted: list[tuple[NodeOverlay, list[Line]]] = []
        self.refused: set[str] = set()
        by_name = sorted(drawn, key=lambda each: each[0].name, reverse=True)
        for overlay, lines in sorted(by_name, key=lambda each: -each[0].weight):
            clash = any(self._clash(overlay, lines, *other) for other in self.accepted)
            if clash:
                self.refused.add(overlay.name)
            else:
                self.accepted.append((overlay, lines))

    @staticmethod
    def means(lines: list[Line], pool: Pool, kind: InstanceType) -> list[Offering]:
        return [
            each for each in kind.offerings if all(holds(line, labels_of(pool, kind, each)) for line in lines)
        ]

    def _clash(self, overlay: NodeOverlay, lines: list[Line], other: NodeOverlay, others: list[Line]) -> bool:
        if overlay.weight != other.weight:
            return False
        for pool in POOLS:
            for kind in TYPES:
                mine, its = self.means(lines, pool, kind), self.means(others, pool, kind)
                if overlay.prices and other.prices and set(mine) & set(its):
                    return True
                if mine and its and set(overlay.capacity) & set(other.capacity):
                    return True
        return False

    def price(self, pool: Pool, kind: InstanceType, offering: Offering) -> float:
        for overlay, lines in self.accepted:
            if offering in self.means(lines, pool, kind):
                if overlay.price is not None:
                    return overlay.price
                if overlay.price_change is not None:
                    change = overlay.price_change
                    added = offering.price * change.amount / 100 if change.percent else change.amount
                    return max(0.0, offering.price + added)
        return offering.price

    def capacity(self, pool: Pool, kind: InstanceType) -> dict[str, int]:
        found: dict[str, int] = {}
        for overlay, lines in self.accepted:
            if self.means(lines, pool, kind):
                found = {**overlay.capacity, **found}
        return {**kind.capacity, **found}


LINES = some.one_of(
    some.tuples(
        some.just(INSTANCE_TYPE),
        some.sampled_from(["In", "NotIn"]),
        some.lists(some.sampled_from(["small", "large", "booked", "other"]), min_size=1).map(tuple),
    ),
    some.tuples(
        some.just(INSTANCE_CPU),
        some.sampled_from(["Gt", "Lt", "Gte", "Lte"]),
        some.sampled_from("248").map(tuple),
    ),
    some.tuples(
        some.sampled_from([ZONE, CAPACITY_TYPE]),
        some.sampled_from(["In", "NotIn"]),
        some.lists(some.sampled_from(["z1", "z2", "spot", "on-demand", "reserved"]), min_size=1).map(tuple),
    ),
    some.tuples(
        some.sampled_from([NODE_POOL, "team"]),
        some.sampled_from(["In", "NotIn"]),
        some.lists(some.sampled_from(["default", "batch", "old", "ai"]), min_size=1).map(tuple),
    ),
    some.tuples(
        some.sampled_from(["team", CAPACITY_RESERVATION_ID, NODE_POOL, "nowhere"]),
        some.sampled_from(["Exists", "DoesNotExist"]),
        some.just(()),
    ),
)
SAID = some.fixed_dictionaries(
    {"weight": some.sampled_from([0, 0, 5, 9])},
    optional={
        "capacity": some.dictionaries(some.sampled_from([GPU, SLICE]), some.integers(1, 8), min_size=1),
        "price": some.sampled_from([0.0, 0.01, 2.0]),
    },
) | some.fixed_dictionaries(
    {
        "weight": some.sampled_from([0, 5, 9]),
        "price_change": some.builds(
            PriceChange, some.sampled_from([-100.0, -20.0, 0.5, 30.0]), some.booleans()
        ),
    }
)


@some.composite
def drawn_overlays(draw: some.DrawFn) -> list[tuple[NodeOverlay, list[Line]]]:
    names = draw(some.lists(some.text("abc", min_size=1, max_size=2), unique=True, max_size=5))
    made = []
    for name in names:
        lines = draw(some.lists(LINES, max_size=2, unique_by=lambda line: line[0]))
        requirements = [Requirement.of(key, operator, values) for key, operator, values in lines]
        made.append((an_overlay(name, *requirements, **draw(SAID)), lines))
    return made


@settings(max_examples=300, deadline=None)
@given(drawn_overlays())
def test_what_counts_and_what_comes_of_it_is_what_the_rules_say(
    drawn: list[tuple[NodeOverlay, list[Line]]],
) -> None:
    judge = Judge(drawn)

    found = evaluate([overlay for overlay, _ in drawn], SOLD)

    assert [each.name for each in found.accepted] == [each.name for each, _ in judge.accepted]
    assert set(found.contradictions) == judge.refused
    for pool in POOLS:
        made = laid_over(found.accepted, pool, TYPES)
        for before, after in zip(TYPES, made, strict=True):
            expected = [judge.price(pool, before, each) for each in before.offerings]
            assert [each.price for each in after.offerings] == pytest.approx(expected)
            assert after.capacity == judge.capacity(pool, before)
            assert after.requirements is before.requirements
            touched = any(judge.means(lines, pool, before) for _, lines in judge.accepted)
            assert touched or after is before


@settings(max_examples=50, deadline=None)
@given(drawn_overlays(), some.randoms())
def test_the_order_in_which_overlays_are_given_plays_no_part(
    drawn: list[tuple[NodeOverlay, list[Line]]], chance: Any
) -> None:
    overlays = [overlay for overlay, _ in drawn]
    mixed = chance.sample(overlays, len(overlays))

    assert evaluate(mixed, SOLD) == evaluate(overlays, SOLD)


def by_name(types: tuple[InstanceType, ...]) -> dict[str, InstanceType]:
    return {each.name: each for each in types}


def test_without_a_match_the_types_are_the_same_objects() -> None:
    overlay = an_overlay("other", needs(INSTANCE_TYPE, "In", "none"), price=0.1)

    assert laid_over([overlay], POOLS[0], TYPES) is TYPES
    assert evaluate([overlay], SOLD).unused == ("other",)


def test_an_overlay_that_contradicts_has_no_effect_anywhere_and_names_what_it_meets() -> None:
    first = an_overlay("b", needs(INSTANCE_TYPE, "In", "small", "large"), price=0.2)
    second = an_overlay("a", needs(NODE_POOL, "In", "batch"), price=0.1, capacity={SLICE: 4})

    found = evaluate([second, first], SOLD)

    assert [each.name for each in found.accepted] == ["b"]
    assert str(found.contradictions["a"]) == (
        "conflict with NodeOverlay b, which has the same weight and also changes the price of small, "
        "large in NodePool/batch; hint: give them different weights, or requirements that do not overlap"
    )
    batch = by_name(laid_over(found.accepted, POOLS[1], TYPES))
    assert SLICE not in batch["booked"].capacity
    assert batch["small"].price_overlays == ("b",)


def test_the_third_of_one_weight_contradicts_the_first_though_the_second_says_something_else() -> None:
    c, b, a = (an_overlay(name, capacity={what: 1}) for name, what in (("c", GPU), ("b", SLICE), ("a", GPU)))

    found = evaluate([a, b, c], SOLD)

    assert [each.name for each in found.accepted] == ["c", "b"]
    assert (found.contradictions["a"].other, found.contradictions["a"].about) == ("c", GPU)


def test_capacity_takes_the_place_of_a_device_that_the_type_has() -> None:
    made = by_name(laid_over([an_overlay(capacity={GPU: 4})], POOLS[0], TYPES))

    assert made["large"].allocatable[GPU] == 4
    assert made["large"].capacity["cpu"] == LARGE.capacity["cpu"]
    assert made["large"].capacity_overlays == ("cheap",)


@pytest.mark.parametrize(("pages", "left"), [("1Gi", 2**30), ("1Ti", None)])
def test_huge_pages_take_their_memory_from_what_pods_may_use(pages: str, left: int | None) -> None:
    said = {"hugepages-2Mi": parse_units(pages)}
    made = by_name(laid_over([an_overlay(capacity=said)], POOLS[0], TYPES))

    assert made["large"].capacity["memory"] == LARGE.capacity["memory"]
    assert made["large"].allocatable["hugepages-2Mi"] == said["hugepages-2Mi"]
    assert made["large"].allocatable["memory"] == (LARGE.allocatable["memory"] - left if left else 0)


def test_a_price_makes_an_unpriced_offering_one_that_is_for_sale_and_a_change_does_not() -> None:
    unpriced = replace(SMALL, offerings=(Offering("z1", "on-demand", 0.0, False),))
    sold_out = replace(LARGE, offerings=(Offering("z1", "on-demand", 0.4, False),))

    priced = laid_over([an_overlay(price=0.3)], POOLS[0], (unpriced, sold_out))
    changed = laid_over([an_overlay(price_change=PriceChange(0.3))], POOLS[0], (unpriced,))

    assert [each.offerings[0].for_sale for each in (*priced, *changed)] == [True, False, False]
    assert not changed[0].offerings[0].price_known


def test_a_price_of_an_overlay_says_so() -> None:
    listed = PriceSource("AWS Price List API", "2026-11-26T10:00:00Z")
    known = replace(SMALL, offerings=(Offering("z1", "on-demand", 0.1, source=listed),))

    (own,) = laid_over([an_overlay("mine", price=0.3)], POOLS[0], (known,))
    (changed,) = laid_over([an_overlay("mine", price_change=PriceChange(0.3))], POOLS[0], (known,))

    assert str(own.offerings[0].source) == "NodeOverlay mine"
    told = "NodeOverlay mine over AWS Price List API (2026-11-26T10:00:00Z)"
    assert str(changed.offerings[0].source) == told


def test_one_that_is_invalid_is_asked_nothing() -> None:
    broken = an_overlay("z", price=0.1, weight=9, invalid="spec.price: no number")

    assert in_order([broken, an_overlay()]) == [an_overlay()]
    assert evaluate([broken], SOLD).accepted == ()


def test_a_provisioner_is_no_node_pool_of_that_name() -> None:
    overlay = an_overlay("mine", needs(NODE_POOL, "In", "old"), price=0.1)

    assert evaluate([overlay], SOLD).unused == ("mine",)
