"""VerticalPodAutoscalers as the API server tells of them; watched where they are turned on."""

import msgspec

from nodeless.kube import documents
from nodeless.kube.reflector import Watched
from nodeless.model import events
from nodeless.model.resources import parse_resources
from nodeless.model.vertical_autoscaling import API_VERSION, OFF, VerticalPodAutoscaler

AUTOSCALERS = f"/apis/{API_VERSION}/verticalpodautoscalers"


_AUTOSCALER = msgspec.json.Decoder(documents.VerticalPodAutoscaler)
Decoded = tuple[str, tuple[events.Event, ...]]


def watched_vertical_autoscalers() -> tuple[Watched, ...]:
    """VerticalPodAutoscalers; a cluster may do without the definition."""
    gone = events.VerticalPodAutoscalerGone
    return (Watched("verticalpodautoscalers", AUTOSCALERS, _autoscaler, gone, optional=True),)


def decode_vertical_autoscaler(raw: bytes) -> VerticalPodAutoscaler:
    """One from its JSON. Raises msgspec.DecodeError, QuantityError."""
    document = _AUTOSCALER.decode(raw)
    metadata, spec = document.metadata, document.spec
    recommendation = document.status.recommendation if document.status is not None else None
    containers = (recommendation.containerRecommendations if recommendation is not None else None) or ()
    return VerticalPodAutoscaler(
        metadata.namespace,
        metadata.name,
        spec.targetRef.kind,
        spec.targetRef.name,
        applies=spec.updatePolicy is None or spec.updatePolicy.updateMode != OFF,
        recommended=tuple(
            (container.containerName, tuple(sorted(parse_resources(container.target).items())))
            for container in containers
        ),
    )


def _autoscaler(raw: bytes) -> Decoded:
    autoscaler = decode_vertical_autoscaler(raw)
    return autoscaler.key, (events.VerticalPodAutoscalerSeen(autoscaler),)
