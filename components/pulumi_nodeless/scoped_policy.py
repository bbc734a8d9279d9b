"""The controller's policy bound to the tags of its cluster: what bears none of them it cannot touch.

In the manner of Karpenter v1's policies, without what the controller never does. Every instance, volume,
interface, fleet, spot request and launch template that it makes is tagged in the request that makes it;
the conditions demand these tags and tagging as part of such a request. Its own instances get three tags more
once their nodes have joined, none of which any condition asks for. Pure; `policies` has the other
documents.
"""

from typing import Any, Final

from pulumi_nodeless.policies import (
    QUEUE_ACTIONS,
    Document,
    Subject,
    document,
    instance_profile_statements,
    zonal_shift_statement,
)

READ_ACTIONS: Final = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)
_TAGGED: Final = (
    "fleet",
    "instance",
    "launch-template",
    "network-interface",
    "spot-instances-request",
    "volume",
)
_SELECTED: Final = ("capacity-reservation", "placement-group", "security-group", "subnet")
_POOL_TAG: Final = "karpenter.sh/nodepool"
_NODE_TAGS: Final = ("Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim")
"""What an instance is tagged with once its node has joined."""


def scoped_controller_policy(subject: Subject) -> Document:
    """What the controller may do in AWS, by tags; with a queue, that it may read and empty it."""
    ec2 = f"arn:{subject.partition}:ec2:{subject.region}"
    made = [f"{ec2}:{subject.account}:{kind}/*" for kind in _TAGGED]
    owned = f"kubernetes.io/cluster/{subject.cluster}"
    requested = {
        "StringEquals": {
            f"aws:RequestTag/{owned}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": subject.cluster,
        },
        "StringLike": {f"aws:RequestTag/{_POOL_TAG}": "*"},
    }
    ours = {
        "StringEquals": {f"aws:ResourceTag/{owned}": "owned"},
        "StringLike": {f"aws:ResourceTag/{_POOL_TAG}": "*"},
    }
    created = {
        **requested["StringEquals"],
        "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
    }
    launch = ["ec2:CreateFleet", "ec2:RunInstances"]
    statements: list[dict[str, Any]] = [
        _allow(
            "UseWhatNodeClassesSelect",
            launch,
            [
                f"{ec2}::image/*",
                f"{ec2}::snapshot/*",
                # Of any account: subnets and reservations may be shared with this one.
                *(f"{ec2}:*:{kind}/*" for kind in _SELECTED),
            ],
        ),
        _allow("MakeWithTags", [*launch, "ec2:CreateLaunchTemplate"], made, requested),
        # Only what may be made can be tagged while it is made.
        _allow(
            "TagWhatIsMade",
            "ec2:CreateTags",
            f"{ec2}:{subject.account}:*/*",
            {"StringEquals": created, "StringLike": requested["StringLike"]},
        ),
        _allow(
            "TagOwnNodes",
            "ec2:CreateTags",
            f"{ec2}:{subject.account}:instance/*",
            {
                **ours,
                "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": subject.cluster},
                "ForAllValues:StringEquals": {"aws:TagKeys": list(_NODE_TAGS)},
            },
        ),
        # Launches use templates; an instance that is yet to be made has no tags, so they use none.
        _allow(
            "UseAndEndWhatIsOwn",
            [*launch, "ec2:DeleteLaunchTemplate", "ec2:RebootInstances", "ec2:TerminateInstances"],
            [f"{ec2}:{subject.account}:{kind}/*" for kind in ("instance", "launch-template")],
            ours,
        ),
        _allow(
            "PassNodeIAMRole",
            "iam:PassRole",
            subject.node_role_arn,
            {"StringEquals": {"iam:PassedToService": subject.ec2_services}},
        ),
        _allow(
            "ReadInRegion", list(READ_ACTIONS), "*", {"StringEquals": {"aws:RequestedRegion": subject.region}}
        ),
        _allow(
            "ReadImageParameters",
            "ssm:GetParameter",
            f"arn:{subject.partition}:ssm:{subject.region}::parameter/aws/service/*",
        ),
        _allow("ReadPrices", "pricing:GetProducts", "*"),
        *instance_profile_statements(subject),
        _allow(
            "EKSClusterEndpointLookup",
            "eks:DescribeCluster",
            subject.cluster_arn,
        ),
    ]
    if subject.interruption_queue_arn:
        statements.append(_allow("InterruptionQueue", list(QUEUE_ACTIONS), subject.interruption_queue_arn))
    return document(*statements, zonal_shift_statement(subject))


def _allow(sid: str, actions: Any, resources: Any, condition: Any = None) -> Document:
    statement: Document = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    return statement if condition is None else {**statement, "Condition": condition}
