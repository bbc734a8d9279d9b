"""The EKS cluster. What stands behind its endpoint is the local AWS's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localenv.pulumi import wire
from localenv.pulumi.aws.clients import AwsClients, unless_gone
from localenv.pulumi.aws.ec2 import given, present, with_tags
from localenv.pulumi.aws.eks_common import EksResource, instant, wait
from localenv.pulumi.resources import Inputs, Outputs

#: Where the program's `vpcConfig` and boto3's `resourcesVpcConfig` agree letter by letter.
_VPC_CONFIG = (
    "subnetIds",
    "securityGroupIds",
    "endpointPrivateAccess",
    "endpointPublicAccess",
    "publicAccessCidrs",
)


class Cluster(EksResource):
    """A cluster; its id is its name."""

    token = "aws:eks/cluster:Cluster"
    required = frozenset({"roleArn", "vpcConfig"})
    in_place = frozenset(
        {
            "version",
            "vpcConfig",
            "accessConfig",
            "enabledClusterLogTypes",
            "encryptionConfig",
            "kubernetesNetworkConfig",
            "tags",
        }
    )
    computed = (
        "arn",
        "endpoint",
        "certificateAuthority",
        "certificateAuthorities",
        "identities",
        "platformVersion",
        "status",
        "createdAt",
        "vpcConfig",
        "kubernetesNetworkConfig",
        "tagsAll",
    )
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        name = str(inputs["name"])
        backend.eks.create_cluster(
            name=name,
            roleArn=inputs["roleArn"],
            resourcesVpcConfig=_vpc_config(inputs["vpcConfig"]),
            **given(inputs, "version", "accessConfig", "bootstrapSelfManagedAddons"),
            **given(inputs, "kubernetesNetworkConfig", "tags"),
            **present(
                encryptionConfig=[inputs["encryptionConfig"]] if "encryptionConfig" in inputs else None,
                logging=_logging(inputs) if inputs.get("enabledClusterLogTypes") else None,
            ),
        )
        return name

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        wait(lambda: _cluster(backend, identity), f"cluster {identity}", "ACTIVE")

    def foresee(self, inputs: Inputs) -> Outputs:
        # Nested inputs gain computed members, so nothing of them is known before.
        unknown = dict.fromkeys(("vpcConfig", "kubernetesNetworkConfig"), wire.UNKNOWN)
        return super().foresee(inputs) | unknown

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        cluster = _cluster(backend, identity)
        if cluster is None:
            return None
        network = cluster.get("resourcesVpcConfig", {})
        authority = {"data": cluster.get("certificateAuthority", {}).get("data", "")}
        outputs = {
            "arn": cluster["arn"],
            "clusterId": "",
            "createdAt": instant(cluster.get("createdAt")),
            "endpoint": cluster.get("endpoint", ""),
            "certificateAuthority": authority,
            "certificateAuthorities": [authority],
            "identities": [{"oidcs": [{"issuer": cluster["identity"]["oidc"]["issuer"]}]}],
            "platformVersion": cluster.get("platformVersion", ""),
            "version": cluster.get("version", ""),
            "status": cluster["status"],
            "kubernetesNetworkConfig": cluster.get("kubernetesNetworkConfig", {}),
            "vpcConfig": dict(inputs.get("vpcConfig", {}))
            | {
                "clusterSecurityGroupId": network.get("clusterSecurityGroupId", ""),
                "vpcId": network.get("vpcId", ""),
            },
        }
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        changes: list[Callable[[], Any]] = []
        if "version" in new and old.get("version") != new["version"]:
            changes.append(lambda: backend.eks.update_cluster_version(name=identity, version=new["version"]))
        for key, argument, value in (
            ("vpcConfig", "resourcesVpcConfig", _vpc_config(new["vpcConfig"])),
            ("accessConfig", "accessConfig", _access_update(new)),
            ("enabledClusterLogTypes", "logging", _logging(new)),
            ("kubernetesNetworkConfig", "kubernetesNetworkConfig", _network_update(new)),
        ):
            if old.get(key) != new.get(key):
                changes.append(self._change(backend, identity, argument, value))
        # The real provider associates a key with a cluster that has none, and leaves another one alone.
        if new.get("encryptionConfig") and not old.get("encryptionConfig"):
            changes.append(
                lambda: backend.eks.associate_encryption_config(
                    clusterName=identity, encryptionConfig=[new["encryptionConfig"]]
                )
            )
        for change in changes:  # EKS carries out one update of a cluster at a time
            change()
            wait(lambda: _cluster(backend, identity), f"cluster {identity}", "ACTIVE")

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        if unless_gone(backend.eks.delete_cluster, name=identity) is not None:
            wait(lambda: _cluster(backend, identity), f"cluster {identity}", None)

    @staticmethod
    def _change(backend: AwsClients, identity: str, argument: str, value: Any) -> Callable[[], Any]:
        return lambda: backend.eks.update_cluster_config(name=identity, **{argument: value})


def _vpc_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config[key] for key in _VPC_CONFIG if key in config and not wire.is_unknown(config[key])}


def _access_update(inputs: Inputs) -> dict[str, Any]:
    """Only the mode of an existing cluster can change."""
    mode = inputs.get("accessConfig", {}).get("authenticationMode")
    return {"authenticationMode": mode} if mode else {}


def _network_update(inputs: Inputs) -> dict[str, Any]:
    """Of the network only whether EKS balances load can change."""
    return given(inputs.get("kubernetesNetworkConfig") or {}, "elasticLoadBalancing")


def _logging(inputs: Inputs) -> dict[str, Any]:
    everything = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    wanted = inputs.get("enabledClusterLogTypes") or []
    rest = [kind for kind in everything if kind not in wanted]
    sets = [{"types": wanted, "enabled": True}, {"types": rest, "enabled": False}]
    return {"clusterLogging": [item for item in sets if item["types"]]}


def _cluster(backend: AwsClients, name: str) -> dict[str, Any] | None:
    reply = unless_gone(backend.eks.describe_cluster, name=name)
    return reply["cluster"] if reply else None
