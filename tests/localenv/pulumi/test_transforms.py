"""What an organization demands of every resource reaches them all, pulumi-eks's included."""

from __future__ import annotations

import base64

import pulumi
import pulumi_aws as aws_sdk
import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from pulumi_nodeless import Cluster, ControllerIdentity, InterruptionQueue, Network, NodeIdentity
from tests.localenv.pulumi.conftest import Shop

pytestmark = pytest.mark.cluster

BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"


def bounded(resource: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """The transform of docs/guides/from-other-packages.md."""
    if resource.type_ != "aws:iam/role:Role":
        return None
    return pulumi.ResourceTransformResult({**resource.props, "permissionsBoundary": BOUNDARY}, resource.opts)


def cluster_in_a_network(options: pulumi.ResourceOptions, name: str = "cluster", **tags: str) -> Cluster:
    network = Network("net", {"cluster_name": "shop", "zone_count": 2, "nat_gateways": "none"}, options)
    return Cluster(
        name,
        {
            "cluster_name": "shop",
            "authentication_mode": "API",
            "vpc_id": network.vpc_id,
            "private_subnet_ids": network.private_subnet_ids,
            "tags": tags,
        },
        options,
    )


def everything_with_a_role() -> None:
    provider = aws_sdk.Provider("aws", region="us-east-1")
    options = pulumi.ResourceOptions(providers=[provider], transforms=[bounded])
    nodes = NodeIdentity("nodes", {"cluster_name": "shop"}, options)
    queue = InterruptionQueue("warnings", {"cluster_name": "shop"}, options)
    cluster = cluster_in_a_network(options)
    ControllerIdentity(
        "controller",
        {
            "cluster_name": "shop",
            "node_role_arn": nodes.role_arn,
            "oidc_provider_arn": cluster.oidc_provider_arn,
            "oidc_issuer": cluster.oidc_issuer,
            "interruption_queue_arn": queue.queue_arn,
        },
        options,
    )
    # More rights than the components give are policies of the stack's own on the roles that they name.
    aws_sdk.iam.RolePolicyAttachment(
        "figures-of-nodes",
        role=nodes.role_name,
        policy_arn="arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy",
        opts=pulumi.ResourceOptions(provider=provider),
    )


@pytest.fixture(autouse=True)
def _control_plane_behind_the_cluster(control_plane: ControlPlane, aws: LocalAws) -> None:
    authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
    aws.set_cluster(
        endpoint=control_plane.endpoint,
        certificate_authority_data=authority,
        issuer=control_plane.issuer,
        service_account_key=None,
    )


def test_tags_reach_every_resource_of_a_cluster_that_can_have_some(shop: Shop, aws: LocalAws) -> None:
    def program() -> None:
        provider = aws_sdk.Provider("aws", region="us-east-1")
        cluster_in_a_network(pulumi.ResourceOptions(providers=[provider]), team="web")

    shop.program = program
    shop.stack.up()
    assert "update" not in shop.stack.up()
    iam, eks = aws.client("iam"), aws.client("eks")
    (provider,) = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
    found = iam.list_open_id_connect_provider_tags(OpenIDConnectProviderArn=provider["Arn"])["Tags"]
    assert found == [{"Key": "team", "Value": "web"}]
    (role,) = iam.list_roles()["Roles"]
    assert iam.list_role_tags(RoleName=role["RoleName"])["Tags"] == found
    made = [
        eks.describe_cluster(name="shop")["cluster"],
        *(
            eks.describe_addon(clusterName="shop", addonName=name)["addon"]
            for name in eks.list_addons(clusterName="shop")["addons"]
        ),
    ]
    assert {each["tags"]["team"] for each in made} == {"web"}
    assert len(made) == 3


def test_the_role_of_a_cluster_with_a_long_name_gets_one_that_iam_takes(shop: Shop, aws: LocalAws) -> None:
    """An environment with 32 letters in its name: pulumi-eks appends some, and made up no role's name."""

    def role_of(name: str) -> str:
        shop.stack.destroy()
        shop.program = lambda: cluster_in_a_network(
            pulumi.ResourceOptions(providers=[aws_sdk.Provider("aws", region="us-east-1")]), name
        )
        shop.stack.up()
        assert "update" not in shop.stack.up()
        (role,) = aws.client("iam").list_roles()["Roles"]
        return role["RoleName"]

    assert role_of(f"{'x' * 32}-cluster") == "shop-eksRole"
    assert role_of(f"{'x' * 31}-cluster").startswith(f"{'x' * 31}-cluster-eks-eksRole-role-")


def test_a_permissions_boundary_reaches_every_role_that_of_the_control_plane_included(
    shop: Shop, aws: LocalAws
) -> None:
    shop.program = everything_with_a_role
    shop.stack.up()
    iam = aws.client("iam")
    names = sorted(role["RoleName"] for role in iam.list_roles()["Roles"])
    assert [name.partition("-")[0] for name in names] == [
        "KarpenterControllerRole",
        "KarpenterNodeRole",
        "cluster",
    ]
    for name in names:
        boundary = iam.get_role(RoleName=name)["Role"]["PermissionsBoundary"]
        assert boundary["PermissionsBoundaryArn"] == BOUNDARY
    attached = iam.list_attached_role_policies(RoleName="KarpenterNodeRole-shop")["AttachedPolicies"]
    assert "CloudWatchAgentServerPolicy" in {policy["PolicyName"] for policy in attached}
