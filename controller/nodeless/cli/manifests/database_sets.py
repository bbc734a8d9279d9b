"""The pods of databases and brokers that have an operator: PostgreSQL, Elasticsearch, RabbitMQ.

PostgreSQL's are those of CloudNativePG and of Zalando.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodeless.cli.manifests.members import (
    group_of,
    list_at,
    mapping_at,
    member_below,
    metadata_of,
    name_of,
    number_at,
)
from nodeless.cli.manifests.operated_pods import members_of, object_below
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode

_SPEC = "spec"
_POSTGRES = ("postgresql.cnpg.io", "Cluster")
_ELASTICSEARCH = ("elasticsearch.k8s.elastic.co", "Elasticsearch")
_ZALANDO = ("acid.zalan.do", "postgresql")
_RABBITMQ = ("rabbitmq.com", "RabbitmqCluster")
_HIBERNATION = "cnpg.io/hibernation"
_CLUSTER_LABEL = "cnpg.io/cluster"
#: What Zalando's and RabbitMQ's operators give what does not say it.
_ZALANDO_REQUESTS = {"cpu": "100m", "memory": "100Mi"}
_RABBITMQ_RESOURCES = {
    "requests": {"cpu": "1", "memory": "2Gi"},
    "limits": {"cpu": "2", "memory": "2Gi"},
}
#: What Elastic's operator gives a node that does not say it.
_ELASTIC_MEMORY = {"memory": "2Gi"}
_CONTAINER = "elasticsearch"


def is_database(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is of one of these operators."""
    return (group_of(manifest), manifest.get("kind")) in _READERS


def database_sets(manifest: Mapping[str, Any], _mode: ReplicasMode) -> list[PodSet]:
    """The pods of such an object. Raises Unusable."""
    return _READERS[group_of(manifest), str(manifest["kind"])](manifest)


def _postgres(manifest: Mapping[str, Any]) -> list[PodSet]:
    """`instances` pods that keep off each other, each with a volume and, where asked for, one for its log."""
    spec, name = mapping_at(manifest, _SPEC), name_of(manifest)
    affinity = {} if spec.get("affinity") is None else mapping_at(manifest, "spec.affinity")
    resources = {} if spec.get("resources") is None else mapping_at(manifest, "spec.resources")
    annotations = metadata_of(manifest).get("annotations")
    sleeps = isinstance(annotations, Mapping) and annotations.get(_HIBERNATION) == "on"
    members = {name: affinity[name] for name in ("nodeSelector", "tolerations") if affinity.get(name)}
    pod = {
        **members,
        **_apart(affinity, name),
        **({"priorityClassName": spec["priorityClassName"]} if spec.get("priorityClassName") else {}),
        "containers": [{"name": "postgres", "resources": resources}],
    }
    claims = [
        {"metadata": {"name": called}, "spec": {"storageClassName": volume.get("storageClass")}}
        for called, volume in (("pgdata", spec.get("storage")), ("pg-wal", spec.get("walStorage")))
        if isinstance(volume, Mapping)
    ]
    template = {"metadata": {"labels": {_CLUSTER_LABEL: name}}, "spec": pod}
    number = 0 if sleeps else number_at(spec, "instances", _SPEC)
    remark = "it hibernates" if sleeps else ""
    renamed = (("spec.containers[0].resources", "spec.resources"),)
    return [PodSet("", template, number, name, tuple(claims), renamed=renamed, remark=remark)]


def _apart(affinity: Mapping[str, Any], name: str) -> dict[str, Any]:
    """How instances keep off each other: by preference, unless the object says otherwise."""
    if affinity.get("enablePodAntiAffinity") is False:
        return {}
    term = {
        "topologyKey": affinity.get("topologyKey") or "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {_CLUSTER_LABEL: name}},
    }
    if affinity.get("podAntiAffinityType") == "required":
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _elasticsearch(manifest: Mapping[str, Any]) -> list[PodSet]:
    """A StatefulSet of `count` pods for each of `nodeSets`."""
    made = []
    for index, nodes in enumerate(list_at(mapping_at(manifest, _SPEC), "nodeSets", _SPEC)):
        path = f"{_SPEC}.nodeSets[{index}]"
        given = {} if nodes.get("podTemplate") is None else member_below(nodes, path, "podTemplate")
        template = _with_container(given, f"{path}.podTemplate")
        name = f"{name_of(manifest)}-es-{nodes.get('name') or index}"
        claims = tuple(list_at(nodes, "volumeClaimTemplates", path)) or (
            {"metadata": {"name": "elasticsearch-data"}},
        )
        number = number_at(nodes, "count", path)
        owner = ("apps/v1", "StatefulSet", name)
        made.append(PodSet(f"{path}.podTemplate", template, number, name, claims, owner=owner))
    return made


def _with_container(template: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The pod template with the operator's container, which one of its name changes."""
    spec = {} if template.get(_SPEC) is None else member_below(template, path, _SPEC)
    given = list_at(spec, "containers", f"{path}.spec")
    if all(container.get("name") != _CONTAINER for container in given):
        given = [*given, {"name": _CONTAINER}]
    containers = [_with_memory(one) if one.get("name") == _CONTAINER else one for one in given]
    return {**template, _SPEC: {**spec, "containers": containers}}


def _with_memory(container: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = container.get("resources") or {}
    if not isinstance(resources, Mapping) or resources.get("limits") or resources.get("requests"):
        return container
    return {**container, "resources": {**resources, "limits": _ELASTIC_MEMORY, "requests": _ELASTIC_MEMORY}}


def _zalando(manifest: Mapping[str, Any]) -> list[PodSet]:
    """A StatefulSet of `numberOfInstances` pods, and poolers of connections where they are asked for."""
    spec, name = mapping_at(manifest, _SPEC), name_of(manifest)
    resources = object_below(spec, _SPEC, "resources")
    requests = {**_ZALANDO_REQUESTS, **(resources.get("requests") or {})}
    sidecars = [
        {"name": str(one.get("name")), "resources": object_below(one, f"{_SPEC}.sidecars", "resources")}
        for one in list_at(spec, "sidecars", _SPEC)
    ]
    members, renamed = members_of(spec, _SPEC, ("tolerations",))
    if spec.get("nodeAffinity") is not None:
        members["affinity"] = {"nodeAffinity": member_below(spec, _SPEC, "nodeAffinity")}
    if spec.get("podPriorityClassName"):
        members["priorityClassName"] = spec["podPriorityClassName"]
    volume = object_below(spec, _SPEC, "volume")
    pod = {
        **members,
        "containers": [{"name": "postgres", "resources": {**resources, "requests": requests}}, *sidecars],
    }
    return [
        PodSet(
            "",
            {"metadata": {"labels": {"cluster-name": name}}, "spec": pod},
            number_at(spec, "numberOfInstances", _SPEC),
            name,
            ({"metadata": {"name": "pgdata"}, "spec": {"storageClassName": volume.get("storageClass")}},),
            left_out="without poolers of connections" if spec.get("enableConnectionPooler") else "",
            owner=("apps/v1", "StatefulSet", name),
            renamed=(*renamed, ("spec.containers[0].resources", "spec.resources")),
        )
    ]


def _rabbitmq(manifest: Mapping[str, Any]) -> list[PodSet]:
    """A StatefulSet of `replicas` pods."""
    spec, name = mapping_at(manifest, _SPEC), name_of(manifest)
    members, renamed = members_of(spec, _SPEC, ("affinity", "tolerations"))
    resources = object_below(spec, _SPEC, "resources") or _RABBITMQ_RESOURCES
    disk = object_below(spec, _SPEC, "persistence")
    called = f"{name}-server"
    return [
        PodSet(
            "",
            {
                "metadata": {"labels": {"app.kubernetes.io/name": name}},
                "spec": {**members, "containers": [{"name": "rabbitmq", "resources": resources}]},
            },
            number_at(spec, "replicas", _SPEC),
            called,
            (
                {
                    "metadata": {"name": "persistence"},
                    "spec": {"storageClassName": disk.get("storageClassName")},
                },
            ),
            left_out="without what its override changes" if spec.get("override") else "",
            owner=("apps/v1", "StatefulSet", called),
            renamed=(*renamed, ("spec.containers[0].resources", "spec.resources")),
        )
    ]


_READERS: dict[tuple[str, str], Callable[[Mapping[str, Any]], list[PodSet]]] = {
    _POSTGRES: _postgres,
    _ELASTICSEARCH: _elasticsearch,
    _ZALANDO: _zalando,
    _RABBITMQ: _rabbitmq,
}
