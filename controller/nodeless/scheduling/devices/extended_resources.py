"""Extended resources that devices serve (`DRAExtendedResource`, KEP-5004, on from Kubernetes 1.36 on).

A DeviceClass serves the extended resource that it names, and every class one that has the class's name. A pod
that requests such a resource gets it of a node's allocatable where the node announces any, and else devices
of the class, for which kube-scheduler makes a claim (its plugins `noderesources` and `dynamicresources`).
"""

from collections.abc import Iterable, Iterator, Mapping

from nodeless.api.names import qualified_name_defects
from nodeless.model.devices import DeviceClass
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices.places import PoolSlices, devices_of_node, pools_of
from nodeless.scheduling.devices.selections import selected_by

#: Before the name of a class, the resource that it serves besides the one that it names.
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
_OF_QUOTAS = "requests."
#: Kubernetes that serves extended resources by devices unless its feature gate is turned off.
_FIRST_VERSION = (1, 36)


def serving_classes(snapshot: Snapshot) -> dict[str, DeviceClass]:
    """The class that serves each extended resource.

    An older API server serves none, unless its feature gate is on: then it lets classes name resources.
    """
    classes, version = snapshot.device_classes, snapshot.server_version
    found = _by_resource(classes)
    if version is None or version >= _FIRST_VERSION or found:
        found |= {CLASS_PREFIX + name: device_class for name, device_class in classes.items()}
    return found


def _by_resource(classes: Mapping[str, DeviceClass]) -> dict[str, DeviceClass]:
    """The class of each resource that any names: of several the newest, of equally old ones by name."""
    found: dict[str, DeviceClass] = {}
    for device_class in sorted(classes.values(), key=lambda one: (-one.created_at, one.name)):
        name = device_class.extended_resource
        if name and not extended_resource_defects(name):
            found.setdefault(name, device_class)
    return found


def extended_resource_defects(name: str) -> list[str]:
    """What keeps a text from being the name of an extended resource (the API's `IsExtendedResourceName`)."""
    if "/" not in name:
        return ["has no domain, as example.com/gpu has one"]
    if "kubernetes.io/" in name:
        return ["is of a domain of Kubernetes"]
    if name.startswith(_OF_QUOTAS):
        return [f"begins with {_OF_QUOTAS}, as names of quotas do"]
    return qualified_name_defects(_OF_QUOTAS + name)


def class_faults(classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """What is wrong with the extended resources that classes name, class by class."""
    serving = _by_resource(classes)
    for name, device_class in sorted(classes.items()):
        resource = device_class.extended_resource
        field = f"DeviceClass {name}: spec.extendedResourceName {resource}"
        if not resource:
            continue
        if defects := extended_resource_defects(resource):
            yield f"{field} {'; '.join(defects)}: it serves no resource by that name; hint: correct it"
        elif (other := serving[resource]) is not device_class:
            newer = "is newer" if other.created_at > device_class.created_at else "comes first by name"
            yield (
                f"{field} is served by DeviceClass {other.name} instead, which {newer}; hint: name a resource"
                " in one class alone"
            )


def served_on(snapshot: Snapshot, node: str, resources: Iterable[str]) -> frozenset[str]:
    """Those of some extended resources for which a node publishes devices, all of a pool's slices there."""
    serving = serving_classes(snapshot)
    classes = {resource: serving[resource] for resource in resources if resource in serving}
    if not classes:
        return frozenset()
    devices = [
        (slices.driver, device)
        for slices in map(PoolSlices, pools_of(snapshot.resource_slices.values()))
        for one in slices.complete(node)
        for device in devices_of_node(one, node)
    ]
    return frozenset(
        resource
        for resource, device_class in classes.items()
        if any(selected_by(device_class, driver, device) for driver, device in devices)
    )
