"""NodeOverlays: what is refused, with its place and what to do, and what is read."""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.errors import InvalidObject
from nodeless.api.reading_overlays import read_broken_overlay, read_overlay
from nodeless.api.validation import validate
from nodeless.model.overlays import PriceChange

FAMILY = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]}


def an_overlay(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {"requirements": [FAMILY], **spec},
    }


#: Specs that both the API server and the command refuse: what is said, and of which member.
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"price": "0.1", "priceAdjustment": "+1"}, "spec", "price and priceAdjustment exclude each other"),
    ({"price": "-0.1"}, "spec.price", ""),
    ({"price": "cheap"}, "spec.price", ""),
    ({"priceAdjustment": "10%"}, "spec.priceAdjustment", ""),
    ({"priceAdjustment": "-101%"}, "spec.priceAdjustment", ""),
    ({"capacity": {"cpu": "8"}}, "spec.capacity.cpu", "is what the instance type itself has"),
    ({"capacity": {"example.com/slice": "many"}}, "spec.capacity", ""),
    ({"weight": 0}, "spec.weight", ""),
    ({"weight": 10001}, "spec.weight", ""),
    ({"requirements": None}, "spec.requirements", ""),
    ({"requirements": [{**FAMILY, "operator": "Has"}]}, "spec.requirements[0].operator", ""),
    ({"requirements": [{**FAMILY, "values": []}]}, "spec.requirements[0]", "at least one value"),
    (
        {"requirements": [{**FAMILY, "operator": "NotIn", "values": []}]},
        "spec.requirements[0]",
        "at least one",
    ),
    (
        {"requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["1", "2"]}]},
        "spec.requirements[0]",
        "exactly one whole number",
    ),
    (
        {"requirements": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
        "spec.requirements[0].key",
        "",
    ),
    ({"requirements": [{"key": "karpenter.sh/other", "operator": "Exists"}]}, "spec.requirements[0].key", ""),
    (
        {"requirements": [{"key": "karpenter.k8s.aws/x", "operator": "Exists"}]},
        "spec.requirements[0].key",
        "",
    ),
]
#: What only we find: with the API server alone, conditions say so.
ONLY_OURS: list[tuple[dict[str, Any], str, str]] = [
    ({"capacity": {"example.com/slice": "-1"}}, "spec.capacity", "is negative"),
    ({"price": "9" * 400}, "spec.price", "is larger than any number"),
    (
        {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["cheap"]}]},
        "spec.requirements[0].values",
        "holds no known capacity type",
    ),
    (
        {"requirements": [{**FAMILY, "values": ["m 5"]}]},
        "spec.requirements[0].values[0]",
        "is not a label value",
    ),
    ({"colour": "red"}, "spec.colour", ""),
]
ACCEPTED: list[dict[str, Any]] = [
    {"requirements": []},
    {"price": "0"},
    {"price": "12.5", "weight": 10000},
    {"priceAdjustment": "+10%"},
    {"priceAdjustment": "+250.5%"},
    {"priceAdjustment": "-100%"},
    {"priceAdjustment": "-15.5%"},
    {"priceAdjustment": "-.5"},
    {"priceAdjustment": "+1.2"},
    {"capacity": {"example.com/slice": "8", "hugepages-2Mi": "1Gi"}},
    {"requirements": [{"key": "karpenter.sh/nodepool", "operator": "NotIn", "values": ["default"]}]},
    {"requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lte", "values": ["8"]}]},
    {"requirements": [{"key": "example.com/team", "operator": "Exists"}]},
]


@pytest.mark.parametrize(("spec", "path", "said"), [*REFUSED, *ONLY_OURS], ids=lambda case: str(case)[:50])
def test_a_fault_is_told_with_its_place(spec: dict[str, Any], path: str, said: str) -> None:
    faults = validate(an_overlay(**spec))

    assert any(fault.path.startswith(path) and said in str(fault) for fault in faults), faults


@pytest.mark.parametrize("spec", ACCEPTED, ids=str)
def test_what_karpenter_takes_is_taken(spec: dict[str, Any]) -> None:
    assert validate(an_overlay(**spec)) == []


def test_all_of_it_is_read() -> None:
    manifest = an_overlay(capacity={"example.com/slice": "8", "hugepages-2Mi": "1Gi"}, weight=7)
    manifest["metadata"] |= {"uid": "u", "generation": 3, "resourceVersion": "9"}

    overlay = read_overlay(manifest)

    assert (overlay.name, overlay.uid, overlay.generation, overlay.weight) == ("discount", "u", 3, 7)
    assert overlay.capacity == {"example.com/slice": 8, "hugepages-2Mi": 2**30}
    assert str(overlay.requirements["karpenter.k8s.aws/instance-family"]).endswith("In [m5]")
    assert not overlay.prices


@pytest.mark.parametrize(
    ("text", "change", "of_a_dollar"),
    [
        ("+10%", PriceChange(10.0, percent=True), 1.1),
        ("-15%", PriceChange(-15.0, percent=True), 0.85),
        ("-100%", PriceChange(-100.0, percent=True), 0.0),
        ("+0.5", PriceChange(0.5), 1.5),
        ("-.25", PriceChange(-0.25), 0.75),
        ("-3", PriceChange(-3.0), 0.0),
    ],
)
def test_an_adjustment_is_dollars_or_percent_and_no_price_is_below_zero(
    text: str, change: PriceChange, of_a_dollar: float
) -> None:
    overlay = read_overlay(an_overlay(priceAdjustment=text))

    assert overlay.price_change == change
    assert overlay.adjust_price(1.0) == pytest.approx(of_a_dollar)


def test_a_price_counts_whatever_aws_asks() -> None:
    assert read_overlay(an_overlay(price="0.25")).adjust_price(1.0) == 0.25


def test_one_that_breaks_rules_is_known_by_its_outline_alone() -> None:
    with pytest.raises(InvalidObject) as caught:
        read_overlay(an_overlay(price="cheap"))

    overlay = read_broken_overlay(an_overlay(price="cheap"), str(caught.value))
    assert (overlay.name, overlay.prices) == ("discount", False)
    assert "spec.price" in overlay.invalid
