"""What EKS's mutating webhooks add to a pod, as JSON patches.

Pure. Three rules: a pod that a Fargate profile claims gets Fargate's scheduler and the profile's label; a pod
whose service account is annotated with a role gets the projected token and the variables that AWS's SDKs look
for (IRSA); one whose service account has an association gets those that lead to the agent of its node (Pod
Identity, https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localenv.kubelets.fargate_profiles import (
    COMPUTE_TYPE,
    PROFILE_KEY,
    SCHEDULER,
    FargateProfile,
    claiming_profile,
)

ROLE_ANNOTATION = "eks.amazonaws.com/role-arn"
AUDIENCE_ANNOTATION = "eks.amazonaws.com/audience"
EXPIRATION_ANNOTATION = "eks.amazonaws.com/token-expiration"
REGIONAL_ANNOTATION = "eks.amazonaws.com/sts-regional-endpoints"
SKIP_ANNOTATION = "eks.amazonaws.com/skip-containers"
TOKEN_VOLUME = "aws-iam-token"
TOKEN_DIRECTORY = "/var/run/secrets/eks.amazonaws.com/serviceaccount"

AGENT_VOLUME = "eks-pod-identity-token"
AGENT_DIRECTORY = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"
AGENT_AUDIENCE = "pods.eks.amazonaws.com"

Patch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Token:
    """A projected token, where it is mounted, and the variables that lead to it."""

    volume: str
    directory: str
    claims: Mapping[str, Any]
    variables: Mapping[str, str]

    def as_volume(self) -> dict[str, Any]:
        return {"name": self.volume, "projected": {"sources": [{"serviceAccountToken": dict(self.claims)}]}}

    def as_mount(self) -> dict[str, Any]:
        return {"name": self.volume, "readOnly": True, "mountPath": self.directory}


def fargate_patches(
    pod: Mapping[str, Any], namespace: str, profiles: Mapping[str, FargateProfile]
) -> list[Patch]:
    """Return what makes a pod one of Fargate's, nothing if no profile claims it."""
    metadata, spec = pod.get("metadata") or {}, pod["spec"]
    if spec.get("nodeName") or spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        return []
    if any(owner.get("kind") == "DaemonSet" for owner in metadata.get("ownerReferences") or []):
        return []
    labels = metadata.get("labels") or {}
    profile = claiming_profile(profiles.values(), namespace, labels, metadata.get("annotations") or {})
    if profile is None:
        return []
    toleration = {"key": COMPUTE_TYPE, "operator": "Equal", "value": "fargate", "effect": "NoSchedule"}
    return [
        {"op": "add", "path": "/spec/schedulerName", "value": SCHEDULER},
        {"op": "add", "path": "/metadata/labels", "value": {**labels, PROFILE_KEY: profile.name}},
        {"op": "add", "path": "/spec/tolerations", "value": [*(spec.get("tolerations") or []), toleration]},
    ]


def identity_patches(
    pod: Mapping[str, Any], annotations: Mapping[str, str], region: str, agent: str = ""
) -> list[Patch]:
    """Return what lets a pod assume its service account's role.

    Args:
        pod: the pod at admission.
        annotations: its service account's.
        region: written to the variables that name it.
        agent: URL of the Pod Identity agent, for a service account with an association; else "".
    """
    spec = pod["spec"]
    pod_annotations = (pod.get("metadata") or {}).get("annotations") or {}
    given = spec.get("volumes") or []
    there = {volume["name"] for volume in given}
    wanted = [_by_role(annotations, pod_annotations), _by_agent(agent)]
    tokens = [token for token in wanted if token is not None and token.volume not in there]
    if not tokens:
        return []
    regions = {"AWS_DEFAULT_REGION": region, "AWS_REGION": region}
    if annotations.get(REGIONAL_ANNOTATION, "true") == "true":
        regions = {"AWS_STS_REGIONAL_ENDPOINTS": "regional", **regions}
    skipped = {name.strip() for name in pod_annotations.get(SKIP_ANNOTATION, "").split(",")}
    volumes = [*(token.as_volume() for token in tokens), *given]
    patches = [{"op": "add", "path": "/spec/volumes", "value": volumes}]
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            if container["name"] not in skipped:
                patches += _container_patches(f"/spec/{group}/{index}", container, regions, tokens)
    return patches


def _by_role(annotations: Mapping[str, str], pod_annotations: Mapping[str, str]) -> _Token | None:
    role = annotations.get(ROLE_ANNOTATION)
    if not role:
        return None
    expiration = (
        pod_annotations.get(EXPIRATION_ANNOTATION) or annotations.get(EXPIRATION_ANNOTATION) or "86400"
    )
    return _Token(
        TOKEN_VOLUME,
        TOKEN_DIRECTORY,
        {
            "audience": annotations.get(AUDIENCE_ANNOTATION, "sts.amazonaws.com"),
            "expirationSeconds": int(expiration),
            "path": "token",
        },
        {"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": f"{TOKEN_DIRECTORY}/token"},
    )


def _by_agent(agent: str) -> _Token | None:
    if not agent:
        return None
    return _Token(
        AGENT_VOLUME,
        AGENT_DIRECTORY,
        {"audience": AGENT_AUDIENCE, "expirationSeconds": 86400, "path": AGENT_VOLUME},
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": agent,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{AGENT_DIRECTORY}/{AGENT_VOLUME}",
        },
    )


def _container_patches(
    path: str, container: Mapping[str, Any], regions: Mapping[str, str], tokens: list[_Token]
) -> list[Patch]:
    given = container.get("env") or []
    names = {variable["name"] for variable in given}
    variables = dict(regions)
    for token in tokens:
        variables |= token.variables
    added = [{"name": name, "value": value} for name, value in variables.items() if name not in names]
    mounts = [*(container.get("volumeMounts") or []), *(token.as_mount() for token in tokens)]
    return [
        {"op": "add", "path": f"{path}/env", "value": [*given, *added]},
        {"op": "add", "path": f"{path}/volumeMounts", "value": mounts},
    ]
