"""Devices of no single node: those that all nodes reach, or those that a selector matches."""

from dataclasses import replace

import pytest

from nodeless.model.devices import (
    AllocatedDevice,
    Allocation,
    ClaimedDevices,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    NodeAccess,
    ResourceClaim,
    ResourceSlice,
)
from nodeless.model.labels import NODE_NAME, ZONE
from nodeless.model.pods import NodeSelectorTerm, PodResourceClaim
from nodeless.scheduling.devices.known_devices import KNOWN_CLASSES
from tests.scheduling.factories import instance_type, needs
from tests.scheduling.test_devices import T4, claiming, gpu_node, one, planned, published, template

DRIVER = "fabric.example.com"
CLASS = DeviceClass(DRIVER, (f"device.driver == '{DRIVER}'",))
PLAIN = instance_type("plain", 16, 64, price=0.1)
EVERY = NodeAccess(every=True)


def in_zone(zone):
    return NodeAccess(terms=(NodeSelectorTerm((needs(ZONE, "In", zone),)),))


def slice_of(access, *names, name="common", slices=1, generation=1, **fields):
    devices = tuple(Device(each, **fields) for each in names)
    return ResourceSlice(name, DRIVER, "rack", generation, slices, "", devices, access)


def plan_of(number, *things, request=None, constraints=(), types=(PLAIN,), **fields):
    asked = request or one(device_class=DRIVER)
    wanted = [claiming(number, "1", **fields), template(asked, constraints=constraints)]
    return planned(*wanted, *things, types=types, classes=(CLASS,))


def placed(plan):
    return len(plan.placements) + sum(len(new.pods) for new in plan.new_nodes)


@pytest.mark.parametrize(("number", "fit"), [(2, 2), (5, 3)])
def test_devices_that_all_nodes_reach_are_given_once_each(number, fit):
    plan = plan_of(number, slice_of(EVERY, "a", "b", "c"))
    assert placed(plan) == fit
    assert len(plan.refusals) == number - fit
    assert {refusal.code for refusal in plan.refusals} <= {"NoDeviceFits"}
    assert all("are all allocated" in refusal.message for refusal in plan.refusals)


def test_the_node_of_a_pod_reaches_its_device():
    plan = plan_of(2, slice_of(in_zone("z2"), "a", "b"))
    assert placed(plan) == 2
    assert {new.requirements[ZONE].values for new in plan.new_nodes} == {frozenset({"z2"})}


def test_an_existing_node_that_reaches_the_device_is_used():
    nodes = [gpu_node("near"), gpu_node("far")]
    nodes[1] = replace(nodes[1], labels={**nodes[1].labels, ZONE: "z2"})
    plan = plan_of(1, *nodes, slice_of(in_zone("z2"), "a"))
    assert plan.placements == {"default/web-0": "far"}


def test_a_selector_may_name_nodes():
    term = NodeSelectorTerm((), match_fields=True, fields=(needs(NODE_NAME, "In", "far"),))
    plan = plan_of(1, gpu_node("near"), gpu_node("far"), slice_of(NodeAccess(terms=(term,)), "a"))
    assert plan.placements == {"default/web-0": "far"}


def test_each_device_may_say_which_nodes_reach_it():
    devices = (
        Device("a", access=in_zone("z1")),
        Device("b", access=in_zone("z2")),
        Device("c", access=NodeAccess("near")),
    )
    made = ResourceSlice("common", DRIVER, "rack", 1, 1, "", devices)
    plan = plan_of(4, gpu_node("near"), made)
    assert placed(plan) == 3
    assert len(plan.refusals) == 1


def test_what_claims_have_is_not_given_again():
    held = Allocation((AllocatedDevice(DRIVER, "rack", "a"),))
    plan = plan_of(2, slice_of(EVERY, "a", "b"), ResourceClaim("default", "held", ClaimedDevices(), held))
    assert placed(plan) == 1


@pytest.mark.parametrize(("slices", "generation", "fit"), [(1, 1, 2), (2, 1, 0), (1, 0, 1)])
def test_a_pool_counts_once_all_of_its_newest_slices_are_there(slices, generation, fit):
    newer = slice_of(EVERY, "c", name="newer") if generation == 0 else None
    made = [slice_of(EVERY, "a", "b", slices=slices, generation=generation), *([newer] if newer else [])]
    assert placed(plan_of(3, *made)) == fit


def test_a_claim_gets_all_of_its_devices_where_one_node_reaches_them():
    made = [
        slice_of(in_zone("z1"), "a", name="one", slices=2),
        slice_of(in_zone("z2"), "b", "c", name="two", slices=2),
    ]
    two = one(device_class=DRIVER, count=2)
    plan = plan_of(2, *made, request=two)
    assert placed(plan) == 1
    assert {new.requirements[ZONE].values for new in plan.new_nodes} == {frozenset({"z2"})}


def test_constraints_and_counters_hold_for_common_devices_too():
    counters = ResourceSlice(
        "counters", DRIVER, "rack", 1, 2, "", (), EVERY, (CounterSet("link", (("lanes", 3000),)),)
    )
    part = (CounterSet("link", (("lanes", 1500),)),)
    made = slice_of(EVERY, "a", "b", "c", slices=2, consumes=part)
    assert placed(plan_of(3, made, counters)) == 2
    alike = DeviceConstraint((), "x.com/board")
    boards = replace(
        slice_of(EVERY, "a", "b"),
        devices=tuple(Device(name, (DeviceAttribute("x.com/board", string=name),)) for name in "ab"),
    )
    pair = one(device_class=DRIVER, count=2)
    assert placed(plan_of(1, boards, request=pair)) == 1
    assert placed(plan_of(1, boards, request=pair, constraints=[alike])) == 0


def test_devices_of_the_node_are_taken_where_the_common_ones_are_used_up():
    own = ResourceSlice("own", DRIVER, "there", 1, 1, "there", (Device("d"),))
    plan = plan_of(3, gpu_node("there", T4), own, slice_of(EVERY, "a"))
    assert placed(plan) == 2
    assert len(plan.refusals) == 1


def test_pods_that_share_a_claim_share_its_common_device():
    shared = PodResourceClaim("gpu", claim="shared")
    claim = ResourceClaim("default", "shared", ClaimedDevices((one(device_class=DRIVER),)))
    plan = plan_of(3, slice_of(EVERY, "a"), claim, claims=(shared,))
    assert placed(plan) == 3


def test_a_refusal_says_what_no_common_device_meets():
    selector = f"'speed' in device.attributes['{DRIVER}']"
    plan = plan_of(1, slice_of(EVERY, "a"), request=one(selector, device_class=DRIVER))
    assert selector in plan.refusals[0].message


GPU_AND_LINK = (one(), one(device_class=DRIVER, name="link"))


def both(*things, number=1, constraints=(), requests=GPU_AND_LINK, **fields):
    """Pods whose claim asks for a GPU of the node and for a device of the fabric."""
    wanted = [claiming(number, "1", **fields), template(*requests, constraints=constraints)]
    return planned(*wanted, *things, types=(PLAIN, T4), classes=(*KNOWN_CLASSES, CLASS))


def test_a_claim_is_met_by_devices_of_its_node_and_of_no_single_one_together():
    """Three GPUs are bought with three nodes; of the fabric there are two devices, in one zone."""
    plan = both(slice_of(in_zone("z2"), "a", "b"), number=3)
    assert [new.instance_type for new in plan.new_nodes] == [T4.name] * 2
    assert {new.requirements[ZONE].values for new in plan.new_nodes} == {frozenset({"z2"})}
    (refusal,) = plan.refusals
    assert "are all allocated" in refusal.message


def test_such_a_claim_takes_the_devices_of_an_existing_node():
    plan = both(gpu_node("there", T4), published("there", 1), slice_of(EVERY, "a"))
    assert plan.placements == {"default/web-0": "there"}
    assert not plan.new_nodes


def test_constraints_hold_for_each_part_of_such_a_claim():
    boards = replace(
        slice_of(EVERY, "a", "b"),
        devices=tuple(Device(name, (DeviceAttribute("x.com/board", string=name),)) for name in "ab"),
    )
    links = (one(), one(device_class=DRIVER, count=2, name="link"))
    assert placed(both(boards, requests=links)) == 1
    assert placed(both(boards, requests=links, constraints=[DeviceConstraint(("gpu",), "x.com/board")])) == 0
    assert placed(both(boards, requests=links, constraints=[DeviceConstraint(("link",), "x.com/board")])) == 0
    apart = DeviceConstraint(("link",), distinct_attribute="x.com/board")
    assert placed(both(boards, requests=links, constraints=[apart])) == 1


@pytest.mark.parametrize("about", [(), ("gpu", "link")], ids=["all requests", "both requests"])
def test_a_constraint_about_devices_of_a_node_and_of_no_single_one_is_met_by_none(about):
    plan = both(slice_of(EVERY, "a"), constraints=[DeviceConstraint(about, "x.com/board")])
    assert placed(plan) == 0
    assert plan.refusals[0].code == "NoDeviceFits"
