"""Objects that a watch cannot read: said once each, on the object itself, and shown in the metrics."""

from collections.abc import Mapping
from typing import Any

from nodeless.api.kinds import ALL
from nodeless.controllers.error_boundary import ErrorBoundary, Subject

#: Kubernetes' own kinds by the names of their watches; the teardown guard and the settings are ConfigMaps.
_KINDS = {
    "pods": "Pod",
    "nodes": "Node",
    "namespaces": "Namespace",
    "daemonsets": "DaemonSet",
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "podtemplates": "PodTemplate",
    "capacitybuffers": "CapacityBuffer",
    "provisioningrequests": "ProvisioningRequest",
    "verticalpodautoscalers": "VerticalPodAutoscaler",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "storageclasses": "StorageClass",
    "volumeattachments": "VolumeAttachment",
    "csinodes": "CSINode",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
    "resourceslices": "ResourceSlice",
    "deviceclasses": "DeviceClass",
    "teardown guard": "ConfigMap",
    **{kind.plural: kind.kind for kind in ALL},
}


class UnreadObjects:
    """Told by the watches (`nodeless.kube.reflector.Failures`)."""

    def __init__(self, boundary: ErrorBoundary) -> None:
        self._boundary = boundary

    def record_unread(self, kind: str, metadata: Mapping[str, Any], error: Exception) -> object:
        """An object was left out, or taken in by its outline only."""
        word = _KINDS.get(kind)
        name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
        subject = Subject(word, name, str(metadata.get("uid") or ""), namespace) if word and name else None
        version = str(metadata.get("resourceVersion") or "")
        return self._boundary.record_failure(_key(kind, metadata), error, version, subject)

    def record_read(self, kind: str, metadata: Mapping[str, Any]) -> object:
        """It can be read again, or is gone."""
        self._boundary.record_success(_key(kind, metadata))
        return None


def _key(kind: str, metadata: Mapping[str, Any]) -> str:
    return f"{kind} {metadata.get('namespace') or ''}/{metadata.get('name') or ''}".replace(" /", " ")
