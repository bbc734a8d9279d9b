"""The kubeconfig that pulumi-eks makes: signs in by `aws eks get-token`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localenv.pulumi import wire


def of(
    name: str, endpoint: str, authority: Mapping[str, Any] | str, options: Mapping[str, str]
) -> dict[str, Any] | None:
    """The kubeconfig of a cluster, or None while its endpoint is not known.

    Args:
        name: The cluster's name.
        endpoint: URL of its API server.
        authority: The cluster's `certificateAuthority`, with `data` in base64.
        options: What to sign in with: `roleArn`, `profileName`.
    """
    if wire.is_unknown([name, endpoint, authority]) or isinstance(authority, str):
        return None
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "aws",
        "preferences": {},
        "clusters": [
            {
                "name": "kubernetes",
                "cluster": {"server": endpoint, "certificate-authority-data": authority["data"]},
            }
        ],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "users": [{"name": "aws", "user": {"exec": _sign_in(name, options)}}],
    }


def _sign_in(name: str, options: Mapping[str, str]) -> dict[str, Any]:
    chosen = [
        text
        for option, key in (("--role", "roleArn"), ("--profile", "profileName"))
        if options.get(key)
        for text in (option, options[key])
    ]
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", name, "--output", "json", *chosen],
        "env": [
            {
                "name": "KUBERNETES_EXEC_INFO",
                "value": '{"apiVersion": "client.authentication.k8s.io/v1beta1"}',
            }
        ],
    }
