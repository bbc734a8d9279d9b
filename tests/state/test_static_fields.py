"""Which changes of a node class make its nodes drift by digest, and which are compared with the cloud."""

from dataclasses import fields, replace

import pytest

from nodeless.model.hardware import NetworkInterface
from nodeless.model.instructions import AnnotateClaim
from nodeless.model.labels import (
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
)
from nodeless.model.pools import BlockDevice, NodeClass, SelectorTerm
from nodeless.nodeclaim.drift import DriftView, drift_of, step_drift
from nodeless.state.static_fields import class_digest, digests
from tests.factories import TEMPLATE, a_launched_claim, a_pool

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
#: What Karpenter leaves out of its hash.
LEFT_OUT = {"ipv4_prefixes": 1}
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
    "enclaves": True,
}


@pytest.mark.parametrize("name", [*LOOKED_UP, *OF_THE_OBJECT, *LEFT_OUT])
def test_selectors_and_the_object_itself_are_no_part_of_the_digest(name):
    changed = replace(CLASS, **{name: {**LOOKED_UP, **OF_THE_OBJECT, **LEFT_OUT}[name]})
    assert changed != CLASS
    assert class_digest(changed) == class_digest(CLASS)


@pytest.mark.parametrize("name", STATIC)
def test_what_an_instance_is_made_with_is_part_of_the_digest(name):
    assert class_digest(replace(CLASS, **{name: STATIC[name]})) != class_digest(CLASS)


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("block_devices", (BlockDevice("/dev/xvda"), BlockDevice("/dev/xvdb", 2**30))),
        ("network_interfaces", (NetworkInterface(0, 0), NetworkInterface(0, 1, efa_only=True))),
    ],
)
def test_the_order_of_disks_and_interfaces_is_no_part_of_the_digest(name, items):
    """Karpenter hashes lists as sets."""
    one, other = (replace(CLASS, **{name: listed}) for listed in (items, items[::-1]))
    assert class_digest(one) == class_digest(other)
    assert class_digest(one) != class_digest(replace(CLASS, **{name: items[:1]}))


def test_nodes_with_the_digests_of_an_earlier_version_have_not_drifted_by_them():
    claim = a_launched_claim(
        annotations={
            NODE_POOL_HASH: "of-old",
            NODE_POOL_HASH_VERSION: "nodeless-2",
            NODE_CLASS_HASH: "of-old",
            NODE_CLASS_HASH_VERSION: "nodeless-2",
        }
    )
    step = step_drift(DriftView(claim, a_pool(), CLASS), 4000.0)
    (annotated,) = [each for each in step.instructions if isinstance(each, AnnotateClaim)]
    assert annotated.annotations == digests(a_pool(), CLASS)
    assert drift_of(DriftView(claim, a_pool(), CLASS), 4000.0) is None


def test_each_field_is_spoken_of():
    others = {
        *("reference", "conditions", "block_devices", "metadata_options", "image_family", "kubelet"),
        *("network_interfaces", "connection_tracking", "cpu_options"),
    }
    assert {field.name for field in fields(NodeClass)} == {
        *LOOKED_UP,
        *OF_THE_OBJECT,
        *LEFT_OUT,
        *STATIC,
        *others,
    }
