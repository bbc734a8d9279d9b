"""User data of Amazon Linux 2023: a MIME archive whose last part is the NodeConfig that `nodeadm` reads.

The NodeConfig is written as JSON, which is YAML too and has one spelling only. nodeadm
merges all NodeConfig parts in order: ours is the last and wins.
"""

import json
from typing import Any

from nodeless.launch import mime
from nodeless.launch.kubelet_arguments import Bootstrap, go_duration, pairs


def user_data(bootstrap: Bootstrap) -> str:
    """The whole archive.

    Raises:
        nodeless.launch.mime.MimeError: The custom text begins as an archive but is none.
    """
    parts = _custom_parts(bootstrap.custom)
    parts.append((mime.NODE_CONFIG, json.dumps(node_config(bootstrap), indent=2)))
    return mime.archive(parts)


def _custom_parts(custom: str) -> list[tuple[str, str]]:
    if not custom.strip():
        return []
    if mime.is_archive(custom):
        return mime.parts_of(custom)
    is_config = "node.eks.aws/" in custom and not custom.lstrip().startswith("#!")
    return [(mime.NODE_CONFIG if is_config else mime.SHELL, custom)]


def node_config(bootstrap: Bootstrap) -> dict[str, Any]:
    """The NodeConfig (`node.eks.aws/v1alpha1`)."""
    cluster = bootstrap.cluster
    labels = pairs(bootstrap.labels.items(), "=")
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster.name,
                "apiServerEndpoint": cluster.endpoint,
                "certificateAuthority": cluster.certificate_authority,
                "cidr": cluster.service_cidr,
            },
            "kubelet": {
                "config": kubelet_configuration(bootstrap),
                "flags": [f'--node-labels="{labels}"'],
            },
        },
    }


def kubelet_configuration(bootstrap: Bootstrap) -> dict[str, Any]:
    """The members of a KubeletConfiguration that the pool gives, and the taints."""
    kubelet = bootstrap.kubelet
    grace = {key: go_duration(text) for key, text in kubelet.eviction_soft_grace_period}
    configuration: dict[str, Any] = {
        "clusterDNS": [bootstrap.cluster_dns] if bootstrap.cluster_dns else None,
        "maxPods": bootstrap.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "systemReserved": dict(sorted(kubelet.system_reserved)) or None,
        "kubeReserved": dict(sorted(kubelet.kube_reserved)) or None,
        "evictionHard": dict(sorted(kubelet.eviction_hard)) or None,
        "evictionSoft": dict(sorted(kubelet.eviction_soft)) or None,
        "evictionSoftGracePeriod": dict(sorted(grace.items())) or None,
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "imageGCHighThresholdPercent": kubelet.image_gc_high_threshold_percent,
        "imageGCLowThresholdPercent": kubelet.image_gc_low_threshold_percent,
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
        "registerWithTaints": [
            {"key": taint.key, "effect": str(taint.effect), **({"value": taint.value} if taint.value else {})}
            for taint in bootstrap.taints
        ],
    }
    return {key: value for key, value in configuration.items() if value is not None}
