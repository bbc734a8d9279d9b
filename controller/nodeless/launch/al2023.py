"""User data of Amazon Linux 2023: a MIME archive whose last part is the NodeConfig that `nodeadm` reads.

The NodeConfig is written as JSON, which is YAML too and has one spelling only. nodeadm
merges all NodeConfig parts in order: ours is the last and wins. A node class's text that is a YAML
mapping is a NodeConfig of its own, a MIME archive is taken part by part, anything else is a shell script.
"""

import json
import re
from typing import Any

import yaml

from nodeless.api.yaml_bounds import check_yaml
from nodeless.launch import mime
from nodeless.launch.kubelet_arguments import Bootstrap, go_duration, pairs, quoted_flag

_NODE_CONFIG_API = "node.eks.aws/"
_LOOKS_LIKE_NODE_CONFIG = re.compile(r"^[^\S\n]*apiVersion:\s*[\"']?node\.eks\.aws/", re.MULTILINE)
_NOT_BARE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_HINT = "hint: give a NodeConfig of node.eks.aws/v1alpha1, or a script that begins with #!"


class YamlError(ValueError):
    """A node class's user data that is meant as a NodeConfig and is none."""


def user_data(bootstrap: Bootstrap) -> str:
    """The whole archive.

    Raises:
        nodeless.launch.mime.MimeError: The custom text begins as an archive but is none.
        YamlError: A NodeConfig of the custom text is no YAML, or another kind.
        nodeless.launch.kubelet_arguments.ArgumentError: A label cannot be told to the kubelet.
    """
    parts = _custom_parts(bootstrap.custom)
    parts.append(mime.Part(mime.NODE_CONFIG, _json_and_yaml(node_config(bootstrap))))
    return mime.archive(parts)


def _json_and_yaml(document: dict[str, Any]) -> str:
    """Read alike as JSON and as YAML, which knows no pairs of surrogates and wants some signs escaped."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _NOT_BARE.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def _custom_parts(custom: str) -> list[mime.Part]:
    if not custom.strip():
        return []
    if mime.is_archive(custom):
        parts = mime.parts_of(custom)
        for part in parts:
            if part.content_type.startswith(mime.NODE_CONFIG):
                _check_node_config(part.text)
        return parts
    if _is_mapping(custom):
        _check_node_config(custom)
        return [mime.Part(mime.NODE_CONFIG, custom)]
    return [mime.Part(mime.SHELL, custom)]


def _is_mapping(text: str) -> bool:
    """Whether a text is meant as YAML; a script may happen to read as a YAML text, never as a mapping."""
    if text.lstrip().startswith("#!"):
        return False
    try:
        check_yaml(text)
        return any(isinstance(document, dict) for document in yaml.safe_load_all(text))
    except yaml.YAMLError:
        return _LOOKS_LIKE_NODE_CONFIG.search(text) is not None


def _check_node_config(text: str) -> None:
    try:
        check_yaml(text)
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise YamlError(f"user data is not YAML: {' '.join(str(error).split())}; {_HINT}") from error
    for document in documents:
        if not isinstance(document, dict):
            raise YamlError(f"user data: a NodeConfig must be a mapping; {_HINT}")
        version, kind = document.get("apiVersion"), document.get("kind")
        if not str(version).startswith(_NODE_CONFIG_API) or kind != "NodeConfig":
            raise YamlError(f"user data is YAML of apiVersion {version}, kind {kind}; {_HINT}")


def node_config(bootstrap: Bootstrap) -> dict[str, Any]:
    """The NodeConfig (`node.eks.aws/v1alpha1`)."""
    cluster = bootstrap.cluster
    labels = pairs(bootstrap.labels.items(), "=")
    storage = {"instance": {"localStorage": {"strategy": "RAID0"}}} if bootstrap.instance_store_raid else {}
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
                "flags": [quoted_flag("node-labels", labels)],
            },
            **storage,
        },
    }


def kubelet_configuration(bootstrap: Bootstrap) -> dict[str, Any]:
    """The members of a KubeletConfiguration that the pool gives, and the taints."""
    kubelet = bootstrap.kubelet
    grace = {key: go_duration(text) for key, text in kubelet.eviction_soft_grace_period}
    configuration: dict[str, Any] = {
        "clusterDNS": list(kubelet.cluster_dns)
        or ([bootstrap.cluster.dns] if bootstrap.cluster.dns else None),
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
