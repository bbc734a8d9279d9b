"""The pure helpers beside the components: address ranges, names, policies, kubeconfig, settings, pools."""

import json
import re
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes import config
from kubernetes.client import Configuration

from pulumi_nodeless import cidr, fargate, names, policies, pools, settings
from pulumi_nodeless.controller import LABELS
from pulumi_nodeless.controller_identity import POLICIES
from pulumi_nodeless.kubeconfig import kubeconfig, region_of
from pulumi_nodeless.policy_parts import longest_subjects, part_of, parts, size

SUBJECT = policies.Subject(
    partition="aws",
    region="eu-west-1",
    account="123456789012",
    dns_suffix="amazonaws.com",
    cluster="demo",
    node_role_arn="arn:aws:iam::123456789012:role/KarpenterNodeRole-demo",
)


@pytest.mark.parametrize(
    ("block", "zones", "private", "public"),
    [
        ("10.0.0.0/16", 2, ["10.0.0.0/19", "10.0.32.0/19"], ["10.0.192.0/22", "10.0.196.0/22"]),
        ("10.8.0.0/20", 1, ["10.8.0.0/23"], ["10.8.12.0/26"]),
        ("192.168.4.0/22", 1, ["192.168.4.0/25"], ["192.168.7.0/28"]),
    ],
)
def test_a_vpc_is_split_into_subnets(block: str, zones: int, private: list[str], public: list[str]) -> None:
    subnets = cidr.split(block, zones)
    assert [subnet.private for subnet in subnets] == private
    assert [subnet.public for subnet in subnets] == public


@given(prefix=st.integers(16, 22), zones=st.integers(1, cidr.MAXIMUM_ZONES))
def test_subnets_never_overlap_and_stay_when_zones_are_added(prefix: int, zones: int) -> None:
    block = IPv4Network(f"10.0.0.0/{prefix}")
    subnets = cidr.split(str(block), zones)
    ranges = [IPv4Network(each) for zone in subnets for each in (zone.private, zone.public, zone.intra)]
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))
    assert all(each.subnet_of(block) and each.prefixlen <= 28 for each in ranges)
    assert cidr.split(str(block), cidr.MAXIMUM_ZONES)[:zones] == subnets


@pytest.mark.parametrize(
    ("block", "zones", "reported"),
    [
        ("10.0.0.0/23", 2, "/23"),
        ("10.0.0.0/8", 2, "/8"),
        ("10.0.0.1/16", 2, "host bits"),
        ("10.0.0.0/16", 7, "7 zones"),
        ("10.0.0.0/16", 0, "0 zones"),
    ],
)
def test_a_range_that_cannot_be_split_is_refused(block: str, zones: int, reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        cidr.split(block, zones)


def test_names_are_those_of_the_installation_guide() -> None:
    assert names.node_role("demo") == "KarpenterNodeRole-demo"
    assert names.instance_profile("demo") == "KarpenterNodeInstanceProfile-demo"
    assert names.controller_role("demo") == "KarpenterControllerRole-demo"
    assert names.controller_policy("demo") == "KarpenterControllerPolicy-demo"


@given(st.text("ab-", min_size=90, max_size=100), st.text("ab-", min_size=90, max_size=100))
def test_long_names_are_shortened_and_stay_apart(one: str, other: str) -> None:
    for make, limit in (
        (names.node_role, names.ROLE_LIMIT),
        (names.controller_role, names.ROLE_LIMIT),
        (names.pod_execution_role, names.ROLE_LIMIT),
        (names.instance_profile, names.INSTANCE_PROFILE_LIMIT),
    ):
        assert len(make(one)) <= limit
        assert (make(one) == make(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "accepted"),
    [("demo", True), ("a" * 100, True), ("a" * 101, False), ("-a", False), ("a.b", False)],
)
def test_cluster_names_follow_eks(name: str, accepted: bool) -> None:
    assert names.valid_cluster_name(name) is accepted


@pytest.mark.parametrize(
    "issuer", ["https://oidc.example/id/1", "oidc.example/id/1", "https://oidc.example/id/1/"]
)
def test_only_one_service_account_may_become_the_controller(issuer: str) -> None:
    document = policies.service_account_trust(
        "arn:aws:iam::1:oidc-provider/x", issuer, "karpenter", "karpenter"
    )
    (statement,) = document["Statement"]
    assert statement["Principal"] == {"Federated": "arn:aws:iam::1:oidc-provider/x"}
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {
        "StringEquals": {
            "oidc.example/id/1:aud": "sts.amazonaws.com",
            "oidc.example/id/1:sub": "system:serviceaccount:karpenter:karpenter",
        }
    }


def test_the_controller_policy_grants_the_articles_actions_and_scopes_the_dangerous_ones() -> None:
    statements = {each["Sid"]: each for each in policies.controller_policy(SUBJECT)["Statement"]}
    article = {
        "ssm:GetParameter",
        "pricing:GetProducts",
        *(
            f"ec2:{action}"
            for action in (
                "DescribeImages",
                "RunInstances",
                "DescribeSubnets",
                "DescribeSecurityGroups",
                "DescribeLaunchTemplates",
                "DescribeInstances",
                "DescribeInstanceTypes",
                "DescribeInstanceTypeOfferings",
                "DeleteLaunchTemplate",
                "CreateTags",
                "CreateLaunchTemplate",
                "CreateFleet",
                "DescribeSpotPriceHistory",
            )
        ),
    }
    granted = set(statements["Karpenter"]["Action"])
    # But for ec2:DescribeAvailabilityZones, which the controller never calls; the others are of our time.
    later = {"CapacityReservations", "InstanceStatus", "PlacementGroups"}
    assert granted == article | {f"ec2:Describe{each}" for each in later}
    unconditional = [statement for statement in statements.values() if "Condition" not in statement]
    assert not any("TerminateInstances" in str(each["Action"]) for each in unconditional)
    assert not any("PassRole" in str(each["Action"]) for each in unconditional)
    assert statements["ConditionalEC2Termination"]["Condition"] == {
        "StringLike": {"ec2:ResourceTag/karpenter.sh/nodepool": "*"},
        "StringEquals": {"ec2:ResourceTag/kubernetes.io/cluster/demo": "owned"},
    }
    assert statements["PassNodeIAMRole"]["Resource"] == SUBJECT.node_role_arn
    assert statements["EKSClusterEndpointLookup"]["Resource"] == (
        "arn:aws:eks:eu-west-1:123456789012:cluster/demo"
    )


@pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("name", ["demo", "c" * 100], ids=["short", "longest"])
@pytest.mark.parametrize("subject_number", range(3), ids=["aws", "aws-cn", "aws-us-gov"])
def test_each_controller_policy_fits_into_managed_policies_with_the_longest_names_of_every_partition(
    make: Any, name: str, subject_number: int
) -> None:
    subject = longest_subjects(name)[subject_number]
    whole, sids = make(subject), parts(make, name)
    assert len(sids) <= (1 if name == "demo" else 2)
    made = [part_of(whole, sid) for sid in sids]
    assert all(size(each) <= policies.MANAGED_POLICY_LIMIT for each in made)
    assert [each for part in made for each in part["Statement"]] == whole["Statement"]
    assert {arn.split(":")[1] for arn in re.findall(r'"(arn:[^"]+)"', json.dumps(whole))} == {
        subject.partition
    }
    # Without a queue no part is empty, which IAM would refuse.
    without = make(replace(subject, interruption_queue_arn=""))
    assert all(part_of(without, sid)["Statement"] for sid in sids)


def test_a_policy_that_grows_beyond_the_limit_takes_as_many_managed_policies_as_it_needs() -> None:
    def grown(subject: policies.Subject) -> policies.Document:
        return policies.document(
            *({"Sid": f"Number{number}", "Resource": subject.cluster_arn * 20} for number in range(19))
        )

    (*others, last) = sids = parts(grown, "demo")
    assert len(others) > 1
    assert last
    for subject in longest_subjects("demo"):
        sizes = [size(part_of(grown(subject), sid)) for sid in sids]
        assert max(sizes) <= policies.MANAGED_POLICY_LIMIT
        assert min(sizes[:-1]) > policies.MANAGED_POLICY_LIMIT / 2


def test_the_articles_policy_is_to_the_letter() -> None:
    first, *others = policies.article_policy(SUBJECT)["Statement"]
    assert (first["Sid"], first["Effect"], first["Resource"]) == ("Karpenter", "Allow", "*")
    assert sorted(first["Action"]) == [
        *("ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "ec2:DeleteLaunchTemplate"),
        *("ec2:DescribeAvailabilityZones", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings"),
        *("ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"),
        *("ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets"),
        *("ec2:RunInstances", "pricing:GetProducts", "ssm:GetParameter"),
    ]
    assert others == [
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
            "Resource": SUBJECT.node_role_arn,
        },
        {
            "Sid": "EKSClusterEndpointLookup",
            "Effect": "Allow",
            "Action": "eks:DescribeCluster",
            "Resource": "arn:aws:eks:eu-west-1:123456789012:cluster/demo",
        },
    ]


@pytest.mark.parametrize(
    ("selector", "takes"),
    [
        ({"namespace": "karpenter"}, True),
        ({"namespace": "karp*"}, True),
        ({"namespace": "karpenter", "labels": {"app.kubernetes.io/name": "karpenter"}}, True),
        ({"namespace": "karpenter", "labels": {"app.kubernetes.io/name": "other"}}, False),
        ({"namespace": "karpenter", "labels": {"tier": "*"}}, False),
        ({"namespace": "kube-system"}, False),
    ],
)
def test_a_fargate_profile_takes_pods_by_namespace_and_labels(selector: Any, takes: bool) -> None:
    profiles: list[Any] = [{"name": "own", "selectors": [selector]}]
    assert fargate.profile_that_takes(profiles, "karpenter", LABELS) == ("own" if takes else None)


def test_fargate_may_use_its_role_for_this_cluster_only() -> None:
    (statement,) = policies.pod_execution_trust("aws", "eu-west-1", "123456789012", "demo")["Statement"]
    assert statement["Condition"]["ArnLike"]["aws:SourceArn"] == (
        "arn:aws:eks:eu-west-1:123456789012:fargateprofile/demo/*"
    )


def test_a_real_client_takes_its_token_from_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": "token-of-demo"},
    }
    command = tmp_path / "aws"
    command.write_text(
        "#!/bin/sh\n"
        'test "$*" = "--region eu-west-1 eks get-token --cluster-name demo --output json" || exit 3\n'
        f"echo '{json.dumps(credential)}'\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    document = kubeconfig(
        cluster="demo", endpoint="https://abc.eks", certificate_authority="Q0E=", region="eu-west-1"
    )
    loaded = Configuration()
    config.load_kube_config_from_dict(document, client_configuration=loaded)
    assert loaded.host == "https://abc.eks"
    assert "Bearer token-of-demo" in loaded.api_key.values()
    assert Path(loaded.ssl_ca_cert).read_text() == "CA"


def test_a_kubeconfig_signs_in_with_the_role_and_the_profile_of_the_provider() -> None:
    of_cluster = {"cluster": "demo", "endpoint": "https://abc.eks", "certificate_authority": "Q0E="}
    document = kubeconfig(
        **of_cluster, region="eu-west-1", role_arn="arn:aws:iam::1:role/deploy", profile="prod"
    )
    (user,) = document["users"]
    assert user["user"]["exec"]["args"][-4:] == [
        "--role-arn",
        "arn:aws:iam::1:role/deploy",
        "--profile",
        "prod",
    ]


def test_the_region_is_read_from_an_arn() -> None:
    assert region_of("arn:aws:eks:eu-west-1:1:cluster/demo") == "eu-west-1"
    with pytest.raises(ValueError, match="not an ARN"):
        region_of("demo")


def test_a_users_settings_replace_defaults_but_not_what_follows_from_the_cluster() -> None:
    data = settings.global_settings(
        "demo", "https://api", "profile", {"batchMaxDuration": "30s"}, {"team": "a"}
    )
    assert data["batchMaxDuration"] == "30s"
    assert data["batchIdleDuration"] == "1s"
    assert data["aws.clusterName"] == "demo"
    assert data["aws.defaultInstanceProfile"] == "profile"
    assert json.loads(data["aws.tags"]) == {"team": "a"}
    assert settings.checksum(data) != settings.checksum({**data, "batchMaxDuration": "10s"})


def test_a_pool_becomes_the_manifest_of_a_provisioner() -> None:
    spec = pools.provisioner_spec(
        {
            "name": "gpu",
            "node_template": "default",
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
            "taints": [{"key": "gpu", "effect": "NoSchedule"}],
            "limits": {"cpu": "100"},
            "weight": 10,
            "ttl_seconds_after_empty": 30,
        }
    )
    assert spec == {
        "providerRef": {"name": "default"},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
        "limits": {"resources": {"cpu": "100"}},
        "weight": 10,
        "ttlSecondsAfterEmpty": 30,
    }


def test_a_node_template_selects_by_the_discovery_tag_unless_told_otherwise() -> None:
    discovery = {"karpenter.sh/discovery": "demo"}
    assert pools.node_template_spec({"name": "default"}, discovery) == {
        "subnetSelector": discovery,
        "securityGroupSelector": discovery,
    }
    own = pools.node_template_spec(
        {
            "name": "big",
            "subnet_selector": {"team": "a"},
            "block_devices": [{"device_name": "/dev/xvda", "volume_size": "50Gi", "encrypted": True}],
        },
        discovery,
    )
    assert own["subnetSelector"] == {"team": "a"}
    assert own["blockDeviceMappings"] == [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "encrypted": True}}
    ]
