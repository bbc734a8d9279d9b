"""EKS clusters, their updates and tags.

A cluster is a record and a real security group, as on AWS. Endpoint, CA and issuer are those of the control
plane given by `POST /nodeless/cluster`, whenever it was given; without one they are well-formed and lead
nowhere.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.eks_access import admit_creator
from localenv.aws.eks_records import (
    ClusterRecord,
    arn,
    cluster_of,
    find,
    in_use,
    invalid,
    keep_update,
    not_found,
    now,
)
from localenv.aws.images import VERSIONS
from localenv.aws.upstream.dependency_violations import users_of_group

#: Version of a cluster that asks for none: that of the local control plane.
DEFAULT_VERSION = VERSIONS[-1]
#: Zones that take no cluster. Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html.
UNSUPPORTED_ZONE_IDS = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
#: Authentication modes in the order in which a cluster may change them.
_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
_KEPT = (
    "accessConfig",
    "computeConfig",
    "deletionProtection",
    "encryptionConfig",
    "kubernetesNetworkConfig",
    "logging",
    "remoteNetworkConfig",
    "storageConfig",
    "upgradePolicy",
    "zonalShiftConfig",
)


def create_cluster(call: Call) -> dict[str, Any]:
    """eks.CreateCluster: checks role, subnets and version, and makes the cluster security group."""
    parameters = call.parameters
    name = parameters["name"]
    key = f"{call.region}/{name}"
    with call.state.lock:
        if key in call.state.clusters:
            raise in_use(f"Cluster already exists with name: {name}")
        version = parameters.get("version") or DEFAULT_VERSION
        if version not in VERSIONS:
            raise invalid(f"unsupported Kubernetes version {version}")
        require_role(call, parameters["roleArn"])
        _require_supported_zones(call, name, parameters["resourcesVpcConfig"].get("subnetIds") or [])
        vpc_config = _vpc_config(call, name, parameters["resourcesVpcConfig"])
        access = {"bootstrapClusterCreatorAdminPermissions": True, "authenticationMode": "CONFIG_MAP"}
        network = {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"}
        document: dict[str, Any] = {
            "logging": {"clusterLogging": [{"types": [], "enabled": False}]},
            "upgradePolicy": {"supportType": "EXTENDED"},
            "deletionProtection": False,
            **{field: parameters[field] for field in _KEPT if parameters.get(field) is not None},
            "name": name,
            "arn": arn(call, "cluster", name),
            "createdAt": now(),
            "version": version,
            "roleArn": parameters["roleArn"],
            "resourcesVpcConfig": vpc_config,
            "accessConfig": access | (parameters.get("accessConfig") or {}),
            "kubernetesNetworkConfig": network | (parameters.get("kubernetesNetworkConfig") or {}),
            "status": "ACTIVE",
            "platformVersion": "eks.1",
            "health": {"issues": []},
            "tags": dict(parameters.get("tags") or {}),
        }
        record = ClusterRecord(document, zones=_zones_of(_subnets_of(call, vpc_config["subnetIds"])))
        call.state.clusters[key] = record
        admit_creator(call, record)
        return {"cluster": {**_describe_cluster(call, record), "status": "CREATING"}}


def describe_cluster(call: Call) -> dict[str, Any]:
    return {"cluster": _describe_cluster(call, cluster_of(call, "name"))}


def list_clusters(call: Call) -> dict[str, Any]:
    prefix = f"{call.region}/"
    return {"clusters": sorted(k.removeprefix(prefix) for k in call.state.clusters if k.startswith(prefix))}


def delete_cluster(call: Call) -> dict[str, Any]:
    """eks.DeleteCluster: refuses while Fargate profiles exist; takes the cluster security group with it."""
    with call.state.lock:
        record = cluster_of(call, "name")
        if record.fargate_profiles:
            raise in_use("Cluster has Fargate profiles attached")
        if record.cluster.get("deletionProtection"):
            message = "Cluster deletion is blocked: deletion protection is enabled"
            raise AwsError("InvalidRequestException", message)
        described = _describe_cluster(call, record)
        del call.state.clusters[f"{call.region}/{record.cluster['name']}"]
        group = record.cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
        # EKS too leaves the group behind when something still uses it.
        if next(users_of_group(call, group), None) is None:
            _delete_group(call, group)
        return {"cluster": {**described, "status": "DELETING"}}


def describe_cluster_versions(call: Call) -> dict[str, Any]:
    """eks.DescribeClusterVersions: newest first; those without support only where they are asked for."""
    parameters = call.parameters
    status, named = parameters.get("versionStatus"), parameters.get("clusterVersions") or ()
    listed = [_described_version(version) for version in reversed(VERSIONS)]
    return {
        "clusterVersions": [
            each
            for each in listed
            if (each["versionStatus"] == status if status else named or _is_shown(each, parameters))
            and (not named or each["clusterVersion"] in named)
            and (each["defaultVersion"] or not parameters.get("defaultOnly"))
        ]
    }


def _is_shown(version: dict[str, Any], parameters: dict[str, Any]) -> bool:
    return version["versionStatus"] != "UNSUPPORTED" or bool(parameters.get("includeAll"))


def _described_version(version: str) -> dict[str, Any]:
    """As on EKS: four versions in standard support, the three before them in extended support."""
    age = len(VERSIONS) - 1 - VERSIONS.index(version)
    status = "STANDARD_SUPPORT" if age < 4 else "EXTENDED_SUPPORT" if age < 7 else "UNSUPPORTED"
    # A version each four months; 14 months of standard support and 12 more of the extended one.
    released = now() - timedelta(days=120 * age + 30)
    return {
        "clusterVersion": version,
        "clusterType": "eks",
        "defaultPlatformVersion": "eks.1",
        "defaultVersion": version == DEFAULT_VERSION,
        "releaseDate": released,
        "endOfStandardSupportDate": released + timedelta(days=425),
        "endOfExtendedSupportDate": released + timedelta(days=790),
        "versionStatus": status,
        "kubernetesPatchVersion": f"{version}.0",
    }


def update_cluster_version(call: Call) -> dict[str, Any]:
    """eks.UpdateClusterVersion: one minor version up at a time."""
    record = cluster_of(call, "name")
    wanted, current = call.parameters["version"], record.cluster["version"]
    if wanted not in VERSIONS or VERSIONS.index(wanted) != VERSIONS.index(current) + 1:
        raise invalid(f"Unsupported Kubernetes minor version update from {current} to {wanted}")
    record.cluster["version"] = wanted
    return keep_update(record, "VersionUpdate", {"Version": wanted, "PlatformVersion": "eks.1"})


def update_cluster_config(call: Call) -> dict[str, Any]:
    """eks.UpdateClusterConfig: access, endpoints, logging and the other settings that may change."""
    record = cluster_of(call, "name")
    if subnet_ids := (call.parameters.get("resourcesVpcConfig") or {}).get("subnetIds"):
        stays = record.cluster["resourcesVpcConfig"]["vpcId"]
        subnets = _subnets_of(call, subnet_ids)
        if subnets[0]["VpcId"] != stays:
            raise invalid(f"Provided subnets {' '.join(subnet_ids)} belong to another VPC than {stays}")
        _require_same_zones(record, _zones_of(subnets))
    _require_next_mode(record, (call.parameters.get("accessConfig") or {}).get("authenticationMode"))
    changes: dict[str, object] = {}
    for name, value in call.parameters.items():
        if name in {"accessConfig", "resourcesVpcConfig", "kubernetesNetworkConfig"}:
            record.cluster[name] = {**record.cluster[name], **value}
            changes |= value
        elif name in _KEPT:
            record.cluster[name] = value
            changes[name] = value
    kinds = {"accessConfig": "AccessConfigUpdate", "resourcesVpcConfig": "EndpointAccessUpdate"}
    kind = next((kinds[name] for name in kinds if name in call.parameters), "LoggingUpdate")
    return keep_update(record, kind, changes)


def associate_encryption_config(call: Call) -> dict[str, Any]:
    """eks.AssociateEncryptionConfig: once, and for good."""
    record = cluster_of(call, "clusterName")
    if record.cluster.get("encryptionConfig"):
        raise invalid("The cluster already has an encryption configuration")
    wanted = call.parameters["encryptionConfig"]
    record.cluster["encryptionConfig"] = wanted
    return keep_update(record, "AssociateEncryptionConfig", {"EncryptionConfig": wanted})


def describe_update(call: Call) -> dict[str, Any]:
    record = cluster_of(call, "name")
    identifier = call.parameters["updateId"]
    return {"update": find(record.updates, identifier, f"No update found for ID: {identifier}")}


def list_updates(call: Call) -> dict[str, Any]:
    addon = call.parameters.get("addonName")
    updates = cluster_of(call, "name").updates
    return {"updateIds": [key for key, update in updates.items() if update["addon"] == addon]}


def tag_resource(call: Call) -> dict[str, Any]:
    tags = _tags(call)
    tags.update(call.parameters["tags"])
    return {}


def untag_resource(call: Call) -> dict[str, Any]:
    tags = _tags(call)
    for key in call.parameters["tagKeys"]:
        tags.pop(key, None)
    return {}


def list_tags_for_resource(call: Call) -> dict[str, Any]:
    return {"tags": _tags(call)}


def require_role(call: Call, role_arn: str) -> dict[str, Any]:
    """The role of that ARN.

    Raises:
        AwsError: InvalidParameterException when it does not exist.
    """
    try:
        role: dict[str, Any] = call.client("iam").get_role(RoleName=role_arn.rpartition("/")[2])["Role"]
    except ClientError:
        raise invalid(f"Role with arn: {role_arn}, could not be assumed because it does not exist") from None
    return role


def _tags(call: Call) -> dict[str, str]:
    resource = call.parameters["resourceArn"]
    for record in call.state.clusters.values():
        if resource in record.tagged_resources():
            tags: dict[str, str] = record.tagged_resources()[resource].setdefault("tags", {})
            return tags
    raise not_found(f"No resource found for ARN: {resource}")


def _vpc_config(call: Call, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    subnet_ids = wanted.get("subnetIds") or []
    vpc_id = _subnets_of(call, subnet_ids)[0]["VpcId"]
    return {
        "subnetIds": subnet_ids,
        "securityGroupIds": wanted.get("securityGroupIds") or [],
        "clusterSecurityGroupId": _cluster_security_group(call, name, vpc_id),
        "vpcId": vpc_id,
        "endpointPublicAccess": wanted.get("endpointPublicAccess", True),
        "endpointPrivateAccess": wanted.get("endpointPrivateAccess", False),
        "publicAccessCidrs": wanted.get("publicAccessCidrs") or ["0.0.0.0/0"],
    }


def _require_supported_zones(call: Call, name: str, subnet_ids: list[str]) -> None:
    """Refuse subnets in a zone that takes no cluster, in EKS's words (eksctl-io/eksctl#817)."""
    refused = sorted(
        subnet["AvailabilityZone"]
        for subnet in _subnets_of(call, subnet_ids)
        if subnet["AvailabilityZoneId"] in UNSUPPORTED_ZONE_IDS
    )
    if refused:
        zones = call.client("ec2").describe_availability_zones()["AvailabilityZones"]
        valid = sorted(zone["ZoneName"] for zone in zones if zone["ZoneId"] not in UNSUPPORTED_ZONE_IDS)
        raise AwsError(
            "UnsupportedAvailabilityZoneException",
            f"Cannot create cluster '{name}' because {refused[0]}, the targeted availability zone, does not"
            " currently have sufficient capacity to support the cluster. Retry and choose from these"
            f" availability zones: {', '.join(valid)}",
        )


def _require_same_zones(record: ClusterRecord, wanted: frozenset[str]) -> None:
    """Refuse subnets in other zones than those that the cluster was created with.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html ("All subnets that you add must
    be in the same set of AZs as originally provided when you created the cluster").
    """
    created = record.zones
    if wanted != created:
        raise invalid(
            f"Provided subnets belong to the AZs '{','.join(sorted(wanted))}'. But they should belong to the"
            f" exact set of AZs '{','.join(sorted(created))}' in which subnets were provided during cluster"
            " creation."
        )


def _require_next_mode(record: ClusterRecord, wanted: str | None) -> None:
    """Refuse another authentication mode than the one after that which the cluster has."""
    current = record.cluster["accessConfig"]["authenticationMode"]
    if wanted is not None and (current, wanted) not in pairwise(_MODES):
        raise invalid(f"Unsupported authentication mode update from {current} to {wanted}")


def _zones_of(subnets: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(subnet["AvailabilityZone"] for subnet in subnets)


def _subnets_of(call: Call, subnet_ids: list[str]) -> Sequence[Mapping[str, Any]]:
    """The subnets of a cluster, which are of one VPC.

    Raises:
        AwsError: InvalidParameterException when they are in one zone, in several VPCs, or not there.
    """
    try:
        subnets = call.client("ec2").describe_subnets(SubnetIds=subnet_ids)["Subnets"] if subnet_ids else []
    except ClientError as error:
        raise invalid(error.response["Error"]["Message"]) from None
    if len(_zones_of(subnets)) < 2:
        raise invalid("Subnets specified must be in at least two different AZs")
    if len({subnet["VpcId"] for subnet in subnets}) > 1:
        raise invalid("Subnets specified must belong to the same VPC")
    return subnets


def _cluster_security_group(call: Call, name: str, vpc_id: str) -> str:
    """The group that EKS makes for a cluster: everything from itself, everything out."""
    ec2 = call.client("ec2")
    group_name = f"eks-cluster-sg-{name}-{int(digest([name, call.state.number()], 8), 16)}"
    description = (
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes"
    )
    group: str = ec2.create_security_group(GroupName=group_name, Description=description, VpcId=vpc_id)[
        "GroupId"
    ]
    from_itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[from_itself])
    tags = {"Name": group_name, f"kubernetes.io/cluster/{name}": "owned", "aws:eks:cluster-name": name}
    call.moto.tag(call.region, group, tags)
    return group


def _delete_group(call: Call, group: str) -> None:
    """Delete the cluster security group, unless someone has done so by hand."""
    try:
        call.client("ec2").delete_security_group(GroupId=group)
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidGroup.NotFound":
            raise


def _describe_cluster(call: Call, record: ClusterRecord) -> dict[str, Any]:
    """The cluster's document, with the control plane that stands behind it now."""
    identity, cluster = call.state.cluster, record.cluster
    if identity is not None:
        endpoint, issuer = identity.endpoint, identity.issuer
        authority = identity.certificate_authority_data
    else:
        number = digest(cluster["arn"], 32).upper()
        endpoint = f"https://{number}.gr7.{call.region}.eks.amazonaws.com"
        issuer = f"https://oidc.eks.{call.region}.amazonaws.com/id/{number}"
        authority = base64.b64encode(b"no control plane stands behind this cluster\n").decode()
    return {
        **cluster,
        "endpoint": endpoint,
        "certificateAuthority": {"data": authority},
        "identity": {"oidc": {"issuer": issuer}},
    }


HANDLERS: Handlers = {
    ("eks", "DescribeClusterVersions"): describe_cluster_versions,
    ("eks", "CreateCluster"): create_cluster,
    ("eks", "DescribeCluster"): describe_cluster,
    ("eks", "ListClusters"): list_clusters,
    ("eks", "DeleteCluster"): delete_cluster,
    ("eks", "UpdateClusterVersion"): update_cluster_version,
    ("eks", "UpdateClusterConfig"): update_cluster_config,
    ("eks", "AssociateEncryptionConfig"): associate_encryption_config,
    ("eks", "DescribeUpdate"): describe_update,
    ("eks", "ListUpdates"): list_updates,
    ("eks", "TagResource"): tag_resource,
    ("eks", "UntagResource"): untag_resource,
    ("eks", "ListTagsForResource"): list_tags_for_resource,
}
