"""Whether launches with a node class would be allowed is known before a pod waits for one."""

from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import (
    VALIDATION,
    CloudError,
    CloudUnavailable,
    CredentialsRefused,
    NodeClassUnresolved,
)
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.model.pools import EC2_NODE_CLASS, MetadataOptions, NodeClass, Reference, SelectorTerm
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, the_pool

CLASS = replace(NODE_CLASS, reference=Reference(EC2_NODE_CLASS, "default", "uid-1"))
POOL = the_pool("m5.large")
REFUSED = {"code": "UnauthorizedOperation", "message": "not you", "status": 403}


def rehearsed(aws: LocalAws) -> list[tuple[str, dict[str, Any]]]:
    """Name and parameters of each dry run so far, in their order."""
    calls = [call for call in aws.calls() if call.get("parameters", {}).get("DryRun")]
    return [(str(call["action"]), call["parameters"]) for call in calls]


async def is_validated(provider: AwsProvider, node_class: NodeClass = CLASS) -> bool:
    return provider.is_validated(node_class, await provider.resolve(node_class))


async def test_a_launch_is_rehearsed_once_in_half_an_hour_and_makes_nothing_but_its_template(
    aws: LocalAws, world: World
) -> None:
    now = [1_800_000_000.0]
    async with a_provider(clock=lambda: now[0]) as provider:
        assert not await is_validated(provider)
        await provider.validate((POOL,), CLASS)
        assert await is_validated(provider)
        (fleet, asked), (run, request) = rehearsed(aws)
        assert (fleet, run) == ("CreateFleet", "RunInstances")
        (config,) = asked["LaunchTemplateConfigs"]
        assert {override["InstanceType"] for override in config["Overrides"]} == {"m5.large"}
        (template,) = aws.client("ec2").describe_launch_templates(MaxResults=200)["LaunchTemplates"]
        assert request["LaunchTemplate"]["LaunchTemplateName"] == template["LaunchTemplateName"]
        assert request["SubnetId"] in world.subnets
        assert aws.client("ec2").describe_instances()["Reservations"] == []

        aws.forget_calls()
        await provider.warm(POOL, CLASS)
        assert "CreateLaunchTemplate" not in {call["action"] for call in aws.calls()}
        now[0] += 1799
        await provider.validate((POOL,), CLASS)
        assert rehearsed(aws) == []
        now[0] += 1
        await provider.validate((POOL,), CLASS)
        assert [name for name, _ in rehearsed(aws)] == ["CreateFleet", "RunInstances"]


@pytest.mark.parametrize("operation", ["CreateLaunchTemplate", "CreateFleet", "RunInstances"])
async def test_a_class_whose_launches_are_forbidden_holds_its_pools_until_they_are_allowed(
    aws: LocalAws, world: World, operation: str
) -> None:
    now = [1_800_000_000.0]
    aws.set_faults(errors={operation: REFUSED})
    async with a_provider(clock=lambda: now[0]) as provider:
        # Nothing waits for what is not known yet.
        assert await provider.catalog(POOL, CLASS)
        with pytest.raises(NodeClassUnresolved, match=f"hint: allow ec2:{operation}") as caught:
            await provider.validate((POOL,), CLASS)
        assert (caught.value.what, caught.value.reason) == (VALIDATION, f"{operation}AuthCheckFailed")
        for held in (provider.catalog(POOL, CLASS), provider.warm(POOL, CLASS), provider.resolve(CLASS)):
            with pytest.raises(NodeClassUnresolved, match="not you"):
                await held
        assert await provider.catalog(POOL, NODE_CLASS)

        aws.set_faults()
        aws.forget_calls()
        now[0] += 59
        with pytest.raises(NodeClassUnresolved):
            await provider.validate((POOL,), CLASS)
        assert rehearsed(aws) == []
        now[0] += 1
        await provider.validate((POOL,), CLASS)
        assert await is_validated(provider)
        assert await provider.catalog(POOL, CLASS)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("RequestLimitExceeded", 503, CloudUnavailable),
        ("InternalError", 500, CloudUnavailable),
        ("AuthFailure", 401, CredentialsRefused),
    ],
)
async def test_what_says_nothing_of_permissions_is_not_tried_again_at_once_and_holds_nothing(
    aws: LocalAws, world: World, code: str, status: int, error: type[Exception]
) -> None:
    async with a_provider() as provider:
        for operation in ("CreateFleet", "RunInstances"):
            aws.forget_calls()
            aws.set_faults(errors={operation: {"code": code, "status": status}})
            with pytest.raises(error):
                await provider.validate((POOL,), CLASS)
            asked = [call for call in aws.calls() if call["action"] == operation]
            assert len(asked) == 1
            assert not await is_validated(provider)
            assert await provider.catalog(POOL, CLASS)
        aws.set_faults()
        await provider.validate((POOL,), CLASS)
        assert await is_validated(provider)


@pytest.mark.parametrize(
    ("code", "message", "reason", "hint"),
    [
        (
            "InvalidParameter",
            "Security group sg-1 and subnet subnet-2 belong to different networks.",
            "SecurityGroupSubnetVPCMismatch",
            "of one VPC",
        ),
        ("AuthFailure", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure", "share the image"),
    ],
)
async def test_aws_7_4_what_else_ec2_says_of_a_rehearsal_is_told_by_its_reason_and_with_what_to_do(
    aws: LocalAws, world: World, code: str, message: str, reason: str, hint: str
) -> None:
    aws.set_faults(errors={"RunInstances": {"code": code, "message": message, "status": 400}})
    async with a_provider() as provider:
        with pytest.raises(CloudError, match=f"{code}.*hint: .*{hint}") as caught:
            await provider.validate((POOL,), CLASS)
        assert not isinstance(caught.value, NodeClassUnresolved)
        assert caught.value.reason == reason
        assert await provider.catalog(POOL, CLASS)


async def test_aws_7_4_user_data_that_ec2_finds_too_long_refuses_the_class(
    aws: LocalAws, world: World
) -> None:
    too_long = {"code": "InvalidUserData.Malformed", "message": "User data is limited to 16384 bytes"}
    aws.set_faults(errors={"CreateLaunchTemplate": {**too_long, "status": 400}})
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match=r"hint: shorten spec\.userData") as caught:
            await provider.validate((POOL,), CLASS)
        assert (caught.value.what, caught.value.reason) == (VALIDATION, "UserDataSizeLimitExceeded")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("denied with an explicit deny in a service control policy", "hint: a service control policy"),
        ("denied with an explicit deny in a permissions boundary", "hint: the permissions boundary"),
        ("denied. Encoded authorization failure message: 4xyz", "sts decode-authorization-message"),
    ],
)
async def test_aws_7_4_who_denies_a_launch_is_told(
    aws: LocalAws, world: World, message: str, hint: str
) -> None:
    aws.set_faults(errors={"RunInstances": {**REFUSED, "message": message}})
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match=hint):
            await provider.validate((POOL,), CLASS)


async def test_one_subnet_in_which_launches_are_allowed_will_do(aws: LocalAws, world: World) -> None:
    aws.set_faults(errors={"RunInstances": {**REFUSED, "times": 2}})
    async with a_provider() as provider:
        await provider.validate((POOL,), CLASS)
        assert await is_validated(provider)
    calls = [call["parameters"] for call in aws.calls() if call["action"] == "RunInstances"]
    assert sorted(call["SubnetId"] for call in calls) == sorted(world.subnets)


async def test_a_subnet_stands_on_the_network_interfaces_where_the_template_has_some(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        await provider.validate((the_pool(capacity_types=("spot",)),), replace(CLASS, public_address=False))
    _, request = rehearsed(aws)[-1]
    (interface,) = request["NetworkInterfaces"]
    assert interface["SubnetId"] in world.subnets
    assert interface["Groups"] == [world.security_group]
    assert "SubnetId" not in request
    assert request["InstanceMarketOptions"] == {"MarketType": "spot"}


@pytest.mark.parametrize(
    ("capacity_type", "more"), [("on-demand", set()), ("spot", {"spot-instances-request"})]
)
async def test_policies_that_ask_for_tags_and_for_metadata_tokens_see_both_in_a_rehearsal(
    aws: LocalAws, world: World, capacity_type: str, more: set[str]
) -> None:
    """They look at the request itself, not at the launch template that it names."""
    options = MetadataOptions("enabled", http_tokens="required", http_put_response_hop_limit=1)
    async with a_provider() as provider:
        pool = the_pool(capacity_types=(capacity_type,))
        await provider.validate((pool,), replace(CLASS, metadata_options=options, tags=(("team", "a"),)))
    _, request = rehearsed(aws)[-1]
    tagged = {each["ResourceType"]: each["Tags"] for each in request["TagSpecifications"]}
    assert tagged.keys() == {"instance", "volume", "network-interface"} | more
    assert all({"Key": "team", "Value": "a"} in tags for tags in tagged.values())
    assert request["MetadataOptions"]["HttpTokens"] == "required"
    assert request["MetadataOptions"]["HttpPutResponseHopLimit"] == 1


async def test_reservations_in_several_zones_are_rehearsed_by_one_of_them(
    aws: LocalAws, world: World
) -> None:
    for zone in ("us-east-1a", "us-east-1b"):
        aws.reserve("m5.large", zone, kind="default")
    reserving = replace(CLASS, capacity_reservations=(SelectorTerm(match_criteria="targeted"),))
    pool = the_pool("m5.large", capacity_types=("reserved",))
    async with a_provider() as provider:
        await provider.validate((pool,), reserving)
        assert await is_validated(provider, reserving)
    (_, asked), (_, request) = rehearsed(aws)
    configs = asked["LaunchTemplateConfigs"]
    assert len(configs) == 2
    template = request["LaunchTemplate"]["LaunchTemplateName"]
    (config,) = [
        config
        for config in configs
        if config["LaunchTemplateSpecification"]["LaunchTemplateName"] == template
    ]
    assert request["SubnetId"] in {override["SubnetId"] for override in config["Overrides"]}


async def test_a_class_that_changes_or_that_no_pool_uses_is_checked_too(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.validate((), CLASS)
        assert await is_validated(provider)
        changed = replace(CLASS, tags=(("team", "a"),), generation=2)
        assert not await is_validated(provider, changed)
        await provider.validate((), changed)
        assert await is_validated(provider, changed)
    assert [name for name, _ in rehearsed(aws)] == ["CreateFleet", "RunInstances"] * 2


@pytest.mark.parametrize("dry_runs", [True, False])
async def test_who_turns_dry_runs_off_has_none_and_generation_one_is_asked_at_start_alone(
    aws: LocalAws, world: World, dry_runs: bool
) -> None:
    aws.set_faults(errors={"RunInstances": REFUSED})
    async with a_provider(settings=replace(SETTINGS, dry_runs=dry_runs)) as provider:
        await provider.start()
        node_class = NODE_CLASS if dry_runs else CLASS
        await provider.validate((POOL,), node_class)
        assert await is_validated(provider, node_class)
    assert [name for name, _ in rehearsed(aws)] == ["DescribeInstanceTypes"] * dry_runs
