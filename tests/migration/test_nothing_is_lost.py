"""Every member that the AWS API may answer with is carried over or listed; fixtures have its shapes."""

import base64
import json

import pytest

from nodeless.explain.migration.answers import COMMANDS
from tests.migration.running import INPUT, a_nodegroup, a_scaling_group, a_template, migration, written
from tests.migration.shapes import OPERATIONS, defects, output_of, sample

FIXTURES = sorted(INPUT.glob("*.json"))
#: What a group is found or named by, and what would make it another group.
NAMING = {
    "nodegroup": {"clusterName", "nodegroupName", "resources", "launchTemplate"},
    "AutoScalingGroups": {
        "AutoScalingGroupName",
        "LaunchConfigurationName",
        "MixedInstancesPolicy",
        "Instances",
    },
}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_a_fixture_has_the_shape_of_its_operation(path):
    document = json.loads(path.read_text())
    member = next(name for name in COMMANDS if name in document)
    assert defects(document, output_of(member)) == []


def test_a_wrong_shape_is_noticed():
    found = defects(
        {"nodegroup": {"nodegroupName": 1, "amiTyp": "x", "amiType": "y"}}, output_of("nodegroup")
    )
    assert len(found) == 3


def accounted(made):
    """Paths of members, of all sources, that are carried over or listed."""
    return {entry["member"] for entry in (*made["carried"], *made["notCarried"])}


def is_accounted(name, paths):
    return any(path == name or path.startswith((f"{name}.", f"{name}[", f"{name} ")) for path in paths)


def full(member):
    """An object with every member that its operation may answer with."""
    answer = sample(output_of(member))[member]
    return answer[0] if isinstance(answer, list) else answer


@pytest.mark.parametrize(
    "name", sorted(set(output_of("nodegroup").members["nodegroup"].members) - NAMING["nodegroup"])
)
def test_every_member_of_a_managed_group_is_accounted_for(tmp_path, name):
    document = a_nodegroup()
    document["nodegroup"].setdefault(name, full("nodegroup")[name])
    made = migration(written(tmp_path, "group.json", document))
    assert is_accounted(name, accounted(made))


def test_every_member_of_a_scaling_group_is_accounted_for(tmp_path):
    group = a_scaling_group()["AutoScalingGroups"][0]
    whole = {**full("AutoScalingGroups"), **group, "MinSize": 1}
    whole["Tags"] = [{"Key": "some", "Value": "some", "PropagateAtLaunch": True}]
    target = {
        "CapacityReservationIds": ["cr-0123456789abcdef0"],
        "CapacityReservationResourceGroupArns": ["some"],
    }
    whole["CapacityReservationSpecification"] = {
        "CapacityReservationPreference": "capacity-reservations-first",
        "CapacityReservationTarget": target,
    }
    for name in ("LaunchConfigurationName", "MixedInstancesPolicy"):
        del whole[name]
    files = [
        written(tmp_path, "t.json", a_template()),
        written(tmp_path, "g.json", {"AutoScalingGroups": [whole]}),
    ]
    paths = accounted(migration(*files, "--role", "nodes"))
    named = NAMING["AutoScalingGroups"]
    assert [name for name in whole if name not in named and not is_accounted(name, paths)] == []


def test_every_member_of_a_launch_template_is_accounted_for_down_to_the_last_one(tmp_path):
    data = full("LaunchTemplateVersions")["LaunchTemplateData"]
    data |= {
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": "m5.large",
        "UserData": base64.b64encode(b"#!/bin/bash\necho some\n").decode(),
    }
    data["BlockDeviceMappings"][0]["Ebs"] |= {
        "VolumeType": "gp3",
        "VolumeSize": 20,
        "Iops": 3000,
        "Throughput": 125,
    }
    data["BlockDeviceMappings"][0]["Ebs"] |= {"KmsKeyId": "some", "SnapshotId": "snap-0123456789abcdef0"}
    data["BlockDeviceMappings"][0]["Ebs"] |= {"VolumeInitializationRate": 100}
    data["BlockDeviceMappings"][0] |= {"DeviceName": "/dev/xvda"}
    data["MetadataOptions"] |= {
        "HttpTokens": "required",
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
    }
    data["SecurityGroupIds"] = data["NetworkInterfaces"][0]["Groups"] = ["sg-1"]
    data["SecurityGroups"] = ["sg-1"]
    data["NetworkInterfaces"][0]["ConnectionTrackingSpecification"] = {
        "TcpEstablishedTimeout": 600,
        "UdpStreamTimeout": 120,
        "UdpTimeout": 40,
    }
    data["InstanceMarketOptions"]["MarketType"] = "spot"
    data["TagSpecifications"] = [{"ResourceType": "instance", "Tags": [{"Key": "some", "Value": "some"}]}]
    data["CpuOptions"] |= {"CoreCount": 1, "ThreadsPerCore": 1, "NestedVirtualization": "enabled"}
    target = {"CapacityReservationId": "cr-0123456789abcdef0", "CapacityReservationResourceGroupArn": "some"}
    data["CapacityReservationSpecification"] = {
        "CapacityReservationPreference": "open",
        "CapacityReservationTarget": target,
    }
    data["Placement"] |= {
        "GroupId": "pg-0123456789abcdef0",
        "AvailabilityZone": "us-east-1a",
        "Tenancy": "dedicated",
    }
    template = a_template(**data)
    files = [written(tmp_path, "t.json", template), written(tmp_path, "g.json", a_scaling_group())]
    made = migration(*files, "--role", "nodes")
    paths = accounted(made)

    missing = [
        path
        for path in leaves(data, "LaunchTemplateData")
        if not any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in paths)
    ]
    known = {
        "LaunchTemplateData.ImageId",  # as the group's
        "LaunchTemplateData.InstanceType",
        "LaunchTemplateData.UserData",
        "LaunchTemplateData.TagSpecifications[0].ResourceType",
        "LaunchTemplateData.TagSpecifications[0].Tags[0].Key",
        "LaunchTemplateData.TagSpecifications[0].Tags[0].Value",
        "LaunchTemplateData.NetworkInterfaces[0].InterfaceType",
    }
    named = {"ImageId", "LaunchTemplateData.TagSpecifications[0].Tags[0].some"}
    assert named <= paths
    assert [path for path in missing if path not in known and "InstanceRequirements" not in path] == []


def leaves(value, path):
    if isinstance(value, dict):
        return [one for name, below in value.items() for one in leaves(below, f"{path}.{name}")]
    if isinstance(value, list):
        return [one for number, below in enumerate(value) for one in leaves(below, f"{path}[{number}]")]
    return [path]


@pytest.mark.parametrize(
    "name", sorted(full("LaunchTemplateVersions")["LaunchTemplateData"]["InstanceRequirements"])
)
def test_every_attribute_by_which_types_are_chosen_is_accounted_for(tmp_path, name):
    requirements = full("LaunchTemplateVersions")["LaunchTemplateData"]["InstanceRequirements"]
    template = a_template(InstanceRequirements={name: requirements[name]})
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    files = [written(tmp_path, "t.json", template), written(tmp_path, "g.json", a_scaling_group())]
    paths = accounted(migration(*files, "--role", "nodes"))
    assert is_accounted(f"LaunchTemplateData.InstanceRequirements.{name}", paths)


def test_a_member_that_nobody_knows_yet_is_listed_all_the_same(tmp_path):
    made = migration(written(tmp_path, "group.json", a_nodegroup(quantumConfig={"qubits": 8})))
    (entry,) = [one for one in made["notCarried"] if one["member"] == "quantumConfig"]
    assert (entry["value"], entry["matters"]) == ("qubits=8", True)
    assert "it has no known counterpart" in entry["reason"]


def test_every_kind_of_answer_that_is_read_is_held_to_a_shape():
    assert set(OPERATIONS) == set(COMMANDS) - {"Subnets", "cluster"}
