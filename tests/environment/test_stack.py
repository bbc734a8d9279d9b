"""The Pulumi stack on the whole environment: it stays as it is, goes without a trace, and comes back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from localenv.binaries import control_plane_binaries
from localenv.environment import Environment
from localenv.kubernetes import KubernetesApi, Object
from localenv.progress import silent
from tests.environment.heard import Heard
from tests.environment.user import User, deployment_manifest, pool_manifests

pytestmark = pytest.mark.environment

#: What a control plane has by itself.
NAMESPACES = {"default", "kube-node-lease", "kube-public", "kube-system"}


def test_a_second_up_changes_nothing(environment: Environment) -> None:
    (operation,) = changes = environment.up()
    assert operation == "same"
    assert changes["same"] > 50
    assert environment.stack.preview() == changes


def test_the_outputs_lead_to_what_was_made(environment: Environment) -> None:
    outputs = environment.stack.outputs()
    aws = environment.aws
    cluster = aws.client("eks").describe_cluster(name=outputs["clusterName"])["cluster"]
    assert cluster["name"] == environment.options.cluster_name
    assert outputs["clusterEndpoint"] == cluster["endpoint"] == environment.control_plane.endpoint
    subnets = aws.client("ec2").describe_subnets(SubnetIds=outputs["privateSubnetIds"])["Subnets"]
    assert {subnet["VpcId"] for subnet in subnets} == {cluster["resourcesVpcConfig"]["vpcId"]}
    profile = aws.client("iam").get_instance_profile(InstanceProfileName=outputs["instanceProfileName"])
    assert [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]] == [outputs["nodeRoleName"]]
    account = environment.api.get("/api/v1/namespaces/karpenter/serviceaccounts/karpenter")
    annotations = account["metadata"]["annotations"]
    assert annotations["eks.amazonaws.com/role-arn"] == outputs["controllerRoleArn"]


def test_destroy_leaves_nothing_though_a_pools_pods_run_and_up_brings_it_all_back(tmp_path: Path) -> None:
    with Environment.start(tmp_path, report=Heard()) as environment:
        user = User(environment)
        manifests = (
            *pool_manifests("small", user.template()),
            deployment_manifest("web", user.namespace, 3, "1"),
        )
        kubectl_apply(environment, *manifests)
        assert len(user.runs("web", 3)) == 1
        assert len(user.instances()) == 1
        # What users put into the cluster stays where the cluster outlives the stack, as it does here.
        made = {user.namespace}

        environment.destroy()
        assert what_aws_has(environment) == {}
        environment.api.wait(
            lambda: what_the_cluster_has(environment.api, made),
            lambda left: not left,
            timeout=120,  # pods of nodes that are gone are collected after 40 s, each 20 s
            what="the cluster to be empty",
        )
        assert user.pods("web")

        assert set(environment.up()) == {"create"}
        kubectl_apply(environment, *manifests)
        assert len(user.runs("web", 3)) == 1


def kubectl_apply(environment: Environment, *manifests: Object) -> None:
    """`kubectl apply -f -`, as a user does it."""
    document = {"apiVersion": "v1", "kind": "List", "items": manifests}
    subprocess.run(
        [control_plane_binaries(silent)["kubectl"], "apply", "-f", "-"],
        input=json.dumps(document),
        text=True,
        env={**os.environ, **environment.variables()},
        capture_output=True,
        check=True,
    )


def what_aws_has(environment: Environment) -> dict[str, list[Any]]:
    """What is left in the account beside what every account has, by kind."""
    ec2, iam, eks = (environment.aws.client(name) for name in ("ec2", "iam", "eks"))
    living = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    queues, rules = environment.aws.client("sqs").list_queues(), environment.aws.client("events").list_rules()
    left = {
        "clusters": eks.list_clusters()["clusters"],
        "instances": ec2.describe_instances(Filters=living)["Reservations"],
        "launch templates": ec2.describe_launch_templates()["LaunchTemplates"],
        "VPCs": [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")],
        "subnets": [each for each in ec2.describe_subnets()["Subnets"] if not each.get("DefaultForAz")],
        "security groups": [
            group
            for group in ec2.describe_security_groups()["SecurityGroups"]
            if group["GroupName"] != "default"
        ],
        "NAT gateways": [
            gateway for gateway in ec2.describe_nat_gateways()["NatGateways"] if gateway["State"] != "deleted"
        ],
        "addresses": ec2.describe_addresses()["Addresses"],
        "roles": iam.list_roles()["Roles"],
        "policies": iam.list_policies(Scope="Local")["Policies"],
        "instance profiles": iam.list_instance_profiles()["InstanceProfiles"],
        "OIDC providers": iam.list_open_id_connect_providers()["OpenIDConnectProviderList"],
        "queues": queues.get("QueueUrls", []),
        "event rules": rules["Rules"],
    }
    return {kind: found for kind, found in left.items() if found}


def what_the_cluster_has(api: KubernetesApi, users: set[str]) -> dict[str, list[str]]:
    """What is left in the cluster beside what every cluster and its users have, by kind."""
    admission = "/apis/admissionregistration.k8s.io/v1"
    eks = {"eks-pod-mutation"}  # of EKS's own control plane
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    left = {
        "namespaces": _names(api, "/api/v1/namespaces") - NAMESPACES - users,
        "nodes": _names(api, "/api/v1/nodes"),
        "kinds": _names(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        "webhooks": (
            _names(api, f"{admission}/mutatingwebhookconfigurations")
            | _names(api, f"{admission}/validatingwebhookconfigurations")
        )
        - eks,
        "cluster roles": {name for name in _names(api, f"{rbac}/clusterroles") if "karpenter" in name},
        "bindings": {name for name in _names(api, f"{rbac}/clusterrolebindings") if "karpenter" in name},
        "kube-system's roles": {
            name for name in _names(api, f"{rbac}/namespaces/kube-system/roles") if "karpenter" in name
        },
        "kube-system's workloads": _names(api, "/apis/apps/v1/namespaces/kube-system/daemonsets")
        | _names(api, "/apis/apps/v1/namespaces/kube-system/deployments"),
        "kube-system's pods": _names(api, "/api/v1/namespaces/kube-system/pods"),
    }
    return {kind: sorted(found) for kind, found in left.items() if found}


def _names(api: KubernetesApi, collection: str) -> set[str]:
    return {item["metadata"]["name"] for item in api.list(collection)}
