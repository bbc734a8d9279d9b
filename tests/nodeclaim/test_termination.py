"""Given a deleted claim or node, in which order does everything go?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.instructions import (
    CheckInstance,
    DeleteClaim,
    DeleteNode,
    EvictPod,
    RemoveFinalizer,
    TerminateInstance,
    UpdateNode,
)
from nodeless.model.labels import (
    DO_NOT_DISRUPT,
    EXCLUDE_BALANCERS,
    INITIALIZED,
    NODE_POOL,
    PROVISIONER_NAME,
)
from nodeless.model.taints import Toleration
from nodeless.nodeclaim import ClaimView, step, step_orphan
from tests.factories import DAEMON, NOW, a_claim, a_node, a_pod, an_initialized_claim

DELETED = an_initialized_claim(deletion_timestamp=NOW)
DELETED_NODE = a_node(deletion_timestamp=NOW)
CORDONED = replace(
    DELETED_NODE, unschedulable=True, labels={**DELETED_NODE.labels, EXCLUDE_BALANCERS: "karpenter"}
)


def kinds(outcome):
    return [type(instruction) for instruction in outcome.instructions]


def of_kind(outcome, kind):
    return [instruction for instruction in outcome.instructions if isinstance(instruction, kind)]


def test_a_node_deleted_by_kubectl_takes_its_claim_along():
    outcome = step(ClaimView(an_initialized_claim(), DELETED_NODE), NOW)
    assert outcome.instructions == (DeleteClaim("claim:default-abcde", "default-abcde", "node_deleted"),)


def released(view):
    """Kinds of the objects whose finalizer the next step removes."""
    return [removal.kind for removal in of_kind(step(view, NOW), RemoveFinalizer)]


def test_mc_07_the_node_of_a_deleted_claim_is_deleted_and_held_by_its_finalizer():
    assert kinds(step(ClaimView(DELETED, a_node()), NOW)) == [DeleteNode]
    # The instance goes once the node is drained, and the claim once the instance is gone.
    drained = step(ClaimView(DELETED, CORDONED), NOW)
    assert of_kind(drained, TerminateInstance)
    assert not of_kind(drained, RemoveFinalizer)
    assert released(ClaimView(DELETED, CORDONED, instance_gone=True)) == ["Node"]
    assert released(ClaimView(DELETED, instance_gone=True)) == ["NodeClaim"]


def test_tm_03_a_deleted_node_is_cordoned_and_its_pods_are_evicted_before_anything_else():
    outcome = step(ClaimView(DELETED, DELETED_NODE, (a_pod("a"), a_pod("b"))), NOW)
    (cordon,) = of_kind(outcome, UpdateNode)
    assert cordon.unschedulable
    assert cordon.labels == {EXCLUDE_BALANCERS: "karpenter"}
    assert [eviction.name for eviction in of_kind(outcome, EvictPod)] == ["a", "b"]
    assert not of_kind(outcome, TerminateInstance)
    assert outcome.again_at is not None


def test_evictions_carry_the_uid_so_that_a_successor_of_the_same_name_is_safe():
    (eviction,) = of_kind(step(ClaimView(DELETED, CORDONED, (a_pod("a"),)), NOW), EvictPod)
    assert eviction.uid == "uid-a"


def test_tm_17_a_drain_that_nobody_can_finish_asks_whether_the_machine_still_lives():
    """Its kubelet is silent: a budget or a stuck pod must not keep a node without machine for ever."""
    silent = replace(CORDONED, ready=False)
    assert of_kind(step(ClaimView(DELETED, silent, (a_pod("a"),)), NOW), CheckInstance)
    assert not of_kind(step(ClaimView(DELETED, CORDONED, (a_pod("a"),)), NOW), CheckInstance)
    assert released(ClaimView(DELETED, silent, (a_pod("a"),), instance_gone=True)) == ["Node"]


def test_tm_08_critical_pods_go_last():
    critical = a_pod("dns", priority_class="system-cluster-critical")
    first = step(ClaimView(DELETED, CORDONED, (a_pod("a"), critical)), NOW)
    assert [eviction.name for eviction in of_kind(first, EvictPod)] == ["a"]
    then = step(ClaimView(DELETED, CORDONED, (critical,)), NOW)
    assert [eviction.name for eviction in of_kind(then, EvictPod)] == ["dns"]


def test_tm_10_pods_already_leaving_are_waited_for_but_not_evicted_again():
    leaving = a_pod("a", deletion_timestamp=NOW + 30)
    outcome = step(ClaimView(DELETED, CORDONED, (leaving,)), NOW)
    assert not of_kind(outcome, EvictPod)
    assert not of_kind(outcome, TerminateInstance)


def test_tm_10_a_node_drains_until_both_of_its_pods_are_gone():
    for left in ((a_pod("a"), a_pod("b")), (a_pod("b"),)):
        outcome = step(ClaimView(DELETED, CORDONED, left), NOW)
        assert [eviction.name for eviction in of_kind(outcome, EvictPod)] == [pod.name for pod in left]
        assert not of_kind(outcome, TerminateInstance)
    assert of_kind(step(ClaimView(DELETED, CORDONED), NOW), TerminateInstance)


def test_tm_04_tm_06_daemons_finished_and_stuck_pods_hold_nothing_back():
    tolerant = a_pod("daemon", owners=DAEMON)
    tolerant = replace(tolerant, shape=replace(tolerant.shape, tolerations=(Toleration(operator="Exists"),)))
    pods = (tolerant, a_pod("done", phase="Failed"), a_pod("stuck", deletion_timestamp=NOW - 61))
    assert of_kind(step(ClaimView(DELETED, CORDONED, pods), NOW), TerminateInstance)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_tm_06_a_node_with_finished_pods_only_ends_at_once(phase):
    outcome = step(ClaimView(DELETED, CORDONED, (a_pod("done", phase=phase),)), NOW)
    assert not of_kind(outcome, EvictPod)
    assert of_kind(outcome, TerminateInstance)


def test_tm_01_finalizers_stay_until_the_instance_is_gone():
    before = step(ClaimView(DELETED, CORDONED), NOW)
    assert not of_kind(before, RemoveFinalizer)
    assert released(ClaimView(DELETED, CORDONED, instance_gone=True)) == ["Node"]


def test_a_claim_stays_as_long_as_its_node_whoever_holds_that():
    """Somebody else's finalizer: what counts nodes finds the claim that says that the instance is gone."""
    held = replace(CORDONED, finalizers=("example.com/backup",))
    assert released(ClaimView(DELETED, held, instance_gone=True)) == []
    twin = replace(held, name="node-former", uid="uid-former")
    assert released(ClaimView(DELETED, held, duplicates=(twin,), instance_gone=True)) == []
    assert released(ClaimView(DELETED, instance_gone=True)) == ["NodeClaim"]


def test_a_claim_deleted_before_its_launch_was_recorded_still_ends_its_instance():
    """The controller was killed between the fleet request and the claim's update."""
    (*_, termination) = step(ClaimView(a_claim(deletion_timestamp=NOW)), NOW).instructions
    assert termination == TerminateInstance("claim:default-abcde", "default-abcde", "")


def test_mc_08_both_nodes_of_one_instance_are_deleted_and_let_go_before_the_claim():
    """A machine that joined again under another name left its first Node behind."""
    twin = a_node(name="node-former", uid="uid-former")
    deletions = of_kind(step(ClaimView(DELETED, DELETED_NODE, duplicates=(twin,)), NOW), DeleteNode)
    assert [deletion.name for deletion in deletions] == ["node-former"]
    view = ClaimView(
        DELETED, CORDONED, duplicates=(replace(twin, deletion_timestamp=NOW),), instance_gone=True
    )
    removed = [(removal.kind, removal.name) for removal in of_kind(step(view, NOW), RemoveFinalizer)]
    assert removed == [("Node", CORDONED.name), ("Node", "node-former")]
    assert released(ClaimView(DELETED, instance_gone=True)) == ["NodeClaim"]


def test_an_orphaned_node_is_let_go_once_it_is_deleted():
    assert step_orphan(a_node(), (), NOW).instructions == ()
    (mark,) = step_orphan(DELETED_NODE, (), NOW).instructions
    assert isinstance(mark, UpdateNode)
    marked = replace(DELETED_NODE, taints=mark.taints, labels={**DELETED_NODE.labels, **mark.labels})
    (removal,) = step_orphan(marked, (), NOW).instructions
    assert removal.kind == "Node"


@pytest.mark.parametrize("pool", [PROVISIONER_NAME, NODE_POOL])
def test_an_orphaned_node_is_drained_before_it_is_let_go(pool):
    node = replace(DELETED_NODE, labels={**DELETED_NODE.labels, pool: "default"})
    outcome = step_orphan(node, (a_pod("a"), a_pod("b")), NOW)
    assert kinds(outcome) == [UpdateNode, EvictPod, EvictPod]
    assert outcome.instructions[0].unschedulable == (True if pool == PROVISIONER_NAME else None)
    assert outcome.again_at is not None
    leaving = a_pod("a", deletion_timestamp=NOW + 30)
    assert RemoveFinalizer not in kinds(step_orphan(node, (leaving,), NOW))


def test_an_orphaned_node_of_a_node_pool_is_not_let_go_before_its_protected_pods():
    protected = a_pod("a", annotations={DO_NOT_DISRUPT: "true"})
    assert kinds(step_orphan(DELETED_NODE, (protected,), NOW)) == [UpdateNode]


def test_a_silent_orphaned_node_waits_for_no_pod():
    """Its instance has been terminated, as any without a claim."""
    silent = replace(DELETED_NODE, ready=False)
    assert kinds(step_orphan(silent, (a_pod("a"),), NOW)) == [RemoveFinalizer]


@pytest.mark.parametrize("ready", [True, False])
def test_a_node_of_karpenter_v0_27_keeps_its_finalizer(ready):
    """It never had a claim: whoever removes it drains it, and ends its instance."""
    labels = {PROVISIONER_NAME: "default", INITIALIZED: "true"}
    node = a_node(labels=labels, deletion_timestamp=NOW, ready=ready)
    assert step_orphan(node, (), NOW).instructions == ()
    assert step_orphan(node, (a_pod("a"),), NOW).instructions == ()


def test_a_node_of_eks_auto_mode_is_let_go_by_its_own_controller():
    """It carries the same finalizer, and its claim is not among ours: it is being drained."""
    node = replace(DELETED_NODE, labels={**DELETED_NODE.labels, "eks.amazonaws.com/compute-type": "auto"})
    assert step_orphan(node, (), NOW).instructions == ()


def test_a_node_of_another_provider_is_let_go_by_its_own_controller():
    node = replace(DELETED_NODE, provider_id="kwok://one")
    assert step_orphan(node, (a_pod("a"),), NOW).instructions == ()


POD_STATES = st.sampled_from(
    [
        {},
        {"phase": "Succeeded"},
        {"deletion_timestamp": NOW},
        {"owners": DAEMON},
        {"priority_class": "system-node-critical"},
    ]
)


@given(st.lists(POD_STATES, max_size=6), st.booleans(), st.booleans())
def test_no_instance_ends_while_a_pod_still_has_a_right_to_stay(states, cordoned, gone):
    pods = tuple(a_pod(f"p{number}", **fields) for number, fields in enumerate(states))
    view = ClaimView(DELETED, CORDONED if cordoned else DELETED_NODE, pods, instance_gone=gone)
    outcome = step(view, NOW)
    assert outcome == step(view, NOW)
    waiting = [pod for pod in pods if not pod.terminal]
    if waiting and not gone:
        assert not of_kind(outcome, TerminateInstance)
        assert not of_kind(outcome, RemoveFinalizer)
