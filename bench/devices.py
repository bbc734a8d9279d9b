# ruff: noqa: T201 - prints its figures
"""Seconds to plan 1,000 pods that claim GPUs over 50 GPU nodes, beside the same pods by extended resource.

The pool may buy every type of the bundled catalog that has GPUs of NVIDIA. A claim asks for GPUs of more than
so much memory, in twelve kinds; by extended resource as many are asked for, and the memory by the label
`karpenter.k8s.aws/instance-gpu-memory`. On each node every other GPU is taken. Both are planned without
column generation (`time_box=0`) and with it; the best of five counts, and the first is to take twice as long
at most.

Run: python -m bench.devices
"""

from collections.abc import Callable, Iterator
from functools import partial
from time import process_time

from immutables import Map

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.model.devices import (
    AllocatedDevice,
    Allocation,
    ClaimedDevices,
    Device,
    DeviceAlternative,
    DeviceAttribute,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_GPU_MEMORY,
    NODE_POOL,
    REGISTERED,
    ZONE,
)
from nodeless.model.nodes import Node
from nodeless.model.plan import Plan
from nodeless.model.pods import NodeSelectorTerm, Pod, PodResourceClaim, PodShape
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, NodeClass, Pool, Reference
from nodeless.model.requirements import Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, solve
from nodeless.scheduling.devices.known_devices import KNOWN_CLASSES, NVIDIA, known_devices

#: What planning claims may take, of what planning the resource takes.
MOST = 2.0
_PODS, _NODES, _REPETITIONS = 1000, 50, 5
_GPU = "nvidia.com/gpu"
_POOL = Pool(Reference(NODE_POOL_KIND, "gpus"), Reference(EC2_NODE_CLASS, "gpus"))
#: (GPUs, more than so many GiB of memory of each) of the kinds of pods.
_KINDS = [(count, gib) for count in (1, 2, 4, 8) for gib in (0, 20, 40)]


def main() -> None:
    types = gpu_types()
    catalog = {_POOL.key: types}
    print(f"{_PODS} pods of {len(_KINDS)} kinds, {_NODES} nodes, {len(types)} types with GPUs of NVIDIA")
    for named, policy in (("without column generation", Policy(time_box=0)), ("with it", Policy())):
        seconds = []
        for seen in (by_claims(types), by_resource(types)):
            best, plan = _timed(partial(solve, seen, catalog, policy))
            seconds.append(best)
            print(
                f"  {best:.3f} s, {len(plan.placements)} pods on the nodes, {len(plan.new_nodes)} new nodes"
                f" for {sum(new.price for new in plan.new_nodes):.2f} USD an hour,"
                f" {len(plan.refusals)} pods refused"
            )
        print(f"{named}: claims take {seconds[0] / seconds[1]:.2f} times as long, at most {MOST:.1f}")


def _timed(planned: Callable[[], Plan]) -> tuple[float, Plan]:
    """Seconds of the processor, the least of some, and the plan."""
    best = float("inf")
    for _ in range(_REPETITIONS):
        started = process_time()
        plan = planned()
        best = min(best, process_time() - started)
    return best, plan


def gpu_types() -> tuple[InstanceType, ...]:
    """Every type of the bundled catalog whose GPUs are known."""
    file = bundled_catalog()
    node_class = NodeClass(_POOL.node_class, ami_family="AL2023")
    seen = Snapshot(pools=Map({_POOL.key: _POOL}), node_classes=Map({node_class.key: node_class}))
    catalogs, problems = offline_catalogs(file, seen, file.all_zones)
    assert not problems, problems
    # Parts of GPUs are not counted by the resource.
    whole = (each for each in catalogs[_POOL.key] if each.capacity.get(_GPU))
    return tuple(each for each in whole if known_devices(each).of({NVIDIA}))


def by_claims(types: tuple[InstanceType, ...]) -> Snapshot:
    """A cluster in which drivers publish the GPUs, and pods claim them."""
    templates, waiting = [], list[Pod]()
    for name, number, count, gib in _kinds():
        selector = f"device.capacity['{NVIDIA}'].memory.isGreaterThan(quantity('{gib}Gi'))"
        request = DeviceRequest("gpu", (DeviceAlternative("", NVIDIA, (selector,), count),))
        templates.append(ResourceClaimTemplate("default", name, ClaimedDevices((request,))))
        waiting += _pods(name, number, resource_claims=(PodResourceClaim("gpu", template=name),))
    nodes, slices, held = list[Node](), list[ResourceSlice](), list[ResourceClaim]()
    for name, kind in _nodes(types):
        nodes.append(_node(name, kind, 0))
        known = known_devices(kind).of({NVIDIA}).groups
        devices = [group.device for group in known for _ in range(group.count)]
        published = tuple(
            Device(
                f"gpu-{number}",
                (*device.attributes, DeviceAttribute(f"{NVIDIA}/uuid", string=f"{name}-{number}")),
                device.capacity,
            )
            for number, device in enumerate(devices)
        )
        slices.append(ResourceSlice(name, NVIDIA, name, 1, 1, name, published))
        taken = tuple(AllocatedDevice(NVIDIA, name, device.name) for device in published[1::2])
        held.append(ResourceClaim("default", f"held-{name}", ClaimedDevices(), Allocation(taken)))
    return Snapshot(
        pools=Map({_POOL.key: _POOL}),
        pods=Map({pod.key: pod for pod in waiting}),
        nodes=Map({each.name: each for each in nodes}),
        resource_claim_templates=Map({each.key: each for each in templates}),
        resource_claims=Map({each.key: each for each in held}),
        resource_slices=Map({each.name: each for each in slices}),
        device_classes=Map({each.name: each for each in KNOWN_CLASSES}),
    )


def by_resource(types: tuple[InstanceType, ...]) -> Snapshot:
    """The same cluster with the device plugin, and pods that request its resource."""
    waiting = list[Pod]()
    for name, number, count, gib in _kinds():
        more = NodeSelectorTerm((Requirement.of(INSTANCE_GPU_MEMORY, "Gt", [str(gib * 1024)]),))
        waiting += _pods(name, number, gpus=count, required_terms=(more,))
    nodes = [_node(name, kind, (kind.capacity[_GPU] + 1) // 2) for name, kind in _nodes(types)]
    return Snapshot(
        pools=Map({_POOL.key: _POOL}),
        pods=Map({pod.key: pod for pod in waiting}),
        nodes=Map({each.name: each for each in nodes}),
    )


def _kinds() -> Iterator[tuple[str, int, int, int]]:
    for number, (count, gib) in enumerate(_KINDS):
        yield f"kind-{number}", _PODS // len(_KINDS) + (number < _PODS % len(_KINDS)), count, gib


def _nodes(types: tuple[InstanceType, ...]) -> Iterator[tuple[str, InstanceType]]:
    for number in range(_NODES):
        yield f"n{number}", types[number * len(types) // _NODES]


def _pods(name: str, number: int, gpus: int = 0, **shape: object) -> list[Pod]:
    requests = {"cpu": 2000, "memory": 8 * 2**30, "pods": 1, **({_GPU: gpus} if gpus else {})}
    of_all = PodShape(tuple(sorted(requests.items())), **shape)  # type: ignore[arg-type]
    keys = (f"{name}-{one}" for one in range(number))
    return [Pod(key, "default", key, of_all, labels={"app": name}, unschedulable=True) for key in keys]


def _node(name: str, kind: InstanceType, gpus: int) -> Node:
    labels = {
        **kind.requirements.single_values(),
        HOSTNAME: name,
        NODE_POOL: _POOL.name,
        ZONE: kind.offerings[0].zone,
        CAPACITY_TYPE: "on-demand",
        INITIALIZED: "true",
        REGISTERED: "true",
    }
    allocatable = {key: amount for key, amount in kind.allocatable.items() if key != _GPU}
    allocatable |= {_GPU: gpus} if gpus else {}
    zone = kind.offerings[0].zone
    return Node(
        name, provider_id=f"aws:///{zone}/i-{name}", labels=labels, allocatable=allocatable, ready=True
    )


if __name__ == "__main__":
    main()
