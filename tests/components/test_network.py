"""Networks with and without a way to the internet, and those that are there already."""

import json
from typing import Any

import pulumi_aws as aws
import pytest
from pulumi import ResourceOptions, RunError

from pulumi_nodeless import AdoptedNetwork, ArgumentError, Environment, Network
from pulumi_nodeless.network import PRIVATE_SERVICES, interface_endpoint, require_supported_zones
from tests.components.recorder import Recorder, run

DISCOVERY = "karpenter.sh/discovery"


def options() -> ResourceOptions:
    return ResourceOptions(providers=[aws.Provider("aws", region="us-east-1")])


def network(**arguments: Any) -> Recorder:
    return run(lambda: Network("net", {"cluster_name": "shop", **arguments}, options()))  # type: ignore[typeddict-item]


def endpoints(recorder: Recorder, kind: str) -> list[str]:
    found = [each.inputs for each in recorder.of("aws:ec2/vpcEndpoint:VpcEndpoint")]
    return [each["serviceName"] for each in found if each["vpcEndpointType"] == kind]


def test_without_nat_private_subnets_reach_aws_services_by_endpoints_alone() -> None:
    made = network(nat_gateways="none")

    assert made.faults == []
    assert made.of("aws:ec2/natGateway:NatGateway") == made.of("aws:ec2/eip:Eip") == []
    assert [route.name for route in made.of("aws:ec2/route:Route")] == ["net-public-default"]
    # The agent of EKS Pod Identity calls a service of its own.
    assert "com.amazonaws.us-east-1.eks-auth" in endpoints(made, "Interface")
    assert set(endpoints(made, "Interface")) == {
        f"com.amazonaws.us-east-1.{service}" for service in PRIVATE_SERVICES
    }
    (group,) = made.of("aws:ec2/securityGroup:SecurityGroup")
    (rule,) = group.inputs["ingress"]
    assert (rule["fromPort"], rule["toPort"], rule["cidrBlocks"]) == (443, 443, ["10.0.0.0/16"])
    assert DISCOVERY not in group.inputs["tags"]


def test_with_nat_only_the_free_endpoint_is_made() -> None:
    made = network(nat_gateways="per-zone", zone_count=2)

    assert len(made.of("aws:ec2/natGateway:NatGateway")) == 2
    assert endpoints(made, "Interface") == []
    assert endpoints(made, "Gateway") == ["com.amazonaws.us-east-1.s3"]


def test_each_zone_goes_out_by_its_own_nat_gateway() -> None:
    made = network(nat_gateways="per-zone", zone_count=3)

    out = {
        each.name: each.inputs["natGatewayId"]
        for each in made.of("aws:ec2/route:Route")
        if "private" in each.name
    }
    assert len(out) == len(set(out.values())) == 3


def test_intra_subnets_have_no_route_out_and_are_not_for_nodes() -> None:
    made = network(intra_subnets=True, zone_count=2)

    intra = [each for each in made.of("aws:ec2/subnet:Subnet") if "-intra-" in each.name]
    assert [each.inputs["cidrBlock"] for each in intra] == ["10.0.224.0/22", "10.0.228.0/22"]
    assert all(set(each.inputs["tags"]) == {"Name"} for each in intra)
    assert not [each for each in made.of("aws:ec2/route:Route") if "intra" in each.name]


def test_an_existing_vpc_gets_tags_and_nothing_else() -> None:
    made = run(
        lambda: AdoptedNetwork(
            "net",
            {
                "cluster_name": "shop",
                "vpc_id": "vpc-1",
                "private_subnet_ids": ["subnet-a", "subnet-b"],
                "public_subnet_ids": ["subnet-c"],
            },
            options(),
        )
    )

    assert {each.token for each in made.custom()} == {"pulumi:providers:aws", "aws:ec2/tag:Tag"}
    tags = {(each.inputs["resourceId"], each.inputs["key"]) for each in made.of("aws:ec2/tag:Tag")}
    assert {key for subnet, key in tags if subnet == "subnet-a"} == {
        DISCOVERY,
        "kubernetes.io/cluster/shop",
        "kubernetes.io/role/internal-elb",
    }
    assert {key for subnet, key in tags if subnet == "subnet-c"} == {
        "kubernetes.io/cluster/shop",
        "kubernetes.io/role/elb",
    }
    # Load balancers of another cluster look for the roles, too.
    assert {each.inputs["key"] for each in made.of("aws:ec2/tag:Tag") if each.retained} == {
        "kubernetes.io/role/internal-elb",
        "kubernetes.io/role/elb",
    }


def test_two_clusters_in_one_vpc_have_their_own_tags_and_pools_with_subnets_by_id() -> None:
    subnets = {"vpc_id": "vpc-1", "private_subnet_ids": ["subnet-a", "subnet-b"], "discovery_tag": False}
    made = run(
        lambda: Environment(
            "nodeless",
            {
                "cluster_name": "second",
                "existing_vpc": subnets,  # type: ignore[typeddict-item]
                "provisioners": [{"name": "own", "node_template": "default"}],
                "node_classes": [{"name": "own"}],
                "node_pools": [{"name": "own", "node_class": "own"}],
            },
            options(),
        )
    )

    assert made.faults == []
    of_subnets = [each.inputs for each in made.of("aws:ec2/tag:Tag") if "subnet" in each.inputs["resourceId"]]
    assert DISCOVERY not in {each["key"] for each in of_subnets}
    template = made.one("kubernetes:karpenter.k8s.aws/v1alpha1:AWSNodeTemplate").inputs["spec"]
    assert template["subnetSelector"] == {"aws-ids": "subnet-a,subnet-b"}
    assert template["securityGroupSelector"] == {DISCOVERY: "second"}
    node_class = made.one("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"]
    assert node_class["subnetSelectorTerms"] == [{"id": "subnet-a"}, {"id": "subnet-b"}]


def test_an_environment_in_an_existing_vpc_makes_no_network() -> None:
    made = run(
        lambda: Environment(
            "nodeless",
            {
                "cluster_name": "shop",
                "existing_vpc": {"vpc_id": "vpc-1", "private_subnet_ids": ["subnet-a", "subnet-b"]},
            },
            options(),
        )
    )

    assert made.faults == []
    assert not [each for each in made.custom() if each.token in {"aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"}]
    cluster = made.one("eks:index:Cluster").inputs
    assert cluster["vpcId"] == "vpc-1"
    assert cluster["privateSubnetIds"] == ["subnet-a", "subnet-b"]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({"private_subnet_ids": ["subnet-a"]}, "private_subnet_ids: .* too few .*two zones"),
        (
            {"private_subnet_ids": ["subnet-a", "subnet-b"], "public_subnet_ids": ["subnet-b"]},
            "public_subnet_ids: subnet-b is also a private subnet",
        ),
    ],
)
def test_subnets_that_cannot_hold_a_cluster_are_refused(arguments: dict[str, Any], reported: str) -> None:
    with pytest.raises(ArgumentError, match=reported):
        run(
            lambda: AdoptedNetwork("net", {"cluster_name": "shop", "vpc_id": "vpc-1", **arguments}, options())
        )


def test_arguments_that_contradict_an_existing_vpc_are_named_before_anything_is_made() -> None:
    arguments: Any = {
        "cluster_name": "shop",
        "zone_count": 2,
        "vpc_cidr": "10.1.0.0/16",
        "existing_vpc": {"vpc_id": "vpc-1", "private_subnet_ids": ["subnet-a", "subnet-b"]},
    }
    with pytest.raises(ArgumentError) as refused:
        run(lambda: Environment("nodeless", arguments, options()))
    assert [problem.path for problem in refused.value.problems] == ["vpc_cidr", "zone_count"]


def test_arguments_that_contradict_an_existing_cluster_are_named_before_anything_is_made() -> None:
    arguments: Any = {
        "cluster_name": "shop",
        "protect": True,
        "kubernetes_version": "1.33",
        "existing_cluster": {
            "arn": "arn:aws:eks:us-east-1:123456789012:cluster/shop",
            "endpoint": "https://shop.example",
            "certificate_authority": "Q0E=",
            "oidc_provider_arn": "arn:aws:iam::123456789012:oidc-provider/oidc.example/id/A",
            "oidc_issuer": "oidc.example/id/A",
            "vpc_id": "vpc-1",
            "private_subnet_ids": ["subnet-a", "subnet-b"],
            "security_group_id": "sg-1",
        },
    }
    with pytest.raises(ArgumentError) as refused:
        run(lambda: Environment("nodeless", arguments, options()))
    assert [problem.path for problem in refused.value.problems] == ["kubernetes_version", "protect"]


IDS = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az3", "us-east-1c": "use1-az2"}


def test_the_first_two_zones_that_are_given_take_a_cluster() -> None:
    for zones in (["us-east-1a", "us-east-1c", "us-east-1b"], ["us-east-1a", "elsewhere"]):
        assert require_supported_zones(zones, IDS) == zones
    with pytest.raises(
        RunError, match=r"no cluster in us-east-1b, which is use1-az3 .*us-east-1a, us-east-1c"
    ):
        require_supported_zones(["us-east-1a", "us-east-1b"], IDS)


def test_a_new_cluster_is_entered_with_the_credentials_of_the_provider() -> None:
    role = "arn:aws:iam::123456789012:role/deploy"
    made = run(
        lambda: Environment(
            "nodeless",
            {"cluster_name": "shop", "kubeconfig_role_arn": role, "kubeconfig_profile": "prod"},
            options(),
        )
    )

    assert made.faults == []
    given = made.one("eks:index:Cluster").inputs["providerCredentialOpts"]
    assert given == {"roleArn": role, "profileName": "prod"}
    provider = made.one("pulumi:providers:kubernetes").inputs["kubeconfig"]
    assert f'"--role-arn", "{role}", "--profile", "prod"' in provider


def test_a_tag_may_come_from_another_resource() -> None:
    def program() -> None:
        provider = aws.Provider("aws", region="us-east-1")
        team: Any = aws.ec2.Eip("team", opts=ResourceOptions(provider=provider)).id
        Environment(
            "nodeless",
            {"cluster_name": "shop", "tags": {"team": team, "env": "test"}},
            ResourceOptions(providers=[provider]),
        )

    made = run(program)

    assert made.faults == []
    data = made.one("kubernetes:core/v1:ConfigMap", "karpenter-global-settings").inputs["data"]
    assert json.loads(data["aws.tags"]) == {"env": "test", "team": "team-id"}
    assert made.one("aws:ec2/vpc:Vpc").inputs["tags"]["team"] == "team-id"


def test_in_china_some_interface_endpoints_have_a_name_of_their_own() -> None:
    in_china = {service: interface_endpoint(service, "cn-north-1") for service in PRIVATE_SERVICES}
    assert in_china["ecr.api"] == "cn.com.amazonaws.cn-north-1.ecr.api"
    assert {name for name, endpoint in in_china.items() if endpoint.startswith("com.")} == {
        "eks-auth",
        "elasticloadbalancing",
        "logs",
        "ssm",
    }
    assert interface_endpoint("ec2", "us-gov-west-1") == "com.amazonaws.us-gov-west-1.ec2"
