"""The AWS Load Balancer Controller: what turns Ingresses and Services into load balancers.

It is there before the first node, so it runs on Fargate: a profile has to match its pods
(`fargate.DEFAULT_PROFILES` has one), its role comes from its service account's token, and region and VPC
are told, since nothing on Fargate answers for an instance's metadata. Targets are pods (`ip`): instances
come and go with nodeless, and a pod on Fargate has none.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.load_balancer_policy import load_balancer_policy
from pulumi_nodeless.ordering import child_after
from pulumi_nodeless.service_account_role import RoleNames, ServiceAccount, service_account_role

NAME: Final = "aws-load-balancer-controller"
"""Name of chart, release, Deployment and service account."""
NAMESPACE: Final = "kube-system"
LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
"""Labels that the chart gives its pods."""
CHART_REPOSITORY: Final = "https://aws.github.io/eks-charts"
CHART_VERSION: Final = "3.5.0"
"""The chart whose controller needs the permissions of `load_balancer_policy`; they change together."""
FARGATE_PROFILE: Final = "kube-system"
FARGATE_PROFILE_LABEL: Final = "eks.amazonaws.com/fargate-profile"
"""Label of a pod that chooses among the profiles matching it; the second article sets it as an annotation."""


class LoadBalancerControllerArgs(TypedDict):
    """In which cluster load balancers are made, and how their controller runs."""

    cluster_name: str
    """Name of the cluster. It is part of the names of role and policy."""
    vpc_id: pulumi.Input[str]
    """ID of the load balancers' VPC."""
    oidc_provider_arn: pulumi.Input[str]
    """ARN of the cluster's IAM OpenID Connect provider."""
    oidc_issuer: pulumi.Input[str]
    """Issuer of the cluster, with or without https://."""
    replicas: NotRequired[int]
    """Number of replicas, of which one is the leader. Default: 2."""
    fargate_profile: NotRequired[str]
    """Fargate profile of its pods; empty: they run on nodes. Default: kube-system."""
    cpu: NotRequired[str]
    """CPU request and limit of each replica. Default: 250m."""
    memory: NotRequired[str]
    """Memory request and limit of each replica. Default: 256Mi, which with the 256 MB that Fargate adds is
    its smallest pod size."""
    default_load_balancers: NotRequired[bool]
    """Whether this controller creates a Network Load Balancer for every Service of type LoadBalancer without
    a class. Its webhook then handles each new Service, so none can be created while it is down. Default:
    false."""
    values: NotRequired[Mapping[str, Any]]
    """Additional values of the chart. They override the values that this component sets."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the role, the policy and every load balancer that it creates."""


class LoadBalancerController(pulumi.ComponentResource):
    """The AWS Load Balancer Controller, installed by its Helm chart, with its role."""

    role_arn: pulumi.Output[str]
    """ARN of its service account's role."""
    policy_arn: pulumi.Output[str]
    """ARN of the role's policy."""
    chart_version: pulumi.Output[str]
    """Version of the chart."""

    def __init__(
        self, name: str, args: LoadBalancerControllerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("LoadBalancerController", args, LoadBalancerControllerArgs)
        cluster, tags = reader.cluster_name(), reader.tags("tags")
        values = _values(reader, cluster, tags)
        reader.check()
        super().__init__("nodeless:index:LoadBalancerController", name, {}, opts)
        invoke = pulumi.InvokeOutputOptions(parent=self)
        made = service_account_role(
            self,
            name,
            ServiceAccount(NAMESPACE, NAME, args["oidc_provider_arn"], args["oidc_issuer"]),
            RoleNames(
                role=names.load_balancer_role(cluster),
                role_description=f"Load balancer controller of EKS cluster {cluster}",
                policy=names.load_balancer_policy(cluster),
                policy_description=f"What the load balancer controller of EKS cluster {cluster} may do",
            ),
            aws.get_partition_output(opts=invoke).partition.apply(
                lambda partition: json.dumps(load_balancer_policy(partition))
            ),
            tags,
        )
        release = k8s.helm.v3.Release(
            f"{name}-release",
            name=NAME,
            namespace=NAMESPACE,
            chart=NAME,
            version=CHART_VERSION,
            repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo=CHART_REPOSITORY),
            values={
                **values,
                "region": aws.get_region_output(opts=invoke).region,
                "vpcId": args["vpc_id"],
                "serviceAccount": {
                    "name": NAME,
                    "annotations": {"eks.amazonaws.com/role-arn": made.role.arn},
                },
                **reader.mapping("values"),
            },
            # A failed first installation leaves nothing that would stand in the way of the second.
            cleanup_on_fail=True,
            opts=child_after(self, opts, [made.role, made.policy]),
        )
        self.role_arn = made.role.arn
        self.policy_arn = made.policy.arn
        self.chart_version = release.version.apply(str)
        self.register_outputs(
            {"roleArn": self.role_arn, "policyArn": self.policy_arn, "chartVersion": self.chart_version}
        )


def _values(reader: ArgumentReader, cluster: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The chart's values that are known before anything exists."""
    figures = {"cpu": reader.text("cpu", "250m"), "memory": reader.text("memory", "256Mi")}
    profile = reader.text("fargate_profile", FARGATE_PROFILE)
    values: dict[str, Any] = {
        "clusterName": cluster,
        "replicaCount": reader.integer("replicas", 2, 1, 5),
        "resources": {"requests": figures, "limits": figures},
        "defaultTargetType": "ip",
        "defaultTags": dict(tags),
        "enableServiceMutatorWebhook": reader.flag("default_load_balancers", False),
        # Otherwise every rendering makes another certificate, and every `up` another revision.
        "keepTLSSecret": True,
    }
    if profile:
        values["podLabels"] = {FARGATE_PROFILE_LABEL: profile}
        values["podAnnotations"] = {FARGATE_PROFILE_LABEL: profile}
    return values
