"""Launch templates of node classes that say more of the hardware: interfaces, processor, disks, enclaves."""

from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import validate_parameters
from hypothesis import given
from hypothesis import strategies as st

from nodeless.launch.families import FAMILIES
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.resolved import Image, ResolvedNodeClass
from nodeless.launch.templates import launch_template
from nodeless.launch.variants import Variant, variant_of
from nodeless.model.hardware import ConnectionTracking, CpuOptions, NetworkInterface
from nodeless.model.pools import BlockDevice, MetadataOptions, NodeClass, Reference
from nodeless.model.requirements import Requirement, Requirements
from tests.factories import a_claim, a_pool
from tests.launch.types import a_type

NODE_CLASS = NodeClass(
    Reference("EC2NodeClass", "default"), "AL2023", metadata_options=MetadataOptions("enabled")
)
TIMEOUTS = {"TcpEstablishedTimeout": 3600, "UdpTimeout": 40}
_REQUEST = botocore.session.get_session().get_service_model("ec2").shape_for("CreateLaunchTemplateRequest")


def data_of(
    efa: int = 0, dns: str = "10.100.0.10", region: str = "us-east-1", **changes: Any
) -> dict[str, Any]:
    """`LaunchTemplateData` of a changed node class, in a form that boto3 takes."""
    made = launch_template(
        a_claim(),
        a_pool(),
        replace(NODE_CLASS, **changes),
        ResolvedNodeClass((), ("sg-2", "sg-1"), (), "nodes"),
        Image("ami-1"),
        capacity_type="on-demand",
        cluster=Cluster("demo", "https://demo.example", "Q0E=", dns, "10.100.0.0/16"),
        tags={},
        efa=efa,
        region=region,
    )
    validate_parameters(dict(made.request), _REQUEST)
    data: dict[str, Any] = made.request["LaunchTemplateData"]
    return data


def test_an_ordinary_instance_has_ec2s_default_interface() -> None:
    data = data_of()
    assert data["SecurityGroupIds"] == ["sg-1", "sg-2"]
    assert not {"NetworkInterfaces", "CpuOptions", "EnclaveOptions"} & data.keys()
    assert data["MetadataOptions"] == {"HttpEndpoint": "enabled", "InstanceMetadataTags": "disabled"}


def test_a_public_address_and_prefixes_are_the_first_interfaces() -> None:
    data = data_of(public_address=True, ipv4_prefixes=2, connection_tracking=ConnectionTracking(3600, udp=40))
    assert "SecurityGroupIds" not in data
    assert data["NetworkInterfaces"] == [
        {
            "DeviceIndex": 0,
            "NetworkCardIndex": 0,
            "InterfaceType": "interface",
            "Groups": ["sg-1", "sg-2"],
            "DeleteOnTermination": True,
            "ConnectionTrackingSpecification": TIMEOUTS,
            "AssociatePublicIpAddress": True,
            "Ipv4PrefixCount": 2,
        }
    ]
    assert data_of(public_address=False)["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is False


def test_pods_that_ask_for_efa_get_an_interface_on_every_card() -> None:
    listed = data_of(efa=4)["NetworkInterfaces"]
    places = [(each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"]) for each in listed]
    assert places == [(0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa"), (3, 1, "efa")]
    assert all(each["Groups"] == ["sg-1", "sg-2"] for each in listed)


def test_interfaces_that_are_listed_are_made_as_they_stand_there() -> None:
    wanted = (
        NetworkInterface(0, 0),
        NetworkInterface(0, 1, efa_only=True),
        NetworkInterface(1, 1, efa_only=True),
    )
    listed = data_of(efa=2, network_interfaces=wanted, public_address=True)["NetworkInterfaces"]
    assert [each["InterfaceType"] for each in listed] == ["interface", "efa-only", "efa-only"]
    # EC2 takes this member for a single interface only.
    assert not any("AssociatePublicIpAddress" in each for each in listed)


def test_where_pods_have_ipv6_addresses_the_first_interface_has_one_that_stays() -> None:
    (primary,) = data_of(dns="fd00::10")["NetworkInterfaces"]
    assert (primary["PrimaryIpv6"], primary["Ipv6AddressCount"]) == (True, 1)
    older = data_of(dns="fd00::10", reference=Reference("AWSNodeTemplate", "default"))
    assert "NetworkInterfaces" not in older


def test_in_an_ipv6_cluster_prefixes_are_ipv6_prefixes() -> None:
    (primary,) = data_of(dns="fd00::10", ipv4_prefixes=2)["NetworkInterfaces"]
    assert primary["Ipv6PrefixCount"] == 2
    assert "Ipv4PrefixCount" not in primary


@pytest.mark.parametrize(
    ("dns", "addresses"),
    [
        ("10.100.0.10", {"Ipv4PrefixCount": 2}),
        ("fd00::10", {"Ipv6PrefixCount": 2, "Ipv6AddressCount": 1, "PrimaryIpv6": True}),
    ],
)
def test_every_interface_but_those_for_efa_alone_has_prefixes_and_ipv6_addresses(
    dns: str, addresses: dict[str, Any]
) -> None:
    """As in Karpenter: EC2 refuses addresses of interfaces for EFA alone."""
    wanted = (NetworkInterface(0, 0), NetworkInterface(0, 1, efa_only=True), NetworkInterface(1, 0))
    names = {"Ipv4PrefixCount", "Ipv6PrefixCount", "Ipv6AddressCount", "PrimaryIpv6"}

    def of_each(data: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in interface.items() if name in names}
            for interface in data["NetworkInterfaces"]
        ]

    assert of_each(data_of(dns=dns, ipv4_prefixes=2, network_interfaces=wanted)) == [addresses, {}, addresses]
    assert of_each(data_of(dns=dns, ipv4_prefixes=2, efa=3)) == [addresses] * 3


def test_connections_are_tracked_on_all_interfaces_but_those_for_efa_alone() -> None:
    wanted = (NetworkInterface(0, 0), NetworkInterface(0, 1, efa_only=True), NetworkInterface(1, 0))
    data = data_of(network_interfaces=wanted, connection_tracking=ConnectionTracking(3600, udp=40))
    tracked = [each.get("ConnectionTrackingSpecification") for each in data["NetworkInterfaces"]]
    assert tracked == [TIMEOUTS, None, TIMEOUTS]


@pytest.mark.parametrize("options", [None, MetadataOptions("enabled", http_protocol_ipv6="disabled")])
def test_isolated_regions_are_not_told_of_ipv6_for_metadata(options: MetadataOptions | None) -> None:
    """EC2 refuses the member there."""
    isolated = data_of(region="us-iso-east-1", metadata_options=options)["MetadataOptions"]
    elsewhere = data_of(region="us-gov-west-1", metadata_options=options)["MetadataOptions"]
    assert elsewhere == {**isolated, "HttpProtocolIpv6": "disabled"}
    assert isolated["HttpEndpoint"] == "enabled"


def test_processor_enclaves_and_the_speed_of_a_snapshot() -> None:
    data = data_of(
        cpu_options=CpuOptions(4, 1, nested_virtualization=True),
        enclaves=True,
        block_devices=(BlockDevice("/dev/xvda", snapshot_id="snap-1", initialization_rate=200),),
    )
    assert data["CpuOptions"] == {"CoreCount": 4, "ThreadsPerCore": 1, "NestedVirtualization": "enabled"}
    assert data["EnclaveOptions"] == {"Enabled": True}
    assert data["BlockDeviceMappings"][0]["Ebs"] == {"SnapshotId": "snap-1", "VolumeInitializationRate": 200}


DISKS = {
    "AL2": [("/dev/xvda", 20)],
    "AL2023": [("/dev/xvda", 20)],
    "Ubuntu": [("/dev/sda1", 20)],
    "Bottlerocket": [("/dev/xvda", 4), ("/dev/xvdb", 20)],
    "Windows2019": [("/dev/sda1", 50)],
    "Windows2022": [("/dev/sda1", 50)],
    "Windows2025": [("/dev/sda1", 50)],
    "Custom": [],
}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_aws_5_4_every_family_has_its_own_disks(family: str) -> None:
    mappings = data_of(ami_family=family, user_data="x = 1" if family == "Custom" else None).get(
        "BlockDeviceMappings", []
    )
    assert [(mapping["DeviceName"], mapping["Ebs"]["VolumeSize"]) for mapping in mappings] == DISKS[family]
    assert all(mapping["Ebs"]["Encrypted"] and mapping["Ebs"]["VolumeType"] == "gp3" for mapping in mappings)


def test_types_share_a_template_unless_image_pods_or_efa_differ() -> None:
    images = (
        Image("ami-arm", Requirements([Requirement.of("kubernetes.io/arch", "In", ["arm64"])])),
        Image("ami-x86", Requirements([Requirement.of("kubernetes.io/arch", "In", ["amd64"])])),
    )
    kind = a_type("m5.large", on_demand=1)
    with_efa = replace(kind, capacity={**kind.capacity, "pods": 29, "vpc.amazonaws.com/efa": 4})

    assert variant_of(with_efa, images, limits_pods=False, efa=False) == Variant(images[1])
    assert variant_of(with_efa, images, limits_pods=True, efa=False) == Variant(images[1], pods=29)
    assert variant_of(with_efa, images, limits_pods=False, efa=True) == Variant(images[1], efa=4)
    assert variant_of(with_efa, images[:1], limits_pods=False, efa=True) is None


@given(st.permutations(["sg-1", "sg-2", "sg-3"]), st.integers(0, 8))
def test_the_order_of_groups_never_makes_another_template(groups: list[str], efa: int) -> None:
    def name(ordered: list[str]) -> str:
        return launch_template(
            a_claim(),
            a_pool(),
            NODE_CLASS,
            ResolvedNodeClass((), tuple(ordered), (), "nodes"),
            Image("ami-1"),
            capacity_type="spot",
            cluster=Cluster("demo", "https://demo.example"),
            tags={},
            efa=efa,
        ).name

    assert name(groups) == name(sorted(groups))
