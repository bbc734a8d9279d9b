"""What commands say of the NodeOverlays among manifests: whether they count, and for what."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, InvalidObject
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_OVERLAY, NODE_POOL, PROVISIONER
from nodeless.api.reading_node_classes import read_node_class
from nodeless.api.reading_overlays import read_overlay
from nodeless.api.reading_pools import read_pool
from nodeless.api.rule_codes import RuleCode
from nodeless.launch.overlays import Evaluation
from nodeless.model import events
from nodeless.model.pools import EC2_NODE_CLASS as EC2_NODE_CLASS_KIND
from nodeless.model.pools import NODE_POOL_KIND, NodeClass, Pool, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply

_GATE = (
    "the controller applies them only if the feature gate NodeOverlay is on "
    "(settings.featureGates.nodeOverlay)"
)
_WEIGHT = "give them different weights, or requirements that do not overlap"


def overlay_notes(found: Evaluation) -> Iterator[str]:
    """Lines on the NodeOverlays of a plan for which the cloud was not asked; none where there are none."""
    if found.accepted:
        names = ", ".join(overlay.name for overlay in found.accepted)
        yield f"NodeOverlays apply, in this order: {names}; {_GATE}"
    for name in found.unused:
        yield f"NodeOverlay {name} matches no instance type of any pool"
    for name, contradiction in sorted(found.contradictions.items()):
        yield f"NodeOverlay {name} has no effect: {contradiction}"


def overlay_warnings(manifests: Iterable[Any]) -> dict[str, list[FieldError]]:
    """Warnings about the valid NodeOverlays of files by `NodeOverlay/name`, as far as the files tell.

    `manifests`: the objects of all files, those of v1beta1 as v1 says them.

    Without a pool in the files, contradictions are looked for on a plain one.
    """
    snapshot = _snapshot(manifests)
    if not snapshot.node_overlays:
        return {}
    from nodeless.cloudprovider.aws.catalog_file import bundled_catalog  # noqa: PLC0415
    from nodeless.cloudprovider.aws.offline_catalogs import offline_evaluation  # noqa: PLC0415

    known = bool(snapshot.pools)
    if not known:
        pool = Pool(Reference(NODE_POOL_KIND, "any"), Reference(EC2_NODE_CLASS_KIND, "any"))
        snapshot = _assumed(apply(snapshot, events.PoolSeen(pool)))
    catalog = bundled_catalog().with_spot_percent(100.0)
    found = offline_evaluation(catalog, snapshot, catalog.all_zones)
    warnings = {
        f"{NODE_OVERLAY.kind}/{name}": [
            _warning("spec.weight", _told(str(contradiction)), RuleCode.CONFLICTING_OVERLAYS, _WEIGHT)
        ]
        for name, contradiction in found.contradictions.items()
    }
    for name in found.unused if known else ():
        message = "matches no instance type of any pool in the files, so it changes nothing"
        warnings[f"{NODE_OVERLAY.kind}/{name}"] = [
            _warning("spec.requirements", message, RuleCode.UNUSED_OVERLAY)
        ]
    return warnings


def _told(contradiction: str) -> str:
    return f"no effect: {contradiction.partition('; hint: ')[0]}"


def _warning(path: str, message: str, code: RuleCode, hint: str = "") -> FieldError:
    return FieldError(path, ABSENT, message, hint, warning=True, code=code)


def _snapshot(manifests: Iterable[Any]) -> Snapshot:
    """The pools, node classes and NodeOverlays of files that can be used."""
    snapshot = Snapshot()
    for manifest in manifests:
        with contextlib.suppress(InvalidObject):
            if NODE_OVERLAY.describes(manifest):
                snapshot = apply(snapshot, events.NodeOverlaySeen(read_overlay(manifest)))
            elif PROVISIONER.describes(manifest) or NODE_POOL.describes(manifest):
                snapshot = apply(snapshot, events.PoolSeen(*read_pool(manifest)))
            elif AWS_NODE_TEMPLATE.describes(manifest) or EC2_NODE_CLASS.describes(manifest):
                snapshot = apply(snapshot, events.NodeClassSeen(read_node_class(manifest)))
    return _assumed(snapshot)


def _assumed(snapshot: Snapshot) -> Snapshot:
    """With a plain node class in the place of each that the files lack."""
    for pool in snapshot.pools.values():
        if str(pool.node_class) not in snapshot.node_classes:
            family = "AL2023" if pool.node_class.kind == EC2_NODE_CLASS_KIND else "AL2"
            node_class = NodeClass(pool.node_class, ami_family=family)
            snapshot = apply(snapshot, events.NodeClassSeen(node_class))
    return snapshot
