"""The provider's promises, kept on the local AWS."""

import asyncio
import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import (
    CloudError,
    CloudUnavailable,
    CredentialsRefused,
    InsufficientCapacity,
    NodeClassUnresolved,
)
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.launch.claims import labels_of
from nodeless.model.hardware import CpuOptions
from nodeless.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_AMI_ID,
    INSTANCE_TYPE,
    LAUNCH_GROUP,
    LAUNCH_GROUP_SIZE,
)
from nodeless.model.memory_observations import MemoryObservations
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, Pool, Reference, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.factories import TEMPLATE, a_claim, a_pool

DISCOVERY = (SelectorTerm(tags=(("karpenter.sh/discovery", ("demo",)),)),)
NODE_CLASS = NodeClass(TEMPLATE, subnets=DISCOVERY, security_groups=DISCOVERY)


def the_pool(*types: str, capacity_types: tuple[str, ...] = ("on-demand",)) -> Pool:
    return a_pool(
        requirements=Requirements(
            [
                Requirement.of("kubernetes.io/arch", "In", ["amd64"]),
                Requirement.of(CAPACITY_TYPE, "In", capacity_types),
                Requirement.of(INSTANCE_TYPE, "In", types or ("m5.large", "m5.xlarge")),
            ]
        )
    )


POOL = the_pool()


def the_claim(name: str = "default-abcde", pool: Pool = POOL) -> NodeClaim:
    labels = labels_of(pool.requirements, pool)
    return a_claim(name, requirements=pool.requirements, requests={"cpu": 1000, "pods": 1}, labels=labels)


def made_by(aws: LocalAws, action: str) -> list[dict[str, Any]]:
    return [call for call in aws.calls() if call["action"] == action]


async def launched(provider: AwsProvider, name: str = "default-abcde", pool: Pool = POOL) -> Any:
    return await provider.launch(the_claim(name, pool), pool, NODE_CLASS)


async def test_launches_what_the_claim_asks_for(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.start()
        instance = await launched(provider)
        (described,) = await provider.instances()
        assert (instance.instance_type, instance.capacity_type) == ("m5.large", "on-demand")
        assert instance.provider_id == f"aws:///{instance.zone}/{instance.id}"
        assert described.id == instance.id
        assert described.tags["karpenter.sh/nodeclaim"] == "default-abcde"
        assert described.tags["karpenter.sh/provisioner-name"] == "default"
        assert instance.labels["karpenter.k8s.aws/instance-memory"] == "8192"
        assert instance.labels[INSTANCE_AMI_ID] == described.image_id
        assert instance.allocatable["cpu"] == 1930
        assert instance.subnet_id in world.subnets
        found = await provider.find(instance.id)
        assert found is not None
        assert found.private_dns_name.startswith("ip-10-0-")
        assert found.state == "running"


async def test_a_launch_template_says_how_nodes_join(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await launched(provider)
    (call,) = made_by(aws, "CreateLaunchTemplate")
    data = call["parameters"]["LaunchTemplateData"]
    text = base64.b64decode(data["UserData"]).decode()
    assert "/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://demo.example'" in text
    assert data["SecurityGroupIds"] == [world.security_group]


async def test_the_same_claim_gets_the_same_instance_after_a_crash(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        first = await launched(provider)
    async with a_provider() as successor:
        second = await launched(successor)
        assert second.id == first.id
        assert second.labels == first.labels
        assert second.allocatable == first.allocatable
        assert len(await successor.instances()) == 1


@pytest.mark.parametrize("group", [{}, {"annotations": {LAUNCH_GROUP: "g", LAUNCH_GROUP_SIZE: "1"}}])
async def test_a_claim_that_comes_again_under_its_name_gets_an_instance_of_its_own(
    aws: LocalAws, world: World, group: dict[str, Any]
) -> None:
    """EC2 repeats its answer to a token for a day after the end of what it launched."""
    async with a_provider() as provider:
        claim = replace(the_claim(), **group)
        first = await provider.launch(claim, POOL, NODE_CLASS)
        await provider.terminate(first.id)
        again = await provider.launch(replace(claim, uid="another"), POOL, NODE_CLASS)
        assert again.id != first.id
        assert [each.id for each in await provider.instances()] == [again.id]


async def test_two_launches_at_once_of_one_claim_make_one_instance(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider, a_provider() as other:
        await asyncio.gather(provider.warm(POOL, NODE_CLASS), other.warm(POOL, NODE_CLASS))
        one, two = await asyncio.gather(launched(provider), launched(other))
        assert one.id == two.id
        assert len(await provider.instances()) == 1


async def test_a_claim_whose_request_has_changed_since_the_crash_finds_its_instance(
    aws: LocalAws, world: World
) -> None:
    """The token is known to EC2 with another request, and the instance is there: no second one is made."""
    async with a_provider() as provider:
        first = await launched(provider)
        # as if the look-up before the launch had missed it
        order = await provider._launch_request((the_claim(),), the_pool("m5.xlarge"), NODE_CLASS)
        again = (await provider._launcher.launch(order, lambda answer: None))["default-abcde"]
        assert isinstance(again, Instance)
        assert again.id == first.id


async def test_a_warm_launch_asks_for_the_fleet_alone(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        aws.forget_calls()
        await launched(provider)
        assert {call["action"] for call in aws.calls()} == {"CreateFleet", "DescribeInstances"}


async def test_a_sold_out_type_is_replaced_and_left_alone_for_three_minutes(
    aws: LocalAws, world: World
) -> None:
    now = [1_800_000_000.0]
    aws.set_faults(capacity=[{"instanceType": "m5.large"}])
    async with a_provider(clock=lambda: now[0]) as provider:
        instance = await launched(provider)
        assert instance.instance_type == "m5.xlarge"

        async def available() -> set[str]:
            types = await provider.catalog(POOL, NODE_CLASS)
            offerings = [(type_.name, offering) for type_ in types for offering in type_.offerings]
            return {name for name, each in offerings if each.available and each.capacity_type == "on-demand"}

        assert await available() == {"m5.xlarge"}
        now[0] += 181
        assert await available() == {"m5.large", "m5.xlarge"}


async def test_nothing_to_be_had_is_insufficient_capacity_and_a_new_claim_succeeds_later(
    aws: LocalAws, world: World
) -> None:
    now = [1_800_000_000.0]
    aws.set_faults(capacity=[{}])
    async with a_provider(clock=lambda: now[0]) as provider:
        with pytest.raises(InsufficientCapacity, match="claim default-abcde: InsufficientInstanceCapacity"):
            await launched(provider)
        with pytest.raises(InsufficientCapacity, match="no instance type that the NodeClaim allows"):
            await launched(provider)
        aws.set_faults()
        now[0] += 181
        assert (await launched(provider)).instance_type == "m5.large"


async def test_a_launch_that_finds_fewer_types_than_min_values_waits_unless_they_may_be_lowered(
    aws: LocalAws, world: World
) -> None:
    types = Requirement.of(INSTANCE_TYPE, "In", ["m5.large", "m5.xlarge"], min_values=2)
    others = (each for key, each in POOL.requirements.items() if key != INSTANCE_TYPE)
    pool = replace(POOL, requirements=Requirements([*others, types]))
    node_class = replace(NODE_CLASS, context="fleet-1")
    relaxed = {"karpenter.sh/nodeclaim-min-values-relaxed": "true"}

    def contexts() -> list[str | None]:
        return [call["parameters"].get("Context") for call in made_by(aws, "CreateFleet")]

    async with a_provider() as provider:
        sold_out = tuple(("m5.large", f"us-east-1{zone}", "on-demand") for zone in "abc")
        provider.mark_unavailable(sold_out)
        with pytest.raises(InsufficientCapacity, match="too few instance types for minValues are available"):
            await provider.launch(the_claim("default-aaaaa", pool), pool, node_class)
        assert contexts() == []
        claim = replace(the_claim("default-bbbbb", pool), annotations=relaxed)
        made = await provider.launch(claim, pool, node_class)
        assert (made.instance_type, contexts()) == ("m5.xlarge", [None])
        provider.use(replace(SETTINGS, best_effort_min_values=True))
        made = await provider.launch(the_claim("default-ccccc", pool), pool, node_class)
        assert (made.instance_type, contexts()) == ("m5.xlarge", [None, "fleet-1"])


async def test_spot_is_taken_where_allowed_at_the_price_of_its_zone(aws: LocalAws, world: World) -> None:
    pool = the_pool("m5.large", capacity_types=("spot", "on-demand"))
    async with a_provider() as provider:
        (m5,) = await provider.catalog(pool, NODE_CLASS)
        spot = {o.zone: o.price for o in m5.offerings if o.capacity_type == "spot"}
        on_demand = {o.price for o in m5.offerings if o.capacity_type == "on-demand"}
        assert len(spot) == 3
        assert on_demand == {0.096}
        assert all(0 < price < 0.096 for price in spot.values())
        instance = await launched(provider, pool=pool)
        assert instance.capacity_type == "spot"
        assert spot[instance.zone] == min(spot.values())


async def test_a_vanished_launch_template_is_made_again(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        assert await provider._templates.delete_all() == 1
        await provider.warm(POOL, NODE_CLASS)
        ec2 = aws.client("ec2")
        (template,) = ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
        assert (await launched(provider)).instance_type == "m5.large"


async def test_launch_templates_of_this_cluster_alone_are_deleted(aws: LocalAws, world: World) -> None:
    other = replace(SETTINGS, cluster_name="other")
    async with a_provider() as provider, a_provider(settings=other) as neighbor:
        await provider.warm(POOL, NODE_CLASS)
        await neighbor.warm(POOL, NODE_CLASS)
        assert await provider.delete_launch_templates() == 1
        assert await provider.delete_launch_templates() == 0
        assert await neighbor.delete_launch_templates() == 1


async def test_long_unused_launch_templates_are_swept(aws: LocalAws, world: World) -> None:
    now = [1_800_000_000.0]
    async with a_provider(clock=lambda: now[0]) as provider:
        await provider.warm(POOL, NODE_CLASS)
        assert await provider._templates.delete_unused() == 0
        now[0] += 1800
        assert await provider._templates.delete_unused() == 1


async def test_terminating_twice_or_what_is_not_there_is_fine(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        instance = await launched(provider)
        unknown = "i-0123456789abcdef0"
        assert await asyncio.gather(provider.terminate(instance.id), provider.terminate(unknown)) == [
            True,
            True,
        ]
        assert await provider.terminate(instance.id)
        assert await provider.instances() == ()
        assert await asyncio.gather(provider.find(instance.id), provider.find(unknown)) == [None, None]


async def test_ten_terminations_are_one_call(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        made = await asyncio.gather(*(launched(provider, f"default-aaaa{letter}") for letter in "abcdefghij"))
        assert len({instance.id for instance in made}) == 10
        aws.forget_calls()
        assert all(await asyncio.gather(*(provider.terminate(instance.id) for instance in made)))
        assert len(made_by(aws, "TerminateInstances")) == 1


async def test_a_selector_that_matches_nothing_is_named_with_what_to_do(aws: LocalAws, world: World) -> None:
    nowhere = (SelectorTerm(tags=(("karpenter.sh/discovery", ("elsewhere",)),)),)
    node_class = replace(NODE_CLASS, subnets=nowhere, security_groups=nowhere)
    async with a_provider(settings=replace(SETTINGS, default_instance_profile="")) as provider:
        with pytest.raises(NodeClassUnresolved) as caught:
            await provider.catalog(POOL, node_class)
    assert caught.value.what == "subnetSelector, securityGroupSelector, instanceProfile"
    text = str(caught.value)
    assert "AWSNodeTemplate/default: no subnets match subnetSelector karpenter.sh/discovery=elsewhere" in text
    assert (
        "hint: tag the subnets with karpenter.sh/discovery=elsewhere, or correct spec.subnetSelector" in text
    )


async def test_it_works_once_the_subnet_is_tagged(aws: LocalAws, world: World) -> None:
    node_class = replace(NODE_CLASS, subnets=(SelectorTerm(tags=(("late", ("*",)),)),))
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved):
            await provider.resolve(node_class)
        aws.client("ec2").create_tags(Resources=world.subnets[:1], Tags=[{"Key": "late", "Value": "yes"}])
        resolved = await provider.resolve(node_class)
        assert [subnet.id for subnet in resolved.subnets] == world.subnets[:1]


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Ubuntu", "Windows2019", "Windows2022"])
async def test_every_family_has_images(aws: LocalAws, world: World, family: str) -> None:
    ec2_only = replace(NODE_CLASS, ami_family=family)
    aws.client("eks").create_cluster(
        name="demo",
        roleArn="arn:aws:iam::123456789012:role/nodes",
        resourcesVpcConfig={"subnetIds": world.subnets},
    )
    async with a_provider() as provider:
        resolved = await provider.resolve(ec2_only)
        assert all(image.id.startswith("ami-") for image in resolved.images)
        types = {each.name for each in await provider.catalog(a_pool(), ec2_only)}
        assert "m5.large" in types
        assert ("m6g.large" in types) is not family.startswith("Windows")


@pytest.mark.parametrize(("version", "there"), [("1.34", False), ("1.35", True)])
async def test_aws_5_3_windows_2025_has_images_from_the_version_on_that_aws_made_them_for(
    aws: LocalAws, world: World, version: str, there: bool
) -> None:
    async with a_provider(settings=replace(SETTINGS, kubernetes_version=version)) as provider:
        windows = replace(NODE_CLASS, ami_family="Windows2025")
        if there:
            assert (await provider.resolve(windows)).images
        else:
            with pytest.raises(
                NodeClassUnresolved, match=f"no Windows2025 images .* for Kubernetes {version}"
            ):
                await provider.resolve(windows)


async def test_nodes_with_prefixes_are_told_how_many_pods_they_take(aws: LocalAws, world: World) -> None:
    settings = replace(SETTINGS, prefix_delegation=True, pod_eni=True)
    async with a_provider(settings=settings) as provider:
        (m5, *_) = await provider.catalog(the_pool(), NODE_CLASS)
        assert (m5.capacity["pods"], m5.capacity["vpc.amazonaws.com/pod-eni"]) == (110, 9)
        await launched(provider)
    (call,) = made_by(aws, "CreateLaunchTemplate")
    text = base64.b64decode(call["parameters"]["LaunchTemplateData"]["UserData"]).decode()
    assert "--use-max-pods false" in text
    assert "--max-pods=110" in text


NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 200
"""


@pytest.mark.parametrize(
    ("family", "user_data", "limits"),
    [
        ("Bottlerocket", "[settings.kubernetes]\nmax-pods = 200\n", ["29"]),
        ("AL2023", NODE_CONFIG, ["200", "29"]),
    ],
)
async def test_a_limit_of_pods_in_a_v1_classs_user_data_gives_way_to_the_one_that_is_planned_with(
    aws: LocalAws, world: World, family: str, user_data: str, limits: list[str]
) -> None:
    """The last NodeConfig wins. Pods for which the interfaces have no address would never start."""
    aws.client("eks").create_cluster(
        name="demo",
        roleArn="arn:aws:iam::123456789012:role/nodes",
        resourcesVpcConfig={"subnetIds": world.subnets},
    )
    node_class = replace(
        NODE_CLASS,
        reference=Reference(EC2_NODE_CLASS, "default"),
        instance_profile="nodes",
        ami_family=family,
        user_data=user_data,
    )
    pool = the_pool("m5.large")
    async with a_provider() as provider:
        await provider.launch(the_claim(pool=pool), pool, node_class)
    (call,) = made_by(aws, "CreateLaunchTemplate")
    text = base64.b64decode(call["parameters"]["LaunchTemplateData"]["UserData"]).decode()
    assert re.findall(r"max-?pods\W+(\d+)", text, re.IGNORECASE) == limits


async def test_a_claim_that_asks_for_efa_has_an_interface_on_every_card(aws: LocalAws, world: World) -> None:
    pool = the_pool("p4d.24xlarge")
    async with a_provider() as provider:
        claim = replace(the_claim(pool=pool), requests={"cpu": 1000, "vpc.amazonaws.com/efa": 1})
        await provider.launch(claim, pool, NODE_CLASS)
    (call,) = made_by(aws, "CreateLaunchTemplate")
    interfaces = call["parameters"]["LaunchTemplateData"]["NetworkInterfaces"]
    assert [interface["InterfaceType"] for interface in interfaces] == ["efa"] * 4


@pytest.mark.parametrize(
    ("wanted", "templates"),
    [
        (CpuOptions(threads_per_core=1), {"m5.xlarge": (2, 1), "m5.2xlarge": (4, 1)}),
        (CpuOptions(2), {"m5.xlarge": (2, 2), "m5.2xlarge": (2, 2)}),
        (CpuOptions(2, 1), {"m5.xlarge": (2, 1), "m5.2xlarge": (2, 1)}),
    ],
)
async def test_cores_and_threads_are_asked_for_together_as_ec2_demands(
    aws: LocalAws, world: World, wanted: CpuOptions, templates: dict[str, tuple[int, int]]
) -> None:
    pool = the_pool(*templates)
    node_class = replace(
        NODE_CLASS,
        reference=Reference(EC2_NODE_CLASS, "default"),
        instance_profile="nodes",
        cpu_options=wanted,
    )
    async with a_provider() as provider:
        instance = await provider.launch(the_claim(pool=pool), pool, node_class)
    contents = {
        call["parameters"]["LaunchTemplateName"]: call["parameters"]["LaunchTemplateData"]["CpuOptions"]
        for call in made_by(aws, "CreateLaunchTemplate")
    }
    (fleet,) = made_by(aws, "CreateFleet")
    asked = {
        override["InstanceType"]: contents[config["LaunchTemplateSpecification"]["LaunchTemplateName"]]
        for config in fleet["parameters"]["LaunchTemplateConfigs"]
        for override in config["Overrides"]
    }
    assert asked == {
        name: {"CoreCount": cores, "ThreadsPerCore": threads} for name, (cores, threads) in templates.items()
    }
    assert instance.instance_type == "m5.xlarge"


async def test_aws_2_3_memory_that_a_node_had_replaces_the_guess_for_its_type_and_image_alone(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        m5, larger = await provider.catalog(the_pool(), NODE_CLASS)
        seen = MemoryObservations()
        for image in (await provider.resolve(NODE_CLASS)).images:
            seen = seen.observe("m5.large", image.id, m5.capacity["memory"] + 2**20, 0.0)
        provider.record_memory_overhead(seen)
        after, unchanged = await provider.catalog(the_pool(), NODE_CLASS)
        assert after.capacity["memory"] == m5.capacity["memory"] + 2**20
        assert after.allocatable["memory"] == m5.allocatable["memory"] + 2**20
        assert unchanged is larger
        planned = m5.capacity["ephemeral-storage"]
        disks = MemoryObservations(seen.sights)
        for image in (await provider.resolve(NODE_CLASS)).images:
            disks = disks.observe_disk(image.id, planned, planned - 2**30, 0.0)
        provider.record_memory_overhead(disks)
        smaller = await provider.catalog(the_pool(), NODE_CLASS)
        assert {each.capacity["ephemeral-storage"] for each in smaller} == {planned - 2**30}
        assert {each.allocatable["ephemeral-storage"] for each in smaller} == {
            m5.allocatable["ephemeral-storage"] - 2**30 * 9 // 10 - 1
        }
        assert smaller[0].capacity["memory"] == m5.capacity["memory"] + 2**20
        provider.record_memory_overhead(MemoryObservations().observe("m5.large", "ami-other", 1, 0.0))
        again, _ = await provider.catalog(the_pool(), NODE_CLASS)
        assert again.capacity == m5.capacity


async def test_a_missing_cluster_is_named(aws: LocalAws) -> None:
    async with a_provider(settings=replace(SETTINGS, kubernetes_version="")) as provider:
        with pytest.raises(
            CloudError, match=r"EKS has no cluster 'demo' in us-east-1; hint: set aws\.clusterName"
        ):
            await provider.start()


async def test_user_data_that_ec2_would_not_take_is_told_of_the_node_class(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        text = "x" * 20_000
        with pytest.raises(NodeClassUnresolved, match=r"user data has \d+ bytes, EC2 takes 16384"):
            await provider.launch(the_claim(), POOL, replace(NODE_CLASS, user_data=text))


async def test_an_endpoint_that_nobody_answers_is_one_clear_line(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    async with a_provider() as provider:
        with pytest.raises(CloudUnavailable) as caught:
            await provider.start()
    assert "cannot reach ec2 at http://127.0.0.1:9: " in str(caught.value)
    assert "refused" in str(caught.value)
    assert "hint: check AWS_ENDPOINT_URL" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_wrong_credentials_are_told(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAWRONGWRONGWRONG0")
    async with a_provider() as provider:
        with pytest.raises(CredentialsRefused, match="hint: check the role or keys") as caught:
            await provider.start()
    assert caught.value.service == "ec2"


async def test_missing_credentials_are_told(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    async with a_provider() as provider:
        with pytest.raises(CredentialsRefused, match=r"eks\.amazonaws\.com/role-arn"):
            await provider.start()


async def test_a_node_is_priced_beside_its_instance(aws: LocalAws, world: World) -> None:
    pool = the_pool("m5.large")
    async with a_provider() as provider:
        (listed,) = await provider.catalog(pool, NODE_CLASS)
        billed = await provider.billed_catalog(pool, NODE_CLASS)
        assert await provider.billed_catalog(pool, NODE_CLASS) is billed
    for instance, node in zip(listed.offerings, billed[0].offerings, strict=True):
        assert (instance.bill, node.instance_price) == (None, instance.price)
        assert node.price == pytest.approx(instance.price + 20 * 0.08 / 730)


async def test_a_public_address_is_paid_for_where_subnets_give_one(aws: LocalAws, world: World) -> None:
    ec2 = aws.client("ec2")
    for subnet in ec2.describe_subnets()["Subnets"]:
        ec2.modify_subnet_attribute(SubnetId=subnet["SubnetId"], MapPublicIpOnLaunch={"Value": True})
    async with a_provider() as provider:
        (node,) = await provider.billed_catalog(the_pool("m5.large"), NODE_CLASS)
    assert {part.name: part.dollars for part in node.offerings[0].parts}["public IPv4"] == 0.005
