"""The annotation `nodeless.dev/devices`: what is read of it, and what is refused, with its place."""

import pytest
import yaml

from nodeless.api.devices_annotation import PATH
from nodeless.api.errors import InvalidObject
from nodeless.api.reading_overlays import read_overlay
from nodeless.api.validation import leaves_spec_alone, validate
from nodeless.model.devices import CounterSet, Device, DeviceAttribute, RequestPolicy
from nodeless.model.labels import DEVICES
from tests.api.test_node_overlay import an_overlay

DRIVER = "gpu.example.com"


def overlay(*entries, text=None):
    made = an_overlay()
    made["metadata"]["annotations"] = {DEVICES: yaml.safe_dump(list(entries)) if text is None else text}
    return made


def entry(**device):
    return {"driver": DRIVER, "devices": [device]}


def faults(*entries, **fields):
    return [(error.path.removeprefix(PATH), str(error)) for error in validate(overlay(*entries, **fields))]


def test_devices_are_read_in_the_words_of_a_resource_slice():
    capacity = {
        "memory": {
            "value": "40Gi",
            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "20Gi", "step": "1Gi"}},
        },
        "x.com/cores": {"value": 8, "requestPolicy": {"default": 1, "validValues": [1, 2]}},
    }
    attributes = {
        "model": {"string": "A"},
        "cores": {"int": 7},
        "mig": {"bool": True},
        "cuda": {"version": "1.2.3"},
    }
    counters = [{"name": "set", "counters": {"slices": {"value": 8}}}]
    part = {"count": 2, "consumesCounters": [{"counterSet": "set", "counters": {"slices": {"value": 4}}}]}
    shared = {"attributes": attributes, "capacity": capacity, "allowMultipleAllocations": True}
    made = overlay(
        {"driver": DRIVER, "devices": [shared, part], "sharedCounters": counters}, {"driver": "other.com"}
    )
    first, second = read_overlay(made).devices
    assert (first.driver, second.driver, second.devices) == (DRIVER, "other.com", ())
    assert first.counter_sets == (CounterSet("set", (("slices", 8000),)),)
    device, *parts = first.devices
    assert {one.consumes for one in parts} == {(CounterSet("set", (("slices", 4000),)),)}
    assert len(parts) == 2
    gi = 2**30 * 1000
    assert device == Device(
        device.name,
        (
            DeviceAttribute(f"{DRIVER}/cores", integer=7),
            DeviceAttribute(f"{DRIVER}/cuda", version="1.2.3"),
            DeviceAttribute(f"{DRIVER}/mig", boolean=True),
            DeviceAttribute(f"{DRIVER}/model", string="A"),
        ),
        ((f"{DRIVER}/memory", 40 * gi), ("x.com/cores", 8000)),
        (),
        True,
        (
            (f"{DRIVER}/memory", RequestPolicy(gi, (), gi, 20 * gi, gi)),
            ("x.com/cores", RequestPolicy(1000, (1000, 2000))),
        ),
        (),
        (f"{DRIVER}/memory",),
    )


def consuming(counter_set, counter):
    return [{"counterSet": counter_set, "counters": {counter: {"value": 1}}}]


POLICY = {"default": 1}
REFUSED = [
    ({"text": "- driver: [open"}, "", "is not YAML"),
    ({"text": "just words"}, "", "must be a list"),
    ({"text": "- &a [*a]"}, "", "is not YAML"),
    (["words"], "[0]", "must be an object"),
    ([{"devices": []}], "[0].driver", "must be the name of a driver"),
    ([{"driver": "a b"}], "[0].driver", ""),
    ([{"driver": DRIVER}, {"driver": DRIVER}], "", "has several entries"),
    ([{"driver": DRIVER, "device": []}], "[0].device", "is not known here; hint: known: driver, devices"),
    ([entry(name="gpu-0")], "[0].devices[0].name", "is not known here"),
    ([entry(count=0)], "[0].devices[0].count", "whole number from 1 to 128"),
    ([entry(count=True)], "[0].devices[0].count", "whole number"),
    ([{"driver": DRIVER, "devices": [{"count": 100}, {"count": 29}]}], "[0].devices", "are too many"),
    ([entry(attributes={"model": {}})], "[0].devices[0].attributes.model", "exactly one of"),
    ([entry(attributes={"model": {"string": 8}})], "[0].devices[0].attributes.model.string", "kind string"),
    ([entry(attributes={"model": {"text": "8"}})], "[0].devices[0].attributes.model.text", "not known"),
    ([entry(attributes={"a b": {"string": "8"}})], '[0].devices[0].attributes["a b"]', ""),
    (
        [entry(attributes={f"a{number}": {"int": 1} for number in range(33)})],
        "[0].devices[0]",
        "more than 32 attributes and capacities",
    ),
    ([entry(capacity={"memory": {"value": "much"}})], "[0].devices[0].capacity.memory.value", "quantity"),
    ([entry(capacity={"memory": {"value": "-1"}})], "[0].devices[0].capacity.memory.value", "of 0 or more"),
    ([entry(capacity={"memory": {}})], "[0].devices[0].capacity.memory.value", "is required"),
    (
        [entry(capacity={"memory": {"value": 1, "requestPolicy": POLICY}})],
        "[0].devices[0].capacity.memory.requestPolicy",
        "devices that are allocated several times alone",
    ),
    (
        [
            entry(
                allowMultipleAllocations=True,
                capacity={"memory": {"value": 1, "requestPolicy": {"validValues": [1]}}},
            )
        ],
        "[0].devices[0].capacity.memory.requestPolicy.default",
        "is required beside",
    ),
    ([entry(allowMultipleAllocations="yes")], "[0].devices[0].allowMultipleAllocations", "true or false"),
    (
        [entry(consumesCounters=consuming("set", "a"))],
        "[0].devices[0].consumesCounters",
        "is not a counter of",
    ),
    (
        [entry(consumesCounters=[{"counters": {}}])],
        "[0].devices[0].consumesCounters[0].counterSet",
        "counter set",
    ),
]


@pytest.mark.parametrize(
    ("given", "path", "said"), REFUSED, ids=[str(number) for number in range(len(REFUSED))]
)
def test_a_fault_is_named_by_its_place_in_the_value(given, path, said):
    found = faults(**given) if isinstance(given, dict) else faults(*given)
    assert any(where == path and said in text for where, text in found), found


def test_all_faults_are_named_at_once():
    found = faults(entry(count=0), {"driver": "other.com", "devices": [{"capacity": {"memory": {}}}]})
    assert [where for where, _ in found] == ["[0].devices[0].count", "[1].devices[0].capacity.memory.value"]


def test_an_overlay_with_a_fault_cannot_be_read():
    with pytest.raises(InvalidObject, match="whole number from 1 to 128"):
        read_overlay(overlay(entry(count=0)))


def test_a_change_of_the_devices_is_validated_though_the_spec_is_the_same():
    old, new = overlay(entry()), overlay(entry(count=0))
    assert not leaves_spec_alone(new, old)
    assert validate(new, old)
