"""Pods that request an extended resource which devices serve get nodes that announce it, or publish these."""

from dataclasses import replace

import pytest

from nodeless.model.devices import DeviceClass
from nodeless.scheduling.devices import class_faults, served_on, serving_classes
from nodeless.scheduling.devices.known_devices import NVIDIA
from tests.scheduling.test_devices import cluster, gpu_node, published

GPU = "nvidia.com/gpu"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{NVIDIA}"
CLASS = DeviceClass(
    NVIDIA, (f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'gpu'",), GPU
)


def classes(*some):
    return {each.name: each for each in some}


def test_of_classes_that_serve_one_resource_the_newest_counts_then_the_first_by_name():
    old, b, a = (
        DeviceClass("old", (), GPU, 1.0),
        DeviceClass("b", (), GPU, 2.0),
        DeviceClass("a", (), GPU, 2.0),
    )
    serving = serving_classes(classes(old, b, a))
    assert serving[GPU] is a
    assert serving[f"{IMPLICIT.rpartition('/')[0]}/old"] is old
    said = list(class_faults(classes(old, b, a)))
    assert [each.partition(" ")[2][:1] for each in said] == ["b", "o"]
    assert "DeviceClass old: spec.extendedResourceName nvidia.com/gpu is served by DeviceClass a" in said[1]
    assert "which is newer" in said[1]


@pytest.mark.parametrize(
    "name", ["gpu", "requests.nvidia.com/gpu", "x.kubernetes.io/gpu", "nvidia.com/g p", "/x"]
)
def test_a_class_whose_name_for_a_resource_is_none_serves_its_own_alone(name):
    odd = DeviceClass("odd", (), name)
    assert list(serving_classes(classes(odd))) == ["deviceclass.resource.kubernetes.io/odd"]
    (said,) = class_faults(classes(odd))
    assert f"DeviceClass odd: spec.extendedResourceName {name} " in said


@pytest.mark.parametrize(
    ("slices", "class_", "served"),
    [
        (published("there", 1), CLASS, {GPU, IMPLICIT}),
        (published("there", 0), CLASS, set()),
        (published("there", 1, slices=2), CLASS, set()),
        (published("other", 1), CLASS, set()),
        (published("there", 1), replace(CLASS, selectors=("false",)), set()),
        (published("there", 1), replace(CLASS, selectors=("1 +",)), set()),
        (published("there", 1), replace(CLASS, extended_resource=""), {IMPLICIT}),
    ],
)
def test_a_node_serves_a_resource_once_all_slices_with_devices_of_its_class_are_there(slices, class_, served):
    seen = cluster(gpu_node("there"), gpu_node("other"), *slices, classes=[class_])
    assert served_on(seen, "there", [GPU, IMPLICIT, "cpu"]) == served
