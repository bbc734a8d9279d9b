"""What EKS's mutating webhooks add to a pod, as JSON patches.

Pure. Two rules: a pod that a Fargate profile claims gets Fargate's scheduler and the profile's label; a pod
whose service account is annotated with a role gets the projected token and the variables that AWS's SDKs look
for (IRSA).
"""

from collections.abc import Mapping
from typing import Any

from infra.local.kubelets.fargate_profiles import (
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

Patch = dict[str, Any]


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


def identity_patches(pod: Mapping[str, Any], annotations: Mapping[str, str], region: str) -> list[Patch]:
    """Return what lets a pod assume its service account's role.

    Args:
        pod: the pod at admission.
        annotations: its service account's.
        region: written to the variables that name it.
    """
    role = annotations.get(ROLE_ANNOTATION)
    spec = pod["spec"]
    if not role or any(volume["name"] == TOKEN_VOLUME for volume in spec.get("volumes") or []):
        return []
    pod_annotations = (pod.get("metadata") or {}).get("annotations") or {}
    skipped = {name.strip() for name in pod_annotations.get(SKIP_ANNOTATION, "").split(",")}
    variables = {
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_ROLE_ARN": role,
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{TOKEN_DIRECTORY}/token",
    }
    if annotations.get(REGIONAL_ANNOTATION, "true") == "true":
        variables = {"AWS_STS_REGIONAL_ENDPOINTS": "regional", **variables}
    expiration = (
        pod_annotations.get(EXPIRATION_ANNOTATION) or annotations.get(EXPIRATION_ANNOTATION) or "86400"
    )
    token = {
        "audience": annotations.get(AUDIENCE_ANNOTATION, "sts.amazonaws.com"),
        "expirationSeconds": int(expiration),
        "path": "token",
    }
    volume = {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}
    patches = [{"op": "add", "path": "/spec/volumes", "value": [volume, *(spec.get("volumes") or [])]}]
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            if container["name"] not in skipped:
                patches += _container_patches(f"/spec/{group}/{index}", container, variables)
    return patches


def _container_patches(path: str, container: Mapping[str, Any], variables: Mapping[str, str]) -> list[Patch]:
    given = container.get("env") or []
    names = {variable["name"] for variable in given}
    added = [{"name": name, "value": value} for name, value in variables.items() if name not in names]
    mount = {"name": TOKEN_VOLUME, "readOnly": True, "mountPath": TOKEN_DIRECTORY}
    return [
        {"op": "add", "path": f"{path}/env", "value": [*given, *added]},
        {
            "op": "add",
            "path": f"{path}/volumeMounts",
            "value": [*(container.get("volumeMounts") or []), mount],
        },
    ]
