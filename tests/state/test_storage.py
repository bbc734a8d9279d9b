"""Storage objects come and go, in any order, and twice."""

import pytest

from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import CsiNode, PersistentVolumeClaim, StorageClass, Volume
from nodeless.state import apply

CLAIM = PersistentVolumeClaim("shop", "data")


@pytest.mark.parametrize(
    ("seen", "gone", "entries", "key"),
    [
        (events.VolumeClaimSeen(CLAIM), events.VolumeClaimGone("shop/data"), "volume_claims", "shop/data"),
        (events.VolumeSeen(Volume("pv")), events.VolumeGone("pv"), "volumes", "pv"),
        (
            events.StorageClassSeen(StorageClass("gp3")),
            events.StorageClassGone("gp3"),
            "storage_classes",
            "gp3",
        ),
        (events.CsiNodeSeen(CsiNode("node")), events.CsiNodeGone("node"), "csi_nodes", "node"),
    ],
)
def test_a_storage_object_is_known_while_it_is_there(seen, gone, entries, key):
    before = apply(Snapshot(), gone)
    known = apply(apply(before, seen), seen)
    assert list(getattr(known, entries)) == [key]
    assert apply(apply(known, gone), gone) == before == Snapshot()
