"""A snapshot and a catalog as documents that share what is equal.

Pods of one workload have one shape, pools often the same instance types, and types most of
their labels: each of these is written once, in a table, and named by its number. Read back,
equal parts are one object again, as the solver likes them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from immutables import Map

from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.pods import Pod, PodShape
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.state.saving import SavedFormatError, build_value, plain

_NO_PODS: Map[str, Pod] = Map()


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """`pods` with numbers into `shapes`; what follows from them (the pods of each node) is left out."""
    shapes: dict[PodShape, int] = {}
    pods = [
        {**plain(replace(pod, shape=_EMPTY)), "shape": shapes.setdefault(pod.shape, len(shapes))}
        for _, pod in sorted(snapshot.pods.items())
    ]
    rest = plain(replace(snapshot, pods=_NO_PODS, pods_of_node=Map()))
    return {"shapes": [plain(shape) for shape in shapes], "pods": pods, "rest": rest}


def read_snapshot(document: Mapping[str, Any]) -> Snapshot:
    """The snapshot of a document. Raises SavedFormatError."""
    shapes = build_value(tuple[PodShape, ...], document.get("shapes", ()), "shapes")
    pods = [
        build_value(
            Pod,
            {**entry, "shape": _entry(shapes, entry.get("shape"), f"pods[{number}].shape")},
            f"pods[{number}]",
        )
        for number, entry in enumerate(_objects(document.get("pods", ()), "pods"))
    ]
    on_node: dict[str, set[str]] = {}
    for pod in pods:
        if pod.node_name:
            on_node.setdefault(pod.node_name, set()).add(pod.key)
    return replace(
        build_value(Snapshot, document.get("rest"), "rest"),
        pods=Map({pod.key: pod for pod in pods}),
        pods_of_node=Map({name: frozenset(keys) for name, keys in on_node.items()}),
    )


def catalog_document(catalog: Catalog) -> dict[str, Any]:
    """`pools` with numbers into `types`, which have numbers into `labels`."""
    labels: dict[Requirement, int] = {}
    types: dict[InstanceType, int] = {}
    pools = {
        pool: [types.setdefault(kind, len(types)) for kind in kinds]
        for pool, kinds in sorted(catalog.items())
    }
    documents = [_type_document(kind, labels) for kind in types]
    return {"labels": [plain(label) for label in labels], "types": documents, "pools": pools}


def read_catalog(document: Mapping[str, Any]) -> dict[str, tuple[InstanceType, ...]]:
    """The catalog of a document. Raises SavedFormatError."""
    labels = build_value(tuple[Requirement, ...], document.get("labels", ()), "labels")
    types = []
    for number, entry in enumerate(_objects(document.get("types", ()), "types")):
        where = f"types[{number}]"
        numbers_of_labels = build_value(
            tuple[int, ...], entry.get("requirements", ()), f"{where}.requirements"
        )
        requirements = Requirements(
            _entry(labels, label, f"{where}.requirements") for label in numbers_of_labels
        )
        types.append(build_value(InstanceType, {**entry, "requirements": requirements}, where))
    shared: dict[tuple[int, ...], tuple[InstanceType, ...]] = {}
    catalog = {}
    pools = build_value(dict[str, tuple[int, ...]], document.get("pools") or {}, "pools")
    for pool, numbers in pools.items():
        if numbers not in shared:
            shared[numbers] = tuple(_entry(types, number, f"pools[{pool}]") for number in numbers)
        catalog[pool] = shared[numbers]
    return catalog


def _type_document(kind: InstanceType, labels: dict[Requirement, int]) -> dict[str, Any]:
    numbers = [labels.setdefault(label, len(labels)) for label in kind.requirements.values()]
    return {**plain(replace(kind, requirements=Requirements())), "requirements": numbers}


def _entry(table: "tuple[Any, ...] | list[Any]", number: object, where: str) -> Any:
    if not isinstance(number, int) or not 0 <= number < len(table):
        raise SavedFormatError(
            f"{where}: {number!r} names no entry of its table; hint: the file was edited or cut off"
        )
    return table[number]


def _objects(entries: object, where: str) -> Iterable[dict[str, Any]]:
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, dict) for entry in entries):
        raise SavedFormatError(f"{where}: expected a list of objects; hint: the file was edited or cut off")
    return entries


_EMPTY = PodShape(())
