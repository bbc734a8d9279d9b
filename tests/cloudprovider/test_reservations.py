"""Nodes in reserved capacity: on-demand reservations, capacity blocks, those that EC2 may take back."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import InsufficientCapacity
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.capacity_reservations import of_platforms
from nodeless.launch.resolved import Image
from nodeless.launch.unavailable import UNAVAILABLE_SECONDS
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    INSTANCE_TENANCY,
    RESERVED,
)
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, Pool, Reference, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_fleet_errors import Clock
from tests.cloudprovider.test_provider import DISCOVERY, made_by, the_claim, the_pool

TEAM = (SelectorTerm(tags=(("team", ("search",)),)),)
EVERYTHING = ("reserved", "spot", "on-demand")


def class_with(*terms: SelectorTerm, **members: Any) -> NodeClass:
    return NodeClass(
        Reference(EC2_NODE_CLASS, "default"),
        subnets=DISCOVERY,
        security_groups=DISCOVERY,
        instance_profile="nodes",
        capacity_reservations=terms,
        **members,
    )


def reserve(aws: LocalAws, count: int = 1, zone: str = "us-east-1a", **more: Any) -> str:
    answer = aws.client("ec2").create_capacity_reservation(
        InstanceType=more.pop("InstanceType", "m5.large"),
        InstancePlatform=more.pop("InstancePlatform", "Linux/UNIX"),
        AvailabilityZone=zone,
        InstanceCount=count,
        InstanceMatchCriteria=more.pop("InstanceMatchCriteria", "targeted"),
        **more,
    )
    return str(answer["CapacityReservation"]["CapacityReservationId"])


def tagged(key: str = "team", value: str = "search") -> list[dict[str, Any]]:
    return [{"ResourceType": "capacity-reservation", "Tags": [{"Key": key, "Value": value}]}]


async def sold(provider: AwsProvider, pool: Pool, node_class: NodeClass) -> list[Offering]:
    """The reserved offerings."""
    types = await provider.catalog(pool, node_class)
    return [offering for kind in types for offering in kind.offerings if offering.reservation]


async def launched(provider: AwsProvider, name: str, pool: Pool, node_class: NodeClass) -> Any:
    return await provider.launch(the_claim(name, pool), pool, node_class)


@pytest.mark.parametrize(
    ("term", "found"),
    [
        pytest.param(TEAM[0], {"tagged"}, id="tags"),
        pytest.param(SelectorTerm(tags=(("team", ("*",)),)), {"tagged"}, id="any-value-of-a-tag"),
        pytest.param(SelectorTerm(match_criteria="open"), {"open"}, id="match-criteria"),
        pytest.param(
            SelectorTerm(owners=("999999999999",), match_criteria="targeted"), {"shared"}, id="owner"
        ),
    ],
)
async def test_aws_2_7_reservations_are_selected_by_what_a_term_says(
    aws: LocalAws, world: World, term: SelectorTerm, found: set[str]
) -> None:
    names = {
        reserve(aws, TagSpecifications=tagged()): "tagged",
        reserve(aws, zone="us-east-1b", InstanceMatchCriteria="open"): "open",
        aws.reserve("m5.large", "us-east-1c", kind="default", owner="999999999999"): "shared",
    }
    async with a_provider() as provider:
        resolved = await provider.resolve(class_with(term))
        assert {names[reservation.id] for reservation in resolved.reservations} == found


async def test_aws_2_7_ids_of_which_one_is_gone_find_the_others(aws: LocalAws, world: World) -> None:
    first, second = reserve(aws), reserve(aws, zone="us-east-1b")
    terms = [SelectorTerm(ids=(each,)) for each in (first, "cr-gone", second)]
    async with a_provider() as provider:
        resolved = await provider.resolve(class_with(*terms))
        assert [reservation.id for reservation in resolved.reservations] == sorted((first, second))


async def test_aws_2_7_a_reservation_is_an_offering_at_next_to_no_price(aws: LocalAws, world: World) -> None:
    identifier = reserve(aws, 3, TagSpecifications=tagged())
    pool = the_pool("m5.large", capacity_types=EVERYTHING)
    async with a_provider() as provider:
        (kind,) = await provider.catalog(pool, class_with(*TEAM))
        (offering,) = [offering for offering in kind.offerings if offering.reservation]
        on_demand = next(offering for offering in kind.offerings if offering.capacity_type == "on-demand")
        assert kind.requirements[CAPACITY_TYPE].values == set(EVERYTHING)
        assert offering == Offering(
            "us-east-1a", RESERVED, on_demand.price / 1e7, True, identifier, 3, "default", False
        )
        without = the_pool("m5.large", capacity_types=("spot", "on-demand"))
        assert await sold(provider, without, class_with(*TEAM)) == []


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"InstancePlatform": "Windows"}, id="another-system"),
        pytest.param({"Tenancy": "dedicated"}, id="hosts-of-its-own"),
        pytest.param({"zone": "us-east-1f"}, id="a-zone-without-a-subnet"),
    ],
)
async def test_aws_2_7_a_reservation_that_no_node_could_use_is_not_offered(
    aws: LocalAws, world: World, members: dict[str, Any]
) -> None:
    reserve(aws, TagSpecifications=tagged(), **members)
    async with a_provider() as provider:
        assert await sold(provider, the_pool(capacity_types=EVERYTHING), class_with(*TEAM)) == []


@pytest.mark.parametrize(
    ("of_image", "of_reservation"),
    [
        ("", "Linux/UNIX"),
        ("Red Hat Enterprise Linux", "Red Hat Enterprise Linux"),
        ("Red Hat Enterprise Linux with HA", "RHEL with HA"),
        ("SUSE Linux", "SUSE Linux"),
        ("Ubuntu Pro", "Ubuntu Pro"),
        ("SQL Server Standard", "Linux with SQL Server Standard"),
    ],
)
def test_reservations_are_used_that_are_for_the_platform_of_the_images(
    of_image: str, of_reservation: str
) -> None:
    platforms = ["Linux/UNIX", "Windows", "SUSE Linux", "Ubuntu Pro", "Linux with SQL Server Standard"]
    platforms += ["Red Hat Enterprise Linux", "RHEL with HA"]
    found = [CapacityReservation(each, "m5.large", "us-east-1a", 1, platform=each) for each in platforms]
    node_class = class_with(*TEAM, ami_family="Custom")

    def used(*images: Image) -> list[str]:
        return [reservation.id for reservation in of_platforms(found, node_class, images)]

    assert used(Image("ami-1", platform=of_image)) == [of_reservation]
    assert set(used(Image("ami-1", platform=of_image), Image("ami-2"))) == {of_reservation, "Linux/UNIX"}


async def test_a_reservation_for_a_licensed_system_is_offered_to_the_class_of_its_images(
    aws: LocalAws, world: World
) -> None:
    identifier = reserve(aws, 2, TagSpecifications=tagged(), InstancePlatform="Red Hat Enterprise Linux")
    reserve(aws, 2, TagSpecifications=tagged())
    async with a_provider() as provider:
        resolved = await provider.resolve(class_with(*TEAM))
        rhel = replace(resolved.images[0], platform="Red Hat Enterprise Linux")
        selected = of_platforms(
            await provider._reservations.select(class_with(*TEAM)), class_with(*TEAM), [rhel]
        )
    assert [reservation.id for reservation in selected] == [identifier]


async def test_aws_7_1_reserved_before_spot_before_on_demand_and_back_when_it_is_used_up(
    aws: LocalAws, world: World
) -> None:
    identifier = reserve(aws, 1, TagSpecifications=tagged())
    pool = the_pool("m5.large", "m5.xlarge", capacity_types=EVERYTHING)
    async with a_provider() as provider:
        first = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
        second = await launched(provider, "default-bbbbb", pool, class_with(*TEAM))
        described = await provider.find(first.id)
    assert (first.capacity_type, first.instance_type, first.zone) == (RESERVED, "m5.large", "us-east-1a")
    assert described is not None
    for each in (first, described):
        assert each.labels[CAPACITY_TYPE] == RESERVED
        assert each.labels[CAPACITY_RESERVATION_ID] == identifier
        assert each.labels[CAPACITY_RESERVATION_TYPE] == "default"
        assert each.labels[CAPACITY_RESERVATION_INTERRUPTIBLE] == "false"
    assert second.capacity_type == "spot"
    assert CAPACITY_RESERVATION_ID not in second.labels


def templates(aws: LocalAws) -> Iterable[dict[str, Any]]:
    return (call["parameters"]["LaunchTemplateData"] for call in made_by(aws, "CreateLaunchTemplate"))


async def test_aws_6_2_the_template_targets_the_reservation_and_others_take_no_open_one(
    aws: LocalAws, world: World
) -> None:
    open_one = reserve(aws, 5, InstanceMatchCriteria="open")
    identifier = reserve(aws, 1, TagSpecifications=tagged())
    pool = the_pool("m5.large", capacity_types=("reserved", "on-demand"))
    async with a_provider() as provider:
        await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
        plain = await launched(provider, "default-bbbbb", pool, class_with(*TEAM))
    specifications = [template["CapacityReservationSpecification"] for template in templates(aws)]
    assert specifications == [
        {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": identifier},
        },
        {"CapacityReservationPreference": "none"},
    ]
    record = aws.client("ec2").describe_instances(InstanceIds=[plain.id])["Reservations"][0]["Instances"][0]
    assert record.get("CapacityReservationId") != open_one


async def test_aws_7_4_a_reservation_that_others_filled_is_left_alone_and_the_way_back(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    identifier = reserve(aws, 2, TagSpecifications=tagged())
    pool, own = the_pool("m5.large", capacity_types=EVERYTHING), class_with(*TEAM)
    async with a_provider(clock=clock) as provider:
        assert [each.remaining for each in await sold(provider, pool, own)] == [2]
        aws.client("ec2").modify_capacity_reservation(CapacityReservationId=identifier, InstanceCount=0)
        with pytest.raises(InsufficientCapacity, match="ReservationCapacityExceeded"):
            await launched(provider, "default-aaaaa", pool, own)
        assert [each.for_sale for each in await sold(provider, pool, own)] == [False]
        assert (await launched(provider, "default-bbbbb", pool, own)).capacity_type == "spot"
        aws.client("ec2").modify_capacity_reservation(CapacityReservationId=identifier, InstanceCount=2)
        clock.now += UNAVAILABLE_SECONDS + 1
        await provider._resolver._reservations.select(own, refresh=True)
        assert (await launched(provider, "default-ccccc", pool, own)).capacity_type == RESERVED


async def test_a_reservation_that_is_taken_back_is_left_alone_for_some_minutes(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    identifier = reserve(aws, 2, TagSpecifications=tagged())
    pool, own = the_pool("m5.large", capacity_types=EVERYTHING), class_with(*TEAM)
    async with a_provider(clock=clock) as provider:
        assert [each.for_sale for each in await sold(provider, pool, own)] == [True]
        provider.mark_unavailable((), (identifier,))
        assert [each.for_sale for each in await sold(provider, pool, own)] == [False]
        clock.now += UNAVAILABLE_SECONDS + 1
        assert [each.for_sale for each in await sold(provider, pool, own)] == [True]


async def test_two_reservations_of_a_type_in_a_zone_are_used_up_one_after_the_other(
    aws: LocalAws, world: World
) -> None:
    small, large = reserve(aws, 1, TagSpecifications=tagged()), reserve(aws, 2, TagSpecifications=tagged())
    pool = the_pool("m5.large", capacity_types=EVERYTHING)
    async with a_provider() as provider:
        found = [
            (await launched(provider, f"default-{letter * 5}", pool, class_with(*TEAM))).labels.get(
                CAPACITY_RESERVATION_ID
            )
            for letter in "abcd"
        ]
    assert found[0] == large
    assert sorted(str(each) for each in found[:3]) == sorted([small, large, large])
    assert found[3] is None


async def test_what_launches_took_counts_for_all_classes_that_select_the_reservation(
    aws: LocalAws, world: World
) -> None:
    identifier = reserve(aws, 3, TagSpecifications=tagged())
    by_id, by_tag = class_with(SelectorTerm(ids=(identifier,))), class_with(*TEAM)
    pool = the_pool("m5.large", "m5.xlarge", capacity_types=EVERYTHING)
    clock = Clock()

    async def remaining(provider: AwsProvider, node_class: NodeClass) -> int:
        return (await provider.resolve(node_class)).reservations[0].remaining

    async with a_provider(clock=clock) as provider:
        assert await remaining(provider, by_id) == 3
        await launched(provider, "default-aaaaa", pool, by_id)
        await launched(provider, "default-bbbbb", pool, by_id)
        clock.now += 30
        # EC2 is asked for the second class: what it answers holds for the first one, too.
        assert await remaining(provider, by_tag) == 1
        assert await remaining(provider, by_id) == 1


async def test_aws_7_1_of_capacity_blocks_one_is_asked_for_as_such(aws: LocalAws, world: World) -> None:
    block = aws.reserve("p5.48xlarge", "us-east-1b", endsIn=7200, tags={"team": "search"})
    pool = the_pool("p5.48xlarge", capacity_types=("reserved",))
    async with a_provider() as provider:
        instance = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
        described = await provider.find(instance.id)
    assert instance.labels[CAPACITY_RESERVATION_ID] == block
    assert described is not None
    assert described.labels[CAPACITY_RESERVATION_TYPE] == "capacity-block"
    (request,) = [call["parameters"] for call in made_by(aws, "CreateFleet")]
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert "OnDemandOptions" not in request
    (data,) = templates(aws)
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


async def test_a_capacity_block_that_ends_in_forty_minutes_is_not_used_any_more(
    aws: LocalAws, world: World
) -> None:
    aws.reserve("p5.48xlarge", "us-east-1b", endsIn=40 * 60 - 1, tags={"team": "search"})
    async with a_provider() as provider:
        (offering,) = await sold(
            provider, the_pool("p5.48xlarge", capacity_types=("reserved",)), class_with(*TEAM)
        )
        assert not offering.for_sale


async def test_a_reservation_that_ec2_may_take_back_is_asked_for_as_such(aws: LocalAws, world: World) -> None:
    aws.reserve("m5.large", "us-east-1b", kind="interruptible", tags={"team": "search"})
    pool = the_pool("m5.large", capacity_types=("reserved",))
    async with a_provider() as provider:
        instance = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
    assert instance.labels[CAPACITY_RESERVATION_INTERRUPTIBLE] == "true"
    (request,) = [call["parameters"] for call in made_by(aws, "CreateFleet")]
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "reserved-capacity"


async def test_what_a_pool_wants_of_reservations_narrows_them(aws: LocalAws, world: World) -> None:
    reserve(aws, 1, TagSpecifications=tagged())
    aws.reserve("m5.large", "us-east-1b", kind="interruptible", tags={"team": "search"})
    wanted = Requirement.of(CAPACITY_RESERVATION_INTERRUPTIBLE, "In", ["true"])
    pool = the_pool("m5.large", capacity_types=("reserved",))
    pool = replace(pool, requirements=Requirements([*pool.requirements.values(), wanted]))
    async with a_provider() as provider:
        instance = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
    assert instance.zone == "us-east-1b"


async def test_an_instance_whose_reservation_was_cancelled_is_on_demand(aws: LocalAws, world: World) -> None:
    identifier = reserve(aws, 1, TagSpecifications=tagged())
    pool = the_pool("m5.large", capacity_types=("reserved",))
    async with a_provider() as provider:
        instance = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
        aws.client("ec2").cancel_capacity_reservation(CapacityReservationId=identifier)
        described = await provider.find(instance.id)
    assert described is not None
    assert described.labels[CAPACITY_TYPE] == "on-demand"
    assert CAPACITY_RESERVATION_ID not in described.labels


async def test_a_pool_on_hosts_of_its_own_leaves_reservations_on_shared_ones(
    aws: LocalAws, world: World
) -> None:
    reserve(aws, 1, TagSpecifications=tagged())
    pool = the_pool("m5.large", capacity_types=EVERYTHING)
    wanted = Requirement.of(INSTANCE_TENANCY, "In", ["dedicated"])
    pool = replace(pool, requirements=Requirements([*pool.requirements.values(), wanted]))
    async with a_provider() as provider:
        assert await sold(provider, pool, class_with(*TEAM)) == []
        instance = await launched(provider, "default-aaaaa", pool, class_with(*TEAM))
        described = await provider.find(instance.id)
    (data,) = templates(aws)
    assert data["Placement"] == {"Tenancy": "dedicated"}
    assert described is not None
    assert instance.labels[INSTANCE_TENANCY] == described.labels[INSTANCE_TENANCY] == "dedicated"
