"""Which pods are provisioned: rows PE-01 to PE-09."""

import json
from dataclasses import replace

import pytest

from nodeless.kube.decoding import decode_pod
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    ARCH,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    EMPTINESS_TIMESTAMP,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    OS,
    PROVISIONER_NAME,
    REGION,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.requirements import Requirements
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling import FEWEST_NODES, Policy, pods_to_place
from tests.scheduling.acceptance.catalogs import planned
from tests.scheduling.factories import instance_type, needs, pods, pool, snapshot, term

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def considered(status=None, *, owner=None):
    """Whether a pass looks at a pod with this status, as the API server has it."""
    metadata = {"name": "web", "namespace": "default", "uid": "u"}
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": "it", "uid": "o"}]
    document = {"metadata": metadata, "spec": {"containers": []}, "status": status or {}}
    return bool(pods_to_place(snapshot(decode_pod(json.dumps(document).encode())), 0.0))


def test_pe_01_a_pod_that_the_scheduler_could_not_place_is_considered():
    assert considered(UNSCHEDULABLE)


@pytest.mark.parametrize("reason", [None, "SchedulingGated", "SchedulerError"])
def test_pe_02_a_pod_of_which_the_scheduler_does_not_say_so_is_ignored(reason):
    conditions = [{"type": "PodScheduled", "status": "False", "reason": reason}] if reason else []
    assert not considered({"conditions": conditions})


def test_pe_03_a_pod_that_displaces_others_is_ignored():
    assert not considered({**UNSCHEDULABLE, "nominatedNodeName": "there"})


@pytest.mark.parametrize("owner", [("apps/v1", "DaemonSet"), ("v1", "Node")])
def test_pe_04_daemons_and_static_pods_are_ignored(owner):
    assert not considered(UNSCHEDULABLE, owner=owner)


def only(expression):
    return pods(1, "100m", required_terms=(term(expression),))


@pytest.mark.parametrize("key", [PROVISIONER_NAME, NODE_POOL])
def test_pe_05_a_pod_that_opts_out_is_ignored_without_a_word(key):
    result = planned(only(needs(key, "DoesNotExist")))
    assert (result.new_nodes, result.refusals) == ((), ())


def test_pe_06_a_term_on_fields_makes_no_node():
    by_field = (NodeSelectorTerm((), match_fields=True),)
    result = planned(pods(1, "100m", name="by-field", required_terms=by_field), pods(1, "100m"))
    assert [refusal.pod for refusal in result.refusals] == ["default/by-field-0"]
    assert [new.pods for new in result.new_nodes] == [("default/web-0",)]


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(EMPTINESS_TIMESTAMP, id="PE-07-emptiness"),
        pytest.param(HOSTNAME, id="PE-07-hostname"),
        pytest.param("kubernetes.io/x", id="PE-08-kubernetes.io"),
        pytest.param("k8s.io/x", id="PE-08-k8s.io"),
    ],
)
def test_a_term_on_a_label_that_no_node_will_bear_makes_no_node(key):
    result = planned(only(needs(key, "In", "x")))
    assert not result.new_nodes
    assert key in str(result.refusals[0])


#: A legal value of each well-known label that is not given by the types themselves.
VALUES = {
    PROVISIONER_NAME: "default",
    CAPACITY_TYPE: ON_DEMAND,
    ZONE: "z1",
    REGION: "us-east-1",
    INSTANCE_TYPE: "one",
    ARCH: "amd64",
    OS: "linux",
}


#: Labels that a node has by its reservation, each with an offering that gives it.
RESERVATIONS = {
    CAPACITY_RESERVATION_ID: {"reservation": "cr-7"},
    CAPACITY_RESERVATION_TYPE: {"reservation_type": "capacity-block"},
    CAPACITY_RESERVATION_INTERRUPTIBLE: {"interruptible": True},
}


@pytest.mark.parametrize("key", sorted(WELL_KNOWN - {NODE_POOL}))
def test_pe_09_a_term_on_a_well_known_label_is_scheduled(key):
    value = VALUES.get(key, "7")
    own = instance_type("one")
    carried = Requirements([*own.requirements.values(), needs(key, "In", value)])
    kind = instance_type("one", labels=[] if key in VALUES else list(carried.values()))
    if key in RESERVATIONS:
        offering = replace(Offering("z1", "reserved", 1e-8, True, "cr-1", 1, "default"), **RESERVATIONS[key])
        value = offering.reservation_labels[key]
        kind = instance_type("one", offerings=(offering,))
    # Zones have names in offerings; their ids are known by subnets.
    room = SubnetRoom("subnet-1", "z1", 1000, zone_id="7")
    policy = Policy(packing=FEWEST_NODES, subnets={pool().key: (room,)} if key == ZONE_ID else {})
    result = planned(pool(), only(needs(key, "In", value)), types=(kind,), policy=policy)
    assert len(result.new_nodes) == 1
