"""Launch templates, fleet requests and what their answers mean."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from nodeless.launch.candidates import candidates_for
from nodeless.launch.fleet import (
    client_token,
    fleet_request,
    overrides,
    predicted_addresses,
    subnet_by_zone,
)
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.resolved import Image, ResolvedNodeClass, Subnet
from nodeless.launch.results import read_answer
from nodeless.launch.tags import claim_tags, pool_tags
from nodeless.launch.templates import LaunchTemplate, launch_template
from nodeless.model.labels import CAPACITY_TYPE
from nodeless.model.pools import EC2_NODE_CLASS, BlockDevice, MetadataOptions, NodeClass, Reference
from nodeless.model.requirements import Requirement, Requirements
from tests.factories import TEMPLATE, a_claim, a_pool
from tests.launch.types import a_type

NODE_CLASS = NodeClass(TEMPLATE, tags=(("team", "a"), ("karpenter.sh/nodepool", "stolen")))
CLUSTER = Cluster("demo", "https://demo.example")
RESOLVED = ResolvedNodeClass((), ("sg-2", "sg-1"), (), "nodes")
TAGS = pool_tags("demo", a_pool(), NODE_CLASS, {"cost": "1", "team": "b"})


def template(
    claim: Any = None,
    node_class: NodeClass = NODE_CLASS,
    capacity_type: str = "spot",
    cluster: Cluster = CLUSTER,
) -> LaunchTemplate:
    return launch_template(
        claim or a_claim(),
        a_pool(),
        node_class,
        RESOLVED,
        Image("ami-1"),
        capacity_type=capacity_type,
        cluster=cluster,
        tags=TAGS,
    )


def test_our_tags_win_over_the_users_but_for_the_name() -> None:
    assert TAGS["team"] == "a"
    assert TAGS["cost"] == "1"
    assert TAGS["karpenter.sh/nodepool"] == TAGS["karpenter.sh/provisioner-name"] == "default"
    assert TAGS["kubernetes.io/cluster/demo"] == "owned"
    assert claim_tags(TAGS, a_claim("x"))["karpenter.sh/nodeclaim"] == "x"
    newer = pool_tags(
        "demo", replace(a_pool(), reference=Reference("NodePool", "p")), NODE_CLASS, {"Name": "mine"}
    )
    assert "karpenter.sh/provisioner-name" not in newer
    assert newer["Name"] == "mine"


def test_a_template_is_named_by_its_content() -> None:
    assert template() == template(a_claim("another", uid="2"))
    names = {
        template().name,
        template(capacity_type="on-demand").name,
        template(a_claim(labels={"a": "b"})).name,
        template(node_class=replace(NODE_CLASS, detailed_monitoring=True)).name,
    }
    assert len(names) == 4
    assert all(name.startswith("karpenter.k8s.aws/") and len(name) <= 128 for name in names)


def test_a_template_holds_what_nodes_have_in_common() -> None:
    data = template().request["LaunchTemplateData"]
    assert data["SecurityGroupIds"] == ["sg-1", "sg-2"]
    assert data["IamInstanceProfile"] == {"Name": "nodes"}
    assert data["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20}}
    ]
    assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    text = base64.b64decode(data["UserData"]).decode()
    assert "--register-with-taints=karpenter.sh/unregistered:NoExecute" in text
    assert "--node-labels=karpenter.sh/capacity-type=spot" in text
    assert not {"InstanceType", "SubnetId", "KeyName"} & data.keys()


def test_aws_5_6_an_ec2_node_class_has_its_script_spelled_as_v1_does() -> None:
    of_v1 = replace(NODE_CLASS, reference=Reference(EC2_NODE_CLASS, "default"))
    data = template(node_class=of_v1).request["LaunchTemplateData"]
    text = base64.b64decode(data["UserData"]).decode()
    assert '--register-with-taints="karpenter.sh/unregistered:NoExecute"' in text
    assert "--container-runtime" not in text


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom"])
@pytest.mark.parametrize("kind", [EC2_NODE_CLASS, "AWSNodeTemplate"])
def test_a_node_of_v1_says_that_it_brings_its_taints(family: str, kind: str) -> None:
    node_class = NodeClass(Reference(kind, "default"), ami_family=family, user_data="")
    data = template(node_class=node_class).request["LaunchTemplateData"]
    reported = base64.b64decode(data.get("UserData", "")).decode()
    assert ("karpenter.sh/do-not-sync-taints" in reported) == (kind == EC2_NODE_CLASS and family != "Custom")


def test_a_node_class_replaces_disks_and_metadata_options_as_a_whole() -> None:
    custom = replace(
        NODE_CLASS,
        block_devices=(BlockDevice("/dev/xvda", 10**10, delete_on_termination=True),),
        metadata_options=MetadataOptions(http_tokens="optional"),
    )
    data = template(node_class=custom).request["LaunchTemplateData"]
    assert data["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"DeleteOnTermination": True, "VolumeSize": 10}}
    ]
    assert data["MetadataOptions"] == {"HttpTokens": "optional"}


@pytest.mark.parametrize(
    ("dns", "ipv6"), [("10.100.0.10", "disabled"), ("fd00::10", "enabled"), ("", "disabled")]
)
def test_aws_5_5_metadata_is_served_with_tokens_and_over_ipv6_where_pods_have_it(dns: str, ipv6: str) -> None:
    data = template(cluster=Cluster("demo", "https://demo.example", dns=dns)).request["LaunchTemplateData"]
    assert data["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": ipv6,
        "HttpPutResponseHopLimit": 2,
        "HttpTokens": "required",
    }


EVERY_MEMBER = BlockDevice(
    "/dev/xvda",
    50 * 2**30 + 1,
    "io2",
    iops=4000,
    throughput=250,
    encrypted=False,
    kms_key_id="k",
    snapshot_id="snap-1",
    delete_on_termination=False,
    initialization_rate=200,
)


def test_aws_6_2_every_member_of_a_block_device_is_told_and_its_size_rounded_up() -> None:
    data = template(node_class=replace(NODE_CLASS, block_devices=(EVERY_MEMBER,))).request[
        "LaunchTemplateData"
    ]
    (mapping,) = data["BlockDeviceMappings"]
    assert mapping == {
        "DeviceName": "/dev/xvda",
        "Ebs": {
            "DeleteOnTermination": False,
            "Encrypted": False,
            "VolumeType": "io2",
            "Iops": 4000,
            "Throughput": 250,
            "KmsKeyId": "k",
            "SnapshotId": "snap-1",
            "VolumeInitializationRate": 200,
            "VolumeSize": 51,
        },
    }


@pytest.mark.parametrize("monitored", [False, True])
def test_aws_6_2_detailed_monitoring_is_off_unless_asked_for(monitored: bool) -> None:
    data = template(node_class=replace(NODE_CLASS, detailed_monitoring=monitored)).request[
        "LaunchTemplateData"
    ]
    assert data["Monitoring"] == {"Enabled": monitored}


@pytest.mark.parametrize(
    ("capacity_type", "kinds"),
    [("on-demand", ["network-interface"]), ("spot", ["network-interface", "spot-instances-request"])],
)
def test_aws_6_2_a_template_bears_the_clusters_tag_and_tags_what_comes_with_an_instance(
    capacity_type: str, kinds: list[str]
) -> None:
    request = template(capacity_type=capacity_type).request
    listed = request["LaunchTemplateData"]["TagSpecifications"]
    assert [each["ResourceType"] for each in listed] == kinds
    tags = {tag["Key"]: tag["Value"] for tag in listed[0]["Tags"]}
    assert tags == TAGS
    (own,) = request["TagSpecifications"]
    assert own["ResourceType"] == "launch-template"
    assert {tag["Key"]: tag["Value"] for tag in own["Tags"]} == {
        **TAGS,
        "karpenter.k8s.aws/cluster": "demo",
    }


def test_aws_6_3_tags_of_the_class_win_over_those_of_the_settings_and_ours_over_both() -> None:
    assert TAGS == {
        "Name": "karpenter.sh/provisioner-name/default",
        "kubernetes.io/cluster/demo": "owned",
        "eks:eks-cluster-name": "demo",
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/provisioner-name": "default",
        "team": "a",
        "cost": "1",
    }


def test_aws_4_2_a_launch_is_thought_to_take_the_room_for_pods_of_the_smallest_type_of_each_zone() -> None:
    small, large = a_type("t3.small", on_demand=1, zones="a", pods=11), a_type("m5.large", on_demand=2)
    candidates = candidates_for(Requirements(), {}, [small, large])
    assert candidates is not None
    subnets = subnet_by_zone(
        [
            Subnet("subnet-a", "us-east-1a", 90, promised=60),
            Subnet("subnet-b", "us-east-1b", 9),
            Subnet("subnet-2", "us-east-1a", 31),
        ]
    )
    assert subnets["us-east-1a"].id == "subnet-2"
    assert predicted_addresses(candidates.types, subnets) == {"subnet-2": 11, "subnet-b": 29}
    assert predicted_addresses(candidates.types, subnets, 3) == {"subnet-2": 33, "subnet-b": 87}
    assert predicted_addresses(candidates.types, subnets, 3, of_pods=False) == {"subnet-2": 3, "subnet-b": 3}
    del subnets["us-east-1b"]
    assert predicted_addresses(candidates.types, subnets) == {"subnet-2": 11}


def a_request(capacity_type: str) -> dict[str, Any]:
    allowed = Requirements([Requirement.of(CAPACITY_TYPE, "In", [capacity_type])])
    types = [a_type("m5.large", on_demand=1, spot=0.5), a_type("c5.large", on_demand=2, spot=0.6)]
    candidates = candidates_for(allowed, {}, types)
    assert candidates is not None
    subnets = subnet_by_zone(
        [
            Subnet("subnet-1", "us-east-1a", 5),
            Subnet("subnet-2", "us-east-1a", 9),
            Subnet("subnet-0", "us-east-1a", 9),
        ]
    )
    listed = overrides(candidates.types, subnets)
    request = fleet_request(candidates, {"t": listed, "empty": []}, {"a": "b"}, token="token")
    assert request is not None
    return request


def test_a_request_lists_each_type_in_each_zone_with_a_subnet() -> None:
    request = a_request("spot")
    assert request["Type"] == "instant"
    assert request["LaunchTemplateConfigs"] == [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": "t", "Version": "$Latest"},
            "Overrides": [
                {"InstanceType": name, "SubnetId": "subnet-0", "AvailabilityZone": "us-east-1a"}
                for name in ("m5.large", "c5.large")
            ],
        }
    ]
    assert request["TargetCapacitySpecification"] == {
        "DefaultTargetCapacityType": "spot",
        "TotalTargetCapacity": 1,
    }
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert {tag_specification["ResourceType"] for tag_specification in request["TagSpecifications"]} == {
        "instance",
        "volume",
        "fleet",
    }
    assert a_request("on-demand")["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}


def test_aws_7_2_a_request_has_the_strategy_of_its_capacity_type_alone_and_bids_no_price() -> None:
    spot, on_demand = a_request("spot"), a_request("on-demand")
    assert "OnDemandOptions" not in spot
    assert "SpotOptions" not in on_demand
    assert on_demand["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "on-demand"
    for request in (spot, on_demand):
        (config,) = request["LaunchTemplateConfigs"]
        for override in config["Overrides"]:
            assert set(override) == {"InstanceType", "SubnetId", "AvailabilityZone"}


def test_a_token_is_short_and_of_its_own_for_cluster_claim_and_attempt() -> None:
    tokens = {
        client_token("demo", ["c"]),
        client_token("demo2", ["c"]),
        client_token("demo", ["c"], 1),
        client_token("x" * 90, ["c"]),
        client_token("x" * 90, ["c"], 1),
        client_token("demo", ["c", "d"]),
        client_token("demo", ["c", "d"], 1),
        client_token("demo", ["c", "d"], 2),
    }
    assert len(tokens) == 8
    assert all(len(token) <= 64 and token.isascii() for token in tokens)
    assert client_token("demo", ["default-abcde"]) == "demo-default-abcde"


def error(code: str, zone: str = "us-east-1a") -> dict[str, Any]:
    override = {"InstanceType": "m5.large", "AvailabilityZone": zone}
    return {
        "ErrorCode": code,
        "ErrorMessage": f"no {code}.",
        "LaunchTemplateAndOverrides": {"Overrides": override},
    }


def test_sold_out_offerings_are_told_also_beside_an_instance() -> None:
    override = {"InstanceType": "c5.large", "AvailabilityZone": "us-east-1b", "SubnetId": "subnet-2"}
    made = {
        "InstanceIds": ["i-1", "i-2"],
        "InstanceType": "c5.large",
        "LaunchTemplateAndOverrides": {"Overrides": override},
    }
    answer = read_answer({"Instances": [made], "Errors": [error("InsufficientInstanceCapacity")]}, "spot")
    (instance,) = answer.instances
    assert (instance.id, instance.zone, answer.surplus) == ("i-1", "us-east-1b", ("i-2",))
    assert answer.unavailable == (("m5.large", "us-east-1a", "spot"),)


def test_only_a_lack_of_capacity_counts_as_such() -> None:
    lacking = read_answer(
        {"Errors": [error("UnfulfillableCapacity"), error("Unsupported", "us-east-1b")]}, "spot"
    )
    assert lacking.insufficient
    assert len(lacking.unavailable) == 2
    mixed = read_answer({"Errors": [error("UnfulfillableCapacity"), error("InvalidAMIID.NotFound")]}, "spot")
    assert not mixed.insufficient
    assert mixed.code == "InvalidAMIID.NotFound"
    silent = read_answer({}, "spot")
    assert not silent.insufficient
    assert "no reason" in silent.message
