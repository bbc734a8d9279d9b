"""Whether a node may join: its role must have an access entry or a line in aws-auth, as on EKS.

Asked only where the local AWS has an EKS cluster for this API server; a bare control plane has nobody to ask.
"""

import time

import yaml

from localenv.kubelets.cloud import Cloud
from localenv.kubelets.cluster import Cluster
from localenv.kubelets.nodes import Instance
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring

_REMEMBERED_SECONDS = 2.0
_NODE_ENTRIES = ("EC2_LINUX", "EC2_WINDOWS", "EC2")


def without_path(role_arn: str) -> str:
    """Return a role's ARN as aws-auth names it: without the path."""
    prefix, _, rest = role_arn.partition(":role/")
    return f"{prefix}:role/{rest.rpartition('/')[2]}"


def mapped_roles(config_map: str) -> list[str]:
    """Return the roles that `mapRoles` lets join as nodes.

    Raises:
        ValueError: if the text is no list of mappings.
    """
    try:
        entries = yaml.safe_load(config_map) or []
    except yaml.YAMLError as error:
        raise ValueError(f"mapRoles in aws-auth is not valid YAML: {error}") from None
    if not isinstance(entries, list):
        raise ValueError(  # noqa: TRY004 - content of a document, not an argument
            "mapRoles in aws-auth is not a list; hint: each entry has rolearn, username, groups"
        )
    return [entry["rolearn"] for entry in entries if "system:nodes" in (entry.get("groups") or [])]


class Authorization:
    """Asks EKS and aws-auth; what was allowed a moment ago is not asked again, as many nodes come at once."""

    def __init__(self, api: AsyncKubernetesApi, cloud: Cloud, cluster: Cluster) -> None:
        self._api = api
        self._cloud = cloud
        self._cluster = cluster
        self._allowed: dict[str, float] = {}

    async def refusal(self, instance: Instance) -> str | None:
        """Return why the API server would turn this instance's kubelet away; None if it may join.

        Raises:
            ValueError: if aws-auth cannot be read.
        """
        if self._cluster.record is None:
            return None
        profile = instance.instance_profile
        if not profile:
            return "it has no instance profile; hint: name one in the launch template"
        if self._allowed.get(profile, 0.0) > time.monotonic():
            return None
        role = await self._cloud.role_of(profile)
        if not role:
            return f"instance profile {profile} has no role"
        reason = await self._role_refusal(role)
        if reason is None:
            self._allowed[profile] = time.monotonic() + _REMEMBERED_SECONDS
        return reason

    async def _role_refusal(self, role: str) -> str | None:
        record = self._cluster.record or {}
        mode = (record.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP")
        if mode != "CONFIG_MAP":
            entry = await self._cloud.access_entry_type(self._cluster.name, role)
            if entry in _NODE_ENTRIES:
                return None
        if mode == "API":
            return f"role {role} has no access entry for nodes; hint: create one of type EC2_LINUX"
        if without_path(role) in await self._aws_auth_roles():
            return None
        return (
            f"role {role} has no access entry and no line in aws-auth; hint: create an EC2_LINUX access entry"
        )

    async def _aws_auth_roles(self) -> list[str]:
        config = await ignoring(self._api.get("/api/v1/namespaces/kube-system/configmaps/aws-auth"), 404)
        return mapped_roles(((config or {}).get("data") or {}).get("mapRoles", ""))
