"""Which types a claim may become, and as what."""

from dataclasses import replace

import pytest

from nodeless.launch.candidates import Candidates, candidates_for
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_SIZE, INSTANCE_TYPE, ZONE
from nodeless.model.requirements import Requirement, Requirements
from tests.launch.types import a_type

EITHER = Requirements([Requirement.of(CAPACITY_TYPE, "In", ["spot", "on-demand"])])
ON_DEMAND = Requirements([Requirement.of(CAPACITY_TYPE, "In", ["on-demand"])])


def chosen(
    *types: InstanceType, requirements: Requirements = EITHER, requests: dict[str, int] | None = None
) -> Candidates:
    found = candidates_for(requirements, requests or {"cpu": 1000}, types)
    assert found is not None
    return found


def names(candidates: Candidates) -> list[str]:
    return [type_.instance_type.name for type_ in candidates.types]


def test_cheapest_first_and_ties_by_name() -> None:
    types = [a_type("c.large", on_demand=2), a_type("b.large", on_demand=1), a_type("a.large", on_demand=2)]
    assert names(chosen(*types)) == ["b.large", "a.large", "c.large"]


def test_spot_when_allowed_and_to_be_had() -> None:
    types = [a_type("m5.large", on_demand=1, spot=0.3)]
    assert chosen(*types).capacity_type == "spot"
    assert chosen(*types, requirements=ON_DEMAND).capacity_type == "on-demand"
    sold_out = replace(
        types[0],
        offerings=tuple(
            replace(offering, available=offering.capacity_type != "spot") for offering in types[0].offerings
        ),
    )
    assert chosen(sold_out).capacity_type == "on-demand"


def test_spot_dearer_than_the_cheapest_on_demand_is_dropped() -> None:
    types = [a_type("m5.large", on_demand=1, spot=0.4), a_type("m5.4xlarge", on_demand=8, spot=3)]
    assert names(chosen(*types)) == ["m5.large"]


def test_accelerators_and_bare_metal_only_for_those_who_need_them() -> None:
    plain, gpu = a_type("m5.large", on_demand=2), a_type("g5.large", on_demand=1, **{"nvidia.com_gpu": 1})
    metal = a_type("m5.metal", on_demand=0.5)
    assert names(chosen(plain, gpu, metal)) == ["m5.large"]
    assert names(chosen(plain, gpu, metal, requests={"nvidia.com/gpu": 1})) == ["g5.large"]
    assert names(chosen(metal)) == ["m5.metal"]


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("m5.metal", {}),
        ("c7a.metal-48xl", {}),
        ("g5.large", {"nvidia.com_gpu": 1}),
        ("g4ad.large", {"amd.com_gpu": 1}),
        ("dl1.large", {"habana.ai_gaudi": 8}),
        ("inf1.large", {"aws.amazon.com_neuron": 1}),
        ("trn1.large", {"aws.amazon.com_neuroncore": 2}),
    ],
)
def test_aws_7_1_each_kind_of_exotic_type_is_dropped_while_an_ordinary_one_is_left(
    name: str, capacity: dict[str, int]
) -> None:
    plain, exotic = a_type("m5.large", on_demand=2), a_type(name, on_demand=1, **capacity)
    assert names(chosen(plain, exotic)) == ["m5.large"]
    assert names(chosen(exotic)) == [name]


def test_only_types_that_hold_the_requests_in_an_allowed_zone() -> None:
    types = [a_type("a.large", on_demand=1, zones="a"), a_type("b.large", on_demand=2, zones="b")]
    zone_b = ON_DEMAND.intersect(Requirements([Requirement.of(ZONE, "In", ["us-east-1b"])]))
    assert names(chosen(*types, requirements=zone_b)) == ["b.large"]
    assert chosen(*types, requirements=zone_b).offerings() == (("b.large", "us-east-1b", "on-demand"),)
    assert candidates_for(zone_b, {"cpu": 3921}, types) is None


def test_at_most_sixty() -> None:
    assert len(chosen(*(a_type(f"m.{number}", on_demand=number + 1) for number in range(70))).types) == 60


def at_least(key: str, number: int) -> Requirements:
    """On-demand or spot, with so many different values of a label."""
    return Requirements([*EITHER.values(), Requirement.of(key, "Exists", min_values=number)])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_type("g5.xlarge", on_demand=1, **{"nvidia.com_gpu": 1}), id="accelerator"),
        pytest.param(a_type("m5.metal", on_demand=9), id="bare-metal"),
        pytest.param(a_type("c5.4xlarge", on_demand=8, spot=4), id="spot-dearer-than-on-demand"),
    ],
)
def test_aws_7_1_nothing_is_dropped_where_different_values_are_asked_for(other: InstanceType) -> None:
    spot = 0.5 if any(offering.capacity_type == "spot" for offering in other.offerings) else None
    plain = a_type("m5.large", on_demand=2, spot=spot)
    assert names(chosen(plain, other)) == ["m5.large"]
    assert set(names(chosen(plain, other, requirements=at_least(INSTANCE_TYPE, 2)))) == {
        "m5.large",
        other.name,
    }


@pytest.mark.parametrize(("key", "number"), [(INSTANCE_TYPE, 3), (INSTANCE_SIZE, 2), (ZONE, 2)])
def test_nothing_is_launched_where_the_types_that_are_left_offer_too_few_values(
    key: str, number: int
) -> None:
    """As in Karpenter with its policy Strict."""
    left = [a_type("m5.large", on_demand=1, zones="a"), a_type("c5.large", on_demand=2, zones="a")]
    requirements = at_least(key, number)
    assert candidates_for(requirements, {"cpu": 1000}, left) is None
    lowered = candidates_for(requirements, {"cpu": 1000}, left, lowers_min_values=True)
    assert lowered is not None
    assert names(lowered) == ["m5.large", "c5.large"]
    another = a_type("r5.xlarge", on_demand=3, zones="b")
    assert candidates_for(requirements, {"cpu": 1000}, [*left, another]) is not None


def test_aws_7_1_the_sixty_offer_the_different_values_that_are_asked_for() -> None:
    types = [a_type(f"m{number}.large", on_demand=number + 1, zones="a") for number in range(70)]
    dear = [a_type("c5.xlarge", on_demand=200, zones="b"), a_type("r5.4xlarge", on_demand=100)]
    sizes = names(chosen(*types, *dear, requirements=at_least(INSTANCE_SIZE, 3)))
    assert sizes == [*(f"m{number}.large" for number in range(58)), "r5.4xlarge", "c5.xlarge"]
    zones = names(chosen(*types, *dear, requirements=at_least(ZONE, 2)))
    assert zones == [*(f"m{number}.large" for number in range(59)), "r5.4xlarge"]
    assert len(names(chosen(*types, *dear))) == 60
