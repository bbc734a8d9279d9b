"""What is known of volumes, claims on them, their classes, and the CSI drivers of nodes."""

from dataclasses import replace

from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.state.entries import delete_key


def apply_storage(snapshot: Snapshot, event: events.StorageEvent) -> Snapshot:
    """The snapshot after an event about storage."""
    match event:
        case events.VolumeClaimSeen(claim):
            return replace(snapshot, volume_claims=snapshot.volume_claims.set(claim.key, claim))
        case events.VolumeClaimGone(key):
            return replace(snapshot, volume_claims=delete_key(snapshot.volume_claims, key))
        case events.VolumeSeen(volume):
            return replace(snapshot, volumes=snapshot.volumes.set(volume.name, volume))
        case events.VolumeGone(name):
            return replace(snapshot, volumes=delete_key(snapshot.volumes, name))
        case events.StorageClassSeen(kind):
            return replace(snapshot, storage_classes=snapshot.storage_classes.set(kind.name, kind))
        case events.StorageClassGone(name):
            return replace(snapshot, storage_classes=delete_key(snapshot.storage_classes, name))
        case events.VolumeAttachmentSeen(attachment):
            return replace(snapshot, attachments=snapshot.attachments.set(attachment.name, attachment))
        case events.VolumeAttachmentGone(name):
            return replace(snapshot, attachments=delete_key(snapshot.attachments, name))
        case events.CsiNodeSeen(node):
            return replace(snapshot, csi_nodes=snapshot.csi_nodes.set(node.name, node))
        case events.CsiNodeGone(name):
            return replace(snapshot, csi_nodes=delete_key(snapshot.csi_nodes, name))
