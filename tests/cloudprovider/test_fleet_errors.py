"""An EC2 that says no: each of its words for it, what becomes of the claim, and the way back."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from localenv.aws import LocalAws
from nodeless.cloudprovider import (
    CloudError,
    CloudUnavailable,
    CredentialsRefused,
    InsufficientCapacity,
    LaunchFailed,
)
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.launch.results import INSUFFICIENT_CAPACITY_CODES, NO_SPOT
from nodeless.launch.unavailable import UNAVAILABLE_SECONDS
from nodeless.model.labels import INSTANCE_TYPE, RESERVED, ZONE
from nodeless.model.node_offerings import NodeOfferings
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import Pool, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from nodeless.nodeclaim.drift import DriftView, drift_of
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, launched, made_by, the_claim, the_pool
from tests.factories import a_launched_claim, a_pool

BOTH = the_pool("m5.large", "m5.xlarge", capacity_types=("spot", "on-demand"))
EVERY = ("reserved", "spot", "on-demand")
ADDRESSES = "InsufficientFreeAddressesInSubnet"
OF_OFFERINGS = sorted(INSUFFICIENT_CAPACITY_CODES - {ADDRESSES, NO_SPOT})


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def available(provider: AwsProvider, pool: Pool = BOTH) -> set[tuple[str, str, str]]:
    types = await provider.catalog(pool, NODE_CLASS)
    return {
        (type_.name, offering.zone, offering.capacity_type)
        for type_ in types
        for offering in type_.offerings
        if offering.available
    }


@pytest.mark.parametrize("code", OF_OFFERINGS)
async def test_each_lack_of_capacity_gives_the_claim_up_and_leaves_its_offerings_alone(
    aws: LocalAws, world: World, code: str
) -> None:
    aws.set_faults(capacity=[{"code": code}])
    async with a_provider() as provider:
        with pytest.raises(InsufficientCapacity, match=code) as caught:
            await launched(provider)
        tried = set(caught.value.offerings)
        assert {(name, kind) for name, _, kind in tried} == {
            ("m5.large", "on-demand"),
            ("m5.xlarge", "on-demand"),
        }
        assert not tried & await available(provider)


async def test_what_one_zone_lacks_another_gives_and_the_lack_is_remembered(
    aws: LocalAws, world: World
) -> None:
    short = {"zone": "us-east-1a", "code": "UnfulfillableCapacity"}
    aws.set_faults(capacity=[short])
    async with a_provider() as provider:
        instance = await launched(provider)
        assert instance.zone != "us-east-1a"
        assert ("m5.large", "us-east-1a", "on-demand") not in await available(provider)
        assert ("m5.large", "us-east-1a", "spot") in await available(provider)


async def test_without_spot_it_is_on_demand_and_spot_again_after_three_minutes(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    aws.set_faults(capacity=[{"capacityType": "spot"}])
    async with a_provider(clock=clock) as provider:
        with pytest.raises(InsufficientCapacity):
            await launched(provider, "default-aaaaa", BOTH)
        assert (await launched(provider, "default-bbbbb", BOTH)).capacity_type == "on-demand"
        aws.set_faults()
        assert (await launched(provider, "default-ccccc", BOTH)).capacity_type == "on-demand"
        clock.now += UNAVAILABLE_SECONDS + 1
        assert (await launched(provider, "default-ddddd", BOTH)).capacity_type == "spot"


@pytest.mark.parametrize(
    ("types", "capacity_types", "warned"),
    [
        (("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge"), ("spot", "on-demand"), True),
        (("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "c5.large"), ("spot", "on-demand"), False),
        (("m5.large",), ("on-demand",), False),
    ],
    ids=["four types", "five types", "nobody asked for spot"],
)
async def test_aws_7_2_who_falls_back_to_on_demand_with_few_types_is_told(
    aws: LocalAws, world: World, types: tuple[str, ...], capacity_types: tuple[str, ...], warned: bool
) -> None:
    pool = the_pool(*types, capacity_types=capacity_types)
    aws.set_faults(capacity=[{"capacityType": "spot"}])
    async with a_provider() as provider:
        if "spot" in capacity_types:
            with pytest.raises(InsufficientCapacity):
                await launched(provider, "default-aaaaa", pool)
        with capture_logs() as logs:
            assert (await launched(provider, "default-bbbbb", pool)).capacity_type == "on-demand"
    lines = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert any("at least 5 instance types are recommended" in line for line in lines) is warned


@pytest.mark.parametrize(
    ("length", "warned"),
    [pytest.param(13_000, False, id="far-from-it"), pytest.param(15_000, True, id="beyond-nine-tenths")],
)
async def test_aws_5_6_user_data_that_is_nearly_too_long_is_told_once(
    aws: LocalAws, world: World, length: int, warned: bool
) -> None:
    node_class = replace(NODE_CLASS, user_data="#" * length)
    async with a_provider() as provider:
        with capture_logs() as logs:
            await provider.warm(BOTH, node_class)
            await provider.warm(BOTH, replace(node_class, generation=2))
    lines = [line["event"] for line in logs if line["log_level"] == "warning"]
    reported = [line for line in lines if "bytes, EC2 accepts 16384; hint: shorten spec.userData" in line]
    assert len(reported) == warned


async def test_an_account_without_the_spot_role_gets_no_spot_of_any_type(aws: LocalAws, world: World) -> None:
    aws.set_faults(capacity=[{"capacityType": "spot", "code": NO_SPOT}])
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        only_large = the_pool("m5.large", capacity_types=("spot", "on-demand"))
        with pytest.raises(InsufficientCapacity, match=NO_SPOT):
            await launched(provider, "default-aaaaa", only_large)
        assert {kind for _, _, kind in await available(provider)} == {"on-demand"}
        assert (await launched(provider, "default-bbbbb", BOTH)).capacity_type == "on-demand"
        clock.now += UNAVAILABLE_SECONDS + 1
        assert {kind for _, _, kind in await available(provider)} == {"on-demand", "spot"}


async def test_a_quota_of_vcpus_is_a_lack_that_ends_with_the_instances_that_use_it_up(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    pool = the_pool("m5.large")
    aws.set_faults(quotas={"on-demand": 3})
    async with a_provider(clock=clock) as provider:
        first = await launched(provider, "default-aaaaa", pool)
        with pytest.raises(
            InsufficientCapacity, match=r"VcpuLimitExceeded.*raise the account's quotas"
        ) as full:
            await launched(provider, "default-bbbbb", pool)
        assert full.value.reason == "VCPULimitExceeded"
        await provider.terminate(first.id)
        clock.now += UNAVAILABLE_SECONDS + 1
        assert await launched(provider, "default-ccccc", pool)


async def test_a_full_subnet_is_left_for_another_of_its_zone(aws: LocalAws, world: World) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.describe_subnets(SubnetIds=world.subnets[:1])["Subnets"][0]["VpcId"]
    small = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.200.0/28", AvailabilityZone="us-east-1d")["Subnet"]
    large = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.201.0/28", AvailabilityZone="us-east-1d")["Subnet"]
    both = replace(NODE_CLASS, subnets=(SelectorTerm(ids=(small["SubnetId"], large["SubnetId"])),))
    pool = the_pool("m5.large")
    async with a_provider() as provider:
        chosen = await provider.launch(the_claim("default-aaaaa", pool), pool, both)
        other = ({small["SubnetId"], large["SubnetId"]} - {chosen.subnet_id}).pop()
        provider._subnets.mark_full([other])
        again = await provider.launch(the_claim("default-bbbbb", pool), pool, both)
        assert again.subnet_id == chosen.subnet_id


async def test_a_zone_whose_subnets_are_all_full_is_left_alone_for_three_minutes(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    aws.set_faults(capacity=[{"zone": "us-east-1a", "code": ADDRESSES}])
    only_a = the_pool("m5.large")
    async with a_provider(clock=clock) as provider:
        order = await provider._launch_request((the_claim(pool=only_a),), only_a, NODE_CLASS)
        zone_a = replace(
            order,
            resolved=replace(
                order.resolved, subnets=tuple(s for s in order.resolved.subnets if s.zone == "us-east-1a")
            ),
        )
        (outcome,) = (await provider._launcher.launch(zone_a, provider._on_answer)).values()
        assert isinstance(outcome, InsufficientCapacity)
        assert ADDRESSES in str(outcome)
        assert {zone for _, zone, _ in await available(provider)} == {"us-east-1b", "us-east-1c"}
        clock.now += UNAVAILABLE_SECONDS + 1
        assert {zone for _, zone, _ in await available(provider)} == {
            "us-east-1a",
            "us-east-1b",
            "us-east-1c",
        }


async def test_nodes_in_a_zone_whose_subnets_are_all_full_do_not_drift_and_keep_their_price(
    aws: LocalAws, world: World
) -> None:
    """Karpenter compares with all types that a pool allows, even if they are unavailable for now."""
    every_type = a_pool(requirements=Requirements([Requirement.of("kubernetes.io/arch", "In", ["amd64"])]))
    async with a_provider() as provider:
        sold_before = await provider.catalog(every_type, NODE_CLASS)
        provider._subnets.mark_full(world.subnets[:1])
        sold = await provider.catalog(every_type, NODE_CLASS)
        assert {zone for _, zone, _ in await available(provider, every_type)} == {"us-east-1b", "us-east-1c"}
    only_a = [
        instance_type.name
        for instance_type in sold_before
        if {offering.zone for offering in instance_type.offerings} == {"us-east-1a"}
    ]
    types = {instance_type.name: instance_type for instance_type in sold}
    labels = {INSTANCE_TYPE: only_a[0], ZONE: "us-east-1a"}
    claim = a_launched_claim("default-aaaaa", labels=labels, created_at=0.0)
    assert drift_of(DriftView(claim, every_type, NODE_CLASS, types=types), 4000.0) is None
    offering = NodeOfferings({every_type.key: sold}).find(
        every_type.key, "m5.large", "us-east-1a", "on-demand"
    )
    assert offering is not None
    assert not offering.available


async def test_a_reservation_in_a_zone_whose_subnets_are_all_full_is_unavailable_not_gone(
    aws: LocalAws, world: World
) -> None:
    reservation = CapacityReservation("cr-1", "m5.large", "us-east-1a", 1)
    async with a_provider() as provider:
        provider._subnets.mark_full(world.subnets[:1])
        resolved = replace(await provider.resolve(NODE_CLASS), reservations=(reservation,))
        types = await provider._catalogs.get(the_pool("m5.large", capacity_types=EVERY), NODE_CLASS, resolved)
    (reserved,) = [
        offering
        for instance_type in types
        for offering in instance_type.offerings
        if offering.capacity_type == RESERVED
    ]
    assert (reserved.reservation, reserved.available) == ("cr-1", False)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("UnauthorizedOperation", "Unauthorized"),
        ("RequestLimitExceeded", "RequestLimitExceeded"),
        ("InvalidAMIID.NotFound", "AMINotFound"),
        ("InvalidSubnetID.NotFound", "SubnetNotFound"),
        ("InvalidGroup.NotFound", "SecurityGroupNotFound"),
        ("InvalidUserData.Malformed", "UserDataInvalid"),
        ("PendingVerification", "AccountPendingVerification"),
        ("InternalError", "InternalError"),
    ],
)
async def test_other_refusals_of_an_override_are_no_lack_of_capacity(
    aws: LocalAws, world: World, code: str, reason: str
) -> None:
    aws.set_faults(capacity=[{"code": code}])
    async with a_provider() as provider:
        before = await available(provider)
        with pytest.raises(LaunchFailed, match=code) as caught:
            await launched(provider)
        assert caught.value.reason == reason
        assert caught.value.hint
        assert await available(provider) == before
        aws.set_faults()
        # The claim is tried again with a token of its own.
        assert (await launched(provider)).instance_type == "m5.large"


DESCRIPTIONS = {"DescribeSubnets", "DescribeSecurityGroups", "GetParameter"}


@pytest.mark.parametrize(
    ("code", "asked_again"),
    [
        ("InvalidSubnetID.NotFound", DESCRIPTIONS),
        ("InvalidAMIID.NotFound", DESCRIPTIONS),
        ("InvalidIamInstanceProfile.NotFound", set()),
        ("InvalidParameterValue", set()),
    ],
)
async def test_a_launch_that_finds_something_missing_asks_again_for_its_own_node_class_alone(
    aws: LocalAws, world: World, code: str, asked_again: set[str]
) -> None:
    ids = SelectorTerm(ids=tuple(world.subnets))
    groups = SelectorTerm(ids=(world.security_group,))
    other = replace(NODE_CLASS, subnets=(ids,), security_groups=(groups,), ami_family="Bottlerocket")
    async with a_provider() as provider:
        await provider.resolve(other)
        await provider.resolve(NODE_CLASS)
        aws.set_faults(capacity=[{"code": code}])
        with pytest.raises(LaunchFailed):
            await launched(provider)
        aws.forget_calls()
        await provider.resolve(other)
        assert not DESCRIPTIONS & {call["action"] for call in aws.calls()}
        await provider.resolve(NODE_CLASS)
        assert DESCRIPTIONS & {call["action"] for call in aws.calls()} == asked_again


@pytest.mark.parametrize(
    ("code", "status", "error", "reason"),
    [
        ("UnauthorizedOperation", 403, CredentialsRefused, "Unauthorized"),
        ("ExpiredToken", 400, CredentialsRefused, "Unauthorized"),
        ("AuthFailure", 401, CredentialsRefused, "Unauthorized"),
        ("RequestLimitExceeded", 503, CloudUnavailable, "RequestLimitExceeded"),
        ("InternalError", 500, CloudUnavailable, "InternalError"),
        ("InvalidParameterValue", 400, LaunchFailed, "LaunchFailed"),
        ("MaxFleetCountExceeded", 400, LaunchFailed, "FleetQuotaExceeded"),
    ],
)
async def test_a_refused_call_is_told_and_the_next_one_succeeds(
    aws: LocalAws, world: World, code: str, status: int, error: type[CloudError], reason: str
) -> None:
    async with a_provider() as provider:
        await provider.warm(the_pool(), NODE_CLASS)
        aws.set_faults(errors={"CreateFleet": {"code": code, "status": status}})
        with pytest.raises(error, match=code) as caught:
            await launched(provider)
        assert caught.value.reason == reason
        aws.set_faults()
        assert (await launched(provider)).instance_type == "m5.large"


async def test_a_burst_of_throttled_launches_loses_none(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.warm(the_pool(), NODE_CLASS)
        aws.set_faults(errors={"CreateFleet": {"code": "RequestLimitExceeded", "status": 503, "times": 4}})
        made = await asyncio.gather(*(launched(provider, f"default-aaaa{letter}") for letter in "abcdef"))
        assert len({each.id for each in made}) == 6
        refused = [call for call in made_by(aws, "CreateFleet") if call.get("error")]
        assert len(refused) == 4


async def test_a_template_that_ec2_does_not_see_yet_is_asked_for_once_more(
    aws: LocalAws, world: World
) -> None:
    missing: dict[str, Any] = {"code": "InvalidLaunchTemplateName.NotFoundException", "times": 1}
    aws.set_faults(errors={"CreateFleet": missing})
    async with a_provider() as provider:
        assert (await launched(provider)).instance_type == "m5.large"
    assert [call.get("error") for call in made_by(aws, "CreateFleet")] == [missing["code"], None]


async def test_reads_that_lag_behind_make_no_second_instance(aws: LocalAws, world: World) -> None:
    """Found neither by its claim's tag nor by its id: the client token alone tells that it is there."""
    async with a_provider() as provider:
        first = await launched(provider)
        aws.set_faults(consistency=3600)
        assert await provider.find(first.id) is None
        assert (await launched(provider)).id == first.id
        aws.set_faults()
        assert len(await provider.instances()) == 1


async def test_credentials_that_expire_are_told_and_work_goes_on_with_new_ones(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await launched(provider)
        expired = {"code": "RequestExpired", "message": "Request has expired.", "times": 1}
        aws.set_faults(errors={"DescribeInstances": expired})
        with pytest.raises(CredentialsRefused, match="hint: check the role or keys"):
            await provider.instances()
        assert len(await provider.instances()) == 1
