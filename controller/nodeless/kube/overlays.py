"""NodeOverlays as the API server tells of them; watched where they are turned on."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeless.api.errors import problem_of
from nodeless.api.kinds import NODE_OVERLAY
from nodeless.api.reading_overlays import read_broken_overlay, read_overlay
from nodeless.kube.reflector import Watched
from nodeless.model import events

Decoded = tuple[str, tuple[events.Event, ...]]


def watched_overlays() -> tuple[Watched, ...]:
    """NodeOverlays; a cluster may do without the definition."""
    return (
        Watched(
            NODE_OVERLAY.plural,
            NODE_OVERLAY.path(),
            _overlay,
            events.NodeOverlayGone,
            broken=lambda _raw, head, problem: _decode_broken(head, problem),
            optional=True,
        ),
    )


def _overlay(raw: bytes) -> Decoded:
    """One that breaks rules is still seen: its conditions say which."""
    manifest = msgspec.json.decode(raw)
    try:
        overlay = read_overlay(manifest)
    except Exception as error:  # whatever is wrong with it, it is that overlay's trouble alone
        return _decode_broken(manifest, problem_of(error))
    return overlay.name, (events.NodeOverlaySeen(overlay),)


def _decode_broken(manifest: Mapping[str, Any], problem: str) -> Decoded:
    overlay = read_broken_overlay(manifest, problem)
    return overlay.name, (events.NodeOverlaySeen(overlay),)
