"""The policies of the component grant what the controller calls, all of it, and nothing else."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, Reference, SelectorTerm
from pulumi_nodeless.controller_identity import POLICIES as POLICIES_BY_NAME
from pulumi_nodeless.controller_identity import SCOPED as DEFAULT
from pulumi_nodeless.policies import Subject, article_policy, controller_policy
from pulumi_nodeless.scoped_policy import scoped_controller_policy
from tests.cloudprovider.authorization import ACCOUNT, REGION, Need, Needs, allowed_by, granted_actions
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, the_claim, the_pool

ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
SUBJECT = Subject(
    partition="aws",
    region=REGION,
    account=ACCOUNT,
    dns_suffix="amazonaws.com",
    cluster="demo",
    node_role_arn=ROLE,
    interruption_queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:demo",
)
COMPATIBILITY = Path(__file__).parents[2] / "docs" / "compatibility.md"
POLICIES = [controller_policy, scoped_controller_policy]
#: EC2 allows these to nobody by themselves: they come with a launch.
IMPLIED = {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}
SELECTED = replace(NODE_CLASS, images=(SelectorTerm(names=("amazon-eks-node-*",)),))
OF_ROLE = replace(NODE_CLASS, reference=Reference(EC2_NODE_CLASS, "of-role", "uid-1"), role="nodes")
ELSEWHERE = replace(
    OF_ROLE,
    reference=Reference(EC2_NODE_CLASS, "reserved", "uid-2"),
    capacity_reservations=(SelectorTerm(match_criteria="targeted"),),
    placement_group="own",
)
RESERVED = replace(the_pool(capacity_types=("reserved",)), reference=Reference(NODE_POOL_KIND, "reserved"))
SPOTTY = replace(the_pool(capacity_types=("spot",)), reference=Reference(NODE_POOL_KIND, "spotty"))


@pytest.fixture
def controller(aws: LocalAws, world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user of its own for the provider, so that its calls are told from the test's; gives back its ARN."""
    iam = aws.client("iam")
    arn = str(iam.create_user(UserName="controller")["User"]["Arn"])
    key = iam.create_access_key(UserName="controller")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    return arn


def documented_lacks() -> set[str]:
    """The actions that the page on compatibility says `permissions: article` lacks."""
    title = "| Calls that `permissions: article` does not allow |"
    (row,) = [line for line in COMPATIBILITY.read_text().splitlines() if line.startswith(title)]
    return set(re.findall(r"`([a-z0-9-]+:[A-Za-z]+)`", row.split(" | ")[2]))


@asynccontextmanager
async def a_fresh_provider(aws: LocalAws, world: World) -> AsyncIterator[AwsProvider]:
    """One that knows nothing yet and has everything to find: the cluster's endpoint, the queue's messages."""
    aws.set_cluster(endpoint="https://demo.example", certificate_authority_data="Q0E=", issuer="https://i")
    role = aws.client("iam").get_role(RoleName="nodes")["Role"]["Arn"]
    aws.client("eks").create_cluster(
        name="demo",
        roleArn=role,
        resourcesVpcConfig={"subnetIds": world.subnets},
        zonalShiftConfig={"enabled": True},
    )
    url = aws.client("sqs").create_queue(QueueName="demo")["QueueUrl"]
    aws.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps({"source": "nobody"}))
    settings = replace(SETTINGS, cluster_endpoint="", interruption_queue="demo", zonal_shift=True)
    async with a_provider(settings=settings) as provider:
        provider._types._cache.forget()
        for half in (provider._pricing._on_demand, provider._pricing._spot):
            half._due = 0.0
        yield provider


async def a_life(provider: AwsProvider, aws: LocalAws) -> Needs:
    """Start, pools of both generations, launches, look-ups, warnings, the end; what these calls need."""
    await provider.start()
    aws.client("ec2").create_placement_group(GroupName="own", Strategy="spread")
    aws.reserve("m5.large", "us-east-1a", kind="default")
    made = []
    for number, (pool, node_class) in enumerate(
        ((the_pool(), SELECTED), (SPOTTY, OF_ROLE), (the_pool(), NODE_CLASS), (RESERVED, ELSEWHERE))
    ):
        await provider.validate((pool,), node_class)
        await provider.warm(pool, node_class)
        claim = replace(the_claim(f"claim-{number}", pool), pool=pool.reference)
        made.append(await provider.launch(claim, pool, node_class))
    assert [each.capacity_type for each in made] == ["on-demand", "spot", "on-demand", "reserved"]
    assert len(await provider.instances()) == 4
    assert await provider.impaired_instances() == ()
    assert await provider.forget_interruptions(await provider.interruptions()) == 1
    await asyncio.gather(*(provider.find(each.id) for each in made))
    joined = replace(claim, provider_id=made[-1].provider_id, node_name="ip-10-0-0-1.ec2.internal")
    assert [await provider.tag(joined), await provider.tag(joined)] == [True, False]
    # A tag more on the node class is one more on its instance profile.
    await provider.warm(SPOTTY, replace(OF_ROLE, tags=(("team", "a"),)))
    assert await provider.sweep_instance_profiles((OF_ROLE, ELSEWHERE)) == 0
    needs = Needs(aws.client("ec2"), aws.client("iam"), ROLE)
    await provider.reboot(made[0].id)
    assert all(await asyncio.gather(*(provider.terminate(each.id) for each in made)))
    assert await provider.delete_launch_templates() == 5
    assert await provider.clean_up(OF_ROLE) == 1
    assert await provider.delete_instance_profiles() == 1
    return needs


async def test_both_policies_grant_every_call_and_grant_nothing_that_is_never_called(
    aws: LocalAws, world: World, controller: str
) -> None:
    aws.forget_calls()
    async with a_fresh_provider(aws, world) as provider:
        needs = await a_life(provider, aws)
    calls = [call for call in aws.calls() if call["principal"] == controller]
    assert {call.get("error") for call in calls} <= {None, "DryRunOperation"}
    rehearsals = {call["action"] for call in calls if call.get("error")}
    assert rehearsals == {"DescribeInstanceTypes", "CreateFleet", "RunInstances"}
    needed = {need for call in calls for need in needs.of(call)}
    assert {need.action for need in needed} >= IMPLIED
    for make in POLICIES:
        policy = make(SUBJECT)
        assert [need for need in needed if not allowed_by(policy, need)] == [], make.__name__
        assert granted_actions(policy) == {need.action for need in needed}, make.__name__
        used = {sid for need in needed for sid in allowed_by(policy, need)}
        assert used == {statement["Sid"] for statement in policy["Statement"]}, make.__name__

    article = article_policy(SUBJECT)
    lacking = {need.action for need in needed if not allowed_by(article, need)}
    assert lacking == documented_lacks()
    used_of_it = {need.action for need in needed if allowed_by(article, need)}
    assert granted_actions(article) - used_of_it == {"ec2:DescribeAvailabilityZones"}


@pytest.mark.parametrize("make", POLICIES)
def test_instances_of_others_may_be_neither_ended_nor_rebooted(make: Any) -> None:
    policy = make(SUBJECT)
    instance = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"
    for tags in ({}, {"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "default"}):
        context = {f"{service}:ResourceTag/{k}": v for service in ("aws", "ec2") for k, v in tags.items()}
        for action in ("ec2:RebootInstances", "ec2:TerminateInstances"):
            assert allowed_by(policy, Need(action, instance, context)) == []


def test_the_scoped_policy_makes_nothing_without_tags_and_tags_nothing_that_stands() -> None:
    policy = scoped_controller_policy(SUBJECT)
    for kind in ("fleet", "instance", "volume", "network-interface", "launch-template"):
        resource = f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/*"
        assert allowed_by(policy, Need("ec2:RunInstances", resource)) == []
        tags = {
            "aws:RequestTag/kubernetes.io/cluster/demo": "owned",
            "aws:RequestTag/eks:eks-cluster-name": "demo",
            "aws:RequestTag/karpenter.sh/nodepool": "default",
        }
        assert allowed_by(policy, Need("ec2:RunInstances", resource, tags)) == ["MakeWithTags"]
        assert allowed_by(policy, Need("ec2:CreateTags", resource, tags)) == []
        elsewhere = tags | {"aws:RequestTag/eks:eks-cluster-name": "other"}
        assert allowed_by(policy, Need("ec2:RunInstances", resource, elsewhere)) == []


def test_by_default_the_condition_on_termination_cannot_be_stepped_around_by_tagging_first() -> None:
    policy = POLICIES_BY_NAME[DEFAULT](SUBJECT)
    tags = {
        "aws:RequestTag/kubernetes.io/cluster/demo": "owned",
        "aws:RequestTag/eks:eks-cluster-name": "demo",
        "aws:RequestTag/karpenter.sh/nodepool": "default",
    }
    for kind in ("instance/i-1", "launch-template/lt-1", "volume/vol-1", "subnet/subnet-1"):
        resource = f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}"
        for owned in ({}, {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"}):
            request = tags | {"aws:TagKeys": ",".join(key.removeprefix("aws:RequestTag/") for key in tags)}
            assert allowed_by(policy, Need("ec2:CreateTags", resource, request | owned)) == []
    # The others are what their page says that they are.
    instance = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"
    for make in (controller_policy, article_policy):
        assert allowed_by(make(SUBJECT), Need("ec2:CreateTags", instance, tags)) == ["Karpenter"]


@pytest.mark.parametrize(
    ("kind", "owner", "keys", "cluster", "granted"),
    [
        ("instance/i-1", "demo", ("Name", "karpenter.sh/nodeclaim"), None, True),
        ("instance/i-1", "demo", ("eks:eks-cluster-name",), "demo", True),
        ("instance/i-1", "demo", ("eks:eks-cluster-name",), "other", False),
        ("instance/i-1", "demo", ("Name", "karpenter.sh/nodepool"), None, False),
        ("instance/i-1", "other", ("Name",), None, False),
        ("volume/vol-1", "demo", ("Name",), None, False),
    ],
)
def test_by_default_own_instances_alone_may_be_named_for_their_nodes(
    kind: str, owner: str, keys: tuple[str, ...], cluster: str | None, granted: bool
) -> None:
    context = {
        f"aws:ResourceTag/kubernetes.io/cluster/{owner}": "owned",
        "aws:ResourceTag/karpenter.sh/nodepool": "default",
        "aws:TagKeys": ",".join(keys),
        **({"aws:RequestTag/eks:eks-cluster-name": cluster} if cluster else {}),
    }
    need = Need("ec2:CreateTags", f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}", context)
    assert allowed_by(POLICIES_BY_NAME[DEFAULT](SUBJECT), need) == (["TagOwnNodes"] if granted else [])


def test_by_default_subnets_and_reservations_may_be_shared_by_another_account() -> None:
    policy = POLICIES_BY_NAME[DEFAULT](SUBJECT)
    for kind in ("subnet/subnet-1", "capacity-reservation/cr-1", "security-group/sg-1"):
        for action in ("ec2:CreateFleet", "ec2:RunInstances"):
            shared = Need(action, f"arn:aws:ec2:{REGION}:210987654321:{kind}")
            assert allowed_by(policy, shared) == ["UseWhatNodeClassesSelect"]


@pytest.mark.parametrize("make", POLICIES)
def test_instance_profiles_of_others_may_not_be_touched(make: Any) -> None:
    policy = make(SUBJECT)
    profile = f"arn:aws:iam::{ACCOUNT}:instance-profile/theirs"
    ours = {
        "kubernetes.io/cluster/demo": "owned",
        "topology.kubernetes.io/region": REGION,
        "karpenter.k8s.aws/ec2nodeclass": "default",
    }
    there = {f"aws:ResourceTag/{key}": value for key, value in ours.items()}
    requested = {f"aws:RequestTag/{key}": value for key, value in ours.items()}
    requested["aws:RequestTag/eks:eks-cluster-name"] = "demo"
    needed = {
        "iam:CreateInstanceProfile": requested,
        "iam:TagInstanceProfile": there,
        "iam:AddRoleToInstanceProfile": there,
        "iam:RemoveRoleFromInstanceProfile": there,
        "iam:DeleteInstanceProfile": there,
    }
    for action, context in needed.items():
        assert len(allowed_by(policy, Need(action, profile, context))) == 1
        for key in context:
            lacking = {name: value for name, value in context.items() if name != key}
            assert allowed_by(policy, Need(action, profile, lacking)) == [], (action, key)
    stolen = {"aws:RequestTag/eks:eks-cluster-name": "other"}
    assert allowed_by(policy, Need("iam:TagInstanceProfile", profile, there | stolen)) == []


@pytest.mark.parametrize("make", POLICIES)
def test_only_the_nodes_role_may_be_passed_and_only_to_ec2(make: Any) -> None:
    policy = make(SUBJECT)
    to_ec2 = {"iam:PassedToService": "ec2.amazonaws.com"}
    assert allowed_by(policy, Need("iam:PassRole", ROLE, to_ec2)) == ["PassNodeIAMRole"]
    assert allowed_by(policy, Need("iam:PassRole", ROLE, {"iam:PassedToService": "x"})) == []
    assert allowed_by(policy, Need("iam:PassRole", f"{ROLE}-admin", to_ec2)) == []


@pytest.mark.parametrize("make", POLICIES)
@pytest.mark.parametrize(
    ("partition", "suffix"), [("aws-cn", "amazonaws.com.cn"), ("aws-us-gov", "amazonaws.com")]
)
def test_the_nodes_role_may_be_passed_to_ec2_by_each_of_its_names(
    make: Any, partition: str, suffix: str
) -> None:
    """In China launches pass it to `ec2.amazonaws.com.cn`, instance profiles to `ec2.amazonaws.com`."""
    role = ROLE.replace("arn:aws:", f"arn:{partition}:")
    policy = make(replace(SUBJECT, partition=partition, dns_suffix=suffix, node_role_arn=role))
    for service in {"ec2.amazonaws.com", f"ec2.{suffix}"}:
        need = Need("iam:PassRole", role, {"iam:PassedToService": service})
        assert allowed_by(policy, need) == ["PassNodeIAMRole"]
    elsewhere = Need("iam:PassRole", role, {"iam:PassedToService": f"lambda.{suffix}"})
    assert allowed_by(policy, elsewhere) == []
