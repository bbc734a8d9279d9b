"""Devices that pods claim: those of nodes, those that a type would bring, and what meets a claim."""

from nodeless.scheduling.devices.asked import devices_asked
from nodeless.scheduling.devices.claims import Devices
from nodeless.scheduling.devices.extended_resources import class_faults, served_on, serving_classes
from nodeless.scheduling.devices.groups import without_devices
from nodeless.scheduling.devices.known_devices import known_devices
from nodeless.scheduling.devices.places import is_common, own_nodes

__all__ = [
    "Devices",
    "class_faults",
    "devices_asked",
    "is_common",
    "known_devices",
    "own_nodes",
    "served_on",
    "serving_classes",
    "without_devices",
]
