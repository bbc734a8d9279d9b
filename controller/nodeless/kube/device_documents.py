"""The parts of `resource.k8s.io/v1` that we read, as msgspec structs; field names are the API's."""

import msgspec

from nodeless.kube.documents import Metadata, NodeSelector, Toleration


class CelSelector(msgspec.Struct):
    expression: str = ""


class Selector(msgspec.Struct):
    cel: CelSelector | None = None


class DeviceTaint(msgspec.Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class Attribute(msgspec.Struct, rename={"integer": "int", "boolean": "bool"}):
    string: str | None = None
    integer: int | None = None
    boolean: bool | None = None
    version: str | None = None


Quantity = str | int | float


class ValidRange(msgspec.Struct):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(msgspec.Struct):
    default: Quantity | None = None
    validValues: list[Quantity] = []
    validRange: ValidRange | None = None


class Capacity(msgspec.Struct):
    value: Quantity = "0"
    requestPolicy: RequestPolicy | None = None


class Counter(msgspec.Struct):
    value: Quantity = "0"


class CounterSet(msgspec.Struct):
    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(msgspec.Struct):
    counterSet: str = ""
    counters: dict[str, Counter] = {}


class Device(msgspec.Struct):
    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Capacity] = {}
    taints: list[DeviceTaint] = []
    consumesCounters: list[CounterConsumption] = []
    allowMultipleAllocations: bool | None = None
    nodeName: str = ""
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None


class Pool(msgspec.Struct):
    name: str = ""
    generation: int = 0
    resourceSliceCount: int = 1


class SliceSpec(msgspec.Struct):
    driver: str = ""
    pool: Pool = msgspec.field(default_factory=Pool)
    nodeName: str = ""
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None
    perDeviceNodeSelection: bool | None = None
    devices: list[Device] = []
    sharedCounters: list[CounterSet] = []


class ResourceSlice(msgspec.Struct):
    metadata: Metadata
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class ClassSpec(msgspec.Struct):
    selectors: list[Selector] = []
    extendedResourceName: str | None = None


class DeviceClass(msgspec.Struct):
    metadata: Metadata
    spec: ClassSpec = msgspec.field(default_factory=ClassSpec)


class CapacityRequirements(msgspec.Struct):
    requests: dict[str, Quantity] = {}


class SubRequest(msgspec.Struct):
    name: str = ""
    deviceClassName: str = ""
    selectors: list[Selector] = []
    allocationMode: str = "ExactCount"
    count: int | None = None
    adminAccess: bool | None = None
    tolerations: list[Toleration] = []
    capacity: CapacityRequirements | None = None


class Request(msgspec.Struct):
    name: str = ""
    exactly: SubRequest | None = None
    firstAvailable: list[SubRequest] = []


class Constraint(msgspec.Struct):
    requests: list[str] = []
    matchAttribute: str | None = None
    distinctAttribute: str | None = None


class Devices(msgspec.Struct):
    requests: list[Request] = []
    constraints: list[Constraint] = []


class ClaimSpec(msgspec.Struct):
    devices: Devices = msgspec.field(default_factory=Devices)


class AllocationResult(msgspec.Struct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    adminAccess: bool | None = None
    shareID: str | None = None
    consumedCapacity: dict[str, Quantity] = {}


class AllocatedDevices(msgspec.Struct):
    results: list[AllocationResult] = []


class Allocation(msgspec.Struct):
    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    nodeSelector: NodeSelector | None = None


class ClaimStatus(msgspec.Struct):
    allocation: Allocation | None = None


class ResourceClaim(msgspec.Struct):
    metadata: Metadata
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class TemplateSpec(msgspec.Struct):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class ResourceClaimTemplate(msgspec.Struct):
    metadata: Metadata
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)
