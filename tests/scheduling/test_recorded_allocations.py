"""The search for devices finds what kube-scheduler's does, on drawn pools.

`device_worlds.jsonl` has a pool on a line: slices as a driver publishes them, claims one after the other, and
the devices that the structured allocator of Kubernetes 1.36.3 (`k8s.io/dynamic-resource-allocation`, with
all features that are beta or GA) gave each; null where it found none. The pools are drawn: devices that are
allocated several times, request policies, partitions, taints, constraints, alternatives.
"""

import json
from pathlib import Path

import pytest

from nodeless.kube.devices import decode_resource_claim_template, decode_resource_slice
from nodeless.model.devices import DeviceClass
from nodeless.scheduling.devices.allocation import Allocator, ClaimError
from nodeless.scheduling.devices.groups import Held, pool_place
from nodeless.scheduling.devices.selections import combinations

WORLDS = [
    json.loads(line) for line in Path(__file__).with_name("device_worlds.jsonl").read_text().splitlines()
]
CLASSES = {"d": DeviceClass("d")}


def place_of(world):
    slices = [
        decode_resource_slice(json.dumps({"metadata": {"name": each["name"]}, "spec": each["spec"]}).encode())
        for each in world["slices"]
    ]
    slices.sort(key=lambda each: each.name)
    return pool_place(slices, {each.name: each.devices for each in slices}, Held())


def allocated(allocator, claim):
    """How many devices a claim gets; None: it gets none."""
    document = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"spec": claim}}
    devices = decode_resource_claim_template(json.dumps(document).encode()).devices
    for chosen in combinations([devices], CLASSES):
        try:
            picks = allocator.allocate([devices], chosen)
        except ClaimError:
            return None
        if picks is not None:
            return len(picks)
    return None


@pytest.mark.parametrize("world", WORLDS, ids=[str(number) for number in range(len(WORLDS))])
def test_every_claim_gets_devices_that_got_them_of_kube_scheduler_and_no_other(world):
    allocator = Allocator(place_of(world))
    found = [allocated(allocator, claim) for claim in world["claims"]]
    assert found == [None if names is None else len(names) for names in world["allocated"]]


def test_the_pools_have_what_they_are_to_show():
    shown = "".join(map(json.dumps, WORLDS))
    parts = (
        "consumesCounters",
        "allowMultipleAllocations",
        "requestPolicy",
        "matchAttribute",
        "firstAvailable",
    )
    assert all(part in shown for part in (*parts, "distinctAttribute", "taints", '"allocationMode": "All"'))
