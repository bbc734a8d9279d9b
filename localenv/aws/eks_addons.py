"""EKS add-ons: a small catalog with a version for each Kubernetes version, and the add-ons of a cluster.

The versions are of EKS's form (`v1.36.0-eksbuild.1`) but made up; nothing is installed into the cluster.
"""

from __future__ import annotations

from typing import Any

from localenv.aws.calls import Call, Handlers, digest
from localenv.aws.eks_records import ClusterRecord, arn, cluster_of, find, in_use, invalid, keep_update, now
from localenv.aws.images import VERSIONS

#: Add-ons known, with their type and, where it does not follow Kubernetes' version, their own version.
CATALOG = {
    "vpc-cni": ("networking", "v1.20.0-eksbuild.1"),
    "coredns": ("networking", None),
    "kube-proxy": ("networking", None),
    "eks-pod-identity-agent": ("security", "v1.3.8-eksbuild.2"),
    "aws-ebs-csi-driver": ("storage", "v1.48.0-eksbuild.1"),
    "metrics-server": ("observability", "v0.8.0-eksbuild.2"),
}
_CHANGEABLE = ("addonVersion", "configurationValues", "serviceAccountRoleArn")


def default_version(addon: str, kubernetes_version: str) -> str:
    """The version that EKS would install on a cluster of that Kubernetes version."""
    own = CATALOG[addon][1]
    minor = int(kubernetes_version.split(".")[1])
    if addon == "coredns":
        return f"v1.{minor - 22}.0-eksbuild.1"
    return own or f"v{kubernetes_version}.0-eksbuild.1"


def describe_addon_versions(call: Call) -> dict[str, Any]:
    name, version = call.parameters.get("addonName"), call.parameters.get("kubernetesVersion")
    addons = [_describe_versions(addon, version) for addon in CATALOG if name in {None, addon}]
    if name is not None and not addons:
        raise invalid(f"Addon {name} specified is not supported")
    return {"addons": addons}


def _describe_versions(addon: str, kubernetes_version: str | None) -> dict[str, Any]:
    versions: dict[str, list[str]] = {}
    for cluster_version in VERSIONS:
        if kubernetes_version in {None, cluster_version}:
            versions.setdefault(default_version(addon, cluster_version), []).append(cluster_version)
    return {
        "addonName": addon,
        "type": CATALOG[addon][0],
        "owner": "aws",
        "publisher": "eks",
        "addonVersions": [
            {
                "addonVersion": version,
                "architecture": ["amd64", "arm64"],
                "computeTypes": ["ec2", "fargate", "hybrid"],
                "requiresConfiguration": False,
                "requiresIamPermissions": addon in {"vpc-cni", "aws-ebs-csi-driver"},
                "compatibilities": [
                    {"clusterVersion": v, "platformVersions": ["*"], "defaultVersion": True}
                    for v in supported
                ],
            }
            for version, supported in reversed(versions.items())
        ],
    }


def create_addon(call: Call) -> dict[str, Any]:
    record, parameters = cluster_of(call), call.parameters
    name = parameters["addonName"]
    if name in record.addons:
        raise in_use("Addon already exists.")
    if name not in CATALOG:
        raise invalid(f"Addon {name} specified is not supported")
    version = parameters.get("addonVersion") or default_version(name, record.cluster["version"])
    _require_version(name, version, record)
    cluster_name = record.cluster["name"]
    addon = {
        "addonName": name,
        "clusterName": cluster_name,
        "addonArn": arn(call, "addon", cluster_name, name, digest([cluster_name, name], 32)),
        "addonVersion": version,
        "status": "ACTIVE",
        "health": {"issues": []},
        "owner": "aws",
        "publisher": "eks",
        "createdAt": now(),
        "modifiedAt": now(),
        "serviceAccountRoleArn": parameters.get("serviceAccountRoleArn"),
        "configurationValues": parameters.get("configurationValues"),
        "tags": parameters.get("tags") or {},
    }
    record.addons[name] = addon
    return {"addon": {**addon, "status": "CREATING"}}


def describe_addon(call: Call) -> dict[str, Any]:
    return {"addon": _addon(call, cluster_of(call))}


def list_addons(call: Call) -> dict[str, Any]:
    return {"addons": sorted(cluster_of(call).addons)}


def update_addon(call: Call) -> dict[str, Any]:
    record = cluster_of(call)
    addon = _addon(call, record)
    changes = {n: call.parameters[n] for n in _CHANGEABLE if call.parameters.get(n) is not None}
    if "addonVersion" in changes:
        _require_version(addon["addonName"], changes["addonVersion"], record)
    addon.update(changes, modifiedAt=now())
    return keep_update(record, "AddonUpdate", changes, addon=addon["addonName"])


def delete_addon(call: Call) -> dict[str, Any]:
    record = cluster_of(call)
    addon = _addon(call, record)
    del record.addons[addon["addonName"]]
    return {"addon": {**addon, "status": "DELETING"}}


def _addon(call: Call, record: ClusterRecord) -> dict[str, Any]:
    name = call.parameters["addonName"]
    return find(record.addons, name, f"No addon: {name} found in cluster: {record.cluster['name']}")


def _require_version(addon: str, version: str, record: ClusterRecord) -> None:
    offered = {default_version(addon, v) for v in VERSIONS}
    if version not in offered:
        message = (
            f"Addon version specified is not supported: {version}; "
            f"offered for {addon} on {record.cluster['version']}: {sorted(offered)}"
        )
        raise invalid(message)


HANDLERS: Handlers = {
    ("eks", "DescribeAddonVersions"): describe_addon_versions,
    ("eks", "CreateAddon"): create_addon,
    ("eks", "DescribeAddon"): describe_addon,
    ("eks", "ListAddons"): list_addons,
    ("eks", "UpdateAddon"): update_addon,
    ("eks", "DeleteAddon"): delete_addon,
}
