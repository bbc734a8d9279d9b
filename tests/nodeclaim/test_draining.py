"""Given a node that must be drained, who is asked to leave, when, and how firmly?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.model import events
from nodeless.model.instructions import (
    AnnotateClaim,
    CheckInstance,
    DeletePod,
    EvictPod,
    PublishEvent,
    RemoveFinalizer,
    TerminateInstance,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import (
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    EXCLUDE_BALANCERS,
    TERMINATION_TIMESTAMP,
)
from nodeless.model.nodes import DRAINED, VOLUMES_DETACHED, Condition
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration
from nodeless.model.volumes import PersistentVolumeClaim, VolumeAttachment
from nodeless.nodeclaim import ClaimView, step
from nodeless.nodeclaim.draining import attachments_of
from nodeless.state import apply
from tests.factories import DAEMON, NOW, a_node, a_pod, an_initialized_claim

MINUTE = 60.0
NODE_POOL = Reference("NodePool", "default", "pool-uid")
NODE = a_node(deletion_timestamp=NOW - MINUTE)
TAINTED = replace(
    NODE,
    taints=(Taint(DISRUPTED_TAINT, "NoSchedule"),),
    labels={**NODE.labels, EXCLUDE_BALANCERS: "karpenter"},
)
CORDONED = replace(NODE, unschedulable=True, labels={**NODE.labels, EXCLUDE_BALANCERS: "karpenter"})


def deleted(**fields):
    return an_initialized_claim(deletion_timestamp=NOW, **{"pool": NODE_POOL, **fields})


def draining(at=NOW - MINUTE):
    """The condition of a claim whose drain began at a time."""
    return Condition(DRAINED, "Unknown", "Draining", "", at)


def with_deadline(at, **fields):
    return deleted(annotations={TERMINATION_TIMESTAMP: format_time(at)}, **fields)


def tolerating(key, name="daemon", **fields):
    pod = a_pod(name, **fields)
    return replace(pod, shape=replace(pod.shape, tolerations=(Toleration(key, "Exists"),)))


def of_kind(outcome, kind):
    return [instruction for instruction in outcome.instructions if isinstance(instruction, kind)]


def evicted(claim, node, *pods, now=NOW):
    return [each.name for each in of_kind(step(ClaimView(claim, node, pods), now), EvictPod)]


def test_tm_08_pods_leave_in_four_groups_and_no_group_before_the_one_before_it():
    ordinary = a_pod("web")
    daemon = a_pod("log", owners=DAEMON)
    critical = a_pod("dns", priority_class="system-cluster-critical")
    critical_daemon = a_pod("net", priority_class="system-node-critical", owners=DAEMON)
    pods = [critical_daemon, critical, daemon, ordinary]
    order = []
    while pods:
        (name,) = evicted(deleted(), TAINTED, *pods)
        order.append(name)
        pods = [pod for pod in pods if pod.name != name]
    assert order == ["web", "log", "dns", "net"]


LEAVING = a_pod("web", deletion_timestamp=NOW + 30)


@pytest.mark.parametrize(("pool", "node"), [("NodePool", TAINTED), ("Provisioner", CORDONED)])
def test_tm_08_the_rest_of_a_group_is_asked_while_others_of_it_leave(pool, node):
    critical = a_pod("dns", priority_class="system-cluster-critical")
    claim = deleted(pool=Reference(pool, "default"))
    assert evicted(claim, node, LEAVING, critical, a_pod("api")) == ["api"]


@pytest.mark.parametrize(
    ("pool", "node", "asked"),
    [
        pytest.param("NodePool", TAINTED, [], id="NodePool"),
        pytest.param("Provisioner", CORDONED, ["dns"], id="Provisioner"),
    ],
)
def test_tm_08_whether_a_group_waits_for_pods_that_are_still_shutting_down(pool, node, asked):
    critical = a_pod("dns", priority_class="system-cluster-critical")
    claim = deleted(pool=Reference(pool, "default"))
    assert evicted(claim, node, LEAVING, critical) == asked
    stuck = replace(LEAVING, deletion_timestamp=NOW - 61)
    assert evicted(claim, node, stuck, critical) == ["dns"]


@pytest.mark.parametrize(
    ("pool", "node", "key", "leaves"),
    [
        pytest.param("Provisioner", CORDONED, "node.kubernetes.io/unschedulable", False, id="TM-04"),
        pytest.param("NodePool", TAINTED, "node.kubernetes.io/unschedulable", True, id="TM-14-old-taint"),
        pytest.param("NodePool", TAINTED, DISRUPTED_TAINT, False, id="TM-14"),
    ],
)
def test_a_pod_that_tolerates_the_mark_of_a_drain_stays(pool, node, key, leaves):
    claim = deleted(pool=Reference(pool, "default"))
    assert evicted(claim, node, tolerating(key)) == (["daemon"] if leaves else [])


def test_large_pods_are_evicted_before_small_ones_which_fit_in_what_they_leave():
    sizes = {"small": {"cpu": 100}, "large": {"cpu": 4000}, "memory": {"memory": 8 * 2**30}, "none": {}}
    waiting = [a_pod(name, requests=sizes[name]) for name in ("none", "small", "large", "memory")]
    asked = of_kind(step(ClaimView(deleted(), TAINTED, tuple(waiting)), NOW), EvictPod)
    assert [each.name for each in asked] == ["large", "memory", "small", "none"]


@pytest.mark.parametrize(
    ("first", "drained_for", "leaves"),
    [
        pytest.param(4.0, 0.0, False, id="four times larger"),
        pytest.param(1.3, 0.0, False, id="larger by a third"),
        pytest.param(1.2, 0.0, True, id="larger by a fifth"),
        pytest.param(0.0, 0.0, True, id="nobody is larger"),
        pytest.param(4.0, 10.0, True, id="after ten seconds"),
    ],
)
@pytest.mark.parametrize(("pool", "node"), [("NodePool", TAINTED), ("Provisioner", CORDONED)])
def test_a_small_pod_stays_while_larger_ones_have_to_leave_any_node(pool, node, first, drained_for, leaves):
    claim = deleted(pool=Reference(pool, "default"))
    node = replace(node, deletion_timestamp=NOW - drained_for)
    outcome = step(ClaimView(claim, node, (a_pod("small"),), first_bulk=first), NOW)
    assert [each.name for each in of_kind(outcome, EvictPod)] == ["small"] * leaves


def test_tm_09_a_mirror_pod_is_never_asked():
    assert evicted(deleted(), TAINTED, a_pod("static", mirror=True)) == []


def test_nodes_of_a_node_pool_are_tainted_and_their_other_taints_kept():
    own = Taint("dedicated", "NoSchedule", "web")
    outcome = step(ClaimView(deleted(), replace(NODE, taints=(own,)), (a_pod(),)), NOW)
    (update,) = of_kind(outcome, UpdateNode)
    assert update.taints == (own, Taint(DISRUPTED_TAINT, "NoSchedule"))
    assert update.taints_before == (own,)
    assert update.unschedulable is None
    assert not of_kind(step(ClaimView(deleted(), TAINTED, (a_pod(),)), NOW), UpdateNode)


def test_tm_12_a_protected_pod_is_evicted_from_a_provisioners_node_and_holds_a_node_pools():
    pod = a_pod("batch", annotations={DO_NOT_EVICT: "true"})
    assert evicted(deleted(pool=Reference("Provisioner", "default")), CORDONED, pod) == ["batch"]
    outcome = step(ClaimView(deleted(), TAINTED, (pod,)), NOW)
    assert not of_kind(outcome, EvictPod)
    assert not of_kind(outcome, TerminateInstance)
    assert any("do-not-evict=true" in each.message for each in of_kind(outcome, PublishEvent))


@pytest.mark.parametrize(
    ("value", "started", "held"),
    [
        ("10m", NOW - 9 * MINUTE, True),
        ("10m", NOW - 11 * MINUTE, False),
        ("10m", None, True),
        ("soon", NOW, False),
        ("true", NOW, True),
    ],
)
def test_dn_14_protection_may_end_some_time_after_the_pods_start(value, started, held):
    pod = a_pod("batch", annotations={DO_NOT_DISRUPT: value}, started_at=started)
    assert evicted(deleted(), TAINTED, pod) == ([] if held else ["batch"])


def test_mc_15_the_deadline_is_written_once_and_only_ever_tightened():
    claim = deleted(termination_grace_period=300)
    (stamp,) = step(ClaimView(claim, TAINTED), NOW).instructions
    assert stamp == AnnotateClaim(
        "claim:default-abcde", "default-abcde", {TERMINATION_TIMESTAMP: format_time(NOW + 300)}
    )
    earlier = with_deadline(NOW + 200, termination_grace_period=300)
    assert not of_kind(step(ClaimView(earlier, TAINTED), NOW), AnnotateClaim)
    later = with_deadline(NOW + 900, termination_grace_period=300)
    assert of_kind(step(ClaimView(later, TAINTED), NOW), AnnotateClaim)
    assert not of_kind(step(ClaimView(deleted(), TAINTED), NOW), AnnotateClaim)


def test_tm_16_a_pod_is_deleted_early_enough_to_have_its_own_grace_period():
    """Five minutes for the drain, two for the pod: at three minutes nothing holds it any more."""
    claim = with_deadline(NOW + 5 * MINUTE)
    pod = a_pod("slow", grace_period_seconds=120, annotations={DO_NOT_DISRUPT: "true"})
    before = step(ClaimView(claim, TAINTED, (pod,)), NOW + 3 * MINUTE - 1)
    assert not of_kind(before, DeletePod)
    (deletion,) = of_kind(step(ClaimView(claim, TAINTED, (pod,)), NOW + 3 * MINUTE + 1), DeletePod)
    assert (deletion.uid, deletion.grace_seconds) == ("uid-slow", 119)


def test_all_groups_are_deleted_together_when_the_time_is_over():
    claim = with_deadline(NOW)
    pods = (a_pod("web"), a_pod("dns", priority_class="system-cluster-critical"))
    deletions = of_kind(step(ClaimView(claim, TAINTED, pods), NOW + 1), DeletePod)
    assert [(deletion.name, deletion.grace_seconds) for deletion in deletions] == [("web", 1), ("dns", 1)]


def test_a_pod_that_would_leave_after_the_deadline_is_hastened():
    claim = with_deadline(NOW + 30)
    leaving = a_pod("web", deletion_timestamp=NOW + 600, grace_period_seconds=600)
    (deletion,) = of_kind(step(ClaimView(claim, TAINTED, (leaving,)), NOW), DeletePod)
    assert deletion.grace_seconds == 30
    in_time = replace(leaving, deletion_timestamp=NOW + 20)
    assert not of_kind(step(ClaimView(claim, TAINTED, (in_time,)), NOW), DeletePod)


def test_tm_18_a_node_pools_drain_takes_five_seconds_at_least():
    claim = deleted(conditions=(draining(NOW),))
    early = step(ClaimView(claim, TAINTED), NOW + 1)
    assert not of_kind(early, TerminateInstance)
    assert early.again_at == NOW + 5
    assert of_kind(step(ClaimView(claim, TAINTED), NOW + 5), TerminateInstance)


def test_tm_18_the_five_seconds_count_from_the_cordon_however_long_ago_the_node_was_deleted():
    """The controller was down meanwhile: kube-scheduler may have bound pods until just now."""
    outcome = step(ClaimView(deleted(), NODE), NOW)
    assert [type(each) for each in outcome.instructions] == [UpdateNode, UpdateClaimStatus]
    assert outcome.again_at == NOW + 5
    (began,) = outcome.instructions[1].conditions
    assert (began.type, began.status, began.last_transition_time) == (DRAINED, "Unknown", NOW)


def test_a_drain_that_waited_for_pods_for_longer_does_not_wait_for_others():
    claim = deleted(conditions=(replace(draining(NOW - 30), message="waiting for 1 pods to leave: a"),))
    assert of_kind(step(ClaimView(claim, TAINTED), NOW), TerminateInstance)


ANNOTATIONS = st.sampled_from([{}, {DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "1h"}])


@given(st.lists(st.tuples(ANNOTATIONS, st.integers(0, 900)), min_size=1, max_size=5))
def test_no_drain_with_a_deadline_is_held_beyond_it(pods):
    claim = with_deadline(NOW + 300)
    standing = tuple(
        a_pod(f"p{number}", annotations=annotations, grace_period_seconds=grace, started_at=NOW)
        for number, (annotations, grace) in enumerate(pods)
    )
    asked = of_kind(step(ClaimView(claim, TAINTED, standing), NOW + 301), DeletePod)
    assert len(asked) == len(standing)


def conditions_of(outcome):
    return [
        (condition.type, condition.status)
        for update in of_kind(outcome, UpdateClaimStatus)
        for condition in update.conditions
    ]


def test_tm_15_the_instance_stays_while_a_volume_of_an_evicted_pod_is_attached():
    held = step(ClaimView(deleted(conditions=(draining(),)), TAINTED, attachments=("pv-1",)), NOW)
    assert not of_kind(held, TerminateInstance)
    assert (VOLUMES_DETACHED, "Unknown") in conditions_of(held)
    assert of_kind(step(ClaimView(deleted(conditions=(draining(),)), TAINTED), NOW), TerminateInstance)


def test_tm_15_after_the_deadline_it_goes_all_the_same_and_says_so():
    view = ClaimView(with_deadline(NOW, conditions=(draining(),)), TAINTED, attachments=("pv-1",))
    outcome = step(view, NOW + 1)
    assert of_kind(outcome, TerminateInstance)
    assert (VOLUMES_DETACHED, "False") in conditions_of(outcome)


def test_a_provisioners_node_waits_for_volumes_six_minutes_at_most():
    claim = deleted(pool=Reference("Provisioner", "default"))
    view = ClaimView(claim, replace(CORDONED, deletion_timestamp=NOW), attachments=("pv-1",))
    assert not of_kind(step(view, NOW + 359), TerminateInstance)
    assert of_kind(step(view, NOW + 361), TerminateInstance)


@pytest.mark.parametrize("waited", [361, 3600, 86400])
def test_a_nodepools_node_waits_for_volumes_as_long_as_it_takes(waited):
    view = ClaimView(deleted(), replace(CORDONED, deletion_timestamp=NOW), attachments=("pv-1",))
    assert not of_kind(step(view, NOW + waited), TerminateInstance)


def with_volume(pod):
    """A cluster in which a pod on the node has the volume `pv-data`, which is attached; and the pod."""
    pod = replace(pod, shape=replace(pod.shape, claims=("data",)))
    seen = Snapshot()
    for event in (
        events.NodeSeen(TAINTED),
        events.PodSeen(pod),
        events.VolumeClaimSeen(PersistentVolumeClaim("default", "data", volume_name="pv-data", bound=True)),
        events.VolumeAttachmentSeen(VolumeAttachment("a-1", TAINTED.name, "pv-data")),
    ):
        seen = apply(seen, event)
    return seen, pod


def database(**fields):
    return a_pod("db", node_name=TAINTED.name, **fields)


def test_an_attachment_without_a_persistent_volume_holds_no_instance():
    """Of a volume in the spec of a pod: whether that pod stays until the end cannot be told."""
    inline = VolumeAttachment("a-1", TAINTED.name, "")
    seen = apply(Snapshot(), events.VolumeAttachmentSeen(inline))
    assert attachments_of(seen, deleted(), TAINTED, NOW) == ()


def test_tm_15_attachments_of_pods_that_stay_do_not_count():
    seen, _ = with_volume(tolerating(DISRUPTED_TAINT, node_name=TAINTED.name))
    for attachment in (
        VolumeAttachment("a-2", TAINTED.name, "pv-evicted"),
        VolumeAttachment("a-3", "other", "pv-other"),
    ):
        seen = apply(seen, events.VolumeAttachmentSeen(attachment))
    assert attachments_of(seen, deleted(), TAINTED, NOW) == ("pv-evicted",)
    left = apply(seen, events.VolumeAttachmentGone("a-2"))
    assert attachments_of(left, deleted(), TAINTED, NOW) == ()


def test_tm_15_a_stuck_pods_volume_holds_no_node():
    """The kubelet is dead, and there is no deadline: pod and attachment would stay as long as the node."""
    seen, pod = with_volume(database(deletion_timestamp=NOW - 3000))
    node = replace(TAINTED, ready=False, deletion_timestamp=NOW - 3600)
    view = ClaimView(
        deleted(conditions=(draining(),)),
        node,
        (pod,),
        attachments=attachments_of(seen, deleted(), node, NOW),
    )
    assert of_kind(step(view, NOW), TerminateInstance)
    leaving, _ = with_volume(database(deletion_timestamp=NOW - 30))
    assert attachments_of(leaving, deleted(), node, NOW) == ("pv-data",)


def test_tm_15_the_volume_of_an_evicted_pod_that_has_finished_is_still_waited_for():
    """A pod finishes when its containers have ended; its volumes are unmounted only then."""
    seen, _ = with_volume(database(phase="Failed", deletion_timestamp=NOW + 20))
    assert attachments_of(seen, deleted(), TAINTED, NOW) == ("pv-data",)


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param({"attachments": ("pv-1",)}, id="for volumes"),
        pytest.param({"node": replace(TAINTED, deletion_timestamp=NOW)}, id="for the shortest drain"),
    ],
)
def test_tm_17_a_silent_nodes_instance_is_looked_for_in_every_wait(wait):
    view = ClaimView(deleted(), **{"node": TAINTED, **wait})
    assert not of_kind(step(view, NOW), CheckInstance)
    silent = replace(view, node=replace(view.node, ready=False))
    assert of_kind(step(silent, NOW), CheckInstance)
    assert not of_kind(step(silent, NOW), TerminateInstance)
    ended = of_kind(step(replace(silent, instance_gone=True), NOW), RemoveFinalizer)
    assert [removal.kind for removal in ended] == ["Node"]
