"""Other autoscalers of a cluster: by what they are known, and which pods either may serve."""

from dataclasses import replace

import pytest

from nodeless.explain.neighbors import Rivals, neighbor_notes, neighbors_of
from nodeless.model import events
from nodeless.model.labels import ARCH, ZONE
from nodeless.model.neighbors import ScalingGroup, program_of
from nodeless.model.nodes import Node
from nodeless.model.pods import NodeSelectorTerm, Owner, Pod, PodShape
from nodeless.model.pools import Pool, Reference
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration
from nodeless.state import apply
from tests.factories import DAEMON, a_pod, a_pool

POOL = "Provisioner/default"
GPU = Taint("gpu", "NoSchedule", "true")
TOLERATES = (Toleration("gpu", "Exists"),)


def autoscaler(name="cluster-autoscaler-1", program="cluster-autoscaler", **fields):
    owner = (Owner("apps/v1", "ReplicaSet", "cluster-autoscaler-5d", controller=True),)
    labels = {"pod-template-hash": "5d"}
    shape = PodShape(requests=(("cpu", 100),), node_selector=(("only", "here"),))
    return a_pod(name, program=program, owners=owner, labels=labels, shape=shape, **fields)


def a_member(group="web", name="ip-1", label="eks.amazonaws.com/nodegroup", taints=(), **labels):
    return Node(name=name, uid=name, labels={label: group, ARCH: "amd64", **labels}, taints=taints)


def seen(*things):
    kinds = {Node: events.NodeSeen, Pool: events.PoolSeen, Pod: events.PodSeen}
    snapshot = Snapshot()
    for thing in things:
        event = thing if isinstance(thing, events.NeighborPoolSeen) else kinds[type(thing)](thing)
        snapshot = apply(snapshot, event)
    return snapshot


def of_auto_mode(name="general-purpose", **fields):
    pool = Pool(Reference("NodePool", name), Reference("EC2NodeClass", ""), **fields)
    return events.NeighborPoolSeen(pool)


def asks(*terms, selector=None, tolerations=()):
    required = tuple(NodeSelectorTerm(tuple(term)) for term in terms)
    selected = tuple((selector or {}).items())
    return PodShape((("cpu", 1000),), selected, required, tolerations=tolerations)


@pytest.mark.parametrize(
    ("image", "program"),
    [
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0", "cluster-autoscaler"),
        ("mirror.example:5000/k8s/cluster-autoscaler@sha256:00", "cluster-autoscaler"),
        ("public.ecr.aws/karpenter/controller:1.8.0@sha256:00", "karpenter"),
        ("mirror.example/karpenter", "karpenter"),
        ("registry.k8s.io/cpa/cluster-proportional-autoscaler:1.9", ""),
        ("ghcr.io/nodeless/nodeless:0.1.0", ""),
        ("mirror.example/karpenter/nodeless:0.1.0", ""),
        ("pause", ""),
    ],
)
def test_programs_are_known_by_their_images(image, program):
    assert program_of(image) == program


def test_a_cluster_by_itself_has_no_neighbor():
    assert neighbors_of(seen(a_pool(), a_pod(), a_member())) == ()


def test_a_node_group_of_cluster_autoscaler_can_take_pods_that_ask_for_nothing():
    (found,) = neighbors_of(seen(a_pool(), autoscaler(), a_member(), a_pod(), a_pod("d", owners=DAEMON)))
    assert found.name == "Cluster Autoscaler"
    assert found.rivals == {POOL: Rivals(("web",), 1)}
    assert "default/cluster-autoscaler (Deployment)" in found.about(POOL)
    assert "its node group web can take pods of Provisioner/default, too; both launch" in found.about(POOL)
    assert "hint: use taints to separate its groups" in found.about(POOL)


def test_an_autoscaler_that_has_ended_is_no_neighbor():
    assert neighbors_of(seen(a_pool(), autoscaler(phase="Succeeded"), a_member())) == ()


def test_groups_without_nodes_are_known_by_what_the_autoscaler_says():
    cluster = seen(a_pool(), autoscaler(), a_member())
    groups = (ScalingGroup("eks-web-0aca", 1, 3), ScalingGroup("batch", 0, 9))
    (found,) = neighbors_of(apply(cluster, events.AutoscalerGroupsSeen(groups)))
    assert found.groups == ("web", "batch")


def test_an_autoscaler_of_unknown_groups_is_told_of_all_the_same():
    (found,) = neighbors_of(seen(a_pool(), autoscaler()))
    assert found.rivals == {POOL: Rivals()}
    assert "whether its groups can take pods of Provisioner/default is not known" in found.about(POOL)


@pytest.mark.parametrize(
    ("pods", "rival"),
    [
        ((), False),
        ((asks(),), False),
        ((asks(tolerations=TOLERATES),), True),
        ((asks(tolerations=TOLERATES, selector={ARCH: "arm64"}),), False),
        ((asks(tolerations=TOLERATES, selector={"team": "a"}),), False),
        ((asks([Requirement.of(ARCH, "In", ["arm64"])], [Requirement.of(ZONE, "Exists")]),), False),
        (
            (
                asks(
                    [Requirement.of(ARCH, "In", ["arm64"])],
                    [Requirement.of("team", "NotIn", ["b"])],
                    tolerations=TOLERATES,
                ),
            ),
            True,
        ),
    ],
)
def test_behind_a_taint_only_pods_that_there_are_go_to_either(pods, rival):
    things = [a_pod(f"p{number}", shape=shape) for number, shape in enumerate(pods)]
    (found,) = neighbors_of(seen(a_pool(), autoscaler(), a_member(taints=(GPU,)), *things))
    assert found.groups == ("web",)
    assert bool(found.rivals) is rival


def test_a_group_that_can_take_nothing_of_ours_is_said_to():
    cluster = seen(a_pool(taints=(GPU,)), autoscaler(), a_member(), a_pod())
    (note,) = neighbor_notes(cluster)
    assert note.startswith("warning: Cluster Autoscaler also serves this cluster")
    assert note.endswith("its node group web can take no pods of our pools [OtherAutoscaler]")


def test_marks_of_the_moment_on_nodes_do_not_set_a_group_apart():
    marks = (
        Taint("ToBeDeletedByClusterAutoscaler", "NoSchedule", "1"),
        Taint("node.kubernetes.io/unschedulable", "NoSchedule"),
    )
    one, other = a_member(taints=(*marks, GPU)), a_member(name="ip-2", taints=marks)
    (found,) = neighbors_of(seen(a_pool(), autoscaler(), one, other))
    assert found.rivals[POOL].groups == ("web",)


def test_pools_of_auto_mode_are_rivals_by_what_they_take():
    arm = Requirements([Requirement.of(ARCH, "In", ["arm64"])])
    cluster = seen(
        a_pool(taints=(GPU,)),
        of_auto_mode(requirements=arm),
        of_auto_mode("system", taints=(Taint("CriticalAddonsOnly", "NoSchedule"),)),
        a_pod("arm", shape=asks(selector={ARCH: "arm64"}, tolerations=TOLERATES)),
        a_pod("amd", shape=asks(selector={ARCH: "amd64"}, tolerations=TOLERATES)),
    )
    (found,) = neighbors_of(cluster)
    assert (found.name, found.groups) == ("EKS Auto Mode", ("general-purpose", "system"))
    assert found.rivals == {POOL: Rivals(("general-purpose",), 1)}
    assert "its pool general-purpose can take pods of Provisioner/default, too" in found.about(POOL)


def test_auto_mode_without_pools_is_known_by_its_nodes():
    node = Node(name="i-1", uid="u", labels={"eks.amazonaws.com/compute-type": "auto"})
    (found,) = neighbors_of(seen(a_pool(), node))
    assert found.sign == "node i-1"


def test_a_karpenter_serves_the_very_pools():
    deleted = replace(a_pool(), reference=Reference("NodePool", "gone"), deletion_timestamp=1.0)
    (found,) = neighbors_of(seen(a_pool(), deleted, autoscaler(program="karpenter")))
    assert list(found.rivals) == [POOL]
    assert "it serves Provisioner/default itself, too; both create NodeClaims" in found.about(POOL)
    assert found.summary() == found.told()


def test_what_is_told_once_does_not_change_with_the_pods():
    few = seen(a_pool(), autoscaler(), a_member(), a_pod())
    many = apply(few, events.PodSeen(a_pod("web-2")))
    (before,), (after,) = neighbors_of(few), neighbors_of(many)
    assert before.told() == after.told()
    assert "1 pod at present" in before.summary()
    assert "2 pods at present" in after.summary()
