"""Which ends of claims and nodes are counted, when, and why."""

import pytest

from nodeless.controllers.executor.deletions import DeletionCounts
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen
from nodeless.model.labels import CAPACITY_TYPE, SPOT
from nodeless.model.nodes import DISRUPTION_REASON, Condition
from nodeless.operator.metrics import Metrics
from tests.controllers.test_metrics import collected
from tests.factories import NOW, a_claim, a_node, an_initialized_claim

PENDING = a_claim(labels={CAPACITY_TYPE: SPOT}, deletion_timestamp=NOW)
RUNNING = an_initialized_claim(deletion_timestamp=NOW)
GONE = (NodeGone("node-default-abcde"), ClaimGone("default-abcde"))


class Counting:
    def __init__(self, claim, *nodes):
        self.claim, self.metrics, self.cluster = claim, Metrics(), Cluster()
        self.counts = DeletionCounts(self.cluster, self.metrics)
        self.see(ClaimSeen(claim), *map(NodeSeen, nodes))

    def see(self, *events):
        for event in events:
            self.cluster.handle(event)
        return {
            name.removeprefix("karpenter_"): value
            for name, value in collected(self.metrics).items()
            if value and ("terminated" in name or "claims_disrupted" in name)
        }


OWN = (
    "insufficient_capacity nodeclass_not_ready launch_timeout registration_timeout garbage_collected expired"
)


@pytest.mark.parametrize("reason", [*OWN.split(), "interruption"])
def test_a_claim_that_ends_for_a_reason_of_its_own_is_disrupted_as_it_is_deleted(reason):
    counting = Counting(PENDING)
    counting.counts.note(PENDING, reason)
    labels = f'reason="{reason}",nodepool="default",capacity_type="spot"'
    (name,) = counting.see()
    assert name.startswith("nodeclaims_disrupted_total")
    assert all(label in name for label in labels.split(","))


@pytest.mark.parametrize("reason", ["node_deleted", "pool_deleted", "scaled_down", "teardown"])
def test_a_claim_that_ends_with_what_it_belongs_to_is_not_disrupted(reason):
    counting = Counting(PENDING)
    counting.counts.note(PENDING, reason)
    assert counting.see() == {}


def test_a_claim_that_never_became_a_node_is_terminated_once_it_is_gone_and_no_node_is():
    counting = Counting(PENDING)
    counting.counts.note(PENDING, "launch_timeout")
    shown = counting.see(*GONE[1:])
    assert shown['nodeclaims_terminated_total{nodepool="default",reason="launch_timeout"}'] == 1
    assert not any(name.startswith("nodes_terminated") for name in shown)


def test_node_and_claim_are_terminated_once_they_are_gone_for_the_reason_of_their_deletion():
    node = a_node(deletion_timestamp=NOW, labels={"karpenter.sh/provisioner-name": "default"})
    counting = Counting(RUNNING, node)
    counting.counts.note(RUNNING, "emptiness")
    assert not any("terminated" in name for name in counting.see())
    shown = counting.see(*GONE)
    assert shown['nodes_terminated{provisioner="default",reason="emptiness/delete"}'] == 1
    assert shown['nodes_terminated_total{nodepool="default"}'] == 1
    assert shown['nodeclaims_terminated_total{nodepool="default",reason="emptiness/delete"}'] == 1


def test_what_a_user_or_an_earlier_leader_deleted_counts_as_well():
    node = a_node(deletion_timestamp=NOW, labels={"karpenter.sh/provisioner-name": "default"})
    shown = Counting(RUNNING, node).see(*GONE)
    assert shown['nodes_terminated{provisioner="default",reason="deleted"}'] == 1
    assert shown['nodeclaims_terminated_total{nodepool="default",reason="deleted"}'] == 1
    why = Condition(DISRUPTION_REASON, "True", "Drifted", "", NOW)
    known = an_initialized_claim(deletion_timestamp=NOW, conditions=(why,))
    shown = Counting(known, node).see(*GONE)
    assert shown['nodes_terminated{provisioner="default",reason="drifted"}'] == 1
