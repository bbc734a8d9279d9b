"""What counts as a change of a cluster, after which consolidation looks at all of it anew."""

from dataclasses import replace

import pytest
from immutables import Map

from nodeless.disruption.consolidation_state import ConsolidationState, is_unchanged
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model import events
from nodeless.model.conditions import Condition
from nodeless.model.nodes import CONSOLIDATABLE
from nodeless.state import apply
from tests.disruption.world import NOW, a_budget, a_node_pool, a_provisioner, cluster, node_of, on

POOL = a_provisioner()
SEEN = cluster(POOL, node_of(POOL, "a"), node_of(POOL, "b"), on("a"), on("b"), a_budget("guarded"))
NODE, CLAIM = SEEN.nodes["node-a"], SEEN.claims["a"]
POD = next(pod for pod in SEEN.pods.values() if pod.node_name == "node-a")


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(
            events.NodeSeen(replace(NODE, resource_version="7")), id="kubelet reports what it reported"
        ),
        pytest.param(events.ClaimSeen(replace(CLAIM, resource_version="7")), id="written without a change"),
        pytest.param(events.ClaimSeen(replace(CLAIM, last_pod_event=7.0)), id="pods came or left"),
        pytest.param(
            events.ClaimSeen(
                replace(CLAIM, conditions=(*CLAIM.conditions, Condition(CONSOLIDATABLE, "True")))
            ),
            id="quiet, as time alone says",
        ),
        pytest.param(events.PodSeen(replace(POD)), id="the pod is as it was"),
        pytest.param(events.Nominated("node-a", 7.0), id="a nomination, which keeps the node itself"),
    ],
)
def test_what_says_nothing_new_is_no_change(event):
    assert is_unchanged(SEEN, apply(SEEN, event))


@pytest.mark.parametrize(("seconds", "ends"), [((5,), 5), ((5, 7), 7), ((5, 7, 9), 7), ((5, 20), 5)])
def test_nodes_that_become_quiet_one_after_the_other_are_waited_for_together(seconds, ends):
    """Looked at one by one, each look would begin anew; none waits for more than three seconds."""
    pool = a_node_pool(consolidate_after=30)
    names = "abc"[: len(seconds)]
    nodes = [
        node_of(pool, name, last_pod_event=NOW - 30 + at) for name, at in zip(names, seconds, strict=True)
    ]
    still = ConsolidationState.after(cluster(pool, *nodes), DisruptionPolicy(), NOW, 100.0)
    assert still.ends == 100 + ends


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(events.NodeSeen(replace(NODE, unschedulable=True)), id="cordoned"),
        pytest.param(events.NodeSeen(replace(NODE, allocatable={"cpu": 7})), id="less room"),
        pytest.param(events.NodeSeen(replace(NODE, name="c", provider_id="aws:///z/i-c")), id="a node more"),
        pytest.param(events.NodeGone("node-a"), id="a node less"),
        pytest.param(
            events.ClaimSeen(replace(CLAIM, conditions=(*CLAIM.conditions, Condition("Drifted", "True")))),
            id="drifted",
        ),
        pytest.param(events.ClaimGone("a"), id="a claim less"),
        pytest.param(events.PodSeen(replace(POD, labels={"app": "other"})), id="other labels"),
        pytest.param(events.PodSeen(replace(POD, uid="other")), id="another pod of the name"),
        pytest.param(events.PodGone(POD.key), id="a pod less"),
        pytest.param(events.PodSeen(replace(POD, name="more", uid="more")), id="a pod more"),
        pytest.param(events.GuardSeen(deleting=True), id="the stack is destroyed"),
    ],
)
def test_what_a_search_may_find_something_else_by_is_one(event):
    after = apply(SEEN, event)
    assert not is_unchanged(SEEN, after)
    assert not is_unchanged(after, SEEN)


@pytest.mark.parametrize(
    "part",
    [
        "pools",
        "node_classes",
        "daemon_sets",
        "namespaces",
        "volume_claims",
        "volumes",
        "storage_classes",
        "csi_nodes",
        "resource_claims",
        "resource_claim_templates",
        "resource_slices",
        "device_classes",
        "disruption_budgets",
        "capacity_buffers",
        "provisioning_requests",
        "pod_sources",
        "vertical_autoscalers",
        "applied_overlays",
    ],
)
def test_whatever_plans_are_made_of_counts(part):
    assert not is_unchanged(SEEN, replace(SEEN, **{part: Map({"new": POOL})}))
