"""What is known of devices, their classes, and claims on them."""

from dataclasses import replace

from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.state.entries import delete_key


def apply_devices(snapshot: Snapshot, event: events.DeviceEvent) -> Snapshot:
    """The snapshot after an event about devices."""
    match event:
        case events.ResourceClaimSeen(claim):
            return replace(snapshot, resource_claims=snapshot.resource_claims.set(claim.key, claim))
        case events.ResourceClaimGone(key):
            return replace(snapshot, resource_claims=delete_key(snapshot.resource_claims, key))
        case events.ResourceClaimTemplateSeen(template):
            templates = snapshot.resource_claim_templates.set(template.key, template)
            return replace(snapshot, resource_claim_templates=templates)
        case events.ResourceClaimTemplateGone(key):
            templates = delete_key(snapshot.resource_claim_templates, key)
            return replace(snapshot, resource_claim_templates=templates)
        case events.ResourceSliceSeen(resource_slice):
            slices = snapshot.resource_slices.set(resource_slice.name, resource_slice)
            return replace(snapshot, resource_slices=slices)
        case events.ResourceSliceGone(name):
            return replace(snapshot, resource_slices=delete_key(snapshot.resource_slices, name))
        case events.DeviceClassSeen(device_class):
            return replace(
                snapshot, device_classes=snapshot.device_classes.set(device_class.name, device_class)
            )
        case events.DeviceClassGone(name):
            return replace(snapshot, device_classes=delete_key(snapshot.device_classes, name))
