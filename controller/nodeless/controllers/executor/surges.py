"""Restarts of Deployments, so that a pod's successor is there before the pod leaves its node.

The mark in the pod template is the uid of the pod, so that asking twice restarts once. Where we may not
patch Deployments the pod is told so, and leaves by an eviction like any other.
"""

from nodeless.kube import ApiClient, ApiError
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent, RestartDeployment
from nodeless.model.labels import SURGED_FOR
from nodeless.operator.logs import logger

_MOST_REMEMBERED = 10_000
_HINT = "allow the controller's service account to patch Deployments in this namespace"


class Surges:
    """Carries out RestartDeployment; `refused` holds uids of pods for which it is not allowed."""

    def __init__(self, client: ApiClient, recorder: Recorder) -> None:
        self.refused: set[str] = set()
        self._client = client
        self._recorder = recorder
        self._asked: set[str] = set()
        self._log = logger("surges")

    async def carry_out(self, restart: RestartDeployment) -> None:
        """Raises ApiError, except where it is refused or the Deployment is gone."""
        if restart.pod_uid in self._asked:
            return
        path = f"/apis/apps/v1/namespaces/{restart.namespace}/deployments/{restart.deployment}"
        mark = {"template": {"metadata": {"annotations": {SURGED_FOR: restart.pod_uid}}}}
        try:
            await self._client.patch(path, {"spec": mark})
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            self._remember(self.refused, restart.pod_uid)
            hint = f"; hint: {_HINT}" if error.status == 403 else ""
            self._tell(restart, "Warning", "SurgeFailed", f"no replacement pod first: {error.message}{hint}")
            return
        self._remember(self._asked, restart.pod_uid)
        self._log.info(
            "restarting deployment before its pod is evicted",
            deployment=f"{restart.namespace}/{restart.deployment}",
            node=restart.node_name,
        )
        text = f"leaves node {restart.node_name} once Deployment {restart.deployment} has a ready replacement"
        self._tell(restart, "Normal", "Surging", text)

    @staticmethod
    def _remember(uids: set[str], uid: str) -> None:
        if len(uids) >= _MOST_REMEMBERED:
            uids.clear()
        uids.add(uid)

    def _tell(self, restart: RestartDeployment, type_: str, reason: str, message: str) -> None:
        event = PublishEvent(
            restart.cause, "Pod", restart.pod, type_, reason, message, restart.namespace, restart.pod_uid
        )
        self._recorder.publish(event)
