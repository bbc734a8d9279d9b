"""EFA interfaces and connected Neuron chips, on nodes that are there and on nodes to come."""

from dataclasses import replace

import pytest

from nodeless.model.devices import EFA_INTERFACES, Device, DeviceAttribute, DeviceConstraint, ResourceSlice
from nodeless.model.efa import EFA
from nodeless.model.labels import (
    EFA_DEVICES,
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_TYPE,
)
from nodeless.scheduling.devices.groups import DEVICE_GROUPS, PCIE_ROOT
from nodeless.scheduling.devices.known_devices import NEURON, NVIDIA
from tests.scheduling.factories import claim, instance_type, needs
from tests.scheduling.test_devices import (
    PLAIN,
    bought,
    claiming,
    gpu_node,
    gpu_type,
    one,
    planned,
    published,
    template,
)

CLASS = "efa.networking.k8s.aws"


def with_efa(kind, number):
    return replace(kind, capacity={**kind.capacity, EFA: number})


def neuron_type(name, chips, interfaces, price):
    labels = [
        needs(INSTANCE_ACCELERATOR_NAME, "In", "trainium"),
        needs(INSTANCE_ACCELERATOR_COUNT, "In", str(chips)),
    ]
    return with_efa(instance_type(name, 128, 512, labels=labels, price=price), interfaces)


SMALL = with_efa(gpu_type("g6.8xlarge", "l4", 22888, 1, 32, 2.0), 1)
P4D = with_efa(gpu_type("p4d.24xlarge", "a100", 40960, 8, 96, 32.8), 4)
P4DE = with_efa(gpu_type("p4de.24xlarge", "a100", 81920, 8, 96, 40.9), 4)
UNKNOWN = with_efa(gpu_type("p9.24xlarge", "a100", 81920, 8, 96, 40.9), 4)
P5 = with_efa(gpu_type("p5.48xlarge", "h100", 81920, 8, 192, 98.3), 32)
TRN1, TRN1_SMALL = neuron_type("trn1.32xlarge", 16, 8, 21.5), neuron_type("trn1.2xlarge", 1, 0, 1.3)
TYPES = (PLAIN, SMALL, P4D, P4DE, P5, TRN1, TRN1_SMALL)


def efa(count=1, name="efa"):
    return one(device_class=CLASS, count=count, name=name)


def plan(request, *things, number=1, constraints=(), types=TYPES):
    return planned(claiming(number, "1"), template(*request, constraints=constraints), *things, types=types)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ([efa()], "g6.8xlarge"),
        ([one(), efa(4)], "p4d.24xlarge"),
        ([one(count=8), efa(8)], "p5.48xlarge"),
        ([one(device_class=NEURON), efa(8)], "trn1.32xlarge"),
    ],
)
def test_a_node_is_bought_with_as_many_interfaces_as_are_claimed(request_, kind):
    made = plan(request_)
    assert bought(made) == [kind]
    assert made.new_nodes[0].requests[EFA_INTERFACES] == request_[-1].alternatives[0].count


def test_a_node_without_claimed_interfaces_is_launched_without():
    assert EFA_INTERFACES not in plan([one()]).new_nodes[0].requests


@pytest.mark.parametrize(
    ("gpus", "interfaces", "kind"),
    [(1, 1, "p4d.24xlarge"), (2, 1, "p4d.24xlarge"), (1, 4, "p5.48xlarge"), (3, 1, None)],
)
def test_a_gpu_is_claimed_with_interfaces_of_its_pcie_root(gpus, interfaces, kind):
    """Where no root has so many, or their roots are others as on a g6.8xlarge, no such claim is planned."""
    together = [DeviceConstraint((), PCIE_ROOT)]
    made = plan([one(count=gpus), efa(interfaces)], constraints=together)
    assert bought(made) == ([kind] if kind else [])


@pytest.mark.parametrize(("gpus", "nodes"), [(1, 2), (2, 2)])
def test_a_root_gives_its_interface_to_one_claim(gpus, nodes):
    """Four roots with one interface each: four pods a node, whether each has one of the GPUs or both."""
    together = [DeviceConstraint((), PCIE_ROOT)]
    made = plan([one(count=gpus), efa()], number=8, constraints=together, types=(PLAIN, P4D))
    assert bought(made) == ["p4d.24xlarge"] * nodes


@pytest.mark.parametrize(("size", "count", "fit"), [(4, 4, 4), (8, 8, 2), (16, 16, 1), (4, 3, 4), (8, 5, 2)])
def test_connected_chips_are_planned_before_a_node_has_published_them(size, count, fit):
    group = next(name for name in DEVICE_GROUPS if f"devicegroup{size}_" in name)
    connected = [DeviceConstraint((), group)]
    made = plan([one(device_class=NEURON, count=count)], number=fit + 1, constraints=connected)
    assert bought(made) == ["trn1.32xlarge"] * 2
    assert max(len(new.pods) for new in made.new_nodes) == fit


def test_chips_are_planned_with_the_interfaces_of_their_group():
    """A group of four chips has two interfaces on a trn1.32xlarge."""
    connected = [DeviceConstraint((), "resource.aws.com/devicegroup4_id")]
    chips = one(device_class=NEURON, count=4, name="chips")
    assert bought(plan([chips, efa(2)], number=4, constraints=connected)) == ["trn1.32xlarge"]
    refused = plan([chips, efa(3)], constraints=connected)
    assert not refused.new_nodes
    assert refused.refusals[0].code == "NoDeviceFits"


def interfaces(on, number=4):
    """What the driver for EFA publishes there."""
    devices = tuple(
        Device(
            f"pci-{at}",
            (
                DeviceAttribute("dra.net/pciDevice", string="Elastic Fabric Adapter (EFA)"),
                DeviceAttribute(PCIE_ROOT, string=f"pci0000:{at}0"),
            ),
        )
        for at in range(number)
    )
    return ResourceSlice(f"{on}-dra.net", "dra.net", on, 1, 1, on, devices)


def gpus(on, roots, **fields):
    """What the driver of the GPUs publishes there, two on each root."""
    (made,) = published(on, 2 * roots, **fields)
    devices = tuple(
        replace(
            device,
            attributes=tuple(
                sorted(
                    (*device.attributes, DeviceAttribute(PCIE_ROOT, string=f"pci0000:{at // 2}0")),
                    key=lambda attribute: attribute.name,
                )
            ),
        )
        for at, device in enumerate(made.devices)
    )
    return replace(made, devices=devices)


@pytest.mark.parametrize("with_interfaces", [True, False])
def test_a_driver_that_has_not_published_yet_is_waited_for(with_interfaces):
    """The GPUs are there, the interfaces come later, if the node was launched with them."""
    there = gpu_node("there", P4D, provider_id="aws:///z1/i-c")
    annotations = {EFA_DEVICES: "true"} if with_interfaces else {}
    own = claim("c", P4D.name, node_name="there", annotations=annotations, provider_id="aws:///z1/i-c")
    made = plan([one(), efa()], there, own, gpus("there", 4), types=(PLAIN, P4D))
    assert len(made.placements) == (1 if with_interfaces else 0)
    assert bought(made) == ([] if with_interfaces else ["p4d.24xlarge"])


@pytest.mark.parametrize("with_interfaces", [True, False])
def test_a_node_on_its_way_has_interfaces_only_if_it_was_launched_with_them(with_interfaces):
    annotations = {EFA_DEVICES: "true"} if with_interfaces else {}
    known = {"allocatable": P4D.allocatable, "labels": {INSTANCE_TYPE: P4D.name}}
    own = claim("c", P4D.name, annotations=annotations, provider_id="aws:///z1/i-c", **known)
    made = plan([one(), efa()], own, types=(PLAIN, P4D))
    assert len(made.placements) == (1 if with_interfaces else 0)
    assert bought(made) == ([] if with_interfaces else ["p4d.24xlarge"])


def test_a_node_that_was_launched_without_interfaces_tells_nothing_of_its_type():
    """Its driver publishes no device of EFA; a node that is launched for them has all."""
    there = gpu_node("there", P4D, provider_id="aws:///z1/i-c")
    own = claim("c", P4D.name, node_name="there", provider_id="aws:///z1/i-c")
    made = plan([one(), efa(4)], there, own, gpus("there", 4), interfaces("there", 0), types=(PLAIN, P4D))
    assert bought(made) == ["p4d.24xlarge"]


def test_a_node_that_lost_interfaces_with_which_it_was_launched_tells_so_of_its_type():
    there = gpu_node("there", P4D, provider_id="aws:///z1/i-c")
    launched = {"node_name": "there", "provider_id": "aws:///z1/i-c", "annotations": {EFA_DEVICES: "true"}}
    own = claim("c", P4D.name, **launched)
    made = plan([one(), efa(4)], there, own, gpus("there", 4), interfaces("there", 0), types=(PLAIN, P4D))
    assert not made.new_nodes


def test_roots_of_a_type_are_known_from_a_node_of_it():
    """Another node has other roots, in the same places."""
    together = [DeviceConstraint((), PCIE_ROOT)]
    there = [gpu_node("there", UNKNOWN), gpus("there", 4), interfaces("there")]
    request = [one(count=2), efa()]
    assert not bought(plan(request, constraints=together, types=(PLAIN, UNKNOWN)))
    made = plan(request, *there, number=6, constraints=together, types=(PLAIN, UNKNOWN))
    assert len(made.placements) == 4
    assert bought(made) == ["p9.24xlarge"]
    named = one("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'", device_class=NVIDIA)
    assert not plan([named], *there, number=3, types=(PLAIN, UNKNOWN)).new_nodes


def test_where_a_device_plugin_announces_the_interfaces_no_claim_is_met():
    allocatable = {**P4D.allocatable, EFA: 4}
    made = plan([efa()], gpu_node("plugged", P4D, allocatable=allocatable), types=(PLAIN, P4D))
    assert not made.new_nodes
    assert not made.placements
