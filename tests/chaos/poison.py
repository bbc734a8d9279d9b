"""Poison: objects whose reader, step or writer raises, one of every kind that is watched.

In the leader's process (`Poison`) whatever is called `poison-reader` cannot be read, what is called
`poison-step` cannot be taken in or decided about, and what is called `poison-writer` cannot be written.
In the cluster (`objects`) there is one of each for every kind, for every defect that data can meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from nodeless.controllers.executor import executor
from nodeless.controllers.executor.evictions import Evictions
from nodeless.controllers.nodeclaim import controller as nodeclaim_controller
from nodeless.controllers.nodepool import controller as nodepool_controller
from nodeless.controllers.provisioning import capacity_buffers
from nodeless.kube import cluster
from nodeless.kube.reflector import WatchedKind
from nodeless.manager import manager
from nodeless.manager.live_logging import LiveLogging
from nodeless.manager.live_settings import LiveSettings
from nodeless.model.events import ClaimSeen, Event, NodeClassSeen, PoolSeen

E = TypeVar("E")
READER, STEP, WRITER = (f"poison-{part}" for part in ("reader", "step", "writer"))
#: What a step is taken for: these can be taken in, and it is their step that fails.
_STEPPED = (ClaimSeen, PoolSeen, NodeClassSeen)


class Poison:
    """Makes the leader fail at what is called so, as long as it is on."""

    def __init__(self) -> None:
        self.on = False
        cluster.apply = self._failing(cluster.apply, STEP, self._is_taken_in)
        for module, name in (
            (nodeclaim_controller, "step"),
            (nodepool_controller, "step_pool"),
            (nodepool_controller, "step_node_class"),
        ):
            setattr(module, name, self._failing(getattr(module, name), STEP, _names_itself))
        for owner, name, part in (
            (capacity_buffers, "write_status", WRITER),
            (executor.InstructionExecutor, "_carry_out", WRITER),
            (Evictions, "_one", WRITER),
            (LiveSettings, "handle", STEP),
            (LiveLogging, "handle", STEP),
        ):
            setattr(owner, name, self._failing(getattr(owner, name), part, _says))
        watched_config_map = manager.watched_config_map
        manager.watched_config_map = lambda *which: self(watched_config_map(*which))

    def __call__(self, watched: WatchedKind[E]) -> WatchedKind[E]:
        """The kind as its reader fails."""
        return replace(watched, decode=self._failing(watched.decode, READER, _says))

    def _failing(self, function: Any, part: str, concerns: Callable[[str, Any], bool]) -> Any:
        def poisoned(*arguments: Any) -> Any:
            if self.on and any(concerns(part, each) for each in arguments):
                raise KeyError(f"{part}: a defect that nobody foresaw")
            return function(*arguments)

        return poisoned

    def _is_taken_in(self, part: str, argument: Any) -> bool:
        seen = isinstance(argument, Event) and type(argument).__name__.endswith("Seen")
        return seen and not isinstance(argument, _STEPPED) and _says(part, argument)


def _says(part: str, argument: Any) -> bool:
    return part.encode() in argument if isinstance(argument, bytes) else part in str(argument)


def _names_itself(part: str, argument: Any) -> bool:
    """Whether an argument is the object itself: a snapshot holds the names of all."""
    claim = getattr(argument, "claim", argument)
    return part in (getattr(claim, "name", ""), getattr(getattr(claim, "reference", None), "name", ""))


def objects(namespace: str) -> Iterator[dict[str, Any]]:
    """One of each part and kind, none of which needs anything."""
    for part in (READER, STEP, WRITER):
        for body in _of_every_kind(part):
            api_version, kind, namespaced, content = body
            metadata: dict[str, Any] = {"name": part, "labels": {"app": part}}
            if namespaced:
                metadata["namespace"] = namespace
            yield {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _of_every_kind(name: str) -> Iterator[tuple[str, str, bool, dict[str, Any]]]:
    nowhere = {"nodeSelector": {"chaos.example/nowhere": "true"}}
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100"}}}
    pod = {"containers": [container], **nowhere}
    labels = {"app": name}
    selector = {"matchLabels": labels}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
    chosen = {"subnetSelector": {"none": name}, "securityGroupSelector": {"none": name}}
    terms = [{"tags": {"none": name}}]
    yield "v1", "Pod", True, {"spec": pod}
    yield "v1", "Node", False, {}
    yield "v1", "Namespace", False, {}
    yield (
        "apps/v1",
        "DaemonSet",
        True,
        {"spec": {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": pod}}},
    )
    yield "karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", False, {"spec": chosen}
    yield (
        "karpenter.k8s.aws/v1",
        "EC2NodeClass",
        False,
        {
            "spec": {
                "amiSelectorTerms": [{"alias": "al2@latest"}],
                "subnetSelectorTerms": terms,
                "securityGroupSelectorTerms": terms,
                "instanceProfile": "nodes",
            }
        },
    )
    yield "karpenter.sh/v1alpha5", "Provisioner", False, {"spec": {"providerRef": {"name": name}}}
    template = {"spec": {"nodeClassRef": reference, "requirements": []}}
    yield "karpenter.sh/v1", "NodePool", False, {"spec": {"template": template}}
    yield "karpenter.sh/v1", "NodeClaim", False, {"spec": {"nodeClassRef": reference, "requirements": []}}
    yield "policy/v1", "PodDisruptionBudget", True, {"spec": {"minAvailable": 1, "selector": selector}}
    storage = {"requests": {"storage": "1Gi"}}
    yield (
        "v1",
        "PersistentVolumeClaim",
        True,
        {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": storage}},
    )
    yield (
        "v1",
        "PersistentVolume",
        False,
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": storage["requests"],
                "csi": {"driver": "none.example", "volumeHandle": name},
            }
        },
    )
    yield "storage.k8s.io/v1", "StorageClass", False, {"provisioner": "none.example"}
    attached = {"attacher": "none.example", "nodeName": name, "source": {"persistentVolumeName": name}}
    yield "storage.k8s.io/v1", "VolumeAttachment", False, {"spec": attached}
    yield "storage.k8s.io/v1", "CSINode", False, {"spec": {"drivers": []}}
    # What a capacity buffer may name, and one that asks for room that no pool has.
    template = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    yield "v1", "PodTemplate", True, template
    workload = {"replicas": 0, "selector": selector, **template}
    yield "apps/v1", "Deployment", True, {"spec": workload}
    yield "apps/v1", "ReplicaSet", True, {"spec": workload}
    yield "apps/v1", "StatefulSet", True, {"spec": {**workload, "serviceName": name}}
    wanted = {"podTemplateRef": {"name": name}, "replicas": 1}
    yield "autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", True, {"spec": wanted}
