"""What is wrong with a node class is named with what to do, before a launch, and stops no other."""

from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.cloudprovider.aws.images import in_order, read_image
from nodeless.launch.checking import node_class_faults
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.resolved import Image
from nodeless.model.labels import ARCH
from nodeless.model.pools import SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, the_pool

CLUSTER = Cluster("demo", "https://demo.example", "Q0E=", "10.100.0.10", "10.100.0.0/16")


@pytest.mark.parametrize(
    ("family", "text", "reported"),
    [
        pytest.param("AL2", "MIME-Version: 1.0\n\nplain", "multipart/mixed", id="mime"),
        pytest.param("Ubuntu", "MIME-Version: 1.0\n\nplain", "multipart/mixed", id="mime-ubuntu"),
        pytest.param("AL2023", "apiVersion: node.eks.aws/v1alpha1\nspec: [", "is not YAML", id="yaml"),
        pytest.param("Bottlerocket", "[settings", "is not TOML", id="toml"),
        pytest.param("Windows2022", "<script>dir</script>", "without tags", id="powershell"),
        pytest.param("Custom", "#" * 17000, "16384", id="too-long"),
    ],
)
async def test_user_data_that_cannot_be_used_is_named_and_other_pools_go_on(
    aws: LocalAws, world: World, family: str, text: str, reported: str
) -> None:
    images = (SelectorTerm(names=("amazon-eks-node-1.29-*",)),)
    broken = replace(NODE_CLASS, ami_family=family, user_data=text, images=images)
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match=r"spec\.userData") as caught:
            if family == "AL2023":
                await provider._resolver.resolve(broken, "1.29", CLUSTER)
            else:
                await provider.warm(the_pool(), broken)
        assert caught.value.what == "userData"
        assert reported in str(caught.value)
        assert await provider.catalog(the_pool(), NODE_CLASS)


@pytest.mark.parametrize(
    ("tags", "reported"),
    [
        ({"aws:team": "a"}, "AWS's own prefix"),
        ({"k" * 129: "a"}, "129 characters"),
        ({"team": "a" * 257}, "257 characters"),
        ({f"tag-{number}": "" for number in range(43)}, "more than the 50"),
    ],
)
def test_aws_6_3_tags_that_ec2_refuses_are_named(tags: dict[str, str], reported: str) -> None:
    (own,) = node_class_faults(replace(NODE_CLASS, tags=tuple(tags.items())), CLUSTER, {})
    (given,) = node_class_faults(NODE_CLASS, CLUSTER, tags)
    assert own.field == given.field == "tags"
    assert reported in own.message
    assert reported in given.message


def test_aws_6_3_as_many_tags_as_ec2_takes_beside_ours_are_fine() -> None:
    most = {("k" * 126) + f"{number:02}": "v" * 256 for number in range(42)}
    assert node_class_faults(replace(NODE_CLASS, tags=tuple(most.items())), CLUSTER, {}) == ()


async def test_images_for_another_architecture_are_told_with_both_sides(aws: LocalAws, world: World) -> None:
    arm = replace(NODE_CLASS, images=(SelectorTerm(names=("amazon-eks-arm64-node-1.29-*",)),))
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match="amd64") as caught:
            await provider.catalog(the_pool(), arm)
        assert "arm64" in str(caught.value)
        assert str(the_pool().reference) in str(caught.value)
        assert caught.value.what == "amiSelector"
        assert await provider.catalog(the_pool(), NODE_CLASS)


async def test_an_image_that_runs_on_no_architecture_of_ours_is_told_from_none_at_all(
    aws: LocalAws, world: World
) -> None:
    ec2 = aws.client("ec2")
    image = ec2.register_image(Name="of-a-mac", Architecture="x86_64_mac")["ImageId"]
    mac = replace(NODE_CLASS, images=(SelectorTerm(ids=(image,)),))
    nothing = replace(NODE_CLASS, images=(SelectorTerm(names=("no-such-image",)),))
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match="can be used: ") as caught:
            await provider.resolve(mac)
        assert image in str(caught.value)
        assert "x86_64 or arm64" in str(caught.value)
        with pytest.raises(NodeClassUnresolved, match="no images match"):
            await provider.resolve(nothing)


async def test_without_a_service_network_no_al2023_node_can_join(aws: LocalAws, world: World) -> None:
    al2023 = replace(NODE_CLASS, ami_family="AL2023")
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match="needs the service CIDR"):
            await provider._resolver.resolve(al2023, "1.29", replace(CLUSTER, service_cidr=""))
        assert await provider._resolver.resolve(al2023, "1.29", CLUSTER)


async def test_everything_that_is_wrong_is_told_at_once(aws: LocalAws, world: World) -> None:
    broken = replace(
        NODE_CLASS,
        ami_family="Bottlerocket",
        user_data="[",
        tags=(("aws:x", "1"),),
        subnets=(SelectorTerm(tags=(("no", ("such",)),)),),
    )
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved) as caught:
            await provider.resolve(broken)
    assert caught.value.what == "subnetSelector, userData, tags"


def test_aws_5_3_a_deprecated_image_is_taken_only_where_there_is_no_other() -> None:
    arm = Requirements([Requirement.of(ARCH, "In", ["arm64"])])
    old = Image("ami-old", created="2024")
    newer = Image("ami-new", created="2025", deprecated=True)
    assert in_order([newer, old]) == (old,)
    alone = replace(newer, requirements=arm)
    assert in_order([alone, old]) == (old, alone)


@pytest.mark.parametrize(
    ("time", "deprecated"),
    [("2024-01-01T00:00:00.000Z", True), ("2039-01-01T00:00:00.000Z", False), (None, False)],
)
def test_aws_5_3_an_image_is_deprecated_once_its_time_has_come(time: str | None, deprecated: bool) -> None:
    record: dict[str, Any] = {"ImageId": "ami-1", "Architecture": "x86_64", "DeprecationTime": time}
    image = read_image(record, now=1_800_000_000.0)
    assert image is not None
    assert image.deprecated is deprecated


async def test_aws_4_4_the_status_can_name_zones_groups_and_images(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        resolved = await provider.resolve(NODE_CLASS)
    assert resolved.group_names == {world.security_group: "nodes"}
    assert all(subnet.zone_id for subnet in resolved.subnets)
