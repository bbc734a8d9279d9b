"""Which change of a Kubernetes object makes the real provider replace it: its own list, as data.

pulumi-kubernetes does not ask the API server. It has a list of paths by group, version and kind, and
replaces an object when something at or below one of them changes, also where Kubernetes would take the
change: the data of ConfigMaps and Secrets are the best known case, unless the provider resource says that
they are mutable. What is not on the list is sent as an update, which the API server may then refuse.

Source: pulumi/pulumi-kubernetes v4, `provider/pkg/provider/diff.go` (`forceNewProperties`, `forceNew`) and
the end of `Diff` in `provider/pkg/provider/provider.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Of every object, whatever its kind (`metadataForceNewProperties`).
OF_ANY_KIND: Final = ("metadata.name", "metadata.namespace")
_SELECTOR: Final = ("spec.selector",)
_STATEFUL_SET: Final = (
    "spec.podManagementPolicy",
    "spec.revisionHistoryLimit",
    "spec.selector",
    "spec.serviceName",
    "spec.volumeClaimTemplates",
)
_JOB: Final = ("spec.completions", "spec.parallelism", "spec.selector", "spec.template")
_ROLE_BINDING: Final = ("roleRef",)
#: Members of a container (`containerForceNewProperties`).
_CONTAINER: Final = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
_POD: Final = tuple(
    f"spec.{member}"
    for member in (
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostname",
        "imagePullSecrets",
        "nodeName",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "volumes",
        *(f"{list_}[*].{member}" for list_ in ("containers", "initContainers") for member in _CONTAINER),
    )
)
_VOLUME_SOURCES: Final = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)
#: Paths by apiVersion and kind (`forceNew`); what is not here has none of its own.
BY_KIND: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps/v1beta1", "StatefulSet"): _STATEFUL_SET,
    **{
        (version, kind): paths
        for version in ("apps/v1beta2", "apps/v1")
        for kind, paths in (
            ("DaemonSet", _SELECTOR),
            ("Deployment", _SELECTOR),
            ("StatefulSet", _STATEFUL_SET),
        )
    },
    **{
        (f"rbac.authorization.k8s.io/{version}", kind): _ROLE_BINDING
        for version in ("v1alpha1", "v1beta1", "v1")
        for kind in ("ClusterRoleBinding", "RoleBinding")
    },
    **{(f"batch/{version}", "Job"): _JOB for version in ("v1beta1", "v1", "v2alpha1")},
    ("policy/v1beta1", "PodDisruptionBudget"): ("spec",),
    ("storage.k8s.io/v1", "StorageClass"): ("parameters", "provisioner"),
    ("v1", "PersistentVolume"): tuple(f"spec.{source}" for source in _VOLUME_SOURCES),
    ("v1", "PersistentVolumeClaim"): (
        "spec.accessModes",
        "spec.selector",
        "spec.storageClassName",
        "spec.volumeName",
    ),
    ("v1", "Pod"): _POD,
    ("v1", "ResourceQuota"): ("spec.scopes",),
    ("v1", "Secret"): ("type",),
    ("v1", "Service"): ("spec.clusterIP",),
}
#: Kinds that were looked up and have no path of their own on the list. Of groups that are none of Kubernetes'
#: (definitions' own kinds) the list has nothing.
LOOKED_UP: Final = frozenset(
    {
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("coordination.k8s.io/v1", "Lease"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("v1", "ConfigMap"),  # but for its data, below
        ("v1", "Namespace"),
        ("v1", "ServiceAccount"),
    }
)
_CONFIG_MAP_DATA: Final = ("binaryData", "data")
_SECRET_DATA: Final = ("type", "stringData", "data")


@dataclass(frozen=True, slots=True)
class Mutable:
    """Whether the provider resource lets the data of these kinds change in place.

    Source: inputs `enableConfigMapMutable` and `enableSecretMutable` of `kubernetes.Provider`; both are off
    by default. An object with `immutable: true` is replaced even so.
    """

    config_maps: bool = False
    secrets: bool = False

    @classmethod
    def of(cls, provider_inputs: Mapping[str, Any]) -> Mutable:
        """What a provider resource says."""
        return cls(
            _is_true(provider_inputs.get("enableConfigMapMutable")),
            _is_true(provider_inputs.get("enableSecretMutable")),
        )


def replacing_paths(obj: Mapping[str, Any], mutable: Mutable) -> Iterator[str]:
    """The paths whose change replaces an object with these inputs."""
    version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    yield from OF_ANY_KIND
    immutable = bool(obj.get("immutable"))
    if (version, kind) == ("v1", "Secret") and (immutable or not mutable.secrets):
        yield from _SECRET_DATA
        return
    yield from BY_KIND.get((version, kind), ())
    if (version, kind) == ("v1", "ConfigMap") and (immutable or not mutable.config_maps):
        yield from _CONFIG_MAP_DATA


def _is_true(value: Any) -> bool:
    return value is True or value == "true"
