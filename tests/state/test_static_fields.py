"""Which changes of a node class make its nodes drift by digest, and which are compared with the cloud."""

from dataclasses import fields, replace

import pytest

from nodeless.model.pools import NodeClass, SelectorTerm
from nodeless.state.static_fields import class_digest
from tests.factories import TEMPLATE

CLASS = NodeClass(TEMPLATE)
TERM = (SelectorTerm(ids=("id-1",)),)
#: What is looked up in AWS: a node drifts when the answer changes, not when the question does.
LOOKED_UP = {
    "subnets": TERM,
    "security_groups": TERM,
    "images": TERM,
    "capacity_reservations": TERM,
    "placement_group": "pg-1",
    "image_release": "2026.1",
}
#: What says nothing about nodes.
OF_THE_OBJECT = {"generation": 7, "deletion_timestamp": 1.0, "invalid": "why", "finalizers": ("one",)}
STATIC = {
    "ami_family": "Bottlerocket",
    "instance_profile": "nodes",
    "user_data": "echo",
    "tags": (("team", "a"),),
    "detailed_monitoring": True,
    "launch_template": "mine",
    "context": "fleet",
    "role": "nodes",
    "instance_store_raid": True,
    "public_address": True,
    "ipv4_prefixes": 1,
    "enclaves": True,
}


@pytest.mark.parametrize("name", [*LOOKED_UP, *OF_THE_OBJECT])
def test_selectors_and_the_object_itself_are_no_part_of_the_digest(name):
    changed = replace(CLASS, **{name: {**LOOKED_UP, **OF_THE_OBJECT}[name]})
    assert changed != CLASS
    assert class_digest(changed) == class_digest(CLASS)


@pytest.mark.parametrize("name", STATIC)
def test_what_an_instance_is_made_with_is_part_of_the_digest(name):
    assert class_digest(replace(CLASS, **{name: STATIC[name]})) != class_digest(CLASS)


def test_each_field_is_spoken_of():
    others = {
        *("reference", "conditions", "block_devices", "metadata_options", "image_family", "kubelet"),
        *("network_interfaces", "connection_tracking", "cpu_options"),
    }
    assert {field.name for field in fields(NodeClass)} == {*LOOKED_UP, *OF_THE_OBJECT, *STATIC, *others}
