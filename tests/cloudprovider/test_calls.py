"""What the controller says in each call to AWS: EC2's buckets are small, so no call asks for too much."""

from typing import Any
from unittest.mock import ANY

from localenv.aws import LocalAws
from tests.cloudprovider.authorization import ACCOUNT, REGION
from tests.cloudprovider.conftest import World
from tests.cloudprovider.test_permissions import a_fresh_provider, a_life, controller

__all__ = ["controller"]

STATES = ["pending", "running", "stopping", "stopped", "shutting-down"]
DISCOVERY = {"Filters": [{"Name": "tag:karpenter.sh/discovery", "Values": ["demo"]}]}
#: AWS-13 of docs/acceptance/aws.md: of each operation the parameters of one of its calls, to the letter.
CALLS: dict[str, dict[str, Any]] = {
    "DescribeInstanceTypeOfferings": {"LocationType": "availability-zone"},
    "DescribeSubnets": DISCOVERY,
    "DescribeSecurityGroups": DISCOVERY,
    "DescribeImages": {
        "Owners": ["self", "amazon"],
        "Filters": [{"Name": "name", "Values": ["amazon-eks-node-*"]}],
        "IncludeDeprecated": True,
    },
    "GetParameter": {"Name": "/aws/service/eks/optimized-ami/1.29/amazon-linux-2/recommended/image_id"},
    "DescribeSpotPriceHistory": {
        "ProductDescriptions": ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
        "StartTime": ANY,
    },
    "GetProducts": {"ServiceCode": "AmazonEC2", "Filters": ANY},
    "DescribeLaunchTemplates": {
        "Filters": [{"Name": "tag:karpenter.k8s.aws/cluster", "Values": ["demo"]}],
        "MaxResults": 200,
    },
    "CreateLaunchTemplate": {
        "LaunchTemplateName": ANY,
        "LaunchTemplateData": ANY,
        "TagSpecifications": ANY,
        "ClientToken": ANY,
    },
    "DeleteLaunchTemplate": {"LaunchTemplateName": ANY},
    "CreateFleet": {
        "Type": "instant",
        "ClientToken": ANY,
        "LaunchTemplateConfigs": ANY,
        "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "TagSpecifications": ANY,
    },
    # With ids, `MaxResults` would be refused.
    "DescribeInstances": {
        "InstanceIds": ANY,
        "Filters": [{"Name": "instance-state-name", "Values": STATES}],
    },
    "TerminateInstances": {"InstanceIds": ANY},
    "RebootInstances": {"InstanceIds": ANY},
    "DescribeInstanceStatus": {
        "Filters": [{"Name": "system-status.status", "Values": ["impaired"]}],
        "MaxResults": 1000,
    },
    "DescribeCapacityReservations": {
        "Filters": [
            {"Name": "state", "Values": ["active"]},
            {"Name": "instance-match-criteria", "Values": ["targeted"]},
        ]
    },
    "DescribePlacementGroups": {"GroupNames": ["own"]},
    "DescribeCluster": {"name": "demo"},
    "GetQueueUrl": {"QueueName": "demo"},
    "ReceiveMessage": {
        "QueueUrl": ANY,
        "MaxNumberOfMessages": 10,
        "VisibilityTimeout": 20,
        "WaitTimeSeconds": 20,
    },
    "DeleteMessageBatch": {"QueueUrl": ANY, "Entries": ANY},
    "CreateInstanceProfile": {
        "InstanceProfileName": ANY,
        "Path": "/karpenter/us-east-1/demo/uid-1/",
        "Tags": ANY,
    },
    "ListInstanceProfiles": {"PathPrefix": "/karpenter/us-east-1/demo/"},
    "GetManagedResource": {"resourceIdentifier": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/demo"},
}


async def test_aws_13_each_call_asks_for_what_it_needs_and_in_pages_where_ec2_has_some(
    aws: LocalAws, world: World, controller: str
) -> None:
    aws.forget_calls()
    async with a_fresh_provider(aws, world) as provider:
        await a_life(provider, aws)
    made: dict[str, list[dict[str, Any]]] = {}
    for call in aws.calls():
        if call["principal"] == controller:
            made.setdefault(call["action"], []).append(call["parameters"])
    assert {action: made.get(action) for action, wanted in CALLS.items() if wanted not in made[action]} == {}
    # Offerings and prices come in pages; each page but the first names the one before.
    for action in ("DescribeInstanceTypes", "DescribeSpotPriceHistory", "GetProducts"):
        tokens = [each["NextToken"] for each in made[action] if "NextToken" in each]
        assert tokens
        assert len(tokens) == len(set(tokens)) or action == "GetProducts"
