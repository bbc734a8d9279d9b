"""Addresses of instances that have ended."""

from __future__ import annotations

import pytest

from localenv.aws import LocalAws


@pytest.mark.parametrize("at_once", [False, True])
def test_an_address_is_given_again_last_of_all_unless_it_is_asked_for(aws: LocalAws, at_once: bool) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    # Room for eleven: EC2 keeps five addresses of each subnet for itself.
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/28")["Subnet"]["SubnetId"]
    aws.reuse_addresses(at_once=at_once)

    def launched() -> str:
        run = {"ImageId": image, "InstanceType": "m5.large", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
        (made,) = ec2.run_instances(**run)["Instances"]
        ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
        return str(made["PrivateIpAddress"])

    given = [launched() for _ in range(30)]
    assert len(set(given[:5])) == (1 if at_once else 5)
    assert len(set(given)) == (1 if at_once else 11)
