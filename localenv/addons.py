"""What EKS's add-on manager installs into a cluster: the objects of its add-ons.

The local AWS keeps records of add-ons; this module carries out kube-proxy, vpc-cni, coredns and, of the
EBS CSI driver, the daemon that registers it on each node.
The containers are never run, but their requests take room on every node, as on EKS,
and a plan that forgets them is wrong. Requests are those of EKS's own manifests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from localenv.kubernetes import KubernetesApi

_NAMESPACE = "kube-system"
_REGISTRY = "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks"
#: Requests of the containers that EKS's manifests run on every node.
_DAEMONS = {
    "kube-proxy": ("kube-proxy", {"kube-proxy": {"cpu": "100m"}}),
    "aws-ebs-csi-driver": (
        "ebs-csi-node",
        {
            "ebs-plugin": {"cpu": "10m", "memory": "40Mi"},
            "node-driver-registrar": {"cpu": "10m", "memory": "40Mi"},
            "liveness-probe": {"cpu": "10m", "memory": "40Mi"},
        },
    ),
    "vpc-cni": ("aws-node", {"aws-node": {"cpu": "25m"}, "aws-eks-nodeagent": {"cpu": "25m"}}),
}
_COREDNS_REQUESTS = {"cpu": "100m", "memory": "70Mi"}
_ON_FARGATE = {"eks.amazonaws.com/compute-type": "fargate"}


def install(api: KubernetesApi, eks: Any, cluster: str) -> list[str]:
    """Apply the objects of every add-on that the cluster has and that is known here; give their names."""
    names = [
        name for name in eks.list_addons(clusterName=cluster)["addons"] if name in (*_DAEMONS, "coredns")
    ]
    for name in names:
        addon = eks.describe_addon(clusterName=cluster, addonName=name)["addon"]
        for manifest in _objects(name, json.loads(addon.get("configurationValues") or "{}")):
            api.apply(manifest, field_manager="eks")
    return names


def remove(api: KubernetesApi) -> None:
    """Delete what `install` made, as EKS does with the cluster."""
    for name in (*_DAEMONS, "coredns"):
        for manifest in _objects(name, {}):
            api.delete(api.path_of(manifest), propagation="Background", missing_ok=True)


def _objects(name: str, configuration: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if name == "coredns":
        return (_coredns(on_fargate=configuration.get("computeType", "").lower() == "fargate"),)
    return (_daemon_set(*_DAEMONS[name]),)


def _daemon_set(name: str, containers: dict[str, dict[str, str]]) -> dict[str, Any]:
    labels = {"k8s-app": name}
    not_fargate = {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": True,
                    "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [not_fargate]}]
                            }
                        }
                    },
                    "containers": [
                        {
                            "name": container,
                            "image": f"{_REGISTRY}/{container}",
                            "resources": {"requests": requests},
                        }
                        for container, requests in containers.items()
                    ],
                },
            },
        },
    }


def _coredns(*, on_fargate: bool) -> dict[str, Any]:
    labels = {"k8s-app": "kube-dns"}
    annotations = _ON_FARGATE if on_fargate else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "containers": [
                        {
                            "name": "coredns",
                            "image": f"{_REGISTRY}/coredns",
                            "resources": {"requests": _COREDNS_REQUESTS},
                        }
                    ],
                },
            },
        },
    }
