"""EKS as the components use it: clusters, access, add-ons, Pod Identity, Fargate."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.world import World

CONTROL_PLANE = {
    "endpoint": "https://127.0.0.1:6443",
    "certificate_authority_data": base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(),
    "issuer": "https://127.0.0.1:6443",
}


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_cluster_answers_with_the_control_plane_given(world: World) -> None:
    cluster = world.cluster()
    assert cluster["endpoint"].endswith(".eks.amazonaws.com")
    world.aws.set_cluster(**CONTROL_PLANE)
    cluster = world.aws.client("eks").describe_cluster(name="demo")["cluster"]
    assert cluster["endpoint"] == CONTROL_PLANE["endpoint"]
    assert cluster["certificateAuthority"]["data"] == CONTROL_PLANE["certificate_authority_data"]
    assert cluster["identity"]["oidc"]["issuer"] == CONTROL_PLANE["issuer"]
    assert cluster["status"] == "ACTIVE"
    assert cluster["version"] == "1.36"


def test_a_cluster_has_its_network_and_a_real_security_group(world: World) -> None:
    config = world.cluster()["resourcesVpcConfig"]
    assert config["vpcId"] == world.vpc
    filters = [{"Name": "tag:kubernetes.io/cluster/demo", "Values": ["owned"]}]
    [group] = world.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    assert group["GroupId"] == config["clusterSecurityGroupId"]
    assert {"Key": "aws:eks:cluster-name", "Value": "demo"} in group["Tags"]
    assert group["VpcId"] == world.vpc
    world.aws.client("eks").delete_cluster(name="demo")
    assert not world.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]


def test_settings_are_kept_and_waiters_end(world: World) -> None:
    access = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    cluster = world.cluster(accessConfig=access, version="1.30", tags={"team": "a"})
    eks = world.aws.client("eks")
    eks.get_waiter("cluster_active").wait(name="demo")
    assert cluster["accessConfig"] == access
    assert cluster["version"] == "1.30"
    assert eks.list_clusters()["clusters"] == ["demo"]
    eks.tag_resource(resourceArn=cluster["arn"], tags={"env": "test"})
    eks.untag_resource(resourceArn=cluster["arn"], tagKeys=["team"])
    assert eks.list_tags_for_resource(resourceArn=cluster["arn"])["tags"] == {"env": "test"}
    eks.delete_cluster(name="demo")
    eks.get_waiter("cluster_deleted").wait(name="demo")


def test_a_cluster_that_cannot_be(world: World) -> None:
    eks = world.aws.client("eks")
    subnets = list(world.subnets.values())
    role = world.role("cluster", "eks.amazonaws.com")
    bad: list[dict[str, Any]] = [
        {"roleArn": "arn:aws:iam::123456789012:role/nobody", "resourcesVpcConfig": {"subnetIds": subnets}},
        {"roleArn": role, "resourcesVpcConfig": {"subnetIds": subnets[:1]}},
        {"roleArn": role, "resourcesVpcConfig": {"subnetIds": subnets}, "version": "1.9"},
    ]
    for request in bad:
        with pytest.raises(ClientError) as error:
            eks.create_cluster(name="demo", **request)
        assert code(error) == "InvalidParameterException"
    with pytest.raises(ClientError) as error:
        eks.describe_cluster(name="demo")
    assert code(error) == "ResourceNotFoundException"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_zones_that_take_no_cluster_are_refused(world: World) -> None:
    """In this account use1-az3 is us-east-1e."""
    eks, role = world.aws.client("eks"), world.role("cluster", "eks.amazonaws.com")
    refused = world.ec2.create_subnet(
        VpcId=world.vpc, CidrBlock="10.0.9.0/24", AvailabilityZone="us-east-1e"
    )["Subnet"]["SubnetId"]
    network = {"subnetIds": [world.subnets["us-east-1a"], refused]}
    with pytest.raises(ClientError, match=r"us-east-1e, the targeted.*us-east-1a, us-east-1b") as error:
        eks.create_cluster(name="demo", roleArn=role, resourcesVpcConfig=network)
    assert code(error) == "UnsupportedAvailabilityZoneException"
    assert eks.list_clusters()["clusters"] == []


def test_a_cluster_stays_in_the_zones_that_it_was_created_with(world: World) -> None:
    eks, (first, second, _) = world.aws.client("eks"), world.subnets.values()
    role = world.role("cluster", "eks.amazonaws.com")
    eks.create_cluster(name="demo", roleArn=role, resourcesVpcConfig={"subnetIds": [first, second]})
    for others in (list(world.subnets.values()), [first, world.subnets["us-east-1c"]]):
        with pytest.raises(ClientError, match="exact set of AZs 'us-east-1a,us-east-1b'") as error:
            eks.update_cluster_config(name="demo", resourcesVpcConfig={"subnetIds": others})
        assert code(error) == "InvalidParameterException"
    further = world.ec2.create_subnet(
        VpcId=world.vpc, CidrBlock="10.0.9.0/24", AvailabilityZone="us-east-1b"
    )["Subnet"]["SubnetId"]
    eks.update_cluster_config(name="demo", resourcesVpcConfig={"subnetIds": [first, further]})
    found = eks.describe_cluster(name="demo")["cluster"]["resourcesVpcConfig"]["subnetIds"]
    assert found == [first, further]


def test_a_name_is_taken_once(world: World) -> None:
    cluster = world.cluster()
    with pytest.raises(ClientError) as error:
        world.aws.client("eks").create_cluster(
            name="demo",
            roleArn=cluster["roleArn"],
            resourcesVpcConfig={"subnetIds": list(world.subnets.values())},
        )
    assert code(error) == "ResourceInUseException"


def test_versions_go_up_one_at_a_time(world: World) -> None:
    world.cluster(version="1.30")
    eks = world.aws.client("eks")
    with pytest.raises(ClientError) as error:
        eks.update_cluster_version(name="demo", version="1.32")
    assert code(error) == "InvalidParameterException"
    update = eks.update_cluster_version(name="demo", version="1.31")["update"]
    assert eks.describe_update(name="demo", updateId=update["id"])["update"]["status"] == "Successful"
    assert eks.describe_cluster(name="demo")["cluster"]["version"] == "1.31"


def test_the_authentication_mode_goes_one_way_one_step_at_a_time(world: World) -> None:
    """The message is that of EKS (pulumi/pulumi-eks#1493)."""
    world.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
    eks = world.aws.client("eks")

    def change_to(mode: str) -> None:
        eks.update_cluster_config(name="demo", accessConfig={"authenticationMode": mode})

    with pytest.raises(ClientError, match=r"Unsupported authentication mode update from CONFIG_MAP to API$"):
        change_to("API")
    change_to("API_AND_CONFIG_MAP")
    for mode in ("API_AND_CONFIG_MAP", "CONFIG_MAP"):
        with pytest.raises(ClientError, match=f"from API_AND_CONFIG_MAP to {mode}$"):
            change_to(mode)
    change_to("API")
    with pytest.raises(ClientError, match=r"from API to API_AND_CONFIG_MAP$"):
        change_to("API_AND_CONFIG_MAP")


def test_access_entries_with_policies(world: World) -> None:
    access = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    world.cluster(accessConfig=access)
    eks, role = world.aws.client("eks"), world.role("node", "ec2.amazonaws.com")
    eks.create_access_entry(clusterName="demo", principalArn=role, type="EC2_LINUX")
    entry = eks.describe_access_entry(clusterName="demo", principalArn=role)["accessEntry"]
    assert entry["username"] == "system:node:{{EC2PrivateDNSName}}"
    creator = "arn:aws:iam::123456789012:user/local"
    assert eks.list_access_entries(clusterName="demo")["accessEntries"] == sorted([role, creator])
    policies = eks.list_associated_access_policies(clusterName="demo", principalArn=creator)
    assert policies["associatedAccessPolicies"][0]["policyArn"].endswith("/AmazonEKSClusterAdminPolicy")
    with pytest.raises(ClientError) as error:
        eks.create_access_entry(clusterName="demo", principalArn=role)
    assert code(error) == "ResourceInUseException"
    eks.delete_access_entry(clusterName="demo", principalArn=role)
    with pytest.raises(ClientError) as error:
        eks.describe_access_entry(clusterName="demo", principalArn=role)
    assert code(error) == "ResourceNotFoundException"


def test_addons(world: World) -> None:
    world.cluster()
    eks = world.aws.client("eks")
    [info] = eks.describe_addon_versions(addonName="vpc-cni", kubernetesVersion="1.36")["addons"]
    version = info["addonVersions"][0]["addonVersion"]
    eks.create_addon(clusterName="demo", addonName="vpc-cni", addonVersion=version, configurationValues="{}")
    eks.get_waiter("addon_active").wait(clusterName="demo", addonName="vpc-cni")
    addon = eks.describe_addon(clusterName="demo", addonName="vpc-cni")["addon"]
    assert (addon["addonVersion"], addon["configurationValues"]) == (version, "{}")
    eks.update_addon(clusterName="demo", addonName="vpc-cni", configurationValues='{"env":{}}')
    assert (
        eks.describe_addon(clusterName="demo", addonName="vpc-cni")["addon"]["configurationValues"]
        == '{"env":{}}'
    )
    with pytest.raises(ClientError) as error:
        eks.create_addon(clusterName="demo", addonName="vpc-cni")
    assert code(error) == "ResourceInUseException"
    eks.delete_addon(clusterName="demo", addonName="vpc-cni")
    assert eks.list_addons(clusterName="demo")["addons"] == []


def test_pod_identity_associations(world: World) -> None:
    world.cluster()
    eks, role = world.aws.client("eks"), world.role("app", "pods.eks.amazonaws.com")
    wanted = {"clusterName": "demo", "namespace": "karpenter", "serviceAccount": "karpenter", "roleArn": role}
    made = eks.create_pod_identity_association(**wanted, clientRequestToken="once")["association"]
    again = eks.create_pod_identity_association(**wanted, clientRequestToken="once")["association"]
    assert again["associationId"] == made["associationId"]
    key = {"clusterName": "demo", "associationId": made["associationId"]}
    assert eks.describe_pod_identity_association(**key)["association"]["roleArn"] == role
    assert (
        len(eks.list_pod_identity_associations(clusterName="demo", namespace="karpenter")["associations"])
        == 1
    )
    with pytest.raises(ClientError) as error:
        eks.create_pod_identity_association(**wanted)
    assert code(error) == "ResourceInUseException"
    eks.delete_pod_identity_association(**key)
    assert eks.list_pod_identity_associations(clusterName="demo")["associations"] == []


def fargate(world: World, **changes: Any) -> dict[str, Any]:
    return {
        "clusterName": "demo",
        "fargateProfileName": "karpenter",
        "podExecutionRoleArn": world.role("pod-execution", "eks-fargate-pods.amazonaws.com"),
        "selectors": [{"namespace": "karpenter"}],
        "subnets": list(world.subnets.values()),
        **changes,
    }


def test_a_fargate_profile_holds_its_cluster(world: World) -> None:
    world.cluster()
    eks, request = world.aws.client("eks"), fargate(world)
    eks.create_fargate_profile(**request)
    profile = eks.describe_fargate_profile(clusterName="demo", fargateProfileName="karpenter")[
        "fargateProfile"
    ]
    assert (profile["status"], profile["selectors"]) == ("ACTIVE", [{"namespace": "karpenter"}])
    with pytest.raises(ClientError) as error:
        eks.delete_cluster(name="demo")
    assert code(error) == "ResourceInUseException"
    eks.delete_fargate_profile(clusterName="demo", fargateProfileName="karpenter")
    assert eks.list_fargate_profiles(clusterName="demo")["fargateProfileNames"] == []
    eks.delete_cluster(name="demo")


@pytest.mark.parametrize(
    "changes",
    [
        {"selectors": [{"namespace": f"n{i}"} for i in range(6)]},
        {"selectors": [{"labels": {"a": "b"}}]},
        {"subnets": []},
        {"subnets": ["subnet-00000000000000000"]},
        {"podExecutionRoleArn": "arn:aws:iam::123456789012:role/nobody"},
        {"fargateProfileName": "eks-mine"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_fargate_profile_that_cannot_be(world: World, changes: dict[str, Any]) -> None:
    world.cluster()
    with pytest.raises(ClientError) as error:
        world.aws.client("eks").create_fargate_profile(**fargate(world, **changes))
    assert code(error) == "InvalidParameterException"


def test_fargate_wants_private_subnets_and_a_role_it_may_assume(world: World) -> None:
    world.cluster()
    eks, request = world.aws.client("eks"), fargate(world)
    untrusted = world.role("plain", "ec2.amazonaws.com")
    with pytest.raises(ClientError, match="Misconfigured PodExecutionRole Trust Policy"):
        eks.create_fargate_profile(**{**request, "podExecutionRoleArn": untrusted})
    gateway = world.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    world.ec2.attach_internet_gateway(VpcId=world.vpc, InternetGatewayId=gateway)
    table = world.ec2.create_route_table(VpcId=world.vpc)["RouteTable"]["RouteTableId"]
    world.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    world.ec2.associate_route_table(RouteTableId=table, SubnetId=world.subnets["us-east-1b"])
    with pytest.raises(ClientError, match="is not a private subnet"):
        eks.create_fargate_profile(**request)


def test_a_group_that_nodes_still_use_outlives_its_cluster(world: World) -> None:
    group = world.cluster()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    answer = world.fleet(world.config(world.launch_template(SecurityGroupIds=[group]), ["m5.large"]))
    world.aws.client("eks").delete_cluster(name="demo")
    assert world.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    world.ec2.terminate_instances(InstanceIds=answer["Instances"][0]["InstanceIds"])
    world.ec2.delete_security_group(GroupId=group)
