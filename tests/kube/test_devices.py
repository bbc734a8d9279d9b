"""Devices, their classes, and claims on them, as the API server has them."""

import json

import pytest

from nodeless.kube.devices import (
    decode_device_class,
    decode_resource_claim,
    decode_resource_claim_template,
    decode_resource_slice,
    watched_devices,
)
from nodeless.model import events
from nodeless.model.devices import (
    AllocatedDevice,
    CounterSet,
    DeviceAlternative,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceShare,
    NodeAccess,
    RequestPolicy,
)
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.quantity import QuantityError
from nodeless.model.requirements import Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration
from nodeless.state import apply

CEL = [{"cel": {"expression": "true"}}]
METADATA = {"name": "gpu", "namespace": "shop"}


def read(decode, **document):
    return decode(json.dumps({"metadata": METADATA, **document}).encode())


def requests_of(*requests, constraints=()):
    spec = {"devices": {"requests": list(requests), "constraints": list(constraints)}}
    return read(decode_resource_claim_template, spec={"spec": spec}).devices


def test_a_request_is_of_one_kind_or_of_the_first_that_is_available():
    tolerations = [{"key": "sick", "operator": "Exists", "effect": "NoExecute"}]
    exact = {"deviceClassName": "a", "selectors": CEL, "count": 2, "tolerations": tolerations}
    either = [
        {"name": "x", "deviceClassName": "b"},
        {"name": "y", "deviceClassName": "c", "allocationMode": "All"},
    ]
    claimed = requests_of({"name": "one", "exactly": exact}, {"name": "two", "firstAvailable": either})
    tolerated = (Toleration("sick", "Exists", "", "NoExecute"),)
    assert claimed.requests == (
        DeviceRequest("one", (DeviceAlternative("", "a", ("true",), 2, False, tolerated),)),
        DeviceRequest("two", (DeviceAlternative("x", "b"), DeviceAlternative("y", "c", (), None))),
    )


def test_capacity_constraints_and_kinds_to_come_are_kept():
    part = {"deviceClassName": "a", "capacity": {"requests": {"memory": "1Gi"}}}
    claimed = requests_of(
        {"name": "part", "exactly": part},
        {"name": "later", "someday": {}},
        constraints=[{"matchAttribute": "x.com/root"}, {"requests": ["a"], "distinctAttribute": "x.com/id"}],
    )
    assert claimed.requests[0].alternatives[0].capacity == (("memory", 2**30 * 1000),)
    assert claimed.requests[1].alternatives == ()
    assert claimed.constraints == (
        DeviceConstraint((), "x.com/root"),
        DeviceConstraint(("a",), "", "x.com/id"),
    )


def test_attributes_and_capacity_belong_to_their_driver_unless_they_say_otherwise():
    device = {
        "name": "gpu-0",
        "attributes": {
            "cores": {"int": 7},
            "mig": {"bool": False},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
            "version": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "1.5"}},
        "taints": [{"key": "sick", "effect": "NoExecute"}],
    }
    parts = [
        {
            "name": "part",
            "consumesCounters": [{"counterSet": "gpu-0", "counters": {"slices": {"value": "2"}}}],
        },
        {
            "name": "shared",
            "allowMultipleAllocations": True,
            "capacity": {
                "memory": {"value": "40Gi", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}},
                "x.com/cores": {
                    "value": 8,
                    "requestPolicy": {"default": 2, "validRange": {"min": 1, "max": 4, "step": "500m"}},
                },
            },
        },
    ]
    pool = {"name": "n1", "generation": 4, "resourceSliceCount": 2}
    spec = {"driver": "d.com", "nodeName": "n1", "pool": pool, "devices": [device, *parts]}
    found = read(decode_resource_slice, spec=spec)
    assert (found.driver, found.pool, found.generation, found.slices, found.node_name) == (
        "d.com",
        "n1",
        4,
        2,
        "n1",
    )
    whole, *others = found.devices
    assert whole.attributes == (
        DeviceAttribute("d.com/cores", integer=7),
        DeviceAttribute("d.com/mig", boolean=False),
        DeviceAttribute("d.com/version", version="1.2.3"),
        DeviceAttribute("resource.kubernetes.io/pcieRoot", string="pci0"),
    )
    assert whole.capacity == (("d.com/memory", 1500),)
    assert whole.taints == (Taint("sick", "NoExecute"),)
    part, shared = others
    assert part.consumes == (CounterSet("gpu-0", (("slices", 2000),)),)
    assert [device.multiple for device in found.devices] == [False, False, True]
    assert shared.policies == (
        ("d.com/memory", RequestPolicy(1000, (1000, 2000))),
        ("x.com/cores", RequestPolicy(2000, (), 1000, 4000, 500)),
    )
    assert shared.unqualified == ("d.com/memory",)


def test_a_slice_says_which_nodes_reach_its_devices_or_leaves_that_to_them():
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    devices = [
        {"name": "a", "nodeName": "n1"},
        {"name": "b", "nodeSelector": zone},
        {"name": "c", "allNodes": True},
    ]
    in_zone = NodeAccess("", (NodeSelectorTerm((Requirement.of("zone", "In", ["a"]),)),))
    of_each = read(decode_resource_slice, spec={"perDeviceNodeSelection": True, "devices": devices})
    assert of_each.access is None
    assert [device.access for device in of_each.devices] == [
        NodeAccess("n1"),
        in_zone,
        NodeAccess(every=True),
    ]
    assert read(decode_resource_slice, spec={"nodeSelector": zone}).access == in_zone
    assert read(decode_resource_slice, spec={"allNodes": True}).access == NodeAccess(every=True)
    counters = [{"name": "gpu-0", "counters": {"slices": {"value": 8}}}]
    pool = read(decode_resource_slice, spec={"nodeName": "n1", "sharedCounters": counters})
    assert pool.counter_sets == (CounterSet("gpu-0", (("slices", 8000),)),)


def test_a_capacity_that_is_no_quantity_is_refused():
    with pytest.raises(QuantityError):
        read(decode_resource_slice, spec={"devices": [{"name": "a", "capacity": {"m": {"value": "much"}}}]})


def test_an_allocation_tells_devices_and_nodes():
    """Access for administration holds no device."""
    results = [
        {"driver": "d.com", "pool": "n1", "device": "gpu-0"},
        {"driver": "d.com", "pool": "n1", "device": "gpu-1", "adminAccess": True},
        {
            "driver": "d.com",
            "pool": "n1",
            "device": "gpu-2",
            "shareID": "1",
            "consumedCapacity": {"memory": "1Gi"},
        },
    ]
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    allocation = {"devices": {"results": results}, "nodeSelector": selector}
    claim = read(decode_resource_claim, status={"allocation": allocation})
    assert claim.allocation.devices == (AllocatedDevice("d.com", "n1", "gpu-0"),)
    share = DeviceShare(AllocatedDevice("d.com", "n1", "gpu-2"), (("d.com/memory", 2**30 * 1000),))
    assert claim.allocation.shares == (share,)
    assert [[one.key for one in term.fields] for term in claim.allocation.terms] == [["metadata.name"]]
    assert read(decode_resource_claim).allocation is None


def test_a_class_has_its_selectors():
    assert read(decode_device_class, spec={"selectors": CEL}) == DeviceClass("gpu", ("true",))


def test_a_class_may_serve_an_extended_resource():
    metadata = {"name": "gpu", "creationTimestamp": "1970-01-01T00:01:00Z"}
    found = read(decode_device_class, metadata=metadata, spec={"extendedResourceName": "nvidia.com/gpu"})
    assert found == DeviceClass("gpu", (), "nvidia.com/gpu", 60.0)


@pytest.mark.parametrize(
    ("annotations", "owner", "pod"),
    [
        ({"resource.kubernetes.io/extended-resource-claim": "true"}, {}, "u1"),
        ({"resource.kubernetes.io/extended-resource-claim": "true"}, {"controller": False}, ""),
        ({}, {}, ""),
    ],
)
def test_a_claim_that_kube_scheduler_made_names_the_pod_whose_extended_resources_it_serves(
    annotations, owner, pod
):
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1", "controller": True, **owner}]
    metadata = {**METADATA, "annotations": annotations, "ownerReferences": owners}
    assert read(decode_resource_claim, metadata=metadata).serves_pod == pod


@pytest.mark.parametrize("kind", watched_devices(), ids=lambda kind: kind.name)
def test_what_is_seen_is_known_until_it_is_gone(kind):
    """A cluster without the API has none of them."""
    assert kind.optional
    assert kind.foreign
    key, seen = kind.decode(json.dumps({"metadata": METADATA}).encode())
    snapshot = Snapshot()
    for event in seen:
        snapshot = apply(snapshot, event)
    parts = (
        snapshot.resource_claims,
        snapshot.resource_claim_templates,
        snapshot.resource_slices,
        snapshot.device_classes,
    )
    assert [key in part for part in parts].count(True) == 1
    assert apply(snapshot, kind.gone(key)) == Snapshot()
    assert isinstance(kind.gone(key), events.DeviceEvent)
