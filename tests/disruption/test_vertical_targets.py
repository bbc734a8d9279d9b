"""Does consolidation leave room for what a VerticalPodAutoscaler recommends?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.disruption.vertical_targets import with_vertical_targets
from nodeless.model import events
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND
from nodeless.model.pods import Owner
from nodeless.model.requirements import Requirements
from nodeless.model.vertical_autoscaling import VerticalPodAutoscaler
from nodeless.state import apply
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, needs, pods

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
SOLD = {POOL.key: FAMILY}
#: What the largest type has for pods.
MOST = 15_900
OWNER = (Owner("apps/v1", "StatefulSet", "db", controller=True),)


def a_database(name, cpu=1000, *, number=1):
    """Pods of a StatefulSet on a node, with one container that asks for all."""
    asked = (("cpu", cpu),)
    return [
        replace(pod, owners=OWNER, container_requests=(("c", asked),))
        for pod in on(name, number, f"{cpu}m", "0", app="db")
    ]


def recommending(seen, cpu, **fields):
    target = {"recommended": (("c", (("cpu", cpu),)),), **fields}
    autoscaler = VerticalPodAutoscaler("default", "db", "StatefulSet", "db", **target)
    return apply(seen, events.VerticalPodAutoscalerSeen(autoscaler))


def test_a_replacement_has_room_for_the_target():
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), a_database("a"))
    assert [node.instance_type for node in only_command(decide(seen)).replacements] == ["medium"]
    grown = only_command(decide(recommending(seen, 3000)))
    assert [node.instance_type for node in grown.replacements] == ["large"]


def test_a_node_that_its_pods_will_fill_is_not_replaced_by_a_smaller_one():
    seen = cluster(POOL, node_of(POOL, "a", "large"), a_database("a"))
    assert decide(seen).commands
    assert not decide(recommending(seen, 3500)).commands


def test_nodes_keep_room_for_the_pods_that_run_there():
    """Without the target the pods of `a` fit beside the database."""
    large = node_of(POOL, "b", "large")
    seen = cluster(POOL, node_of(POOL, "a", "medium"), on("a"), large, a_database("b"))
    assert ("a",) in [each.claims for each in decide(seen).commands if not each.replacements]
    commands = decide(recommending(seen, 3500)).commands
    assert ("a",) not in [each.claims for each in commands if not each.replacements]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"applies": False}, id="Off"),
        pytest.param({"target": "other"}, id="another-workload"),
        pytest.param({"kind": "Deployment"}, id="another-kind"),
        pytest.param({"recommended": ()}, id="nothing-recommended"),
        pytest.param({"recommended": (("x", (("cpu", 9000),)),)}, id="another-container"),
    ],
)
def test_what_is_not_applied_to_a_pod_changes_nothing(fields):
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), a_database("a"))
    asked = {"kind": "StatefulSet", "target": "db", "recommended": (("c", (("cpu", 9000),)),), **fields}
    given_ = apply(seen, events.VerticalPodAutoscalerSeen(VerticalPodAutoscaler("default", "db", **asked)))
    assert with_vertical_targets(given_, SOLD).pods == seen.pods


@given(
    containers=st.lists(
        st.tuples(st.integers(0, 4000), st.one_of(st.none(), st.integers(0, 9000))), min_size=1, max_size=4
    ),
    beside=st.integers(0, 500),
    number=st.integers(1, 5),
    waiting=st.integers(0, 2),
)
def test_each_running_pod_counts_with_the_most_of_request_and_target_of_each_container(
    containers, beside, number, waiting
):
    """`beside` is what the pod asks for besides its containers: the overhead of its runtime."""
    asked = tuple((f"c{i}", (("cpu", request),)) for i, (request, _) in enumerate(containers))
    total = sum(request for request, _ in containers) + beside
    there = [replace(pod, container_requests=asked) for pod in a_database("a", total, number=number)]
    pending = [
        replace(pod, owners=OWNER, container_requests=asked)
        for pod in pods(waiting, f"{total}m", name="db-new")
    ]
    recommended = tuple(
        (f"c{i}", (("cpu", target),)) for i, (_, target) in enumerate(containers) if target is not None
    )
    seen = recommending(cluster(POOL, node_of(POOL, "a"), there, pending), 0, recommended=recommended)
    grown = with_vertical_targets(seen, SOLD)
    wanted = sum(max(request, target or 0) for request, target in containers) + beside
    counted = wanted if wanted <= MOST else total
    assert {grown.pods[pod.key].requests.get("cpu", 0) for pod in there} == {counted}
    assert all(grown.pods[pod.key] == pod for pod in pending)
    assert with_vertical_targets(seen, SOLD).pods is grown.pods, (
        "searches of a cluster that is the same go on"
    )


def test_a_target_that_no_instance_type_holds_keeps_no_node_from_being_replaced():
    seen = cluster(POOL, node_of(POOL, "a", "2xlarge"), a_database("a"))
    grown = only_command(decide(recommending(seen, 99_000)))
    assert [node.instance_type for node in grown.replacements] == ["medium"]


def test_clusters_without_autoscalers_are_left_as_they_are():
    seen = cluster(POOL, node_of(POOL, "a"), a_database("a"))
    assert with_vertical_targets(seen, SOLD) is seen
