"""Devices that pods claim: those of nodes, those that a type would bring, and what meets a claim."""

from nodeless.scheduling.devices.claims import Devices, claims_devices
from nodeless.scheduling.devices.groups import without_devices

__all__ = ["Devices", "claims_devices", "without_devices"]
