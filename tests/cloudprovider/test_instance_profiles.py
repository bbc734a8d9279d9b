"""Given an EC2NodeClass that names a role, expect one instance profile for it, whatever happens between."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudUnavailable, LaunchFailed, NodeClassUnresolved
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.instance_profiles import InstanceProfiles
from nodeless.cloudprovider.aws.made_profiles import MadeProfiles
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.instance_profiles import wanted_profile
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, Reference
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import DISCOVERY, POOL, the_claim

OWN = NodeClass(
    Reference(EC2_NODE_CLASS, "own", "uid-1"),
    subnets=DISCOVERY,
    security_groups=DISCOVERY,
    role="nodes",
    tags=(("team", "a"), ("karpenter.k8s.aws/ec2nodeclass", "stolen")),
)
PATH = "/karpenter/us-east-1/demo/uid-1/"
TAGS = {
    "karpenter.k8s.aws/ec2nodeclass": "own",
    "eks:eks-cluster-name": "demo",
    "kubernetes.io/cluster/demo": "owned",
    "topology.kubernetes.io/region": "us-east-1",
    "team": "a",
}
WANTED = wanted_profile("us-east-1", "demo", OWN, {})


@pytest.fixture
def iam(aws: LocalAws, world: World) -> Any:
    return aws.client("iam")


@asynccontextmanager
async def profiles(*, reads_only: bool = False, **settings: Any) -> AsyncIterator[InstanceProfiles]:
    """The part by itself, as a process that has just started has it."""
    session = AwsSession("us-east-1")
    try:
        yield InstanceProfiles(session, time.time, replace(SETTINGS, **settings), reads_only=reads_only)
    finally:
        await session.close()


def standing(iam: Any, path: str = "/karpenter/") -> dict[str, list[str]]:
    """Roles by profile, of those under a path."""
    found = iam.list_instance_profiles(PathPrefix=path)["InstanceProfiles"]
    return {each["InstanceProfileName"]: [role["RoleName"] for role in each["Roles"]] for each in found}


def called(aws: LocalAws) -> list[str]:
    return [call["action"] for call in aws.calls() if "InstanceProfile" in call["action"]]


async def test_a_role_gets_one_profile_that_says_whose_it_is(aws: LocalAws, iam: Any) -> None:
    async with profiles() as ours:
        name = await ours.select(OWN)
        assert name == WANTED.name
        assert name.startswith("demo_")
        record = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        assert (record["Path"], standing(iam)) == (PATH, {name: ["nodes"]})
        assert {tag["Key"]: tag["Value"] for tag in record["Tags"]} == TAGS
        aws.forget_calls()
        assert await ours.select(OWN) == name
        assert called(aws) == []
    async with profiles() as next_leader:
        assert await next_leader.select(OWN) == name
        assert called(aws) == ["GetInstanceProfile"]
        assert await next_leader.select(replace(OWN, tags=(("team", "b"),))) == name
    record = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    assert {tag["Key"]: tag["Value"] for tag in record["Tags"]} == {**TAGS, "team": "b"}


async def test_iam_is_asked_again_for_the_profile_that_ec2_does_not_find_and_for_no_other(
    aws: LocalAws, iam: Any
) -> None:
    other = replace(OWN, reference=Reference(EC2_NODE_CLASS, "other", "uid-2"))
    async with profiles() as ours:
        await ours.select(OWN)
        await ours.select(other)
        ours.expire(replace(OWN, role=None, instance_profile="given"))
        ours.expire(OWN)
        aws.forget_calls()
        await ours.select(other)
        assert called(aws) == []
        await ours.select(OWN)
        assert called(aws) == ["GetInstanceProfile"]


async def test_who_names_a_profile_or_none_asks_iam_nothing(aws: LocalAws, iam: Any) -> None:
    aws.forget_calls()
    async with profiles() as ours:
        assert await ours.select(replace(OWN, role=None, instance_profile="given")) == "given"
        assert await ours.select(replace(OWN, role=None)) == "nodes"
    async with profiles(reads_only=True) as onlooker:
        assert await onlooker.select(OWN) == WANTED.name
    assert called(aws) == []


@pytest.mark.parametrize("cut", ["made", "wrong role", "create unanswered", "add unanswered"])
async def test_a_crash_between_any_two_calls_leaves_one_profile_with_its_role(
    aws: LocalAws, iam: Any, cut: str
) -> None:
    named = {"InstanceProfileName": WANTED.name}
    if cut in ("made", "wrong role"):
        iam.create_instance_profile(**named, Path=PATH)
    if cut == "wrong role":
        iam.create_role(RoleName="others", AssumeRolePolicyDocument="{}")
        iam.add_role_to_instance_profile(**named, RoleName="others")
    lost = {"create unanswered": "CreateInstanceProfile", "add unanswered": "AddRoleToInstanceProfile"}
    aws.set_faults(lost={lost[cut]: 1} if cut in lost else {})
    async with profiles() as ours:
        assert await ours.select(OWN) == WANTED.name
    assert standing(iam) == {WANTED.name: ["nodes"]}
    tags = iam.get_instance_profile(**named)["InstanceProfile"]["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == TAGS


@pytest.mark.parametrize(
    ("action", "code", "reason", "hint"),
    [
        ("GetInstanceProfile", "AccessDenied", "Unauthorized", "allow iam:GetInstanceProfile"),
        ("CreateInstanceProfile", "AccessDenied", "Unauthorized", "allow iam:CreateInstanceProfile"),
        ("AddRoleToInstanceProfile", "AccessDenied", "Unauthorized", "allow iam:AddRoleToInstanceProfile"),
        ("CreateInstanceProfile", "LimitExceeded", "QuotaExceeded", "raise IAM's quota"),
        ("AddRoleToInstanceProfile", "NoSuchEntity", "RoleNotFound", "correct spec.role"),
        ("CreateInstanceProfile", "ValidationError", "InstanceProfileFailed", "spec.instanceProfile"),
    ],
)
async def test_a_refusal_is_a_fault_of_the_node_class_until_it_is_lifted(
    aws: LocalAws, iam: Any, action: str, code: str, reason: str, hint: str
) -> None:
    aws.set_faults(errors={action: {"code": code, "status": 403}})
    async with profiles() as ours:
        with pytest.raises(NodeClassUnresolved, match="role nodes") as refused:
            await ours.select(OWN)
        assert (refused.value.what, refused.value.reason) == ("role", reason)
        assert hint in refused.value.hint
        assert "spec.instanceProfile" in refused.value.hint or reason == "RoleNotFound"
        aws.set_faults()
        await ours.select(OWN)
    assert standing(iam) == {WANTED.name: ["nodes"]}


async def test_a_role_that_does_not_exist_is_named(aws: LocalAws, iam: Any) -> None:
    async with profiles() as ours:
        with pytest.raises(NodeClassUnresolved, match="role typo") as refused:
            await ours.select(replace(OWN, role="some/path/typo"))
    assert refused.value.reason == "RoleNotFound"


async def test_iam_out_of_reach_is_told_where_the_network_is_isolated(aws: LocalAws, iam: Any) -> None:
    aws.set_faults(unreachable=True)
    async with profiles(isolated_vpc=True) as ours:
        with pytest.raises(NodeClassUnresolved) as refused:
            await ours.select(OWN)
        assert refused.value.reason == "IamUnreachable"
        # A class without a role does not wait for IAM either.
        assert await ours.delete_of(replace(OWN, role=None, instance_profile="given")) == 0
    aws.set_faults()


async def test_a_class_with_a_role_can_be_deleted_where_the_network_is_isolated_from_iam(
    aws: LocalAws, iam: Any
) -> None:
    aws.set_faults(unreachable=True)
    async with profiles(isolated_vpc=True) as ours:
        assert await ours.delete_of(OWN) == 0
    async with profiles() as ours:
        with pytest.raises(CloudUnavailable):
            await ours.delete_of(OWN)
    aws.set_faults(errors={"ListInstanceProfiles": {"code": "Throttling", "status": 400}})
    async with profiles(isolated_vpc=True) as ours:
        with pytest.raises(CloudUnavailable, match="Throttling"):
            await ours.delete_of(OWN)
    aws.set_faults()
    async with profiles(isolated_vpc=True) as ours:
        await ours.select(OWN)
        assert standing(iam)
        assert await ours.delete_of(OWN) == 1
        assert not standing(iam)


async def test_a_profile_of_somebody_else_is_left_alone(aws: LocalAws, iam: Any) -> None:
    iam.create_instance_profile(InstanceProfileName=WANTED.name, Path="/theirs/")
    async with profiles() as ours:
        with pytest.raises(NodeClassUnresolved, match="/theirs/"):
            await ours.select(OWN)
    assert standing(iam, "/theirs/") == {WANTED.name: []}


async def test_another_role_is_another_profile_and_the_old_one_goes_when_nothing_uses_it(
    aws: LocalAws, iam: Any
) -> None:
    iam.create_role(RoleName="others", AssumeRolePolicyDocument="{}")
    changed = replace(OWN, role="others")
    unread = NodeClass(Reference(EC2_NODE_CLASS, "unread", "uid-2"), invalid="cannot be read")
    kept = replace(OWN, reference=Reference(EC2_NODE_CLASS, "unread", "uid-2"))
    async with profiles() as ours:
        old, new, third = [await ours.select(each) for each in (OWN, changed, kept)]
        assert len({old, new, third}) == 3
        for _ in range(3):
            assert await ours.sweep((changed, unread), in_use={old}) == 0
        # A launch may be under way with it: at the first sweep without use it stays.
        assert await ours.sweep((changed, unread), in_use=()) == 0
        assert await ours.sweep((changed, unread), in_use=()) == 1
        assert standing(iam) == {new: ["others"], third: ["nodes"]}
    assert standing(iam, "/").keys() == {new, third, "nodes"}


@pytest.mark.parametrize("denied", [(), ("ListInstanceProfiles",)])
async def test_a_deleted_class_takes_its_profiles_along_and_gets_none_anew(
    aws: LocalAws, iam: Any, denied: tuple[str, ...]
) -> None:
    other = replace(OWN, reference=Reference(EC2_NODE_CLASS, "other", "uid-2"))
    async with profiles() as ours:
        await ours.select(OWN)
        kept = await ours.select(other)
        # As a crash leaves it, between the two calls of its end.
        iam.remove_role_from_instance_profile(InstanceProfileName=WANTED.name, RoleName="nodes")
        aws.set_faults(errors={action: {"code": "AccessDenied", "status": 403} for action in denied})
        assert await ours.delete_of(OWN) == 1
        assert await ours.delete_of(OWN) == 0
        assert await ours.select(OWN) == WANTED.name
        aws.set_faults()
        assert standing(iam) == {kept: ["nodes"]}
        assert await ours.delete_all() == 1
    assert standing(iam) == {}


async def test_who_may_not_even_look_has_made_none(aws: LocalAws, iam: Any) -> None:
    refused = {"code": "AccessDenied", "status": 403}
    aws.set_faults(errors={"ListInstanceProfiles": refused, "GetInstanceProfile": refused})
    async with profiles() as ours:
        assert await ours.delete_of(OWN) == await ours.delete_all() == 0


async def test_an_end_that_is_refused_is_told_and_goes_on_later(aws: LocalAws, iam: Any) -> None:
    async with profiles() as ours:
        await ours.select(OWN)
        aws.set_faults(errors={"DeleteInstanceProfile": {"code": "ServiceFailure", "status": 400}})
        with pytest.raises(AwsCallRefused, match="iam:DeleteInstanceProfile"):
            await ours.delete_of(OWN)
        aws.set_faults()
        assert await ours.delete_of(OWN) == 1
    assert standing(iam) == {}


async def test_what_is_not_there_is_deleted_already(aws: LocalAws, iam: Any) -> None:
    session = AwsSession("us-east-1")
    assert await MadeProfiles(session).delete("nobody") is False
    await session.close()


async def test_a_launch_waits_until_ec2_knows_the_new_profile(aws: LocalAws, world: World) -> None:
    claim = replace(the_claim(), node_class=OWN.reference)
    async with a_provider() as provider:
        aws.set_faults(profiles=3600)
        await provider.warm(POOL, OWN)
        with pytest.raises(LaunchFailed, match="a few seconds") as refused:
            await provider.launch(claim, POOL, OWN)
        assert refused.value.reason == "InstanceProfileNameInvalid"
        aws.set_faults()
        made = await provider.launch(claim, POOL, OWN)
        (instance,) = await provider.instances()
        assert (instance.id, instance.instance_profile) == (made.id, WANTED.name)
        assert standing(aws.client("iam")) == {WANTED.name: ["nodes"]}

        # The role is changed: what runs keeps its profile.
        assert [await provider.sweep_instance_profiles(()) for _ in range(3)] == [0, 0, 0]
        assert await provider.terminate(made.id)
        assert await provider.clean_up(OWN) == 1
        assert not provider._warmed
        assert await provider._templates.names() == []


async def test_a_profile_that_somebody_deleted_is_made_again(aws: LocalAws, iam: Any) -> None:
    claim = replace(the_claim(), node_class=OWN.reference)
    async with a_provider() as provider:
        await provider.warm(POOL, OWN)
        named = {"InstanceProfileName": WANTED.name}
        iam.remove_role_from_instance_profile(**named, RoleName="nodes")
        iam.delete_instance_profile(**named)
        with pytest.raises(LaunchFailed, match="InvalidParameterValue"):
            await provider.launch(claim, POOL, OWN)
        assert (await provider.launch(claim, POOL, OWN)).id
    assert standing(iam) == {WANTED.name: ["nodes"]}
