"""Requests to save work: a condition on the pod, which keeps the moment, and an event.

Where we may not patch the status of pods, or it is refused for long, the event alone is written, and the
moment is that at which the drain of the node began.
"""

from nodeless.api.times import format_time
from nodeless.kube import ApiClient, ApiError
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent, RequestCheckpoint
from nodeless.model.labels import FIELD_MANAGER
from nodeless.model.pods import CHECKPOINT_REQUESTED
from nodeless.operator.logs import logger

_STRATEGIC = "application/strategic-merge-patch+json"
_MOST_REMEMBERED = 10_000
_FORBIDDEN, _GONE = 403, (404, 409)


class Checkpoints:
    """Carries out RequestCheckpoint; `refused` holds uids of pods on which it cannot be noted."""

    def __init__(self, client: ApiClient, recorder: Recorder) -> None:
        self.refused: set[str] = set()
        self._client = client
        self._recorder = recorder
        #: By uid, the drain for which it is noted already, though the watch may not have said so yet.
        self._noted: dict[str, float] = {}
        self._log = logger("checkpoints")

    async def carry_out(self, request: RequestCheckpoint) -> None:
        """Raises ApiError, except where it is not allowed or the pod is gone.

        The pod gets the event even so: after `give_up` its time counts from the beginning of the drain.
        """
        if self._noted.get(request.uid) == request.began:
            return
        text = (
            f"node {request.node_name} is being drained: save work now, the pod is evicted at "
            f"{format_time(request.until)}"
        )
        condition = {
            "type": CHECKPOINT_REQUESTED,
            "status": "True",
            "reason": "Draining",
            "message": text,
            "lastTransitionTime": format_time(request.at),
        }
        path = f"/api/v1/namespaces/{request.namespace}/pods/{request.name}/status"
        body = {"metadata": {"uid": request.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(path, body, content_type=_STRATEGIC, fieldManager=FIELD_MANAGER)
        except ApiError as error:
            if error.status in _GONE:
                return
            if error.status != _FORBIDDEN:
                self._tell(request, text)
                raise
            self.give_up(request.uid)
            hint = "hint: the controller's ClusterRole needs patch on pods/status"
            self._log.warning(
                f"the time of the eviction cannot be written to the pod: {error.message}; {hint}"
            )
        else:
            if len(self._noted) >= _MOST_REMEMBERED:
                self._noted.clear()
            self._noted[request.uid] = request.began
        self._log.info(
            "pod may save its work before its eviction",
            pod=f"{request.namespace}/{request.name}",
            node=request.node_name,
            until=format_time(request.until),
        )
        self._tell(request, text)

    def give_up(self, uid: str) -> None:
        """From now on a pod is told by the event alone."""
        if len(self.refused) >= _MOST_REMEMBERED:
            self.refused.clear()
        self.refused.add(uid)

    def _tell(self, request: RequestCheckpoint, text: str) -> None:
        self._recorder.publish(
            PublishEvent(
                request.cause,
                "Pod",
                request.name,
                "Normal",
                "CheckpointRequested",
                text,
                request.namespace,
                request.uid,
            )
        )
