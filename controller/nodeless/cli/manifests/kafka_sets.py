"""The pods of Strimzi's objects: Kafka and its node pools, Connect, MirrorMaker 2 and the bridge.

Names, labels and what a node pool has from its Kafka are those of strimzi/strimzi-kafka-operator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeless.cli.manifests.documents import Document
from nodeless.cli.manifests.members import (
    is_kind,
    key_of,
    list_at,
    mapping_at,
    member_below,
    metadata_of,
    name_of,
    namespace_of,
    number_at,
)
from nodeless.cli.manifests.operated_pods import members_of, object_below, with_labels
from nodeless.cli.manifests.pod_templates import PodSet, ReplicasMode

_GROUP = "kafka.strimzi.io"
_KAFKA, _POOL = "Kafka", "KafkaNodePool"
#: What stands behind the name of the others' pods, what owns these, and how many there are unless given.
_CLIENTS = {
    "KafkaConnect": ("connect", "StrimziPodSet", 3),
    "KafkaMirrorMaker2": ("mirrormaker2", "StrimziPodSet", 3),
    "KafkaBridge": ("bridge", "Deployment", 1),
}
_CLUSTER, _NAME = "strimzi.io/cluster", "strimzi.io/name"
_POOLS, _KRAFT = "strimzi.io/node-pools", "strimzi.io/kraft"
_VERSIONS = {"StrimziPodSet": "core.strimzi.io/v1beta2", "Deployment": "apps/v1"}
#: Of Kafka, one pod each.
_HELPERS = (("cruiseControl", "cruise-control"), ("kafkaExporter", "kafka-exporter"))
_CLAIMED = "persistent-claim"


def is_kafka(manifest: Mapping[str, Any]) -> bool:
    """Whether Strimzi makes pods of an object."""
    return is_kind(manifest, _GROUP, _KAFKA, _POOL, *_CLIENTS)


def kafka_sets(manifest: Mapping[str, Any], _mode: ReplicasMode) -> list[PodSet]:
    """The pods of such an object. Raises Unusable."""
    if manifest["kind"] == _KAFKA:
        return list(_cluster(manifest))
    spec, name = mapping_at(manifest, "spec"), name_of(manifest)
    if manifest["kind"] == _POOL:
        cluster = _cluster_of(manifest)
        number = number_at(spec, "replicas", "spec")
        called = f"{cluster}-{name}" if cluster else name
        return [_pods(manifest, "spec", called, number, (cluster, f"{cluster}-kafka"))]
    ending, owner, most = _CLIENTS[manifest["kind"]]
    called, number = f"{name}-{ending}", number_at(spec, "replicas", "spec", default=most)
    return [_pods(manifest, "spec", called, number, (name, called), owner)]


def with_parts_of_kafka(
    given: Sequence[tuple[Document, dict[str, Any]]],
) -> list[tuple[Document, dict[str, Any]]]:
    """The objects: node pools with what they have from their Kafka, and that without brokers of its own."""
    found = [manifest for _, manifest in given if is_kafka(manifest)]
    kafkas = {key_of(one): one for one in found if one["kind"] == _KAFKA}
    pooled = {(namespace_of(one), _cluster_of(one)) for one in found if one["kind"] == _POOL}
    return [(document, _with_parts(manifest, kafkas, pooled)) for document, manifest in given]


def _with_parts(
    manifest: dict[str, Any],
    kafkas: Mapping[tuple[str, str], Mapping[str, Any]],
    pooled: set[tuple[str, str]],
) -> dict[str, Any]:
    spec = manifest.get("spec")
    if not is_kafka(manifest) or not isinstance(spec, Mapping):
        return manifest
    if manifest["kind"] == _KAFKA and isinstance(spec.get("kafka"), Mapping):
        own = key_of(manifest) in pooled
        return (
            {**manifest, "spec": {**spec, "kafka": {**spec["kafka"], "replicas": None}}} if own else manifest
        )
    kafka = kafkas.get((namespace_of(manifest), _cluster_of(manifest))) if manifest["kind"] == _POOL else None
    shared = kafka.get("spec") if kafka is not None else None
    broker = shared.get("kafka") if isinstance(shared, Mapping) else None
    if not isinstance(broker, Mapping):
        return manifest
    # The one or the other: Strimzi merges nothing.
    parts = ("resources", "template")
    lent = {part: broker[part] for part in parts if spec.get(part) is None and broker.get(part) is not None}
    return {**manifest, "spec": {**spec, **lent, "rack": broker.get("rack")}}


def _cluster_of(pool: Mapping[str, Any]) -> str:
    """The Kafka that a node pool is of."""
    labels = metadata_of(pool).get("labels")
    return str(labels.get(_CLUSTER) or "") if isinstance(labels, Mapping) else ""


def _cluster(manifest: Mapping[str, Any]) -> Iterator[PodSet]:
    """Brokers, unless they are of node pools, ZooKeeper's members, and what helps them."""
    spec, name = mapping_at(manifest, "spec"), name_of(manifest)
    annotations = metadata_of(manifest).get("annotations")
    marks = annotations if isinstance(annotations, Mapping) else {}
    broker = member_below(spec, "spec", "kafka")
    pooled = marks.get(_POOLS) == "enabled" or broker.get("replicas") is None
    number = 0 if pooled else number_at(broker, "replicas", "spec.kafka")
    remark = "its brokers are those of its KafkaNodePools" if pooled else ""
    yield _pods(manifest, "spec.kafka", f"{name}-kafka", number, (name, f"{name}-kafka"), remark=remark)
    if spec.get("zookeeper") is not None and marks.get(_KRAFT) != "enabled":
        members = number_at(member_below(spec, "spec", "zookeeper"), "replicas", "spec.zookeeper")
        yield _pods(manifest, "spec.zookeeper", f"{name}-zookeeper", members, (name, f"{name}-zookeeper"))
    for member, ending in _HELPERS:
        if spec.get(member) is not None:
            called = f"{name}-{ending}"
            yield _pods(manifest, f"spec.{member}", called, 1, (name, called), "Deployment")
    if spec.get("entityOperator") is not None:
        yield from _entity_operator(manifest, f"{name}-entity-operator", name)


def _entity_operator(manifest: Mapping[str, Any], called: str, cluster: str) -> Iterator[PodSet]:
    """A pod with a container for each of the two operators that are asked for."""
    path = "spec.entityOperator"
    holder = mapping_at(manifest, path)
    asked = [member for member in ("topicOperator", "userOperator") if holder.get(member) is not None]
    if asked:
        resources = {f"{path}.{one}.resources": _resources(holder, path, one) for one in asked}
        yield _pods(manifest, path, called, 1, (cluster, called), "Deployment", resources=resources)


def _resources(holder: Mapping[str, Any], path: str, member: str) -> Mapping[str, Any]:
    return object_below(object_below(holder, path, member), f"{path}.{member}", "resources")


def _pods(
    manifest: Mapping[str, Any],
    path: str,
    called: str,
    number: int,
    labels: tuple[str, str],
    owner: str = "StrimziPodSet",
    *,
    resources: Mapping[str, Mapping[str, Any]] | None = None,
    remark: str = "",
) -> PodSet:
    """Pods of the object at `path`, with `template.pod`; `resources`: of each container, by their path."""
    holder = mapping_at(manifest, path)
    if resources is None:
        resources = {f"{path}.resources": object_below(holder, path, "resources")}
    template = object_below(object_below(holder, path, "template"), f"{path}.template", "pod")
    members, renamed = members_of(template, f"{path}.template.pod")
    cluster, name = labels
    rack = holder.get("rack")
    if isinstance(rack, Mapping) and isinstance(rack.get("topologyKey"), str):
        members["affinity"] = _apart(members.get("affinity"), rack["topologyKey"], cluster, name)
    containers = [{"name": f"{called}-{at}", "resources": one} for at, one in enumerate(resources.values())]
    metadata = with_labels(template.get("metadata"), {_CLUSTER: cluster, _NAME: name})
    return PodSet(
        path="",
        template={"metadata": metadata, "spec": {**members, "containers": containers}},
        number=number,
        name=called,
        volume_claims=tuple(_claims(holder, path)),
        owner=(_VERSIONS[owner], owner, called),
        renamed=(
            *renamed,
            *((f"spec.containers[{at}].resources", where) for at, where in enumerate(resources)),
        ),
        remark=remark,
    )


def _apart(affinity: Any, key: str, cluster: str, name: str) -> dict[str, Any]:
    """The affinity with what spreads brokers over racks, by preference."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {_CLUSTER: cluster, _NAME: name}}}
    given = affinity if isinstance(affinity, Mapping) else {}
    apart = given.get("podAntiAffinity")
    apart = apart if isinstance(apart, Mapping) else {}
    member = "preferredDuringSchedulingIgnoredDuringExecution"
    preferred = [*(apart.get(member) or []), {"weight": 100, "podAffinityTerm": term}]
    return {**given, "podAntiAffinity": {**apart, member: preferred}}


def _claims(holder: Mapping[str, Any], path: str) -> Iterator[Mapping[str, Any]]:
    """A volume claim for each disk that is not of the node."""
    storage = object_below(holder, path, "storage")
    disks = list_at(storage, "volumes", f"{path}.storage") if storage.get("type") == "jbod" else [storage]
    for index, disk in enumerate(disks):
        if disk.get("type") == _CLAIMED:
            yield {
                "metadata": {"name": f"data-{disk.get('id', index)}"},
                "spec": {"storageClassName": disk.get("class")},
            }
