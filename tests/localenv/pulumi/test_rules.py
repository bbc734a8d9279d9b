"""What follows from inputs alone: values on the wire, names, and which change replaces."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from localenv.pulumi import wire
from localenv.pulumi.aws.provider import RESOURCES, compare
from localenv.pulumi.aws.replacement import FORCE_NEW
from localenv.pulumi.eks.cluster import refuse
from localenv.pulumi.kubernetes import objects
from localenv.pulumi.kubernetes.readiness import READY
from localenv.pulumi.kubernetes.replacement import Mutable
from localenv.pulumi.kubernetes.waiting import patience
from localenv.pulumi.progress import Progress
from localenv.pulumi.resources import Proposal, ResourceFailed

SIGNATURE = "4dabf18193072939515e22adb298388d"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
PROPOSAL = Proposal("web", {}, bytes(range(32)))


def received(**properties: Any) -> dict[str, Any]:
    struct = struct_pb2.Struct()
    json_format.ParseDict(properties, struct)
    return wire.plain(struct)


def test_values_arrive_as_a_person_would_write_them() -> None:
    assert received(port=443, share=0.5, tags={"a": ["b", 2]}) == {
        "port": 443,
        "share": 0.5,
        "tags": {"a": ["b", 2]},
    }
    assert isinstance(received(port=443)["port"], int)


def test_secrets_and_outputs_are_unwrapped_and_unknown_ones_stay_unknown() -> None:
    assert received(a=wire.secret({"b": 1})) == {"a": {"b": 1}}
    assert received(a={SIGNATURE: OUTPUT, "value": [wire.secret("x")], "dependencies": []}) == {"a": ["x"]}
    unknown = received(a={"b": [{SIGNATURE: OUTPUT}]})
    assert wire.is_unknown(unknown)
    assert not wire.is_unknown(received(a={"b": [1]}))


def test_a_reference_becomes_the_id() -> None:
    assert received(role=wire.reference("urn:pulumi:x", "node")) == {"role": "node"}


@pytest.mark.parametrize(
    ("token", "key", "replaces"),
    [
        ("aws:ec2/vpc:Vpc", "cidrBlock", True),
        ("aws:ec2/vpc:Vpc", "enableDnsHostnames", False),
        ("aws:ec2/subnet:Subnet", "availabilityZone", True),
        ("aws:ec2/subnet:Subnet", "mapPublicIpOnLaunch", False),
        ("aws:ec2/route:Route", "natGatewayId", False),
        ("aws:ec2/natGateway:NatGateway", "subnetId", True),
        ("aws:ec2/securityGroup:SecurityGroup", "description", True),
        ("aws:ec2/securityGroup:SecurityGroup", "ingress", False),
        ("aws:iam/role:Role", "name", True),
        ("aws:iam/role:Role", "assumeRolePolicy", False),
        ("aws:iam/policy:Policy", "policy", False),
        ("aws:eks/cluster:Cluster", "roleArn", True),
        ("aws:eks/cluster:Cluster", "version", False),
        ("aws:eks/fargateProfile:FargateProfile", "selectors", True),
        ("aws:eks/addon:Addon", "configurationValues", False),
    ],
)
def test_which_change_replaces(token: str, key: str, replaces: bool) -> None:
    difference = RESOURCES[token].compare({key: "old"}, {key: "new"})
    assert difference.changed == (key,)
    assert difference.replaces == ((key,) if replaces else ())


@pytest.mark.parametrize(
    ("token", "old", "new", "replaces"),
    [
        ("aws:eks/cluster:Cluster", {}, {"encryptionConfig": {"resources": ["secrets"]}}, False),
        ("aws:eks/cluster:Cluster", {"encryptionConfig": {"resources": ["secrets"]}}, {}, True),
        (
            "aws:eks/cluster:Cluster",
            {"accessConfig": {"authenticationMode": "CONFIG_MAP"}},
            {"accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}},
            False,
        ),
        (
            "aws:eks/cluster:Cluster",
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": True}},
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}},
            True,
        ),
        (
            "aws:eks/cluster:Cluster",
            {"kubernetesNetworkConfig": {"ipFamily": "ipv4"}},
            {"kubernetesNetworkConfig": {"ipFamily": "ipv6"}},
            True,
        ),
        ("aws:ec2/vpc:Vpc", {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}, False),
        ("aws:ec2/vpc:Vpc", {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}, True),
        (
            "aws:ec2/vpcEndpoint:VpcEndpoint",
            {"vpcEndpointType": "Interface", "privateDnsEnabled": False},
            {"vpcEndpointType": "Interface", "privateDnsEnabled": True},
            False,
        ),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", {}, {"privateDnsEnabled": True}, True),
    ],
)
def test_which_value_of_an_input_replaces(
    token: str, old: dict[str, Any], new: dict[str, Any], replaces: bool
) -> None:
    assert bool(RESOURCES[token].compare(old, new).replaces) == replaces


CLUSTER = "aws:eks/cluster:Cluster"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
HTTPS = [{"protocol": "tcp", "fromPort": 443, "toPort": 443}]


@pytest.mark.parametrize(
    ("token", "key", "default"),
    [(token, key, value) for token, rule in FORCE_NEW.items() for key, value in rule.defaults.items()],
)
def test_to_spell_out_a_default_changes_nothing(token: str, key: str, default: Any) -> None:
    assert not compare(token, {}, {key: default}).changed
    assert not compare(token, {key: default}, {}).changed
    other = not default if isinstance(default, bool) else "other"
    assert compare(token, {}, {key: other}).changed == (key,)
    assert compare(token, {key: other}, {}).changed == (key,) or key in FORCE_NEW[token].kept


@pytest.mark.parametrize(
    ("token", "key"), [(token, key) for token, rule in FORCE_NEW.items() for key in sorted(rule.kept)]
)
def test_what_the_cloud_keeps_does_not_change_when_it_is_taken_out(token: str, key: str) -> None:
    nested = key.endswith("Config")
    given, other = ({"member": "a"}, {"member": "b"}) if nested else ("a", "b")
    assert not compare(token, {key: given}, {}).changed
    assert compare(token, {key: given}, {key: other}).changed == (key,)


def test_blocks_of_the_public_endpoint_stay_when_they_are_taken_out_and_go_when_all_are_named() -> None:
    token, narrow = "aws:eks/cluster:Cluster", {"subnetIds": ["a"], "publicAccessCidrs": ["10.0.0.0/8"]}
    assert not compare(token, {"vpcConfig": narrow}, {"vpcConfig": {"subnetIds": ["a"]}}).changed
    everyone = {**narrow, "publicAccessCidrs": ["0.0.0.0/0"]}
    assert compare(token, {"vpcConfig": narrow}, {"vpcConfig": everyone}).changed == ("vpcConfig",)


def test_of_a_name_that_is_not_on_a_type_there_is_no_default_and_nothing_is_kept() -> None:
    for token, rule in FORCE_NEW.items():
        taken = RESOURCES[token].required | RESOURCES[token].optional
        assert rule.defaults.keys() | rule.kept <= taken


@pytest.mark.parametrize(
    ("token", "old", "new", "replaces"),
    [
        # Refused to the creator once, and left out then: that is another cluster.
        (
            CLUSTER,
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}},
            {"accessConfig": {"authenticationMode": "API"}},
            ("accessConfig",),
        ),
        (
            CLUSTER,
            {},
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}},
            ("accessConfig",),
        ),
        (CLUSTER, {}, {"accessConfig": {"authenticationMode": "API"}}, ()),
        (CLUSTER, {"accessConfig": {"authenticationMode": "API"}}, {"accessConfig": wire.UNKNOWN}, ()),
        (CLUSTER, {}, {"kubernetesNetworkConfig": wire.UNKNOWN, "encryptionConfig": wire.UNKNOWN}, ()),
        (CLUSTER, {}, {"bootstrapSelfManagedAddons": False}, ("bootstrapSelfManagedAddons",)),
        (GROUP, {"ingress": HTTPS}, {"description": "web"}, ("description",)),
        ("aws:eks/accessEntry:AccessEntry", {}, {"type": "EC2_LINUX"}, ("type",)),
        ("aws:eks/fargateProfile:FargateProfile", {"subnetIds": ["subnet-1"]}, {}, ("subnetIds",)),
    ],
)
def test_which_change_of_what_is_not_given_replaces(
    token: str, old: dict[str, Any], new: dict[str, Any], replaces: tuple[str, ...]
) -> None:
    assert compare(token, old, new).replaces == replaces


@pytest.mark.parametrize("token", RESOURCES)
def test_every_input_of_aws_is_carried_out_as_the_rule_of_the_real_provider_says(token: str) -> None:
    """A type without a rule, or an input on neither list or on both, fails here."""
    resource, rule = RESOURCES[token], FORCE_NEW[token]
    assert (resource.required | resource.optional) - resource.in_place == rule.inputs
    assert rule.conditions.keys() <= resource.in_place
    assert resource.conditions == rule.conditions
    assert re.fullmatch(r"[a-z0-9]+/\w+\.go", rule.source)


def test_the_old_one_goes_first_only_where_it_bears_the_name() -> None:
    role = RESOURCES["aws:iam/role:Role"]
    assert role.compare({"name": "a", "path": "/x/"}, {"name": "a", "path": "/y/"}).delete_first
    assert not role.compare({"name": "a"}, {"name": "b"}).delete_first
    made_up = {"name": "a-1", "__defaults": ["name"]}
    assert not role.compare(made_up | {"path": "/x/"}, made_up | {"path": "/y/"}).delete_first


def test_a_misspelt_input_is_named_with_what_was_meant_and_a_missing_one_too() -> None:
    checked = RESOURCES["aws:ec2/vpc:Vpc"].check({"cidrBlok": "10.0.0.0/16"}, PROPOSAL)
    assert [(fault.path, "cidrBlock" in fault.reason) for fault in checked.faults] == [
        ("cidrBlok", True),
        ("cidrBlock", False),
    ]


def test_an_object_without_a_name_gets_one_and_keeps_it() -> None:
    inputs = {"apiVersion": "v1", "kind": "ConfigMap"}
    first = objects.check("kubernetes:core/v1:ConfigMap", inputs, PROPOSAL).inputs
    assert first["metadata"]["name"] == "web-00010203"
    again = objects.check("kubernetes:core/v1:ConfigMap", inputs, Proposal("web", first, bytes(32)))
    assert again.inputs["metadata"]["name"] == "web-00010203"


FIXED, MUTABLE = Mutable(), Mutable.of({"enableConfigMapMutable": "true", "enableSecretMutable": True})
CORE, APPS, RBAC = "v1", "apps/v1", "rbac.authorization.k8s.io/v1"
POD = {"spec": {"containers": [{"image": "a"}]}}


@pytest.mark.parametrize(
    ("version", "kind", "old", "new", "mutable", "replaces"),
    [
        (CORE, "ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, FIXED, ("data",)),
        (CORE, "ConfigMap", {"data": {"a": "1"}}, {}, FIXED, ("data",)),
        (CORE, "ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, MUTABLE, ()),
        (
            CORE,
            "ConfigMap",
            {"data": {"a": "1"}},
            {"immutable": True, "data": {"a": "2"}},
            MUTABLE,
            ("data",),
        ),
        (CORE, "ConfigMap", {"metadata": {"labels": {"a": "b"}}}, {"metadata": {}}, FIXED, ()),
        (CORE, "Secret", {"stringData": {"a": "1"}}, {"stringData": {"a": "2"}}, FIXED, ("stringData",)),
        (CORE, "Secret", {"stringData": {"a": "1"}}, {"stringData": {"a": "2"}}, MUTABLE, ()),
        (CORE, "Secret", {"type": "Opaque"}, {"type": "x/y"}, MUTABLE, ("type",)),
        (CORE, "Service", {"spec": {"type": "ClusterIP"}}, {"spec": {"type": "NodePort"}}, FIXED, ()),
        (
            CORE,
            "Pod",
            POD,
            {"spec": {"containers": [{"image": "b"}]}},
            FIXED,
            ("spec.containers[*].image",),
        ),
        (APPS, "Deployment", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, FIXED, ()),
        (
            APPS,
            "Deployment",
            {"spec": {"selector": {}}},
            {"spec": {"selector": {"matchLabels": {"a": "1"}}}},
            FIXED,
            ("spec.selector",),
        ),
        (
            RBAC,
            "ClusterRoleBinding",
            {"roleRef": {"name": "a"}},
            {"roleRef": {"name": "b"}},
            FIXED,
            ("roleRef",),
        ),
        (RBAC, "Role", {"metadata": {"namespace": "default"}}, {"metadata": {}}, FIXED, ()),
        (
            RBAC,
            "Role",
            {"metadata": {"namespace": "a"}},
            {"metadata": {"namespace": "b"}},
            FIXED,
            ("metadata.namespace",),
        ),
        ("coordination.k8s.io/v1", "Lease", {"spec": {}}, {"spec": {"holderIdentity": "a"}}, FIXED, ()),
    ],
)
def test_which_change_of_an_object_replaces(
    version: str,
    kind: str,
    old: dict[str, Any],
    new: dict[str, Any],
    mutable: Mutable,
    replaces: tuple[str, ...],
) -> None:
    of_kind = {"apiVersion": version, "kind": kind}
    difference = objects.compare(of_kind | old, of_kind | new, mutable)
    assert difference.replaces == replaces
    assert difference.changed
    assert difference.delete_first == (bool(replaces) and "metadata.namespace" not in replaces)


class Slices:
    """An API server that has these endpoints for every Service."""

    def __init__(self, *ready: bool) -> None:
        self._endpoints = [{"conditions": {"ready": each}} for each in ready]

    def path(self, *where: str) -> str:
        return "/".join(where)

    def list(self, path: str, **selector: str) -> list[dict[str, Any]]:
        return [{"endpoints": self._endpoints}]


WEB = {"selector": {"app": "web"}, "type": "ClusterIP"}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "ready"),
    [
        ("Service", {"type": "ExternalName"}, {}, True),
        ("Service", {"type": "ClusterIP"}, {}, True),
        ("Service", WEB, {}, False),
        ("Service", WEB | {"clusterIP": "None"}, {}, True),
        ("Pod", {}, {"phase": "Running"}, False),
        ("Pod", {}, {"phase": "Succeeded"}, True),
        ("Pod", {}, {"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ("Job", {}, {}, False),
        ("Job", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("StatefulSet", {"replicas": 2}, {"readyReplicas": 1, "updatedReplicas": 2}, False),
        ("StatefulSet", {"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 2}, True),
        ("DaemonSet", {}, {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3}, False),
        ("DaemonSet", {}, {"desiredNumberScheduled": 0}, True),
    ],
)
def test_what_an_object_is_waited_for(
    kind: str, spec: dict[str, Any], status: dict[str, Any], ready: bool
) -> None:
    metadata = {"name": "web", "namespace": "default", "generation": 1}
    obj = {"kind": kind, "metadata": metadata, "spec": spec, "status": {"observedGeneration": 1} | status}
    assert (READY[kind](Slices(False), obj) is None) == ready  # type: ignore[arg-type]


def test_a_service_waits_for_pods_and_for_an_address_where_one_is_given() -> None:
    obj = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": dict(WEB)}
    answering: Any = Slices(False, True)
    assert READY["Service"](answering, obj) is None
    obj["spec"] = WEB | {"type": "LoadBalancer"}
    assert "no address" in str(READY["Service"](answering, obj))
    obj["status"] = {"loadBalancer": {"ingress": [{"hostname": "web.example.com"}]}}
    assert READY["Service"](answering, obj) is None


def test_a_job_that_failed_is_not_waited_for() -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True", "message": "it ran out of tries"}]}
    job = {"kind": "Job", "metadata": {"name": "web", "namespace": "default"}, "status": failed}
    with pytest.raises(ResourceFailed, match="out of tries"):
        READY["Job"](Slices(), job)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("timeout", "noted", "seconds"),
    [(0.0, None, 600.0), (0.0, "30", 30.0), (5.0, "30", 5.0), (0.0, "x", 600.0)],
)
def test_how_long_an_object_is_waited_for(timeout: float, noted: str | None, seconds: float) -> None:
    annotations = {"pulumi.com/timeoutSeconds": noted} if noted else {}
    obj = {"metadata": {"annotations": annotations}}
    assert patience(threading.Event(), timeout, obj).seconds == seconds


@pytest.mark.parametrize("token", ["kubernetes:helm.sh/v4:Chart", "kubernetes:core/v1:ConfigMapPatch"])
def test_what_is_no_object_is_refused_by_name(token: str) -> None:
    faults = objects.check(token, {"apiVersion": "v1"}, PROPOSAL).faults
    assert token in faults[0].reason


def test_a_cluster_that_needs_node_groups_is_refused_with_every_reason() -> None:
    given = {"skipDefaultNodeGroup": True, "skipDefaultSecurityGroups": True}
    refuse(given)
    with pytest.raises(ResourceFailed, match=r"instanceType.*skipDefaultNodeGroup"):
        refuse({"instanceType": "m5.large", "skipDefaultSecurityGroups": True})


def test_the_cause_comes_before_what_follows_from_it() -> None:
    urn = "urn:pulumi:local::shop::aws:ec2/vpc:Vpc::net"
    stack = "urn:pulumi:local::shop::pulumi:pulumi:Stack::shop-local"
    progress = Progress()
    progress.errors += [
        (stack, "update failed"),
        (stack, "Resource monitor has terminated, shutting down"),
        (urn, "  * creating urn:x: no room"),
    ]
    assert progress.causes() == ["aws:ec2/vpc:Vpc 'net': no room"]
