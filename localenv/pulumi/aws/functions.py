"""The functions of the AWS package that programs call while they run, also in a preview."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from localenv.pulumi.aws.clients import AwsClients
from localenv.pulumi.resources import Inputs, Outputs, ResourceFailed

#: Each partition's domain for service principals and endpoints.
_DNS_SUFFIXES = {"aws": "amazonaws.com", "aws-cn": "amazonaws.com.cn", "aws-us-gov": "amazonaws.com"}


def availability_zones(backend: AwsClients, arguments: Inputs) -> Outputs:
    """`getAvailabilityZones`: names in alphabetical order, as the real function gives them."""
    wanted = [{"Name": item["name"], "Values": list(item["values"])} for item in arguments.get("filters", [])]
    if "state" in arguments:
        wanted.append({"Name": "state", "Values": [arguments["state"]]})
    reply = backend.ec2.describe_availability_zones(
        Filters=wanted, AllAvailabilityZones=bool(arguments.get("allAvailabilityZones", False))
    )
    zones: list[Mapping[str, Any]] = sorted(reply["AvailabilityZones"], key=lambda zone: zone["ZoneName"])
    excluded = {*arguments.get("excludeNames", []), *arguments.get("excludeZoneIds", [])}
    kept = [zone for zone in zones if excluded.isdisjoint((zone["ZoneName"], zone["ZoneId"]))]
    return {
        "id": backend.region,
        "names": [zone["ZoneName"] for zone in kept],
        "zoneIds": [zone["ZoneId"] for zone in kept],
        "groupNames": sorted({zone.get("GroupName", backend.region) for zone in kept}),
        "region": backend.region,
    }


def caller_identity(backend: AwsClients, arguments: Inputs) -> Outputs:
    """`getCallerIdentity`."""
    caller = backend.caller()
    return {
        "id": caller["Account"],
        "accountId": caller["Account"],
        "arn": caller["Arn"],
        "userId": caller["UserId"],
    }


def partition(backend: AwsClients, arguments: Inputs) -> Outputs:
    """`getPartition`."""
    name = backend.partition
    suffix = _DNS_SUFFIXES[name]
    return {
        "id": name,
        "partition": name,
        "dnsSuffix": suffix,
        "reverseDnsPrefix": ".".join(reversed(suffix.split("."))),
    }


def region(backend: AwsClients, arguments: Inputs) -> Outputs:
    """`getRegion`; `region` is the name since version 7 of the package, `name` before."""
    name = str(arguments.get("region") or arguments.get("name") or backend.region)
    return {
        "id": name,
        "region": name,
        "name": name,
        "description": name,
        "endpoint": f"ec2.{name}.{_DNS_SUFFIXES[backend.partition]}",
    }


def cluster(backend: AwsClients, arguments: Inputs) -> Outputs:
    """EKS's `getCluster`: where the cluster is, and how it is reached."""
    found = backend.eks.describe_cluster(name=arguments["name"])["cluster"]
    network = found["resourcesVpcConfig"]
    return {
        "id": found["name"],
        "name": found["name"],
        "arn": found["arn"],
        "endpoint": found["endpoint"],
        "certificateAuthorities": [{"data": found["certificateAuthority"]["data"]}],
        "region": backend.region,
        "roleArn": found["roleArn"],
        "status": found["status"],
        "version": found["version"],
        "tags": found.get("tags") or {},
        "vpcConfig": {
            "clusterSecurityGroupId": network["clusterSecurityGroupId"],
            "endpointPrivateAccess": network.get("endpointPrivateAccess", False),
            "endpointPublicAccess": network.get("endpointPublicAccess", True),
            "publicAccessCidrs": network.get("publicAccessCidrs") or [],
            "securityGroupIds": network.get("securityGroupIds") or [],
            "subnetIds": network.get("subnetIds") or [],
            "vpcId": network["vpcId"],
        },
    }


def cluster_versions(backend: AwsClients, arguments: Inputs) -> Outputs:
    """EKS's `getClusterVersions`, without filters."""
    if filters := arguments.keys() - {"region"}:
        raise NotImplementedError(f"getClusterVersions takes no {sorted(filters)} on the local AWS")
    pages = backend.eks.get_paginator("describe_cluster_versions").paginate()
    return {
        "id": backend.region,
        "region": backend.region,
        "clusterVersions": [
            {"controlPlaneComponentConfigs": [], "controlPlaneScalingTiers": []}
            | {key: value.isoformat() if key.endswith("Date") else value for key, value in found.items()}
            for page in pages
            for found in page["clusterVersions"]
        ],
    }


def addon_version(backend: AwsClients, arguments: Inputs) -> Outputs:
    """EKS's `getAddonVersion`: the newest version of an add-on, or the one that EKS installs by itself."""
    name, kubernetes = arguments["addonName"], arguments["kubernetesVersion"]
    newest = bool(arguments.get("mostRecent", False))
    reply = backend.eks.describe_addon_versions(addonName=name, kubernetesVersion=kubernetes)
    for offered in reply["addons"][0]["addonVersions"] if reply["addons"] else ():
        if newest or offered["compatibilities"][0]["defaultVersion"]:
            return {
                "id": name,
                "addonName": name,
                "kubernetesVersion": kubernetes,
                "mostRecent": newest,
                "region": backend.region,
                "version": offered["addonVersion"],
            }
    raise ResourceFailed(f"EKS has no version of add-on {name} for Kubernetes {kubernetes}")


def authorization_token(backend: AwsClients, arguments: Inputs) -> Outputs:
    """ECR's `getAuthorizationToken`: what a client signs in to the registry with."""
    registry = arguments.get("registryId")
    reply = backend.ecr.get_authorization_token(**({"registryIds": [registry]} if registry else {}))
    (data,) = reply["authorizationData"]
    user, password = base64.b64decode(data["authorizationToken"]).decode().split(":", 1)
    return {
        "id": backend.region,
        "authorizationToken": data["authorizationToken"],
        "expiresAt": data["expiresAt"].isoformat(),
        "proxyEndpoint": data["proxyEndpoint"],
        "userName": user,
        "password": password,
        "region": backend.region,
    }


#: Function by token.
FUNCTIONS: Mapping[str, Callable[[AwsClients, Inputs], Outputs]] = {
    "aws:ecr/getAuthorizationToken:getAuthorizationToken": authorization_token,
    "aws:eks/getAddonVersion:getAddonVersion": addon_version,
    "aws:eks/getCluster:getCluster": cluster,
    "aws:eks/getClusterVersions:getClusterVersions": cluster_versions,
    "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region,
}
