"""User data of Bottlerocket: the node class's TOML with our settings under `settings.kubernetes`.

Tables other than that one are the user's alone. In it ours win, and of the user's only
those are kept that Bottlerocket knows and the controller does not set.
"""

import tomllib
from typing import Any

from nodeless.launch.kubelet_arguments import Bootstrap
from nodeless.launch.toml_writer import to_toml

#: Settings of `settings.kubernetes` that stay the user's.
USER_SETTINGS = frozenset(
    {
        "static-pods",
        "allowed-unsafe-sysctls",
        "server-tls-bootstrap",
        "registry-qps",
        "registry-burst",
        "event-qps",
        "event-burst",
        "kube-api-qps",
        "kube-api-burst",
        "container-log-max-size",
        "container-log-max-files",
        "cpu-manager-policy",
        "cpu-manager-reconcile-period",
        "topology-manager-scope",
        "topology-manager-policy",
    }
)


class TomlError(ValueError):
    """A node class's user data that is not TOML, or whose `settings` is no table."""


def user_data(bootstrap: Bootstrap) -> str:
    """The whole document.

    Raises:
        TomlError: The custom text cannot be read.
    """
    document = _read(bootstrap.custom)
    settings = document.setdefault("settings", {})
    if not isinstance(settings, dict) or not isinstance(settings.setdefault("kubernetes", {}), dict):
        raise TomlError(
            "user data: settings and settings.kubernetes must be tables; hint: write [settings.kubernetes]"
        )
    own = {key: value for key, value in settings["kubernetes"].items() if key in USER_SETTINGS}
    settings["kubernetes"] = own | _kubernetes(bootstrap)
    return to_toml(document)


def _read(custom: str) -> dict[str, Any]:
    try:
        return tomllib.loads(custom)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(f"user data is not TOML: {error}; hint: Bottlerocket reads TOML only") from error


def _kubernetes(bootstrap: Bootstrap) -> dict[str, Any]:
    cluster, kubelet = bootstrap.cluster, bootstrap.kubelet
    taints: dict[str, list[str]] = {}
    for taint in bootstrap.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    settings: dict[str, Any] = {
        "cluster-name": cluster.name,
        "api-server": cluster.endpoint,
        "cluster-certificate": cluster.certificate_authority or None,
        "node-labels": dict(bootstrap.labels) or None,
        "node-taints": taints or None,
        "max-pods": bootstrap.max_pods,
        "cluster-dns-ip": bootstrap.cluster_dns or None,
        "system-reserved": dict(kubelet.system_reserved) or None,
        "kube-reserved": dict(kubelet.kube_reserved) or None,
        "eviction-hard": dict(kubelet.eviction_hard) or None,
        "image-gc-high-threshold-percent": _text(kubelet.image_gc_high_threshold_percent),
        "image-gc-low-threshold-percent": _text(kubelet.image_gc_low_threshold_percent),
    }
    return {key: value for key, value in settings.items() if value is not None}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
