"""Devices that users say of by NodeOverlays: on new nodes, and until a node publishes its own."""

from dataclasses import replace

import pytest

from nodeless.launch.overlays import evaluate, laid_over
from nodeless.model.devices import Device, DeviceAttribute, DriverDevices
from nodeless.model.labels import INSTANCE_TYPE, NODE_POOL
from nodeless.model.overlays import NodeOverlay
from nodeless.model.pools import NODE_POOL_KIND, Reference
from nodeless.model.requirements import Requirements
from nodeless.scheduling import Policy, solve
from nodeless.scheduling.devices.known_devices import KNOWN_CLASSES, NVIDIA
from tests.scheduling.factories import claim, instance_type, needs, pool
from tests.scheduling.test_device_parts import CLASS, DRIVER, shared_device, wants
from tests.scheduling.test_devices import (
    PLAIN,
    T4,
    T4_4,
    claiming,
    cluster,
    gpu_node,
    one,
    published,
    template,
)

FPGA = instance_type("f2.6xlarge", 24, 256, price=1.8)
LARGE = instance_type("f2.48xlarge", 192, 2048, price=15.8)
PLAIN_POOL = pool()
OWN = replace(pool("own"), reference=Reference(NODE_POOL_KIND, "own"))


def says(name, driver, number, *, weight=0, requirements=(), multiple=False, **attributes):
    kept = tuple(DeviceAttribute(f"{driver}/{key}", string=value) for key, value in attributes.items())
    devices = [
        shared_device(f"d{at}", attributes=kept) if multiple else Device(f"d{at}", kept)
        for at in range(number)
    ]
    of_driver = DriverDevices(driver, tuple(devices))
    return NodeOverlay(name, requirements=Requirements(requirements), weight=weight, devices=(of_driver,))


def of_types(*names):
    return needs(INSTANCE_TYPE, "In", *names)


def planned(
    overlays, *things, types=(PLAIN, FPGA, LARGE), pools=(PLAIN_POOL,), classes=(CLASS, *KNOWN_CLASSES)
):
    seen = cluster(*pools, *things, classes=classes)
    sold = [(seen.pools[key], types) for key in sorted(seen.pools)]
    counting = evaluate(overlays, sold).accepted
    catalog = {each.key: laid_over(counting, each, some) for each, some in sold}
    return solve(seen, catalog, Policy())


def launched(plan):
    return sorted((new.pool.name, new.instance_type) for new in plan.new_nodes)


def test_a_type_of_which_nothing_was_known_is_bought_for_what_a_user_says_of_it():
    overlays = [says("a", DRIVER, 1, requirements=[of_types("f2.6xlarge")], model="u250")]
    model = f"device.attributes['{DRIVER}'].model == '%s'"
    plan = planned(overlays, claiming(3, "1"), template(one(model % "u250", device_class=DRIVER)))
    assert launched(plan) == [("default", "f2.6xlarge")] * 3
    other = planned(overlays, claiming(3, "1"), template(one(model % "v80", device_class=DRIVER)))
    assert not other.new_nodes
    assert not planned([], claiming(3, "1"), template(one(device_class=DRIVER))).new_nodes


def test_shares_of_a_device_are_planned_as_the_user_says_them():
    overlays = [says("a", DRIVER, 1, requirements=[of_types("f2.6xlarge")], multiple=True)]
    plan = planned(overlays, claiming(8, "1"), template(wants(10)))
    assert launched(plan) == [("default", "f2.6xlarge")] * 2


def test_another_driver_of_the_type_stays_as_it_is_known():
    overlays = [says("a", DRIVER, 1, requirements=[of_types(T4.name)])]
    request = (one(), one(device_class=DRIVER, name="other"))
    plan = planned(overlays, claiming(1), template(*request), types=(PLAIN, T4, T4_4))
    assert launched(plan) == [("default", T4.name)]


def test_what_a_user_says_goes_before_what_is_known():
    """GPUs that a driver shares are no whole ones any more."""
    overlays = [says("a", NVIDIA, 4, requirements=[of_types(T4.name)], type="gpu")]
    plan = planned(overlays, claiming(1), template(one(count=4)), types=(PLAIN, T4, T4_4))
    assert launched(plan) == [("default", T4.name)]


@pytest.mark.parametrize("weights", [(2, 1), (1, 2)])
def test_of_two_overlays_of_a_driver_the_one_of_higher_weight_counts(weights):
    overlays = [
        says(name, DRIVER, number, weight=weight, requirements=[of_types("f2.6xlarge")])
        for name, number, weight in zip("ab", (1, 2), weights, strict=True)
    ]
    plan = planned(overlays, claiming(2, "1"), template(one(device_class=DRIVER)))
    assert len(plan.new_nodes) == (2 if weights[0] > weights[1] else 1)


def test_two_overlays_of_one_weight_contradict_each_other():
    overlays = [says(name, DRIVER, 1, requirements=[of_types("f2.6xlarge")]) for name in "ab"]
    found = evaluate(overlays, [(pool(), (FPGA,))])
    assert [overlay.name for overlay in found.accepted] == ["b"]
    assert f"devices of {DRIVER} of f2.6xlarge" in str(found.contradictions["a"])


def own_pool_only(**fields):
    return says(
        "a", DRIVER, 1, requirements=[of_types("f2.6xlarge"), needs(NODE_POOL, "In", "own")], **fields
    )


def test_an_overlay_may_be_for_one_pool_alone():
    """Nodes of the other pool, the heavier one, have no such devices."""
    pools = (replace(pool(), weight=9), OWN)
    plan = planned([own_pool_only()], claiming(2, "1"), template(one(device_class=DRIVER)), pools=pools)
    assert launched(plan) == [("own", "f2.6xlarge")] * 2


def test_nodes_and_claims_of_the_pool_are_expected_to_publish_what_is_said():
    booting = gpu_node("booting", FPGA, own="unused")
    labels = {key: value for key, value in booting.labels.items() if "provisioner-name" not in key}
    own = replace(booting, labels={**labels, NODE_POOL: "own"})
    other = gpu_node("other", FPGA)
    flying = replace(claim("c", FPGA.name), pool=OWN.reference, labels={NODE_POOL: "own"})
    wanted = [claiming(4, "1"), template(one(device_class=DRIVER))]
    plan = planned([own_pool_only()], own, other, flying, *wanted, pools=(pool(), OWN))
    assert len(plan.placements) == 2
    assert "other" not in plan.placements.values()
    assert launched(plan) == [("own", "f2.6xlarge")] * 2


def test_what_nodes_of_the_pool_publish_goes_before_what_was_said():
    """And what they publish tells nothing of other pools."""
    there = gpu_node("there", FPGA)
    labels = {key: value for key, value in there.labels.items() if "provisioner-name" not in key}
    there = replace(there, labels={**labels, NODE_POOL: "own"})
    slices = published("there", 2, driver=DRIVER, taken=(0, 1))
    wanted = [claiming(2, "1"), template(one(device_class=DRIVER))]
    plan = planned([own_pool_only()], there, slices, *wanted, pools=(pool(), OWN))
    assert launched(plan) == [("own", "f2.6xlarge")]
