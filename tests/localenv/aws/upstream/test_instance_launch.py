"""What a launch makes, and what ends with it."""

from __future__ import annotations

from tests.localenv.aws.world import World, instance_ids


def test_an_interface_ends_with_its_instance(world: World) -> None:
    answer = world.fleet(world.config(world.launch_template(), ["m5.large"]))
    before = world.instance(instance_ids(answer)[0])["NetworkInterfaces"][0]["NetworkInterfaceId"]
    world.ec2.terminate_instances(InstanceIds=instance_ids(answer))
    filters = [{"Name": "network-interface-id", "Values": [before]}]
    assert world.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"] == []


def test_plain_run_instances_works(world: World) -> None:
    answer = world.ec2.run_instances(
        ImageId=world.image,
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=world.subnets["us-east-1a"],
        SecurityGroupIds=[world.group],
        UserData="hello",
    )
    identifier = answer["Instances"][0]["InstanceId"]
    data = world.ec2.describe_instance_attribute(InstanceId=identifier, Attribute="userData")
    assert data["UserData"]["Value"] == "aGVsbG8="
