"""When an object counts as made, and when as gone, as the real Kubernetes provider sees it.

What each kind has to be waited for stands in `kubernetes.readiness`. An object is gone when it cannot
be found any more, so finalizers hold a destroy until whoever put them there is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from localenv.kubernetes import ApiError, ApiUnreachable, KubernetesApi, Object, UnknownKind
from localenv.pulumi.kubernetes.readiness import FIXED_SECONDS, READY
from localenv.pulumi.kubernetes.wait_for import WAIT_FOR, find_missing
from localenv.pulumi.resources import Cancelled, ResourceFailed

#: The real provider's patience with objects that become ready or go away.
DEFAULT_SECONDS = 600.0
#: How long a kind may take to be served once its CustomResourceDefinition exists.
_KIND_SECONDS = 60.0
_POLL_SECONDS = 0.1
#: Kinds that own no other objects, so that it makes no difference who goes first. They are not deleted in
#: the foreground: that waits for the garbage collector, which can stall for more than a minute while the
#: kinds of deleted CustomResourceDefinitions vanish under it (seen with kube-controller-manager 1.36).
_OWN_NOTHING = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Secret",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    }
)
#: Kinds whose deletion is not waited for either with the annotation that skips waiting; others' always is
#: (pulumi-kubernetes v4, `allowsSkipAwaitWithDelete` in `provider/pkg/metadata/overrides.go`).
_SKIPPED_AT_DELETION = frozenset(
    {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicationController", "StatefulSet"}
)
#: How often a definition that does not go is changed. Deleting several at a time, the API server can
#: answer its own clean-up with "storage is (re)initializing" and look again only after five minutes, or
#: when the definition changes (seen with kube-apiserver 1.36).
_NUDGE_SECONDS = 5.0
_NUDGED = "nodeless.dev/deletion-looked-at"
#: Annotations with which a program says that it does not want to wait, for how many seconds it does where
#: the resource has no timeout of its own, and how an object is deleted: foreground, background or orphan.
_SKIP = "pulumi.com/skipAwait"
#: Jobs with it that are not ready are replaced by the next update (PR 1575 of pulumi-kubernetes).
_REPLACE_UNREADY = "pulumi.com/replaceUnready"
_TIMEOUT = "pulumi.com/timeoutSeconds"
_PROPAGATION = "pulumi.com/deletionPropagationPolicy"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds, and who may end it before."""

    cancelled: threading.Event
    seconds: float = DEFAULT_SECONDS

    def until(self, look: Callable[[], str | None]) -> None:
        """Wait until `look` gives None; what it gives until then says what is missing.

        Raises:
            ResourceFailed: The time is over.
            Cancelled: The operation is stopped.
        """
        deadline = time.monotonic() + self.seconds
        missing: str | None = "not looked at yet"
        while True:
            try:
                missing = look()
            except ApiUnreachable as error:
                missing = str(error)
            if missing is None:
                return
            if time.monotonic() > deadline:
                raise ResourceFailed(f"{missing} (waited {self.seconds:g} s)")
            if self.cancelled.wait(_POLL_SECONDS):
                raise Cancelled(f"stopped while waiting: {missing}")


def ready(api: KubernetesApi, path: str, applied: Object, patience: Patience) -> Object:
    """The object once it is ready; at once for kinds that need no waiting.

    Raises:
        ResourceFailed: It is not ready in time, or what its annotation asks for cannot be read.
    """
    annotations, kind = _annotations(applied), str(applied["kind"])
    look = READY.get(kind)
    if annotations.get(_SKIP) == "true":
        return applied
    if asked := annotations.get(WAIT_FOR):
        own = find_missing(asked)
        look = lambda _api, obj: own(obj)  # noqa: E731 - of the same shape as the rules by kind
    elif kind in FIXED_SECONDS:
        patience = replace(patience, seconds=FIXED_SECONDS[kind])
    if look is None:
        return applied
    rule, last = look, [applied]

    def missing() -> str | None:
        last[0] = api.get(path)
        return rule(api, last[0])

    patience.until(missing)
    return last[0]


def is_replaced_unready(api: KubernetesApi, obj: Mapping[str, Any]) -> bool:
    """Whether an object asks to be replaced if it is not ready, and is not; only Jobs can ask for it."""
    metadata = obj.get("metadata")
    if obj.get("kind") != "Job" or not isinstance(metadata, Mapping):
        return False
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    if _annotations(obj).get(_REPLACE_UNREADY) != "true" or not isinstance(name, str):
        return False
    live = api.find(api.path(str(obj["apiVersion"]), "Job", str(namespace), name))
    try:
        return live is not None and READY["Job"](api, live) is not None
    except ResourceFailed:
        return True


def wait_until_served(api: KubernetesApi, obj: Mapping[str, Any], cancelled: threading.Event) -> str:
    """The path of an object, once its kind is served: a definition takes a moment to take effect."""
    path: list[str] = []

    def missing() -> str | None:
        try:
            path.append(api.path_of(obj))
        except UnknownKind as error:
            return str(error)
        return None

    Patience(cancelled, _KIND_SECONDS).until(missing)
    return path[0]


def delete(api: KubernetesApi, path: str, patience: Patience) -> None:
    """Delete, what it owns first, and wait until nothing, or another object of that name, is there.

    Where its annotation says so, some kinds are not waited for.
    """
    found = api.find(path)
    if found is None:
        return
    uid = found["metadata"]["uid"]
    try:
        api.delete(path, propagation=_propagation(found), uid=uid, missing_ok=True)
    except ApiError as error:
        if error.status != 409:  # 409: another object bears the name by now, ours is gone
            raise

    if found["kind"] in _SKIPPED_AT_DELETION and _annotations(found).get(_SKIP) == "true":
        return
    nudge_at = time.monotonic() + _NUDGE_SECONDS

    def missing() -> str | None:
        nonlocal nudge_at
        left = api.find(path)
        if left is None or left["metadata"]["uid"] != uid:
            return None
        if left["kind"] == "CustomResourceDefinition" and time.monotonic() > nudge_at:
            nudge_at = time.monotonic() + _NUDGE_SECONDS
            _nudge(api, path)
        finalizers = ", ".join(left["metadata"].get("finalizers") or [])
        held = f", held by finalizers {finalizers}" if finalizers else ""
        return f"{left['kind']} {left['metadata']['name']} is still there{held}"

    patience.until(missing)


def patience(cancelled: threading.Event, timeout: float, obj: Mapping[str, Any]) -> Patience:
    """How long to wait for an object: the resource's timeout, else its annotation's, else ten minutes."""
    noted = _annotations(obj).get(_TIMEOUT, "")
    return Patience(cancelled, timeout or (float(noted) if noted.isdecimal() else DEFAULT_SECONDS))


def _propagation(obj: Mapping[str, Any]) -> Literal["Orphan", "Background", "Foreground"]:
    asked = _annotations(obj).get(_PROPAGATION, "").lower()
    if asked == "orphan":
        return "Orphan"
    return "Background" if asked == "background" or obj["kind"] in _OWN_NOTHING else "Foreground"


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _nudge(api: KubernetesApi, path: str) -> None:
    """Change an object that is being deleted, so that whoever holds it looks at it again."""
    try:
        api.patch(path, {"metadata": {"annotations": {_NUDGED: f"{time.time():.0f}"}}})
    except ApiError as error:
        if error.status not in (404, 409):  # it went meanwhile, or somebody else changed it
            raise
