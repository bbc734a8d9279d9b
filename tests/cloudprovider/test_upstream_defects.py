"""Defects of Karpenter v0.27.3's AWS provider that are not here, each by the case that shows it."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
import structlog

from localenv.aws import LocalAws
from nodeless.api.errors import InvalidObject
from nodeless.api.reading import read_pool
from nodeless.cloudprovider.aws.instance_type_math import capacity
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import bundled_prices
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.type_facts import read_type
from nodeless.launch.candidates import candidates_for
from nodeless.launch.fleet import fleet_request
from nodeless.launch.kubelet_arguments import Bootstrap, Cluster
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.launch.results import read_answer
from nodeless.launch.tags import pool_tags
from nodeless.launch.templates import launch_template
from nodeless.launch.user_data import user_data
from nodeless.model.labels import INSTANCE_TYPE
from nodeless.model.pools import BlockDevice, Kubelet, SelectorTerm
from nodeless.model.requirements import Requirements
from tests.api.manifests import provisioner
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_instance_types import a_record
from tests.cloudprovider.test_provider import NODE_CLASS, made_by, the_pool
from tests.factories import a_claim, a_pool
from tests.launch.types import a_type

CLUSTER = Cluster("demo", "https://demo.example", "Q0E=")
GIB = 2**30


def test_aws_15_1_instances_that_nobody_asked_for_are_named_so_that_they_are_ended() -> None:
    entry = {"InstanceIds": ["i-1", "i-2"], "InstanceType": "m5.large", "Lifecycle": "on-demand"}
    answer = read_answer({"Instances": [entry, {**entry, "InstanceIds": ["i-3"]}]}, "on-demand")
    assert [instance.id for instance in answer.instances] == ["i-1"]
    assert answer.surplus == ("i-2", "i-3")


async def test_aws_15_2_every_page_of_instances_is_read(aws: LocalAws, world: World) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    tags = {
        "kubernetes.io/cluster/demo": "owned",
        "karpenter.sh/nodeclaim": "c",
        "karpenter.sh/nodepool": "p",
    }
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    for _ in range(7):
        ec2.run_instances(
            ImageId=image,
            InstanceType="m5.large",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": listed}],
        )
    async with a_provider() as provider:
        pages = provider._session.pages

        async def small(service: str, method: str, request: Any, member: str) -> list[Any]:
            return await pages(service, method, {**request, "MaxResults": 5}, member)

        provider._session.pages = small  # type: ignore[method-assign]
        assert len(await provider.instances()) == 7
    assert len(made_by(aws, "DescribeInstances")) == 2


async def test_aws_15_2_every_page_of_subnets_and_security_groups_is_read(
    aws: LocalAws, world: World
) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.describe_subnets(SubnetIds=world.subnets[:1])["Subnets"][0]["VpcId"]
    tags = [{"Key": "karpenter.sh/discovery", "Value": "demo"}]
    for number in range(6):
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{100 + number}.0/24",
            AvailabilityZone="us-east-1a",
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )
        ec2.create_security_group(
            GroupName=f"more-{number}",
            Description="more",
            VpcId=vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
        )
    async with a_provider() as provider:
        pages = provider._session.pages

        async def small(service: str, method: str, request: Any, member: str) -> list[Any]:
            sized = {"MaxResults": 5} if member in ("Subnets", "SecurityGroups") else {}
            return await pages(service, method, {**request, **sized}, member)

        provider._session.pages = small  # type: ignore[method-assign]
        resolved = await provider.resolve(NODE_CLASS)
    assert (len(resolved.subnets), len(resolved.security_groups)) == (9, 7)
    for action in ("DescribeSubnets", "DescribeSecurityGroups"):
        assert len([call for call in made_by(aws, action) if "MaxResults" in call["parameters"]]) == 2


def test_aws_15_3_no_tag_of_the_user_takes_an_instance_away_from_its_pool() -> None:
    stolen = {"kubernetes.io/cluster/demo": "shared", "karpenter.sh/provisioner-name": "x", "Name": "mine"}
    node_class = replace(NODE_CLASS, tags=tuple(stolen.items()))
    tags = pool_tags("demo", a_pool(), node_class, stolen)
    assert tags["kubernetes.io/cluster/demo"] == "owned"
    assert tags["karpenter.sh/provisioner-name"] == tags["karpenter.sh/nodepool"] == "default"


def test_aws_15_4_what_crashed_has_an_answer() -> None:
    facts = read_type(a_record("m5.large", cpus=2, memory=8192, interfaces=3, addresses=10))
    assert facts is not None
    snapshot = NodeShape("AL2", block_devices=(BlockDevice("/dev/xvda", snapshot_id="snap-1"),))
    assert capacity(facts, snapshot)["ephemeral-storage"] == 20 * GIB
    answer = read_answer({"Errors": [{"ErrorCode": "InsufficientInstanceCapacity"}]}, "spot")
    assert (answer.insufficient, answer.unavailable) == (True, ())


@pytest.mark.parametrize("signal", ["memory.available", "nodefs.available"])
@pytest.mark.parametrize("text", ["x%", "%", "nan%", "5%%", "-5%"])
def test_aws_15_4_a_percentage_that_is_none_is_refused_at_its_path(signal: str, text: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        read_pool(provisioner(kubeletConfiguration={"evictionHard": {signal: text}}))
    assert [error.path for error in caught.value.errors] == [
        f'spec.kubeletConfiguration.evictionHard["{signal}"]'
    ]


async def test_aws_15_5_selectors_that_differ_in_owners_alone_do_not_share_an_answer(
    aws: LocalAws, world: World
) -> None:
    by_amazon = SelectorTerm(names=("amazon-eks-node-*",), owners=("amazon",))
    by_self = replace(by_amazon, owners=("self", "amazon"))
    async with a_provider() as provider:
        for term in (by_amazon, by_self):
            await provider.resolve(replace(NODE_CLASS, images=(term,)))
    owners = [call["parameters"]["Owners"] for call in made_by(aws, "DescribeImages")]
    assert owners == [["amazon"], ["self", "amazon"]]


async def test_aws_15_5_another_disk_acts_at_once(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        sizes = []
        for gibibytes in (30, 60):
            disk = (BlockDevice("/dev/xvda", gibibytes * GIB),)
            (m5, *_) = await provider.catalog(the_pool(), replace(NODE_CLASS, block_devices=disk))
            sizes.append(m5.capacity["ephemeral-storage"] // GIB)
    assert sizes == [30, 60]


async def test_aws_15_7_a_type_that_the_price_list_leaves_out_keeps_its_price() -> None:
    pricing = Pricing(AwsSession("us-east-1"), lambda: 0.0, structlog.get_logger())
    for half, answer in ((pricing._on_demand, {"m5.large": 9.0}), (pricing._spot, {})):
        half._due, half._tried, half.fetched, half.version = float("inf"), True, answer, 1
    known = bundled_prices()
    prices = (await pricing.current()).on_demand
    assert prices["m5.large"] == 9.0
    assert {name: price for name, price in prices.items() if name != "m5.large"} == {
        name: price for name, price in known.items() if name != "m5.large"
    }


def test_aws_15_11_a_request_for_many_leaves_what_it_is_made_of_alone() -> None:
    candidates = candidates_for(Requirements(), {}, [a_type("m5.large", on_demand=1)])
    assert candidates is not None
    override = {"InstanceType": "m5.large", "SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a"}
    by_template, tags = {"t": [override]}, {"a": "b"}
    made = [fleet_request(candidates, by_template, tags, token=str(count), count=count) for count in (3, 1)]
    assert [
        each["TargetCapacitySpecification"]["TotalTargetCapacity"] for each in made if each is not None
    ] == [3, 1]
    assert (by_template, tags) == ({"t": [override]}, {"a": "b"})
    assert override == {
        "InstanceType": "m5.large",
        "SubnetId": "subnet-1",
        "AvailabilityZone": "us-east-1a",
    }


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
def test_aws_15_8_the_order_of_settings_does_not_matter(family: str) -> None:
    reserved = (("cpu", "100m"), ("memory", "1Gi"), ("ephemeral-storage", "2Gi"))
    texts = {
        user_data(family, Bootstrap(CLUSTER, dict(labels), (), Kubelet(kube_reserved=order)))
        for order in permutations(reserved)
        for labels in permutations((("a", "1"), ("b", "2")))
    }
    assert len(texts) == 1


def test_aws_15_8_the_order_of_security_groups_does_not_matter() -> None:
    names = {
        launch_template(
            a_claim(),
            a_pool(),
            NODE_CLASS,
            ResolvedNodeClass((), groups, (), "nodes"),
            Image("ami-1"),
            capacity_type="spot",
            cluster=CLUSTER,
            tags={},
        ).name
        for groups in (("sg-1", "sg-2"), ("sg-2", "sg-1"))
    }
    assert len(names) == 1


async def test_aws_15_9_an_isolated_vpc_has_spot_prices_and_asks_for_no_others(
    aws: LocalAws, world: World
) -> None:
    pool = the_pool("m5.large", capacity_types=("spot", "on-demand"))
    async with a_provider(settings=replace(SETTINGS, isolated_vpc=True)) as provider:
        provider._pricing._spot._due, provider._pricing._spot._tried = 0.0, False
        (m5,) = await provider.catalog(pool, NODE_CLASS)
    spot = {offering.price for offering in m5.offerings if offering.capacity_type == "spot"}
    assert max(spot) < 0.096
    assert len(made_by(aws, "DescribeSpotPriceHistory")) >= 1
    assert made_by(aws, "GetProducts") == []


@pytest.mark.parametrize(
    ("name", "member", "count"),
    [
        ("trn1.2xlarge", {"NeuronInfo": {"NeuronDevices": [{"Name": "Trainium", "Count": 1}]}}, 1),
        (
            "inf1.xlarge",
            {"InferenceAcceleratorInfo": {"Accelerators": [{"Manufacturer": "AWS", "Count": 1}]}},
            1,
        ),
        (
            "dl2q.24xlarge",
            {"InferenceAcceleratorInfo": {"Accelerators": [{"Manufacturer": "Qualcomm", "Count": 8}]}},
            0,
        ),
    ],
)
def test_aws_15_10_neuron_devices_are_those_of_aws(name: str, member: dict[str, Any], count: int) -> None:
    facts = read_type({**a_record(name, cpus=4, memory=8192, interfaces=4, addresses=10), **member})
    assert facts is not None
    assert capacity(facts, NodeShape("AL2")).get("aws.amazon.com/neuron", 0) == count


def test_aws_15_14_an_answer_without_instances_and_reasons_is_no_lack_of_capacity() -> None:
    answer = read_answer({"Instances": [], "Errors": []}, "on-demand")
    assert (answer.insufficient, answer.code) == (False, "NoInstance")


async def test_aws_15_6_what_was_sold_out_is_offered_again_when_its_time_is_over(
    aws: LocalAws, world: World
) -> None:
    now = [1_800_000_000.0]
    async with a_provider(clock=lambda: now[0]) as provider:
        provider.mark_unavailable(
            [("m5.large", zone, "on-demand") for zone in ("us-east-1a", "us-east-1b", "us-east-1c")]
        )

        async def offered() -> set[str]:
            types = await provider.catalog(the_pool(), NODE_CLASS)
            return {
                next(iter(type_.requirements[INSTANCE_TYPE].values))
                for type_ in types
                if any(o.available and o.capacity_type == "on-demand" for o in type_.offerings)
            }

        assert await offered() == {"m5.xlarge"}
        now[0] += 181
        assert await offered() == {"m5.large", "m5.xlarge"}
