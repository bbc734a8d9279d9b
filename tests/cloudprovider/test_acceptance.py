"""Rows AWS-16.1 to AWS-16.12 (docs/acceptance/aws.md) that no test of a part of the provider shows alone."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import LaunchFailed
from nodeless.cloudprovider.aws.image_parameters import parameters_for
from nodeless.cloudprovider.aws.images import in_order
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.launch_failures import launch_failed
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import Prices, product_requests
from nodeless.cloudprovider.aws.selectors import filters_of
from nodeless.launch.fleet import subnet_by_zone
from nodeless.launch.images import bootable, image_for
from nodeless.launch.resolved import Image
from nodeless.launch.results import INSUFFICIENT_CAPACITY_CODES, read_answer
from nodeless.launch.unavailable import Unavailable, exclude_offerings
from nodeless.model.labels import ARCH, INSTANCE_ACCELERATOR_MANUFACTURER
from nodeless.model.pools import Kubelet, NodeClass, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import PODS
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_figures import M5
from tests.cloudprovider.test_fleet_errors import Clock
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, launched, made_by, the_claim, the_pool
from tests.factories import TEMPLATE

ZONES = frozenset({"us-east-1a", "us-east-1b"})


def offerings(prices: Prices, **facts: Any) -> dict[tuple[str, str], tuple[float, bool]]:
    """Price and availability of what a type sells, by zone and capacity type."""
    known = Known((replace(M5, **facts),), {M5.name: ZONES})
    (kind,) = build(known, NodeShape("AL2"), ZONES, prices, "us-east-1")
    return {
        (offering.zone, offering.capacity_type): (offering.price, offering.available)
        for offering in kind.offerings
    }


def test_aws_16_2_what_has_no_price_stands_in_the_list_and_is_not_available() -> None:
    priced = offerings(Prices({}, {("m5.large", "us-east-1a"): 0.03}))
    assert priced == {
        ("us-east-1a", "on-demand"): (0.0, False),
        ("us-east-1a", "spot"): (0.03, True),
        ("us-east-1b", "on-demand"): (0.0, False),
        ("us-east-1b", "spot"): (0.0, False),
    }


def test_aws_16_2_a_usage_class_that_cannot_be_bought_is_passed_over() -> None:
    sold = offerings(Prices({"m5.large": 0.1}), usage_classes=("capacity-block", "on-demand", "on-demand"))
    assert set(sold) == {(zone, "on-demand") for zone in ZONES}
    assert offerings(Prices({"m5.large": 0.1}), usage_classes=("capacity-block",)) == {}


def test_aws_16_2_a_sold_out_offering_is_off_for_three_minutes_from_its_last_mark() -> None:
    known = Known((M5,), {M5.name: ZONES})
    types = build(known, NodeShape("AL2"), ZONES, Prices({"m5.large": 0.1}), "us-east-1")
    key = ("m5.large", "us-east-1a", "spot")
    memory = Unavailable().mark([key], 0.0).mark([key], 60.0)

    def off(now: float) -> set[tuple[str, str]]:
        (kind,) = exclude_offerings(types, memory.at(now))
        return {
            (offering.zone, offering.capacity_type) for offering in kind.offerings if not offering.available
        }

    assert off(0.0) == off(239.0) == {("us-east-1a", "spot")}
    assert off(240.0) == set()


def test_aws_16_3_the_filters_of_both_sweeps_to_the_letter() -> None:
    common = {
        "regionCode": "eu-west-1",
        "serviceCode": "AmazonEC2",
        "preInstalledSw": "NA",
        "operatingSystem": "Linux",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    sweeps = (
        {"tenancy": "Shared", "productFamily": "Compute Instance"},
        {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
    )
    for request, sweep in zip(product_requests("eu-west-1"), sweeps, strict=True):
        assert request["ServiceCode"] == "AmazonEC2"
        assert {each["Type"] for each in request["Filters"]} == {"TERM_MATCH"}
        assert {each["Field"]: each["Value"] for each in request["Filters"]} == common | sweep


@pytest.mark.parametrize("refused", ["GetProducts", "DescribeSpotPriceHistory"])
async def test_aws_16_3_a_refresh_that_fails_keeps_the_prices_that_are_there(
    aws: LocalAws, world: World, refused: str
) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as provider:
        before = await provider._pricing.current(spot=True)
        for half in (provider._pricing._on_demand, provider._pricing._spot):
            half._due = 0.0
        aws.set_faults(errors={refused: {"code": "AccessDeniedException", "status": 400}})
        clock.now += 1
        after = await provider._pricing.current(spot=True)
    assert (after.on_demand, after.spot) == (before.on_demand, before.spot)
    assert after.of("m5.large", "us-east-1a", "on-demand") == 0.096


@pytest.mark.parametrize(
    ("term", "filters"),
    [
        pytest.param(
            SelectorTerm(ids=("subnet-1", "subnet-2")), {"subnet-id": ["subnet-1", "subnet-2"]}, id="ids"
        ),
        pytest.param(SelectorTerm(tags=(("team", ("*",)),)), {"tag-key": ["team"]}, id="any-value"),
        pytest.param(SelectorTerm(tags=(("team", ("a", "b*")),)), {"tag:team": ["a", "b*"]}, id="values"),
        pytest.param(SelectorTerm(), {}, id="nothing"),
    ],
)
def test_aws_16_4_each_entry_of_a_selector_is_its_filter(
    term: SelectorTerm, filters: Mapping[str, list[str]]
) -> None:
    found = filters_of(term, id_filter="subnet-id", name_filter="tag:Name")
    assert {each["Name"]: each["Values"] for each in found} == filters


@pytest.mark.parametrize(
    ("term", "filters"),
    [
        (SelectorTerm(ids=("sg-1",)), {"group-id": ["sg-1"]}),
        (SelectorTerm(names=("nodes",)), {"group-name": ["nodes"]}),
        (
            SelectorTerm(tags=(("a", ("*",)), ("b", ("x?",))), ids=("sg-1",)),
            {"group-id": ["sg-1"], "tag-key": ["a"], "tag:b": ["x?"]},
        ),
    ],
)
def test_aws_4_1_terms_for_security_groups_may_name_them(
    term: SelectorTerm, filters: Mapping[str, list[str]]
) -> None:
    found = filters_of(term, id_filter="group-id", name_filter="group-name")
    assert {each["Name"]: each["Values"] for each in found} == filters


def test_aws_4_1_two_tags_of_any_value_must_both_be_there() -> None:
    found = filters_of(
        SelectorTerm(tags=(("a", ("*",)), ("b", ("*",)))), id_filter="subnet-id", name_filter="tag:Name"
    )
    assert found == [{"Name": "tag-key", "Values": ["a"]}, {"Name": "tag-key", "Values": ["b"]}]


def subnets_of_a_zone(aws: LocalAws, world: World, *blocks: str) -> list[str]:
    """Subnets of a zone that no other subnet is in, by their blocks of addresses."""
    ec2 = aws.client("ec2")
    vpc = ec2.describe_subnets(SubnetIds=world.subnets[:1])["Subnets"][0]["VpcId"]
    made = (ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone="us-east-1d") for block in blocks)
    return [each["Subnet"]["SubnetId"] for each in made]


async def test_aws_16_4_three_launches_take_turns_among_a_zones_subnets_by_what_is_left(
    aws: LocalAws, world: World
) -> None:
    large, small = subnets_of_a_zone(aws, world, "10.0.100.0/25", "10.0.101.0/26")
    node_class = replace(NODE_CLASS, subnets=(SelectorTerm(ids=(large, small)),))
    pool = the_pool("m5.large")
    async with a_provider() as provider:
        made = [
            await provider.launch(the_claim(f"default-{letter * 5}", pool), pool, node_class)
            for letter in "abc"
        ]
        pods = made[0].capacity[PODS]
        left = {subnet.id: subnet.unpromised for subnet in (await provider.resolve(node_class)).subnets}
        # As EC2 counts them: a node takes one address now, its pods the others later.
        assert left == {large: 123 - 3 * pods, small: 59} or left == {large: 123 - 2 * pods, small: 59 - pods}
        chosen = subnet_by_zone((await provider.resolve(node_class)).subnets)["us-east-1d"]
        assert chosen.unpromised == max(left.values())
    assert [each.subnet_id for each in made][:2] == [large, large]


async def test_aws_16_4_launches_side_by_side_take_turns_too(aws: LocalAws, world: World) -> None:
    large, small = subnets_of_a_zone(aws, world, "10.0.100.0/25", "10.0.101.0/26")
    node_class = replace(NODE_CLASS, subnets=(SelectorTerm(ids=(large, small)),))
    pool = the_pool("m5.large")
    async with a_provider() as provider:
        claims = [the_claim(f"default-{letter * 5}", pool) for letter in "abcde"]
        made = await asyncio.gather(*(provider.launch(claim, pool, node_class) for claim in claims))
    # 29 addresses each of 123 and 59: three from the larger one, then one from the other, then one more.
    assert Counter(each.subnet_id for each in made) == {large: 4, small: 1}


async def test_aws_4_2_a_large_node_leaves_to_plans_the_addresses_that_nobody_holds(
    aws: LocalAws, world: World
) -> None:
    (subnet,) = subnets_of_a_zone(aws, world, "10.0.100.0/24")
    node_class = replace(NODE_CLASS, subnets=(SelectorTerm(ids=(subnet,)),))
    pool = the_pool("r5.24xlarge")
    async with a_provider() as provider:
        made = await provider.launch(the_claim("default-abcde", pool), pool, node_class)
        (left,) = (await provider.resolve(node_class)).subnets
    # The node and the one pod that it is for hold two; it has room for many more than there are.
    assert left.free_addresses == 251 - 2
    assert left.unpromised == 251 - made.capacity[PODS] < 0


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, 2),
        ({"pods_in_subnets": False}, 1),
        ({"cluster_dns": "fd00::a"}, 1),
        ({"cluster_dns": "10.0.0.10"}, 2),
    ],
)
async def test_aws_4_2_where_pods_take_no_addresses_of_the_subnet_a_node_takes_one(
    aws: LocalAws, world: World, settings: dict[str, Any], taken: int
) -> None:
    (subnet,) = subnets_of_a_zone(aws, world, "10.0.100.0/24")
    node_class = replace(NODE_CLASS, subnets=(SelectorTerm(ids=(subnet,)),))
    pool = the_pool("r5.24xlarge")
    async with a_provider(settings=replace(SETTINGS, **settings)) as provider:
        made = await provider.launch(the_claim("default-abcde", pool), pool, node_class)
        resolved = await provider.resolve(node_class)
    assert resolved.pods_take_addresses is (taken == 2)
    (left,) = resolved.subnets
    assert left.free_addresses == 251 - taken
    assert left.promised == (made.capacity[PODS] - 2 if taken == 2 else 0)


async def test_aws_4_2_pods_of_a_kubelet_whose_dns_is_ipv6_take_no_addresses_of_subnets(
    aws: LocalAws, world: World
) -> None:
    node_class = replace(NODE_CLASS, kubelet=Kubelet(cluster_dns=("fd00::a",)))
    async with a_provider() as provider:
        assert not (await provider.resolve(node_class)).pods_take_addresses


async def test_aws_4_2_a_promise_ends_with_what_ec2_tells_and_is_not_given_back_twice(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        subnets = provider._subnets
        before = await subnets.select(NODE_CLASS)
        with subnets.promise_addresses({before[0].id: 100}):
            assert subnets.current(before)[0].unpromised == before[0].unpromised - 100
            assert await subnets.select(NODE_CLASS, refresh=True) == before
        assert subnets.current(before) == before


async def test_aws_16_4_a_launch_that_fails_takes_no_addresses(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        before = (await provider.resolve(NODE_CLASS)).subnets
        aws.set_faults(errors={"CreateFleet": {"code": "InvalidParameterValue"}})
        with pytest.raises(LaunchFailed):
            await launched(provider)
        assert (await provider.resolve(NODE_CLASS)).subnets == before


@pytest.mark.parametrize(
    ("family", "names"),
    [
        pytest.param(
            "AL2",
            [
                "/aws/service/eks/optimized-ami/1.29/amazon-linux-2/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.29/amazon-linux-2-gpu/recommended/image_id",
                "/aws/service/eks/optimized-ami/1.29/amazon-linux-2-arm64/recommended/image_id",
            ],
            id="AL2",
        ),
        pytest.param(
            "Bottlerocket",
            [
                "/aws/service/bottlerocket/aws-k8s-1.29/x86_64/latest/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.29-nvidia/x86_64/latest/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.29/arm64/latest/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.29-nvidia/arm64/latest/image_id",
            ],
            id="Bottlerocket",
        ),
        pytest.param(
            "Ubuntu",
            [
                f"/aws/service/canonical/ubuntu/eks/20.04/1.29/stable/current/{each}/hvm/ebs-gp2/ami-id"
                for each in ("amd64", "arm64")
            ],
            id="Ubuntu",
        ),
        pytest.param("Custom", [], id="Custom"),
    ],
)
def test_aws_16_5_parameters_of_a_family(family: str, names: list[str]) -> None:
    assert [each.name for each in parameters_for(family, "1.29")] == names


def test_aws_16_5_images_are_newest_first_one_of_each_kind_and_types_without_one_are_dropped() -> None:
    amd64 = Requirements([Requirement.of(ARCH, "In", ["amd64"])])
    arm64 = Requirements([Requirement.of(ARCH, "In", ["arm64"])])
    plain_arm = Requirements(
        [
            Requirement.of(ARCH, "In", ["arm64"]),
            Requirement.of(INSTANCE_ACCELERATOR_MANUFACTURER, "NotIn", ["nvidia", "aws"]),
        ]
    )
    images = in_order(
        [
            Image("ami-old", amd64, "a", "2024-01-01"),
            Image("ami-new", amd64, "b", "2024-03-01"),
            Image("ami-twin", arm64, "c", "2024-02-01"),
            Image("ami-zwin", arm64, "d", "2024-02-01"),
        ]
    )
    assert [image.id for image in images] == ["ami-new", "ami-zwin"]
    g5g = Requirements(
        [
            Requirement.of(ARCH, "In", ["arm64"]),
            Requirement.of(INSTANCE_ACCELERATOR_MANUFACTURER, "In", ["nvidia"]),
        ]
    )
    known = Known((M5,), {M5.name: ZONES})
    (kind,) = build(known, NodeShape("AL2"), ZONES, Prices({}), "us-east-1")
    gpu = replace(kind, name="g5g.xlarge", requirements=g5g)
    assert bootable([kind, gpu], [Image("ami-x86", amd64), Image("ami-arm", plain_arm)]) == (kind,)
    assert image_for(gpu, [Image("ami-arm", plain_arm)]) is None


async def test_aws_16_5_a_custom_class_uses_the_images_that_it_selects_alone(
    aws: LocalAws, world: World
) -> None:
    found = aws.client("ec2").describe_images(
        Filters=[{"Name": "name", "Values": ["amazon-eks-node-1.29-*"]}]
    )["Images"]
    custom = NodeClass(
        TEMPLATE,
        "Custom",
        NODE_CLASS.subnets,
        NODE_CLASS.security_groups,
        images=(SelectorTerm(ids=(found[0]["ImageId"],)),),
    )
    async with a_provider() as provider:
        resolved = await provider.resolve(custom)
    assert [image.id for image in resolved.images] == [found[0]["ImageId"]]
    assert made_by(aws, "GetParameter") == []


async def test_aws_16_7_a_template_that_is_known_costs_no_call_and_one_that_is_there_is_used(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        await provider.warm(POOL, NODE_CLASS)
        assert len(made_by(aws, "CreateLaunchTemplate")) == 1
    async with a_provider() as another:
        await another.warm(POOL, NODE_CLASS)
        assert (await launched(another)).instance_type == "m5.large"
    # The second is told that it exists.
    assert [call["status"] for call in made_by(aws, "CreateLaunchTemplate")] == [200, 400]
    assert len(aws.client("ec2").describe_launch_templates(MaxResults=200)["LaunchTemplates"]) == 1


async def test_aws_16_7_a_new_leader_sweeps_what_nobody_used_since_and_keeps_what_was_used_again(
    aws: LocalAws, world: World
) -> None:
    clock = Clock()
    async with a_provider(clock=clock) as former:
        await former.warm(POOL, NODE_CLASS)
        await former.warm(the_pool(capacity_types=("spot",)), NODE_CLASS)
    async with a_provider(clock=clock) as leader:
        assert await leader._templates.delete_unused() == 0
        clock.now += 1799
        await leader.warm(POOL, NODE_CLASS)
        clock.now += 2
        assert await leader._templates.delete_unused() == 1
        assert (await launched(leader)).instance_type == "m5.large"


WORDED = (
    (
        "SecurityGroupSubnetVPCMismatch",
        "InvalidParameter",
        "Security group sg-1 and subnet subnet-2 belong to different networks.",
        "of one VPC with spec.subnetSelector and spec.securityGroupSelector",
    ),
    ("AMIAuthorizationFailure", "AuthFailure", "Not authorized for images: [ami-1]", "share the image"),
    (
        "UserDataSizeLimitExceeded",
        "InvalidUserData.Malformed",
        "User data is limited to 16384 bytes",
        "shorten spec.userData",
    ),
    (
        "FreeTierIneligible",
        "InvalidParameterCombination",
        "The specified instance type is not eligible for Free Tier.",
        "free-tier-eligible",
    ),
)


def refusal(code: str) -> dict[str, Any]:
    override = {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a", "SubnetId": "subnet-1"}
    return {
        "ErrorCode": code,
        "ErrorMessage": f"no {code}",
        "LaunchTemplateAndOverrides": {"Overrides": override},
    }


@pytest.mark.parametrize("code", sorted(INSUFFICIENT_CAPACITY_CODES))
def test_aws_7_4_a_code_of_capacity_marks_what_it_is_about_also_beside_an_instance(code: str) -> None:
    made = {"InstanceIds": ["i-1"], "InstanceType": "m5.xlarge"}
    for instances in ([], [made]):
        answer = read_answer({"Instances": instances, "Errors": [refusal(code)]}, "spot")
        assert answer.insufficient is not bool(instances)
        marked = (answer.unavailable, answer.full_subnets, answer.no_spot)
        assert sum(map(bool, marked)) == 1, marked


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        ("InvalidLaunchTemplateName.NotFoundException", "", "LaunchTemplateNotFound"),
        ("InvalidLaunchTemplateId.NotFound", "", "LaunchTemplateNotFound"),
        ("InvalidCapacityReservationId.NotFound", "", "CapacityReservationNotFound"),
        ("InvalidPlacementGroup.Unknown", "", "PlacementGroupNotFound"),
        ("InvalidAMIID.NotFound", "", "AMINotFound"),
        ("InvalidAMIID.Malformed", "", "InvalidAMIID"),
        ("InvalidSubnetID.NotFound", "", "SubnetNotFound"),
        ("InvalidGroup.NotFound", "", "SecurityGroupNotFound"),
        ("InvalidUserData.Malformed", "", "UserDataInvalid"),
        ("UnauthorizedOperation", "", "Unauthorized"),
        ("RequestLimitExceeded", "", "RequestLimitExceeded"),
        ("Throttling", "", "RequestLimitExceeded"),
        ("PendingVerification", "", "AccountPendingVerification"),
        ("InvalidParameterValue", "iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid"),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", "SpotSLRCreationFailed"),
        ("InternalError", "", "InternalError"),
        ("MaxFleetCountExceeded", "", "FleetQuotaExceeded"),
        ("MaxSpotInstanceCountExceeded", "", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded", "", "VCPULimitExceeded"),
        ("InsufficientFreeAddressesInSubnet", "", "InsufficientFreeAddressesInSubnet"),
        ("SomethingNew", "", "LaunchFailed"),
    ],
)
def test_aws_7_4_each_other_code_has_a_reason_and_says_what_to_do(
    code: str, message: str, reason: str
) -> None:
    error = launch_failed("default-abcde", code, message or f"no {code}")
    assert error.reason == reason
    assert code in str(error)
    assert "; hint: " in str(error)


@pytest.mark.parametrize(("reason", "code", "message", "hint"), WORDED, ids=[each[0] for each in WORDED])
def test_aws_7_4_where_a_code_means_many_things_the_message_decides_what_to_do(
    reason: str, code: str, message: str, hint: str
) -> None:
    error = launch_failed("default-abcde", code, message)
    assert error.reason == reason
    assert hint in error.hint


def test_aws_7_4_three_ways_to_lack_a_permission_have_three_ways_out() -> None:
    action = "User: arn:aws:sts::1:assumed-role/c is not authorized to perform: ec2:RunInstances"
    because = {
        "with an explicit deny in a permissions boundary": "the permissions boundary of the controller",
        "with an explicit deny in a service control policy": "a service control policy of the AWS",
        "because no identity-based policy allows the ec2:RunInstances action": "allow ec2:RunInstances",
    }
    for words, hint in because.items():
        error = launch_failed("default-abcde", "UnauthorizedOperation", f"{action} {words}")
        assert error.reason == "Unauthorized"
        assert error.hint.startswith(hint)
