"""User data of Bottlerocket: the node class's TOML with our settings under `settings.kubernetes`.

Tables other than that one are the user's alone. In it ours win, and of the user's those are kept that
Bottlerocket knows and the controller does not set; labels are united, taints are ours alone.
"""

import tomllib
from typing import Any

from nodeless.launch.kubelet_arguments import Bootstrap, go_duration
from nodeless.launch.toml_writer import to_toml

#: Settings of `settings.kubernetes` that stay the user's where the controller sets none (Karpenter v1.14).
USER_SETTINGS = frozenset(
    {
        "allowed-unsafe-sysctls",
        "cloud-provider",
        "cluster-dns-ip",
        "cluster-domain",
        "container-log-max-files",
        "container-log-max-size",
        "container-log-max-workers",
        "container-log-monitor-interval",
        "cpu-cfs-quota-enforced",
        "cpu-manager-policy",
        "cpu-manager-policy-options",
        "cpu-manager-reconcile-period",
        "credential-providers",
        "device-ownership-from-security-context",
        "event-burst",
        "event-qps",
        "eviction-hard",
        "eviction-max-pod-grace-period",
        "eviction-soft",
        "eviction-soft-grace-period",
        "hostname-override-source",
        "ids-per-pod",
        "image-gc-high-threshold-percent",
        "image-gc-low-threshold-percent",
        "kube-api-burst",
        "kube-api-qps",
        "kube-reserved",
        "log-level",
        "max-pods",
        "memory-manager-policy",
        "pod-pids-limit",
        "registry-burst",
        "registry-qps",
        "seccomp-default",
        "server-tls-bootstrap",
        "shutdown-grace-period",
        "shutdown-grace-period-for-critical-pods",
        "single-process-oom-kill",
        "static-pods",
        "system-reserved",
        "topology-manager-policy",
        "topology-manager-policy-options",
        "topology-manager-scope",
    }
)


#: From here on the images know themselves which folders belong on the disks inside the host.
_KNOWS_FOLDERS = (1, 46, 0)
_FOLDERS = ("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
_MOUNT = "000-mount-instance-storage"


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
    given = settings["kubernetes"]
    own = {key: value for key, value in given.items() if key in USER_SETTINGS}
    labels = given.get("node-labels", {})
    if not isinstance(labels, dict):
        raise TomlError(
            "user data: settings.kubernetes.node-labels must be a table; hint: write label to value"
        )
    settings["kubernetes"] = own | _kubernetes(bootstrap, labels)
    if bootstrap.instance_store_raid:
        commands = settings.setdefault("bootstrap-commands", {})
        if not isinstance(commands, dict):
            raise TomlError(
                "user data: settings.bootstrap-commands must be a table; hint: write commands by name"
            )
        commands[_MOUNT] = _mount_instance_store(bootstrap.release)
    return to_toml(document)


def _mount_instance_store(release: str) -> dict[str, Any]:
    """The bootstrap command that makes one volume of the disks in the host; older images get folders."""
    version = ["--dirs", *_FOLDERS]
    if _version(release) >= _KNOWS_FOLDERS:
        version = []
    return {
        "commands": [
            ["apiclient", "ephemeral-storage", "init"],
            ["apiclient", "ephemeral-storage", "bind", *version],
        ],
        "essential": True,
        "mode": "always",
    }


def _version(release: str) -> tuple[int, ...]:
    parts = release.removeprefix("v").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def _read(custom: str) -> dict[str, Any]:
    try:
        return tomllib.loads(custom)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(f"user data is not TOML: {error}; hint: Bottlerocket reads TOML only") from error


def _kubernetes(bootstrap: Bootstrap, labels: dict[str, Any]) -> dict[str, Any]:
    cluster, kubelet = bootstrap.cluster, bootstrap.kubelet
    taints: dict[str, list[str]] = {}
    for taint in bootstrap.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    settings: dict[str, Any] = {
        "cluster-name": cluster.name,
        "api-server": cluster.endpoint,
        "cluster-certificate": cluster.certificate_authority or None,
        "node-labels": {**labels, **bootstrap.labels} or None,
        "node-taints": taints or None,
        "max-pods": bootstrap.max_pods,
        "cluster-dns-ip": bootstrap.cluster_dns or None,
        "system-reserved": dict(kubelet.system_reserved) or None,
        "kube-reserved": dict(kubelet.kube_reserved) or None,
        "eviction-hard": dict(kubelet.eviction_hard) or None,
        "eviction-soft": dict(kubelet.eviction_soft) or None,
        "eviction-soft-grace-period": {
            signal: go_duration(text) for signal, text in kubelet.eviction_soft_grace_period
        }
        or None,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
        "image-gc-high-threshold-percent": _text(kubelet.image_gc_high_threshold_percent),
        "image-gc-low-threshold-percent": _text(kubelet.image_gc_low_threshold_percent),
    }
    return {key: value for key, value in settings.items() if value is not None}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
