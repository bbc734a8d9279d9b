"""The teardown guard of a stack, and the holds that say whether its deletion is meant.

The guard alone would be one key for everything: whatever deletes it, a replacement by the engine, a rename,
a slip with kubectl, would end all nodes. So it takes two. A stack also has a hold, a Lease in kube-system
that it makes after the guard and deletes before it. Only a destruction deletes the one, then the other.
While a hold stands, the deletion of the guard is let happen, and nothing else comes of it; and where no guard
came back within a minute, the controller makes it again.

The hold is read from the API server when it is needed, not followed: two watches do not tell which of two
objects went first.
"""

from typing import Any, Final

from nodeless.kube import ApiClient, ApiError
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent
from nodeless.model.labels import TEARDOWN_DRAIN, TEARDOWN_FINALIZER, TEARDOWN_LABEL
from nodeless.operator.logs import logger

GUARD_NAME: Final = "nodeless-teardown"
#: Of holds; not the controller's own, so that a stack may move its controller to another namespace.
HOLD_NAMESPACE: Final = "kube-system"
_HOLDS: Final = f"/apis/coordination.k8s.io/v1/namespaces/{HOLD_NAMESPACE}/leases"
_MISSING, _CONFLICT = 404, 409


class Guard:
    """Reads holds, and makes the guard again."""

    def __init__(self, client: ApiClient, recorder: Recorder, namespace: str) -> None:
        self._client = client
        self._recorder = recorder
        self._namespace = namespace
        self._log = logger("guard")

    async def holds(self) -> list[str]:
        """The holds that stand now, as `name of holder`.

        Raises:
            ApiError, ApiUnavailable: Whether the deletion of the guard is meant is not known; ask again.
        """
        leases = await self._client.list(_HOLDS, labelSelector=f"{TEARDOWN_LABEL}=hold")
        return sorted(_lease_text(each) for each in leases if "deletionTimestamp" not in each["metadata"])

    def spare(self, holds: list[str]) -> None:
        """Say by event and log that the deletion of the guard ends nothing."""
        message = (
            "the guard was deleted, but the stack still holds its capacity"
            f" (Lease {HOLD_NAMESPACE}/{holds[0]}): no node is terminated, and the guard is created "
            "again; to terminate all nodes destroy the stack, or delete the Lease before the guard"
        )
        self._log.warning(message)
        self._recorder.publish(
            PublishEvent(
                "teardown",
                "ConfigMap",
                GUARD_NAME,
                "Warning",
                "GuardDeletionIgnored",
                message,
                namespace=self._namespace,
            )
        )

    async def restore(self, drain: float | None) -> None:
        """Make the guard again where a hold stands without one.

        Args:
            drain: Seconds that a drain may take in the end; None: the usual.
        """
        if not await self.holds():
            return
        collection = f"/api/v1/namespaces/{self._namespace}/configmaps"
        try:
            await self._client.create(collection, guard_manifest(self._namespace, drain))
        except ApiError as error:
            if error.status != _CONFLICT:
                raise
            return
        self._log.warning("the teardown guard was missing and has been created again")


def guard_manifest(namespace: str, drain: float | None) -> dict[str, Any]:
    """The guard as a stack makes it; for `drain` see `Guard.restore`."""
    metadata: dict[str, Any] = {
        "name": GUARD_NAME,
        "namespace": namespace,
        "labels": {TEARDOWN_LABEL: "guard"},
        "finalizers": [TEARDOWN_FINALIZER],
    }
    if drain is not None:
        metadata["annotations"] = {TEARDOWN_DRAIN: f"{drain:.0f}s"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _lease_text(lease: dict[str, Any]) -> str:
    holder = (lease.get("spec") or {}).get("holderIdentity")
    name = str(lease["metadata"]["name"])
    return f"{name} of {holder}" if holder else name
