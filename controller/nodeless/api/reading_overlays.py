"""Manifests to the model: NodeOverlays."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeless.api.devices_annotation import read_devices
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.kinds import NODE_OVERLAY
from nodeless.api.metadata import read_metadata
from nodeless.api.node_overlay import NodeOverlay as Manifest
from nodeless.api.node_overlay import NodeOverlayStatus
from nodeless.api.reading_parts import conditions_of, read_conditions, read_requirement
from nodeless.api.validation import require_valid
from nodeless.model.labels import DEVICES
from nodeless.model.overlays import NodeOverlay, PriceChange
from nodeless.model.requirements import Requirements
from nodeless.model.resources import parse_resources


def read_overlay(manifest: Mapping[str, Any]) -> NodeOverlay:
    """The overlay that a NodeOverlay describes.

    Raises:
        InvalidObject: It breaks rules; all of them are named.
    """
    require_valid(manifest, NODE_OVERLAY)
    manifest = drop_nulls(manifest)
    metadata, document = read_metadata(manifest), msgspec.convert(manifest, Manifest)
    spec, status = document.spec, document.status or NodeOverlayStatus()
    return NodeOverlay(
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        resource_version=metadata.resource_version,
        requirements=Requirements(read_requirement(each) for each in spec.requirements),
        price=None if spec.price is None else float(spec.price),
        price_change=None if spec.price_adjustment is None else _price_change(spec.price_adjustment),
        capacity=parse_resources(spec.capacity),
        devices=read_devices(metadata.annotations.get(DEVICES, "")),
        weight=spec.weight or 0,
        deletion_timestamp=metadata.deletion_timestamp,
        conditions=read_conditions(status.conditions),
    )


def read_broken_overlay(manifest: Mapping[str, Any], problem: str) -> NodeOverlay:
    """An overlay that cannot be used, by what of it can be read."""
    metadata = read_metadata(manifest)
    return NodeOverlay(
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        resource_version=metadata.resource_version,
        deletion_timestamp=metadata.deletion_timestamp,
        conditions=conditions_of(manifest),
        invalid=problem,
    )


def _price_change(text: str) -> PriceChange:
    return PriceChange(float(text.removesuffix("%")), percent=text.endswith("%"))
