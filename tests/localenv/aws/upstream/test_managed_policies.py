"""AWS's managed policies."""

from __future__ import annotations

from localenv.aws import LocalAws


def test_the_managed_policies_of_the_partition_are_there(aws: LocalAws) -> None:
    arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    assert aws.client("iam").get_policy(PolicyArn=arn)["Policy"]["PolicyName"] == "AmazonEKSClusterPolicy"
