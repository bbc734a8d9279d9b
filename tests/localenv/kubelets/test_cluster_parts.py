"""What EKS decides about pods and traffic: Fargate's claim, IRSA's additions, endpoints, addresses."""

from __future__ import annotations

from typing import Any

import pytest

from localenv.kubelets.addresses import AddressPool, local_address, reserved_network
from localenv.kubelets.authorization import mapped_roles, without_path
from localenv.kubelets.fargate_profiles import FargateProfile, Selector, claiming_profile, unsupported_fields
from localenv.kubelets.nodes import Instance
from localenv.kubelets.pod_identity import fargate_patches, identity_patches
from localenv.kubelets.service_proxy import ProxyError, ready_endpoints, service_port

ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/r"}


def _profile(name: str, namespace: str, status: str = "ACTIVE", **labels: str) -> FargateProfile:
    return FargateProfile(name, status, ("subnet-1",), (Selector(namespace, labels),))


PROFILES = [_profile("dns", "kube-system", app="dns"), _profile("apps", "app-*"), _profile("b", "app-?")]


@pytest.mark.parametrize(
    ("namespace", "labels", "annotations", "profile"),
    [
        ("kube-system", {"app": "dns"}, {}, "dns"),
        ("kube-system", {}, {}, None),
        ("app-blue", {}, {}, "apps"),
        ("app-1", {"eks.amazonaws.com/fargate-profile": "b"}, {}, "b"),
        ("app-1", {}, {"eks.amazonaws.com/fargate-profile": "b"}, "b"),
        ("app-blue", {"eks.amazonaws.com/fargate-profile": "b"}, {}, None),
        ("app-blue", {}, {"eks.amazonaws.com/compute-type": "ec2"}, None),
        ("default", {}, {}, None),
    ],
)
def test_a_profile_claims_by_namespace_labels_and_choice(
    namespace: str, labels: dict[str, str], annotations: dict[str, str], profile: str | None
) -> None:
    found = claiming_profile(PROFILES, namespace, labels, annotations)

    assert (found.name if found else None) == profile


def test_a_profile_claims_only_while_it_is_active() -> None:
    assert claiming_profile([_profile("p", "x", "CREATING")], "x", {}, {}) is None


def test_a_claimed_pod_gets_fargates_scheduler() -> None:
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"schedulerName": "default-scheduler", "containers": []},
    }

    patches = {
        fargate_patch["path"]: fargate_patch["value"]
        for fargate_patch in fargate_patches(pod, "app-blue", {p.name: p for p in PROFILES})
    }

    assert patches["/spec/schedulerName"] == "fargate-scheduler"
    assert patches["/metadata/labels"] == {"a": "b", "eks.amazonaws.com/fargate-profile": "apps"}


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}, "spec": {"containers": []}},
        {"metadata": {}, "spec": {"schedulerName": "own", "containers": []}},
        {"metadata": {}, "spec": {"nodeName": "n", "containers": []}},
    ],
)
def test_pods_of_daemon_sets_and_other_schedulers_are_left_alone(pod: dict[str, Any]) -> None:
    assert fargate_patches(pod, "app-blue", {p.name: p for p in PROFILES}) == []


def test_fargate_names_what_it_cannot_run() -> None:
    container = {"name": "c", "securityContext": {"privileged": True}, "ports": [{"hostPort": 80}]}
    pod = {
        "spec": {"hostNetwork": True, "containers": [container], "volumes": [{"name": "v", "hostPath": {}}]}
    }

    assert unsupported_fields(pod) == [
        "hostNetwork",
        "containers[c].securityContext.privileged",
        "containers[c].ports.hostPort",
        "volumes[v].hostPath",
    ]


def test_a_role_adds_token_and_variables_but_overwrites_none() -> None:
    container = {"name": "c", "env": [{"name": "AWS_REGION", "value": "eu-west-1"}]}
    pod = {"spec": {"containers": [container], "volumes": [{"name": "own"}]}}

    patches = {
        identity_patch["path"]: identity_patch["value"]
        for identity_patch in identity_patches(pod, ROLE, "us-east-1")
    }

    variables = {each["name"]: each["value"] for each in patches["/spec/containers/0/env"]}
    assert variables["AWS_REGION"] == "eu-west-1"
    assert variables["AWS_ROLE_ARN"] == ROLE["eks.amazonaws.com/role-arn"]
    token_file = "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"
    assert variables["AWS_WEB_IDENTITY_TOKEN_FILE"] == token_file
    token = patches["/spec/volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]
    assert token == {"audience": "sts.amazonaws.com", "expirationSeconds": 86400, "path": "token"}
    assert patches["/spec/volumes"][1] == {"name": "own"}


def test_a_service_account_without_role_adds_nothing() -> None:
    assert identity_patches({"spec": {"containers": [{"name": "c"}]}}, {}, "us-east-1") == []


SERVICE = {
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {
        "clusterIP": "10.96.0.7",
        "clusterIPs": ["10.96.0.7"],
        "ports": [{"name": "https", "port": 443}],
    },
}


def test_a_cluster_address_is_found_back_to_its_service() -> None:
    assert service_port([SERVICE], "10.96.0.7", 443) == ("shop", "web", "https")
    assert service_port([SERVICE], "10.0.1.23", 8443) is None
    with pytest.raises(ProxyError, match="shop/web has no port 80"):
        service_port([SERVICE], "10.96.0.7", 80)


def test_only_ready_endpoints_are_used() -> None:
    ports = [{"name": "https", "port": 8443}, {"name": "http", "port": 8080}]
    endpoints = [
        {"addresses": ["10.0.0.1"], "conditions": {"ready": True}},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
    ]

    assert ready_endpoints([{"ports": ports, "endpoints": endpoints}], "https") == [("10.0.0.1", 8443)]


def test_a_pods_address_on_this_machine_is_a_loopback_address() -> None:
    assert local_address("10.0.1.23") == "127.0.1.23"
    assert local_address("172.31.4.5") == "127.31.4.5"


def test_environments_side_by_side_reach_their_pods_at_addresses_of_their_own() -> None:
    with reserved_network():
        first = local_address("10.0.1.23")
        with reserved_network():
            assert local_address("10.0.1.23") != first
        assert local_address("10.0.1.23") == first
    assert local_address("10.0.1.23") == "127.0.1.23"


def test_addresses_are_unique_and_spill_over_when_the_subnet_is_full() -> None:
    pool = AddressPool()
    pool.hold("10.0.0.14")

    # A /28 has 16 addresses: AWS keeps five, one is in use.
    taken = [pool.take("10.0.0.0/28") for _ in range(10)]

    assert set(taken) == {f"10.0.0.{n}" for n in range(4, 14)}
    assert pool.take("10.0.0.0/28").startswith("100.")
    pool.release("10.0.0.9")
    assert pool.take("10.0.0.0/28") == "10.0.0.9"


def test_only_roles_for_nodes_are_mapped_and_without_their_path() -> None:
    text = (
        "- {rolearn: 'arn:aws:iam::1:role/node', groups: ['system:bootstrappers', 'system:nodes']}\n"
        "- {rolearn: 'arn:aws:iam::1:role/admin', groups: ['system:masters']}\n"
    )

    assert mapped_roles(text) == ["arn:aws:iam::1:role/node"]
    assert without_path("arn:aws:iam::1:role/team/x/node") == "arn:aws:iam::1:role/node"
    with pytest.raises(ValueError, match="not a list"):
        mapped_roles("a: b")


@pytest.mark.parametrize(
    ("zone", "region"),
    [("us-east-1a", "us-east-1"), ("us-gov-west-1b", "us-gov-west-1"), ("us-west-2-lax-1a", "us-west-2")],
)
def test_the_region_of_a_zone(zone: str, region: str) -> None:
    instance = Instance("i-1", "t3a.large", zone, "running", "n", "10.0.0.9", "subnet-1", 0.0, "")

    assert instance.region == region
