"""AWS's managed policies."""

from __future__ import annotations

import json

from localenv.aws import LocalAws

DOCUMENT = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "eks:*", "Resource": "*"},
}


def test_the_managed_policies_of_the_partition_are_there(aws: LocalAws) -> None:
    arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    assert aws.client("iam").get_policy(PolicyArn=arn)["Policy"]["PolicyName"] == "AmazonEKSClusterPolicy"


def test_a_managed_policy_is_as_it_was_once_everything_is_forgotten(aws: LocalAws) -> None:
    iam = aws.client("iam")
    arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    before = iam.get_policy(PolicyArn=arn)["Policy"]
    iam.create_role(RoleName="cluster", AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName="cluster", PolicyArn=arn)
    iam.tag_policy(PolicyArn=arn, Tags=[{"Key": "team", "Value": "shop"}])
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(DOCUMENT), SetAsDefault=True)
    changed = iam.get_policy(PolicyArn=arn)["Policy"]
    assert (changed["AttachmentCount"], changed["Tags"]) == (1, [{"Key": "team", "Value": "shop"}])

    aws.reset()

    assert iam.get_policy(PolicyArn=arn)["Policy"] == before
    assert before["AttachmentCount"] == 0
