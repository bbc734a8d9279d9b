"""Objects of every kind that the controller watches: harmless ones, and what chance grafts onto them."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.fuzz.drawing import Drawing
from tests.fuzz.schemas import Resolved, Schemas

Object = dict[str, Any]
#: Label of everything that is thrown, and of no node: nothing thrown runs on honest nodes.
THROWN = "fuzz"
_POD = {
    "containers": [{"name": "a", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}],
    "terminationGracePeriodSeconds": 0,
}
_SELECTED = {"selector": {"matchLabels": {"app": THROWN}}}
_TEMPLATE = {"template": {"metadata": {"labels": {"app": THROWN}}, "spec": _POD}}
_DISCOVERY = {"karpenter.sh/discovery": "none-of-this-cluster"}
_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": THROWN}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind with its harmless object; `status`: chance writes its status, too."""

    api_version: str
    name: str
    namespaced: bool
    body: Object
    status: bool = False


KINDS = (
    Kind("v1", "Pod", True, {"spec": _POD}, status=True),
    Kind("v1", "Node", False, {"spec": {}}, status=True),
    Kind("v1", "Namespace", False, {}),
    Kind(
        "v1",
        "PersistentVolumeClaim",
        True,
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        status=True,
    ),
    Kind(
        "v1",
        "PersistentVolume",
        False,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            }
        },
    ),
    Kind("storage.k8s.io/v1", "StorageClass", False, {"provisioner": "ebs.csi.aws.com"}),
    Kind("storage.k8s.io/v1", "CSINode", False, {"spec": {"drivers": []}}),
    Kind(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        False,
        {
            "spec": {
                "attacher": "ebs.csi.aws.com",
                "nodeName": "none",
                "source": {"persistentVolumeName": "v"},
            }
        },
    ),
    Kind("policy/v1", "PodDisruptionBudget", True, {"spec": {"minAvailable": 1, **_SELECTED}}, status=True),
    Kind("apps/v1", "DaemonSet", True, {"spec": {**_SELECTED, **_TEMPLATE}}),
    Kind("apps/v1", "Deployment", True, {"spec": {"replicas": 1, **_SELECTED, **_TEMPLATE}}),
    Kind("apps/v1", "ReplicaSet", True, {"spec": {"replicas": 1, **_SELECTED, **_TEMPLATE}}),
    Kind(
        "apps/v1",
        "StatefulSet",
        True,
        {"spec": {"replicas": 1, "serviceName": "a", **_SELECTED, **_TEMPLATE}},
    ),
    Kind(
        "karpenter.sh/v1alpha5",
        "Provisioner",
        False,
        {"spec": {"providerRef": {"name": THROWN}, "ttlSecondsAfterEmpty": 30}},
        status=True,
    ),
    Kind(
        "karpenter.k8s.aws/v1alpha1",
        "AWSNodeTemplate",
        False,
        {"spec": {"subnetSelector": _DISCOVERY, "securityGroupSelector": _DISCOVERY}},
        status=True,
    ),
    Kind(
        "karpenter.sh/v1",
        "NodePool",
        False,
        {"spec": {"template": {"spec": {"nodeClassRef": _CLASS, "requirements": []}}}},
        status=True,
    ),
    Kind(
        "karpenter.k8s.aws/v1",
        "EC2NodeClass",
        False,
        {
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": _DISCOVERY}],
                "securityGroupSelectorTerms": [{"tags": _DISCOVERY}],
                "instanceProfile": "nodes",
            }
        },
        status=True,
    ),
    Kind(
        "karpenter.sh/v1",
        "NodeClaim",
        False,
        {"spec": {"nodeClassRef": _CLASS, "requirements": []}},
        status=True,
    ),
    Kind("v1", "PodTemplate", True, _TEMPLATE),
    # What only the controller's namespace has, under other names and in others'.
    Kind("coordination.k8s.io/v1", "Lease", True, {"spec": {"holderIdentity": "a"}}),
    Kind("v1", "ConfigMap", True, {"data": {"batchMaxDuration": "1s"}}),
    Kind("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", True, {"spec": {"replicas": 1}}, status=True),
)


class Thrower:
    """Draws objects, one after the other; the same seed draws the same ones."""

    def __init__(self, schemas: Schemas, random: Random, namespace: str) -> None:
        self._drawing, self._random, self._namespace = Drawing(random), random, namespace
        self._schemas = {kind.name: schemas.of(kind.api_version, kind.name) for kind in KINDS}
        self._count = 0
        self._lately: deque[tuple[str, str]] = deque(maxlen=100)

    def draw(self) -> tuple[Kind, Object, Object | None]:
        """A kind, an object of it with a name that no other bears, and now and then a status for it."""
        # Pods are what everybody may create.
        kind = KINDS[0] if self._random.random() < 0.3 else self._random.choice(KINDS)
        self._count += 1
        name = f"{THROWN}-{self._count}"
        self._lately.append((kind.name, name))
        metadata: Object = {"name": name}
        if kind.namespaced:
            metadata["namespace"] = self._namespace
        found = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
        found |= copy.deepcopy(kind.body)
        schema = self._schemas[kind.name]
        for _ in range(self._random.choice((1, 1, 2, 3, 6))):
            self._graft(found, schema)
        if self._random.random() < 0.5:
            metadata[self._random.choice(("labels", "annotations"))] = self._drawing.labels()
        metadata |= {"name": name}
        if kind.name == "CapacityBuffer":
            self._name_a_source(found["spec"])
        status = self._status(kind) if kind.status and self._random.random() < 0.5 else None
        return kind, _tamed(kind, found), status

    def _status(self, kind: Kind) -> Object:
        status = self._schemas[kind.name].properties["status"]
        drawn = self._drawing.value(status)
        return {"status": drawn if isinstance(drawn, dict) else {}}

    def _name_a_source(self, spec: Any) -> None:
        """Most buffers name what was thrown lately, or a workload of somebody: otherwise no pod is read."""
        source = self._random.choice(("PodTemplate", "Deployment", "ReplicaSet", "StatefulSet", ""))
        lately = [name for kind, name in self._lately if kind == source]
        if not lately or not isinstance(spec, dict):
            return
        name = self._random.choice(lately)
        if source == "PodTemplate":
            spec["podTemplateRef"] = {"name": name}
        else:
            spec["scalableRef"] = {"apiGroup": "apps", "kind": source, "name": name}

    def _graft(self, found: Object, schema: Resolved) -> None:
        """Put a drawn value at a drawn place below the spec."""
        place, below = found, schema
        steps = [
            name for name in below.properties if name not in ("apiVersion", "kind", "metadata", "status")
        ]
        while steps:
            name = self._random.choice(steps)
            member = below.properties[name]
            inner = place.get(name)
            if isinstance(inner, dict) and member.properties and self._random.random() < 0.85:
                place, below = inner, member
            elif isinstance(inner, list) and inner and (items := member.items_of) is not None:
                chosen = self._random.choice(inner)
                if not isinstance(chosen, dict) or self._random.random() < 0.2:
                    inner.append(self._drawing.value(items))
                    return
                place, below = chosen, items
            else:
                place[name] = self._drawing.value(member)
                return
            steps = [*below.properties]


def _tamed(kind: Kind, found: Object) -> Object:
    """What would rightly harm others is taken out: crowds, agents for every node, an order to buy many."""
    spec = found.get("spec")
    if not isinstance(spec, dict):
        return found
    if isinstance(spec.get("replicas"), int):
        spec["replicas"] = min(spec["replicas"], 2)
    if kind.name == "NodePool":
        spec.pop("replicas", None)
    for template in _pod_specs(kind, spec):
        template.pop("priority", None)
        if kind.name == "DaemonSet":
            template["nodeSelector"] = {THROWN: "daemons"}
    return found


def _pod_specs(kind: Kind, spec: Object) -> Iterator[Object]:
    if kind.name == "Pod":
        yield spec
    inner = spec.get("template")
    if kind.api_version == "apps/v1" and isinstance(inner, dict) and isinstance(inner.get("spec"), dict):
        yield inner["spec"]
