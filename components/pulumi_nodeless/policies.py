"""IAM documents as plain data: who may assume a role, and what the controller may do.

Pure functions from names and ARNs to policy documents; `identity` and `fargate` attach them. The
controller's document has the statements of Karpenter's v0.27 installation guide, with five changes:
`iam:PassRole` is bound to EC2 and to one role, termination asks for the cluster's tag and for the tag that
pools of both generations put on their instances, instance profiles may be made for the roles of node
classes, within the cluster's tags, shifts away from zones may be read, and
`ec2:DescribeAvailabilityZones`, which is never called, is left out.
`article_policy` has them unchanged. Both may tag anything, so that a condition on tags holds nobody up who
has the role's credentials: `scoped_policy` is the default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Document = dict[str, Any]

VERSION: Final = "2012-10-17"
NODE_MANAGED_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonSSMManagedInstanceCore",
)
POD_EXECUTION_MANAGED_POLICY: Final = "AmazonEKSFargatePodExecutionRolePolicy"
MANAGED_POLICY_LIMIT: Final = 6144
"""Characters IAM allows in a managed policy, white space left out."""

DISCOVERY_ACTIONS: Final = (
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
    "pricing:GetProducts",
    "ssm:GetParameter",
)
LAUNCH_ACTIONS: Final = (
    "ec2:CreateFleet",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateTags",
    "ec2:DeleteLaunchTemplate",
    "ec2:RunInstances",
)
ARTICLE_ACTIONS: Final = (
    "ssm:GetParameter",
    "ec2:DescribeImages",
    "ec2:RunInstances",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeAvailabilityZones",
    "ec2:DeleteLaunchTemplate",
    "ec2:CreateTags",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateFleet",
    "ec2:DescribeSpotPriceHistory",
    "pricing:GetProducts",
)
"""Actions of the guide's first statement, in its order."""
QUEUE_ACTIONS: Final = ("sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage")


def managed_policy_arn(name: str, partition: str) -> str:
    """ARN of a policy that AWS manages."""
    return f"arn:{partition}:iam::aws:policy/{name}"


def cluster_arn(partition: str, region: str, account: str, cluster: str) -> str:
    """ARN of an EKS cluster."""
    return f"arn:{partition}:eks:{region}:{account}:cluster/{cluster}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a controller's policy is about: one cluster, where it stands, and what belongs to it.

    Attributes:
        partition: Of AWS, such as `aws` or `aws-cn`.
        region: Of the cluster.
        account: Number of the account.
        dns_suffix: The partition's domain, part of service principals.
        cluster: Name of the cluster.
        node_role_arn: The one role that the controller may pass to instances.
        interruption_queue_arn: The queue of warnings that it may read and empty; "" for none.
    """

    partition: str
    region: str
    account: str
    dns_suffix: str
    cluster: str
    node_role_arn: str
    interruption_queue_arn: str = ""

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return cluster_arn(self.partition, self.region, self.account, self.cluster)

    @property
    def ec2_services(self) -> list[str]:
        """Whom a role is passed to: in China an instance profile passes it to EC2's name elsewhere."""
        return list(dict.fromkeys(("ec2.amazonaws.com", f"ec2.{self.dns_suffix}")))


def node_trust(dns_suffix: str) -> Document:
    """EC2 may assume the node role."""
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Service": f"ec2.{dns_suffix}"},
            "Action": "sts:AssumeRole",
        }
    )


def pod_execution_trust(partition: str, region: str, account: str, cluster: str) -> Document:
    """Fargate may assume the pod execution role, for profiles of this one cluster."""
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "eks-fargate-pods.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {
                "ArnLike": {
                    "aws:SourceArn": f"arn:{partition}:eks:{region}:{account}:fargateprofile/{cluster}/*"
                }
            },
        }
    )


def service_account_trust(provider_arn: str, issuer: str, namespace: str, service_account: str) -> Document:
    """One service account of one cluster may assume the role with its token, and nobody else.

    Args:
        provider_arn: ARN of the IAM OpenID Connect provider of the cluster.
        issuer: the cluster's issuer; condition keys want it without scheme, so `https://` is taken off.
        namespace: namespace of the service account.
        service_account: name of the service account.
    """
    bare = issuer.removeprefix("https://").rstrip("/")
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Federated": provider_arn},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {
                    f"{bare}:aud": "sts.amazonaws.com",
                    f"{bare}:sub": f"system:serviceaccount:{namespace}:{service_account}",
                }
            },
        }
    )


def pod_identity_trust(cluster: str, namespace: str, service_account: str) -> Document:
    """EKS Pod Identity may assume the role for one service account of one cluster, and nobody else.

    The conditions are on the session tags that EKS sends along, see
    https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html.

    Args:
        cluster: ARN of the cluster.
        namespace: namespace of the service account.
        service_account: name of the service account.
    """
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-arn": cluster,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": service_account,
                }
            },
        }
    )


def interruption_queue_policy(queue_arn: str, rule_arns: Sequence[str]) -> Document:
    """EventBridge may fill the queue through these rules; nobody may use it without TLS."""
    return document(
        {
            "Sid": "EventBridge",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": sorted(rule_arns)}},
        },
        {
            "Sid": "DenyHTTP",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": queue_arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    )


def controller_policy(subject: Subject) -> Document:
    """What the controller may do in AWS; with a queue, that it may read and empty it."""
    return document(
        {
            "Sid": "Karpenter",
            "Effect": "Allow",
            "Action": sorted(DISCOVERY_ACTIONS + LAUNCH_ACTIONS),
            "Resource": "*",
        },
        {
            "Sid": "ConditionalEC2Termination",
            "Effect": "Allow",
            "Action": ["ec2:RebootInstances", "ec2:TerminateInstances"],
            "Resource": "*",
            "Condition": {
                "StringLike": {"ec2:ResourceTag/karpenter.sh/nodepool": "*"},
                "StringEquals": {f"ec2:ResourceTag/kubernetes.io/cluster/{subject.cluster}": "owned"},
            },
        },
        {
            "Sid": "PassNodeIAMRole",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": subject.node_role_arn,
            "Condition": {"StringEquals": {"iam:PassedToService": subject.ec2_services}},
        },
        *instance_profile_statements(subject),
        {
            "Sid": "EKSClusterEndpointLookup",
            "Effect": "Allow",
            "Action": "eks:DescribeCluster",
            "Resource": subject.cluster_arn,
        },
        *_queue_statement(subject.interruption_queue_arn),
        zonal_shift_statement(subject),
    )


def zonal_shift_statement(subject: Subject) -> Document:
    """Shifts of the cluster away from a zone may be read (as Karpenter v1's)."""
    return {
        "Sid": "ReadZonalShifts",
        "Effect": "Allow",
        "Action": "arc-zonal-shift:GetManagedResource",
        "Resource": "*",
        "Condition": {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": subject.cluster_arn}},
    }


def instance_profile_statements(subject: Subject) -> list[Document]:
    """What making instance profiles for node classes needs, within the cluster's tags (as Karpenter v1's).

    Tags may be added to a profile that is ours, and none that say whose it is may be changed.
    """
    node_class = "karpenter.k8s.aws/ec2nodeclass"
    owned, region = f"kubernetes.io/cluster/{subject.cluster}", "topology.kubernetes.io/region"
    cluster = {
        f"aws:RequestTag/{owned}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": subject.cluster,
    }
    profiles = {
        "Effect": "Allow",
        "Resource": f"arn:{subject.partition}:iam::{subject.account}:instance-profile/*",
    }
    return [
        {
            "Sid": "CreateInstanceProfiles",
            "Action": "iam:CreateInstanceProfile",
            **profiles,
            "Condition": {
                "StringEquals": {**cluster, f"aws:RequestTag/{region}": subject.region},
                "StringLike": {f"aws:RequestTag/{node_class}": "*"},
            },
        },
        {
            "Sid": "UseInstanceProfiles",
            "Action": [
                "iam:AddRoleToInstanceProfile",
                "iam:DeleteInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:TagInstanceProfile",
            ],
            **profiles,
            "Condition": {
                "StringEquals": {
                    f"aws:ResourceTag/{owned}": "owned",
                    f"aws:ResourceTag/{region}": subject.region,
                },
                "StringEqualsIfExists": cluster,
                "StringLike": {f"aws:ResourceTag/{node_class}": "*"},
            },
        },
        {
            "Sid": "FindInstanceProfiles",
            "Effect": "Allow",
            "Action": ["iam:GetInstanceProfile", "iam:ListInstanceProfiles"],
            "Resource": "*",
        },
    ]


def article_policy(subject: Subject) -> Document:
    """The statements of Karpenter's v0.27 guide to the letter; with a queue, the right to read that, too.

    Instances of NodePools bear no `karpenter.sh/provisioner-name`, so this policy lets the controller end
    those of Provisioners alone; none may be rebooted, so repairs that would reboot a node end it after five
    minutes; and it can make no instance profile, so node classes must name one.
    """
    return document(
        {
            "Sid": "Karpenter",
            "Effect": "Allow",
            "Action": list(ARTICLE_ACTIONS),
            "Resource": "*",
        },
        {
            "Sid": "ConditionalEC2Termination",
            "Effect": "Allow",
            "Action": "ec2:TerminateInstances",
            "Resource": "*",
            "Condition": {"StringLike": {"ec2:ResourceTag/karpenter.sh/provisioner-name": "*"}},
        },
        {
            "Sid": "PassNodeIAMRole",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": subject.node_role_arn,
        },
        {
            "Sid": "EKSClusterEndpointLookup",
            "Effect": "Allow",
            "Action": "eks:DescribeCluster",
            "Resource": subject.cluster_arn,
        },
        *_queue_statement(subject.interruption_queue_arn),
    )


def _queue_statement(queue_arn: str) -> list[Document]:
    statement = {
        "Sid": "InterruptionQueue",
        "Effect": "Allow",
        "Action": list(QUEUE_ACTIONS),
        "Resource": queue_arn,
    }
    return [statement] if queue_arn else []


def document(*statements: Document) -> Document:
    """A policy document of these statements."""
    return {"Version": VERSION, "Statement": list(statements)}
