"""`eks:index:Cluster` for a cluster without node groups, with the children pulumi-eks 4 makes.

A service role with its policy, the cluster, the OIDC provider, the add-ons kube-proxy,
vpc-cni and coredns, a Kubernetes provider, in config-map modes aws-auth, and a Fargate
profile where one is asked for. Inputs that would need something else (node groups,
security groups of its own, storage classes) are refused by name rather than ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import yaml

from localenv.pulumi import wire
from localenv.pulumi.eks import kubeconfig
from localenv.pulumi.eks.monitor import Monitor, Registered
from localenv.pulumi.resources import Inputs, Outputs, ResourceFailed

TOKEN = "eks:index:Cluster"

#: Inputs that are carried out.
_INPUTS = frozenset(
    {
        "name",
        "version",
        "vpcId",
        "subnetIds",
        "publicSubnetIds",
        "privateSubnetIds",
        "skipDefaultNodeGroup",
        "skipDefaultSecurityGroups",
        "createOidcProvider",
        "authenticationMode",
        "bootstrapSelfManagedAddons",
        "endpointPrivateAccess",
        "endpointPublicAccess",
        "publicAccessCidrs",
        "enabledClusterLogTypes",
        "encryptionConfigKeyArn",
        "providerCredentialOpts",
        "corednsAddonOptions",
        "kubeProxyAddonOptions",
        "useDefaultVpcCni",
        "roleMappings",
        "enableConfigMapMutable",
        "clusterTags",
        "tags",
        "fargate",
    }
)
_POLICY = "AmazonEKSClusterPolicy"
_POD_POLICY = "AmazonEKSFargatePodExecutionRolePolicy"
#: Without it the engine picks a version on its own, another one in the second run than in the first.
_KUBERNETES_PACKAGE = metadata.version("pulumi_kubernetes")
_DEFAULT_MODE = "CONFIG_MAP"


class Cluster:
    """Makes one component; each method makes one part of it."""

    def __init__(
        self,
        monitor: Monitor,
        name: str,
        inputs: Inputs,
        *,
        parent: str,
        providers: Mapping[str, str],
        dependencies: Mapping[str, list[str]],
    ) -> None:
        refuse(inputs)
        self._monitor = monitor
        self._name = name
        self._inputs = inputs
        self._aws = providers.get("aws", "")
        #: URNs that the given inputs come from; the cluster and what is inside depends on them.
        self._given = sorted({urn for urns in dependencies.values() for urn in urns})
        self.component = monitor.component(TOKEN, name, parent, providers=providers)

    def make(self) -> Outputs:
        """Make all children; give the component's outputs."""
        role = self._service_role()
        cluster = self._cluster(role)
        config = self._kubeconfig(cluster)
        settings = {"kubeconfig": wire.secret(config)}
        if "enableConfigMapMutable" in self._inputs:
            settings["enableConfigMapMutable"] = self._inputs["enableConfigMapMutable"]
        provider = self._monitor.resource(
            "pulumi:providers:kubernetes",
            f"{self._name}-eks-k8s",
            settings,
            parent=self.component.urn,
            dependencies=[cluster.urn],
            version=_KUBERNETES_PACKAGE,
        )
        if self._mode != "API":
            self._aws_auth(provider)
        oidc = self._oidc_provider(cluster) if self._inputs.get("createOidcProvider") else None
        self._addons(cluster)
        profile = self._fargate_profile(cluster)
        outputs = self._outputs(cluster, role, provider, oidc, profile, config)
        self._monitor.finish(self.component, outputs)
        return outputs

    def _service_role(self) -> Registered:
        name = f"{self._name}-eksRole"
        group = self._monitor.component("eks:index:ServiceRole", name, self.component.urn, providers={})
        trust = _trust("eks.amazonaws.com")
        role = self._resource(
            "aws:iam/role:Role",
            f"{name}-role",
            {"description": "Allows EKS to manage clusters on your behalf.", "assumeRolePolicy": trust}
            | self._tags(),
            self._given,
            parent=group.urn,
        )
        self._attach(f"{name}-{_POLICY}", role, _POLICY, parent=group.urn)
        return role

    def _cluster(self, role: Registered) -> Registered:
        given = self._inputs
        subnets = given.get("subnetIds") or [
            *given.get("publicSubnetIds", []),
            *given.get("privateSubnetIds", []),
        ]
        network = {"subnetIds": subnets} | {
            key: given[key]
            for key in ("endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs")
            if key in given
        }
        inputs = {
            "roleArn": role["arn"],
            "vpcConfig": network,
            "accessConfig": {"authenticationMode": self._mode},
        }
        inputs |= {
            key: given[key]
            for key in ("name", "version", "enabledClusterLogTypes", "bootstrapSelfManagedAddons")
            if key in given
        }
        if "encryptionConfigKeyArn" in given:
            key = {"keyArn": given["encryptionConfigKeyArn"]}
            inputs["encryptionConfig"] = {"provider": key, "resources": ["secrets"]}
        tags = {"Name": f"{self._name}-eksCluster"} | given.get("tags", {}) | given.get("clusterTags", {})
        return self._resource(
            "aws:eks/cluster:Cluster",
            f"{self._name}-eksCluster",
            inputs | {"tags": tags},
            [*self._given, role.urn, self._attachment],
        )

    def _kubeconfig(self, cluster: Registered) -> str:
        options = self._inputs.get("providerCredentialOpts") or {}
        known = kubeconfig.of(cluster["name"], cluster["endpoint"], cluster["certificateAuthority"], options)
        return wire.UNKNOWN if known is None else json.dumps(known)

    def _aws_auth(self, provider: Registered) -> None:
        mappings = self._inputs.get("roleMappings", [])
        roles = [
            {
                "rolearn": mapping["roleArn"],
                "username": mapping["username"],
                "groups": list(mapping["groups"]),
            }
            for mapping in mappings
            if not wire.is_unknown(mapping)
        ]
        text = wire.UNKNOWN if wire.is_unknown(mappings) else yaml.safe_dump(roles, sort_keys=False)
        inputs = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "aws-auth", "namespace": "kube-system"},
            "data": {"mapRoles": text},
        }
        self._monitor.resource(
            "kubernetes:core/v1:ConfigMap",
            f"{self._name}-nodeAccess",
            inputs,
            parent=self.component.urn,
            provider=provider.as_provider,
            dependencies=[*self._given, provider.urn],
        )

    def _oidc_provider(self, cluster: Registered) -> Registered:
        # pulumi-eks gives it no tags.
        return self._resource(
            "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
            f"{self._name}-oidcProvider",
            {"clientIdLists": ["sts.amazonaws.com"], "url": _issuer(cluster)},
            [cluster.urn],
        )

    def _addons(self, cluster: Registered) -> None:
        wanted = {
            "kube-proxy": self._inputs.get("kubeProxyAddonOptions", {}).get("enabled", True),
            "vpc-cni": not self._inputs.get("useDefaultVpcCni", False),
            "coredns": self._inputs.get("corednsAddonOptions", {}).get("enabled", True),
        }
        for addon in (name for name, enabled in wanted.items() if enabled):
            parent = self.component.urn
            name = f"{self._name}-{addon}"
            if addon == "vpc-cni":
                parent = self._monitor.component("eks:index:VpcCniAddon", name, parent, providers={}).urn
            inputs = {
                "clusterName": cluster["name"],
                "addonName": addon,
                "resolveConflictsOnCreate": "OVERWRITE",
                "resolveConflictsOnUpdate": "OVERWRITE",
                "addonVersion": self._newest(addon, cluster["version"]),
                "preserve": True,
            }
            self._resource("aws:eks/addon:Addon", name, inputs | self._tags(), [cluster.urn], parent=parent)

    def _newest(self, addon: str, kubernetes_version: str) -> str:
        """The newest version of an add-on for the cluster's, asked of EKS in every run."""
        if wire.is_unknown(kubernetes_version):
            return wire.UNKNOWN
        asked = {"addonName": addon, "kubernetesVersion": kubernetes_version, "mostRecent": True}
        found = self._monitor.invoke("aws:eks/getAddonVersion:getAddonVersion", asked, provider=self._aws)
        return str(found["version"])

    def _fargate_profile(self, cluster: Registered) -> Registered | None:
        fargate = self._inputs.get("fargate")
        if not fargate:
            return None
        options = fargate if isinstance(fargate, Mapping) else {}
        dependencies = [*self._given, cluster.urn]
        arn = options.get("podExecutionRoleArn")
        if arn is None:
            role = self._resource(
                "aws:iam/role:Role",
                f"{self._name}-podExecutionRole",
                {"assumeRolePolicy": _trust("eks-fargate-pods.amazonaws.com")} | self._tags(),
                [],
            )
            self._attach(f"{self._name}-podExecutionRole-{_POD_POLICY}", role, _POD_POLICY)
            arn, dependencies = role["arn"], [*dependencies, role.urn, self._attachment]
        inputs = {
            "clusterName": cluster["name"],
            "podExecutionRoleArn": arn,
            "selectors": options.get("selectors", [{"namespace": "default"}, {"namespace": "kube-system"}]),
            "subnetIds": options.get("subnetIds", self._inputs.get("privateSubnetIds", [])),
        }
        return self._resource(
            "aws:eks/fargateProfile:FargateProfile",
            f"{self._name}-fargateProfile",
            inputs | self._tags(),
            dependencies,
        )

    def _outputs(
        self,
        cluster: Registered,
        role: Registered,
        provider: Registered,
        oidc: Registered | None,
        profile: Registered | None,
        config: str,
    ) -> Outputs:
        given = self._inputs
        network = cluster["vpcConfig"]
        group = (
            wire.UNKNOWN if wire.is_unknown(network) else network.get("clusterSecurityGroupId", wire.UNKNOWN)
        )
        issuer = _issuer(cluster)
        known = config != wire.UNKNOWN
        core = {
            "cluster": cluster.reference,
            "clusterIamRole": role.reference,
            "provider": provider.reference,
            "endpoint": cluster["endpoint"],
            "vpcId": given.get("vpcId"),
            "subnetIds": given.get("subnetIds", []),
            "publicSubnetIds": given.get("publicSubnetIds"),
            "privateSubnetIds": given.get("privateSubnetIds"),
            "instanceRoles": [],
            "storageClasses": {},
            "accessEntries": [],
            "nodeGroupOptions": {"version": given.get("version")},
            "kubeconfig": wire.secret(json.loads(config) if known else wire.UNKNOWN),
            "oidcProvider": oidc.reference if oidc else None,
            "fargateProfile": profile.reference if profile else None,
            "tags": given.get("tags"),
        }
        return {
            "kubeconfig": wire.secret(json.loads(config) if known else wire.UNKNOWN),
            "kubeconfigJson": wire.secret(config),
            "eksCluster": cluster.reference,
            "clusterSecurityGroupId": group,
            "nodeSecurityGroupId": "",
            "clusterIngressRuleId": "",
            "oidcProviderArn": oidc["arn"] if oidc else "",
            "oidcProviderUrl": issuer if oidc else "",
            "oidcIssuer": issuer if wire.is_unknown(issuer) else issuer.removeprefix("https://"),
            "fargateProfileId": profile.identity if profile else "",
            "fargateProfileStatus": profile["status"] if profile else "",
            "instanceRoles": [],
            "defaultNodeGroupAsgName": "",
            "autoModeNodeRoleName": "",
            "core": wire.without_none(core),
        }

    @property
    def _mode(self) -> str:
        return str(self._inputs.get("authenticationMode", _DEFAULT_MODE))

    def _tags(self) -> dict[str, Any]:
        tags = self._inputs.get("tags")
        return {"tags": tags} if tags else {}

    def _attach(self, name: str, role: Registered, policy: str, *, parent: str | None = None) -> None:
        attachment = self._resource(
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            name,
            {"role": role["name"], "policyArn": f"arn:aws:iam::aws:policy/{policy}"},
            [role.urn],
            parent=parent,
        )
        self._attachment = attachment.urn

    def _resource(
        self,
        token: str,
        name: str,
        inputs: Inputs,
        dependencies: list[str],
        *,
        parent: str | None = None,
    ) -> Registered:
        """A child; those of AWS are made by the provider that the component was given."""
        return self._monitor.resource(
            token,
            name,
            inputs,
            parent=parent or self.component.urn,
            provider=self._aws if token.startswith("aws:") else "",
            dependencies=dependencies,
        )


def refuse(inputs: Inputs) -> None:
    """Refuse what would need children that are not made here.

    Raises:
        ResourceFailed: Names every such input.
    """
    unsupported = sorted(set(inputs) - _INPUTS)
    missing = [
        key for key in ("skipDefaultNodeGroup", "skipDefaultSecurityGroups") if inputs.get(key) is not True
    ]
    if not unsupported and not missing:
        return
    faults = [f"input {key} of {TOKEN} is not carried out locally" for key in unsupported]
    faults += [f"{TOKEN} needs {key}=True locally" for key in missing]
    raise ResourceFailed("; ".join(faults))


def _trust(service: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _issuer(cluster: Registered) -> str:
    identities = cluster["identities"]
    return wire.UNKNOWN if wire.is_unknown(identities) else str(identities[0]["oidcs"][0]["issuer"])
