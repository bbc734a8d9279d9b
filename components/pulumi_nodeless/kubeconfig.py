"""The kubeconfig of a cluster, as plain data: pure, no client, no file.

Credentials come from `aws eks get-token`, so the document holds no secret of its own; it still names a
private endpoint, and the components mark it as one. The exec section is of version v1beta1: with v1 some
clients insist on a field that others refuse.
"""

from typing import Any


def kubeconfig(
    *,
    cluster: str,
    endpoint: str,
    certificate_authority: str,
    region: str,
    role_arn: str = "",
    profile: str = "",
) -> dict[str, Any]:
    """The kubeconfig of one EKS cluster.

    Args:
        cluster: the cluster's name, used for the context too.
        endpoint: URL of the API server.
        certificate_authority: the CA bundle, PEM in base64, as EKS gives it.
        region: the cluster's region.
        role_arn: the IAM role to sign in with; empty: whatever the credentials are of.
        profile: the AWS CLI profile to take credentials from; empty: those of the environment.
    """
    chosen = [*(("--role-arn", role_arn) if role_arn else ()), *(("--profile", profile) if profile else ())]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority},
            }
        ],
        "users": [
            {
                "name": cluster,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": "aws",
                        "args": [
                            "--region",
                            region,
                            "eks",
                            "get-token",
                            "--cluster-name",
                            cluster,
                            "--output",
                            "json",
                            *chosen,
                        ],
                    }
                },
            }
        ],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }


def region_of(arn: str) -> str:
    """The region an ARN names.

    Raises:
        ValueError: it is not an ARN with a region.
    """
    parts = arn.split(":")
    if len(parts) < 6 or parts[0] != "arn" or not parts[3]:
        message = f"{arn!r} is not an ARN with a region"
        raise ValueError(message)
    return parts[3]
