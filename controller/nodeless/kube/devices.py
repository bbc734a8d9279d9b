"""From the documents to the model: devices, their classes, and claims on them.

The API is served from Kubernetes 1.34 on; a cluster without it has no such objects.
"""

from collections.abc import Callable, Mapping

import msgspec

from nodeless.api.times import parse_time
from nodeless.kube import device_documents as documents
from nodeless.kube.decoding import selector_term
from nodeless.kube.documents import Metadata
from nodeless.kube.reflector import Watched
from nodeless.model import events
from nodeless.model.devices import (
    AllocatedDevice,
    Allocation,
    Amounts,
    ClaimedDevices,
    CounterSet,
    Device,
    DeviceAlternative,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceShare,
    NodeAccess,
    RequestPolicy,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    qualified,
)
from nodeless.model.quantity import parse_milli
from nodeless.model.taints import Taint, Toleration

GROUP_VERSION = "resource.k8s.io/v1"
_ALL = "All"
#: kube-scheduler's mark of a claim that it makes for a pod's extended resources (KEP-5004).
_SERVES_EXTENDED_RESOURCES = "resource.kubernetes.io/extended-resource-claim"
_CLAIM = msgspec.json.Decoder(documents.ResourceClaim)
_TEMPLATE = msgspec.json.Decoder(documents.ResourceClaimTemplate)
_SLICE = msgspec.json.Decoder(documents.ResourceSlice)
_CLASS = msgspec.json.Decoder(documents.DeviceClass)
Decoded = tuple[str, tuple[events.Event, ...]]


def watched_devices() -> tuple[Watched, ...]:
    """Claims on devices, and what they may be met by."""

    def kind(plural: str, decode: Callable[[bytes], Decoded], gone: Callable[[str], events.Event]) -> Watched:
        return Watched(plural, f"/apis/{GROUP_VERSION}/{plural}", decode, gone, optional=True, foreign=True)

    return (
        kind("resourceclaims", _claim, events.ResourceClaimGone),
        kind("resourceclaimtemplates", _template, events.ResourceClaimTemplateGone),
        kind("resourceslices", _slice, events.ResourceSliceGone),
        kind("deviceclasses", _class, events.DeviceClassGone),
    )


def decode_resource_claim(raw: bytes) -> ResourceClaim:
    """A ResourceClaim from its JSON. Raises msgspec.DecodeError."""
    document = _CLAIM.decode(raw)
    metadata, allocation = document.metadata, document.status.allocation
    return ResourceClaim(
        metadata.namespace,
        metadata.name,
        _claimed(document.spec.devices),
        _allocation(allocation) if allocation is not None else None,
        parse_time(metadata.deletionTimestamp) if metadata.deletionTimestamp else None,
        _served_pod(metadata),
    )


def _served_pod(metadata: Metadata) -> str:
    """Uid of the pod for whose extended resources kube-scheduler made a claim."""
    if metadata.annotations.get(_SERVES_EXTENDED_RESOURCES) != "true":
        return ""
    return next(
        (owner.uid for owner in metadata.ownerReferences if owner.controller and owner.kind == "Pod"), ""
    )


def decode_resource_claim_template(raw: bytes) -> ResourceClaimTemplate:
    """A ResourceClaimTemplate from its JSON. Raises msgspec.DecodeError."""
    document = _TEMPLATE.decode(raw)
    metadata = document.metadata
    return ResourceClaimTemplate(metadata.namespace, metadata.name, _claimed(document.spec.spec.devices))


def decode_resource_slice(raw: bytes) -> ResourceSlice:
    """A ResourceSlice from its JSON. Raises msgspec.DecodeError, QuantityError."""
    document = _SLICE.decode(raw)
    spec = document.spec
    return ResourceSlice(
        document.metadata.name,
        spec.driver,
        spec.pool.name,
        spec.pool.generation,
        spec.pool.resourceSliceCount,
        spec.nodeName,
        tuple(
            _device(device, spec.driver, own_access=bool(spec.perDeviceNodeSelection))
            for device in spec.devices
        ),
        None if spec.perDeviceNodeSelection else _access(spec),
        tuple(CounterSet(one.name, _counters(one.counters)) for one in spec.sharedCounters),
    )


def decode_device_class(raw: bytes) -> DeviceClass:
    """A DeviceClass from its JSON. Raises msgspec.DecodeError."""
    document = _CLASS.decode(raw)
    metadata, spec = document.metadata, document.spec
    return DeviceClass(
        metadata.name,
        _expressions(spec.selectors),
        spec.extendedResourceName or "",
        parse_time(metadata.creationTimestamp) if metadata.creationTimestamp else 0.0,
    )


def _claimed(devices: documents.Devices) -> ClaimedDevices:
    return ClaimedDevices(
        tuple(_request(request) for request in devices.requests),
        tuple(
            DeviceConstraint(
                tuple(constraint.requests),
                constraint.matchAttribute or "",
                constraint.distinctAttribute or "",
            )
            for constraint in devices.constraints
        ),
    )


def _request(request: documents.Request) -> DeviceRequest:
    alternatives = [request.exactly] if request.exactly is not None else request.firstAvailable
    return DeviceRequest(request.name, tuple(_alternative(one) for one in alternatives))


def _alternative(one: documents.SubRequest) -> DeviceAlternative:
    return DeviceAlternative(
        one.name,
        one.deviceClassName,
        _expressions(one.selectors),
        None if one.allocationMode == _ALL else max(one.count or 1, 1),
        bool(one.adminAccess),
        tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in one.tolerations),
        _amounts(one.capacity.requests) if one.capacity is not None else (),
    )


def _expressions(selectors: list[documents.Selector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def _amounts(quantities: Mapping[str, documents.Quantity]) -> Amounts:
    return tuple(sorted((name, parse_milli(amount)) for name, amount in quantities.items()))


def _counters(counters: Mapping[str, documents.Counter]) -> Amounts:
    return _amounts({name: counter.value for name, counter in counters.items()})


def _access(one: documents.SliceSpec | documents.Device) -> NodeAccess:
    terms = one.nodeSelector.nodeSelectorTerms if one.nodeSelector is not None else ()
    return NodeAccess(one.nodeName, tuple(map(selector_term, terms)), bool(one.allNodes))


def _policy(policy: documents.RequestPolicy) -> RequestPolicy:
    allowed = policy.validRange or documents.ValidRange()

    def amount(quantity: documents.Quantity | None) -> int | None:
        return None if quantity is None else parse_milli(quantity)

    return RequestPolicy(
        amount(policy.default),
        tuple(map(parse_milli, policy.validValues)),
        amount(allowed.min),
        amount(allowed.max),
        amount(allowed.step),
    )


def _device(device: documents.Device, driver: str, *, own_access: bool) -> Device:
    return Device(
        device.name,
        tuple(
            sorted(
                DeviceAttribute(
                    qualified(name, driver), value.string, value.integer, value.boolean, value.version
                )
                for name, value in device.attributes.items()
            )
        ),
        _amounts({qualified(name, driver): amount.value for name, amount in device.capacity.items()}),
        tuple(Taint(taint.key, taint.effect, taint.value) for taint in device.taints),
        bool(device.allowMultipleAllocations),
        tuple(
            sorted(
                (qualified(name, driver), _policy(amount.requestPolicy))
                for name, amount in device.capacity.items()
                if amount.requestPolicy is not None
            )
        ),
        tuple(CounterSet(one.counterSet, _counters(one.counters)) for one in device.consumesCounters),
        tuple(sorted(qualified(name, driver) for name in device.capacity if "/" not in name)),
        _access(device) if own_access else None,
    )


def _allocation(allocation: documents.Allocation) -> Allocation:
    selector = allocation.nodeSelector
    held = [result for result in allocation.devices.results if not result.adminAccess]
    return Allocation(
        tuple(_allocated(result) for result in held if not result.shareID),
        tuple(selector_term(term) for term in selector.nodeSelectorTerms) if selector is not None else (),
        tuple(
            DeviceShare(
                _allocated(result),
                _amounts(
                    {qualified(name, result.driver): part for name, part in result.consumedCapacity.items()}
                ),
            )
            for result in held
            if result.shareID
        ),
    )


def _allocated(result: documents.AllocationResult) -> AllocatedDevice:
    return AllocatedDevice(result.driver, result.pool, result.device)


def _claim(raw: bytes) -> Decoded:
    claim = decode_resource_claim(raw)
    return claim.key, (events.ResourceClaimSeen(claim),)


def _template(raw: bytes) -> Decoded:
    template = decode_resource_claim_template(raw)
    return template.key, (events.ResourceClaimTemplateSeen(template),)


def _slice(raw: bytes) -> Decoded:
    resource_slice = decode_resource_slice(raw)
    return resource_slice.name, (events.ResourceSliceSeen(resource_slice),)


def _class(raw: bytes) -> Decoded:
    device_class = decode_device_class(raw)
    return device_class.name, (events.DeviceClassSeen(device_class),)
