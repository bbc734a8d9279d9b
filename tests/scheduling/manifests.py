"""Pods and nodes of the model as objects of the Kubernetes API."""

from collections.abc import Mapping
from typing import Any

from nodeless.model.pods import HostPort, LabelSelector, Pod, PodAffinityTerm, TopologySpreadConstraint
from nodeless.model.taints import Taint

Json = dict[str, Any]


def pod_manifest(pod: Pod, *, node: str = "", prefer: str = "", gated: bool = False) -> Json:
    """A pod, bound to a node if one is named; with `prefer` the scheduler favours a host's name.

    `gated`: the scheduler does not look at it until its scheduling gates are taken off.
    """
    shape = pod.shape
    requests = {name: str(amount) for name, amount in shape.requests if name != "pods"}
    requests["cpu"] = f"{pod.requests.get('cpu', 0)}m"
    node_affinity: Json = {}
    if shape.required_terms:
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [
                {"matchExpressions": [entry for one in term.expressions for entry in one.to_api()]}
                for term in shape.required_terms
            ]
        }
    if prefer:
        wish = {"key": "kubernetes.io/hostname", "operator": "In", "values": [prefer]}
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "preference": {"matchExpressions": [wish]}}
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.labels)},
        "spec": {
            **({"nodeName": node} if node else {}),
            **({"schedulingGates": [{"name": "example.com/wait"}]} if gated else {}),
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": requests},
                    "ports": [_port(one) for one in shape.host_ports],
                }
            ],
            "nodeSelector": dict(shape.node_selector),
            "tolerations": [
                {name: value for name, value in _toleration(one).items() if value}
                for one in shape.tolerations
            ],
            "topologySpreadConstraints": [_spread(one) for one in shape.spread],
            "affinity": {
                "nodeAffinity": node_affinity,
                "podAffinity": _terms(shape.affinity),
                "podAntiAffinity": _terms(shape.anti_affinity),
            },
        },
    }


def node_manifest(
    name: str, labels: Mapping[str, str], allocatable: Mapping[str, int], taints: tuple[Taint, ...]
) -> Json:
    amounts = {key: f"{value}m" if key == "cpu" else str(value) for key, value in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"taints": [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _port(one: HostPort) -> Json:
    where = {"hostIP": one.ip} if one.ip else {}
    return {"containerPort": one.port, "hostPort": one.port, "protocol": one.protocol, **where}


def _toleration(one: Any) -> Json:
    return {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}


def _spread(one: TopologySpreadConstraint) -> Json:
    optional = {
        "minDomains": one.min_domains,
        "labelSelector": None if one.selector is None else _selector(one.selector),
        "matchLabelKeys": list(one.match_label_keys) or None,
    }
    return {
        "topologyKey": one.topology_key,
        "maxSkew": one.max_skew,
        "whenUnsatisfiable": one.when_unsatisfiable,
        "nodeAffinityPolicy": one.node_affinity_policy,
        "nodeTaintsPolicy": one.node_taints_policy,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _terms(terms: tuple[PodAffinityTerm, ...]) -> Json:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": one.topology_key,
                **({} if one.selector is None else {"labelSelector": _selector(one.selector)}),
            }
            for one in terms
            if one.weight is None
        ]
    }


def _selector(selector: LabelSelector) -> Json:
    return {
        "matchLabels": dict(selector.match_labels),
        "matchExpressions": [
            {"key": key, "operator": operator, "values": list(values)}
            for key, operator, values in selector.match_expressions
        ],
    }
