"""Devices that pods claim: those of nodes, those that a type would bring, and what meets a claim."""

from nodeless.scheduling.devices.claims import Devices, claims_devices
from nodeless.scheduling.devices.extended_resources import class_faults, served_on, serving_classes
from nodeless.scheduling.devices.groups import without_devices
from nodeless.scheduling.devices.places import own_nodes

__all__ = [
    "Devices",
    "claims_devices",
    "class_faults",
    "own_nodes",
    "served_on",
    "serving_classes",
    "without_devices",
]
