"""Answers that are none of AWS's are refused before anybody keeps them or acts upon them."""

import asyncio
import os
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.answers import UnreadableAnswerError, assert_complete, assert_form
from nodeless.cloudprovider.aws.instance_records import read_instance
from nodeless.launch.results import read_answer
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, launched, made_by

AT = datetime(2024, 5, 1, tzinfo=UTC)
OVERRIDES = {"SubnetId": "subnet-0a1b2c3d", "AvailabilityZone": "us-east-1a", "InstanceType": "m5.large"}
INSTANCE = {
    "InstanceId": "i-0123456789abcdef0",
    "InstanceType": "m5.large",
    "LaunchTime": AT,
    "Placement": {"AvailabilityZone": "us-east-1a", "Tenancy": "default"},
    "State": {"Code": 16, "Name": "running"},
    "Tags": [{"Key": "karpenter.sh/nodeclaim", "Value": "default-abcde"}],
}
HONEST: dict[tuple[str, str], dict[str, Any]] = {
    ("ec2", "CreateFleet"): {
        "FleetId": "fleet-1",
        "Instances": [
            {
                "InstanceIds": ["i-0123456789abcdef0"],
                "InstanceType": "m5.large",
                "Lifecycle": "spot",
                "LaunchTemplateAndOverrides": {"Overrides": OVERRIDES},
            }
        ],
        "Errors": [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "none left"}],
    },
    ("ec2", "DescribeInstances"): {"Reservations": [{"Instances": [INSTANCE, deepcopy(INSTANCE)]}]},
    ("ec2", "DescribeSubnets"): {
        "Subnets": [
            {
                "SubnetId": "subnet-0a1b2c3d",
                "AvailabilityZone": "us-east-1a",
                "AvailabilityZoneId": "use1-az1",
                "AvailableIpAddressCount": 4091,
            }
        ]
    },
    ("eks", "DescribeCluster"): {
        "cluster": {
            "arn": "arn:aws:eks:us-east-1:123456789012:cluster/demo",
            "certificateAuthority": {"data": "Q0E="},
            "endpoint": "https://demo.example",
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"},
            "version": "1.29",
        }
    },
    ("sts", "AssumeRoleWithWebIdentity"): {
        "Credentials": {
            "AccessKeyId": "ASIAIOSFODNN7EXAMPLE",
            "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "SessionToken": "x" * 100,
            "Expiration": AT,
        }
    },
}
STRANGE = st.sampled_from(
    [
        None,
        [],
        {},
        0,
        -1,
        True,
        1.5,
        "",
        " ",
        "null",
        "NaN",
        "not-known-yet",
        "\u202e",
        "9" * 30,
        "x" * 200_000,
    ]
)
REMOVED = object()


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all members and entries."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, value in inner for place in ((*path, key), *places(value, (*path, key)))]


@st.composite
def changed(draw: st.DrawFn, honest: dict[str, Any]) -> dict[str, Any]:
    """An answer of which one to three members are gone or say something else."""
    answer = deepcopy(honest)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(answer) or [()]))
        if not path:
            return answer
        node = answer
        for key in path[:-1]:
            node = node[key]
        value = draw(STRANGE | st.just(REMOVED))
        if value is REMOVED:
            del node[path[-1]]  # type: ignore[arg-type]
        else:
            node[path[-1]] = value
    return answer


def read(operation: str, answer: dict[str, Any]) -> list[str]:
    """The ids that the readers make of it."""
    if operation == "CreateFleet":
        return [instance.id for instance in read_answer(answer, "spot").instances]
    if operation == "DescribeInstances":
        return [
            read_instance(instance).id for group in answer["Reservations"] for instance in group["Instances"]
        ]
    return []


@pytest.mark.parametrize("strange", [None, {}, "", 0], ids=repr)
def test_what_stands_in_place_of_a_list_is_refused(strange: object) -> None:
    answer = {"Reservations": [{"Instances": [{**INSTANCE, "Tags": strange}]}]}
    with pytest.raises(UnreadableAnswerError, match="Tags"):
        assert_complete("ec2", "DescribeInstances", answer)
    assert_complete("ec2", "DescribeInstances", {"Reservations": [{"Instances": [{**INSTANCE, "Tags": []}]}]})


@pytest.mark.parametrize("call", HONEST, ids=lambda call: call[1])
def test_an_honest_answer_is_taken(call: tuple[str, str]) -> None:
    assert_complete(*call, HONEST[call])


@pytest.mark.parametrize(
    ("zone", "identifier"),
    [
        ("us-gov-west-1a", "usgw1-az1"),
        ("us-west-2-lax-1a", "usw2-lax1-az1"),
        ("us-east-1-wl1-bos-wlz-1", "use1-wl1-bos-wlz1"),
        ("cn-northwest-1b", "cnnw1-az2"),
        ("us-isob-east-1a", "usibe1-az1"),
    ],
)
@pytest.mark.parametrize("name", ["u-6tb1.112xlarge", "m5.metal-24xl", "mac2-m2pro.metal", "t3.nano"])
def test_names_of_every_partition_and_kind_of_zone_are_taken(zone: str, identifier: str, name: str) -> None:
    subnet = {**HONEST["ec2", "DescribeSubnets"]["Subnets"][0], "AvailabilityZone": zone}
    assert_complete("ec2", "DescribeSubnets", {"Subnets": [{**subnet, "AvailabilityZoneId": identifier}]})
    instance = {**INSTANCE, "InstanceType": name, "Placement": {"AvailabilityZone": zone}}
    assert_complete("ec2", "DescribeInstances", {"Reservations": [{"Instances": [instance]}]})


@pytest.mark.parametrize("call", HONEST, ids=lambda call: call[1])
@given(st.data())
@settings(max_examples=int(os.environ.get("ANSWER_EXAMPLES", "60")), deadline=None)
def test_a_changed_answer_is_refused_or_still_of_use(call: tuple[str, str], data: st.DataObject) -> None:
    answer = data.draw(changed(HONEST[call]))
    try:
        assert_complete(*call, answer)
    except UnreadableAnswerError as error:
        assert len(str(error)) < 200
        assert str(error).isprintable()
        return
    assert all(each.startswith("i-") for each in read(call[1], answer))


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("ec2", b"<!DOCTYPE html><html><head/><body>nginx</body></html>"),
        ("ec2", b'<?xml version="1.0"?><Response><Errors/></Response>'),
        ("query", b""),
        ("query", b"<GetRoleResponse/>"),
        ("json", b"<html/>"),
        ("json", b"[]"),
        ("json", b"null"),
        ("rest-json", b""),
    ],
)
def test_a_document_that_is_not_of_the_call_is_refused(protocol: str, body: bytes) -> None:
    with pytest.raises(UnreadableAnswerError, match="its document"):
        assert_form(protocol, "DescribeSubnets", body, speaks=True)


@pytest.mark.parametrize(
    "body",
    [
        b'<?xml version="1.0" encoding="UTF-8"?>\n\n<!-- id --><DescribeSubnetsResponse xmlns="x"/>',
        b"<ns:DescribeSubnetsResponse/>",
    ],
)
def test_a_document_of_the_call_is_taken(body: bytes) -> None:
    assert_form("ec2", "DescribeSubnets", body, speaks=True)


async def learned(provider: AwsProvider) -> tuple[Any, ...]:
    resolved = await provider.resolve(NODE_CLASS)
    types = await provider.catalog(POOL, NODE_CLASS)
    subnets = tuple((subnet.id, subnet.zone, subnet.zone_id) for subnet in resolved.subnets)
    images = tuple(image.id for image in resolved.images)
    return subnets, resolved.security_groups, images, tuple(type_.name for type_ in types)


async def settled(provider: AwsProvider) -> None:
    """Wait for what is fetched behind the askers' backs."""
    resolver = provider._resolver
    caches = (resolver._subnets._cache, resolver._security_groups._cache, resolver._images._default)
    async with asyncio.timeout(60):
        while any(cache._fetches for cache in (*caches, provider._types._cache)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", range(int(os.environ.get("GARBLED_SEEDS", "1"))))
async def test_what_garbled_answers_said_is_forgotten_after_two_minutes(
    aws: LocalAws, world: World, number: int
) -> None:
    """All of AWS but prices, of which nothing is bought; types are fetched, whatever other tests know."""
    async with a_provider() as honest:
        expected = await learned(honest)
    now = [1_800_000_000.0]
    seed = int(os.environ.get("GARBLED_SEED", Random().randrange(10**6))) + number
    print(f"seed {seed}")  # noqa: T201
    async with a_provider(clock=lambda: now[0]) as provider:
        provider._types._cache.forget()
        actions = ["DescribeSubnets", "DescribeSecurityGroups", "GetParameter", "DescribeInstanceTypes"]
        aws.set_faults(
            garbled={
                "chance": 0.7,
                "seed": seed,
                "actions": [*actions, "DescribeInstanceTypeOfferings", "CreateFleet", "DescribeInstances"],
            }
        )
        for name in "abc":
            for attempt in (learned(provider), launched(provider, name), provider.instances()):
                # No error but the cloud's own: nothing was read that could not be.
                with suppress(CloudError):
                    await attempt
            await settled(provider)
            now[0] += 61
        aws.set_faults()
        for _ in range(2):
            with suppress(CloudError):
                await learned(provider)
            await settled(provider)
            now[0] += 61
        assert await learned(provider) == expected
        bought = {instance["InstanceId"] for instance in aws.instances()}
        assert {(await launched(provider, name)).id for name in "abc"} >= bought
        assert len(made_by(aws, "CreateFleet")) <= 3 * 9


async def test_an_instance_that_an_answer_tells_of_twice_is_not_ended_as_one_too_many() -> None:
    answer = deepcopy(HONEST["ec2", "CreateFleet"])
    answer["Instances"] *= 2
    read_twice = read_answer(answer, "spot")
    assert ([instance.id for instance in read_twice.instances], read_twice.surplus) == (
        ["i-0123456789abcdef0"],
        (),
    )
