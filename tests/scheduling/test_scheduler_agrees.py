"""The real kube-scheduler as judge: every pod that a plan places is bound, on nodes made as the plan says.

Each random cluster has a namespace, a node label and a taint of its own, so that it neither sees nor attracts
anything else on the control plane. A pod names its planned node as a preference only: whether it may go there
is the scheduler's decision.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from nodeless.model.labels import HOSTNAME
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import snapshot
from tests.scheduling.manifests import node_manifest, pod_manifest
from tests.scheduling.scheduler import Cluster, binding_order
from tests.scheduling.topology_worlds import TYPES, WORLDS, cluster_of

pytestmark = pytest.mark.cluster
WORLD = "example.com/world"
FEW = settings(
    deadline=None,
    max_examples=20,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def fenced(seen: Snapshot, world: str) -> Snapshot:
    """The cluster with a label and a taint of its own, and without what reaches beyond its namespace."""
    taint, booting = Taint(WORLD, "NoSchedule", world), "node.kubernetes.io/"
    tolerations = (
        Toleration(WORLD, "Equal", world),
        *(Toleration(booting + state, "Exists") for state in ("not-ready", "unreachable")),
    )

    def pod(one: Pod) -> Pod:
        hard = {each.topology_key: each for each in one.shape.spread}
        shape = replace(
            one.shape,
            node_selector=((WORLD, world),),
            tolerations=(*one.shape.tolerations, *tolerations),
            spread=tuple(
                replace(
                    each,
                    when_unsatisfiable="DoNotSchedule",
                    node_affinity_policy="Honor",
                    match_label_keys=each.match_label_keys if each.selector is not None else (),
                )
                for each in hard.values()
            ),
            affinity=_near(one.shape.affinity),
            anti_affinity=_near(one.shape.anti_affinity),
        )
        return replace(one, namespace=world, shape=shape)

    def pool(one: Pool) -> Pool:
        labels = {**one.labels, WORLD: world}
        own = Requirements([*one.requirements.values(), *Requirements.from_labels(labels).values()])
        return replace(one, labels=labels, requirements=own, taints=(*one.taints, taint))

    nodes = [
        replace(one, labels={**one.labels, WORLD: world}, taints=(*one.taints, taint))
        for one in seen.nodes.values()
    ]
    return snapshot(
        [pod(one) for one in seen.pods.values()], [pool(one) for one in seen.pools.values()], nodes
    )


def _near(terms):
    return tuple(
        replace(each, namespaces=(), namespace_selector=None) for each in terms if each.weight is None
    )


@contextmanager
def on_the_control_plane(api, cluster: Cluster, world: str) -> Iterator[None]:
    """The hosts as nodes, with the pods that run on them; all gone afterwards."""
    try:
        for host in cluster.hosts.values():
            name = f"{world}-{host.name}"
            labels = {
                key: value for key, value in host.labels.items() if not key.startswith("karpenter.sh/prov")
            }
            api.create(node_manifest(name, {**labels, HOSTNAME: name}, host.allocatable, host.taints))
            for pod in host.pods:
                api.create(pod_manifest(pod, node=name))
        yield
    finally:
        for pod in api.list(f"/api/v1/namespaces/{world}/pods"):
            api.delete(f"/api/v1/namespaces/{world}/pods/{pod['metadata']['name']}", grace_seconds=0)
        for name in cluster.hosts:
            api.delete(f"/api/v1/nodes/{world}-{name}", missing_ok=True)


@FEW
@given(seen=WORLDS)
def test_the_scheduler_binds_every_pod_that_the_plan_places(api, seen):
    world = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "world-"}})
    name = world["metadata"]["name"]
    try:
        api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        own = fenced(seen, name)
        plan = solve(own, dict.fromkeys(own.pools, TYPES), Policy(time_box=0))
        assume(plan.new_nodes)
        cluster, wanted = cluster_of(own, plan, 0)
        order = binding_order(cluster, wanted)
        assert order is not None
        before = cluster_of(own, plan, 0)[0]
        with on_the_control_plane(api, before, name):
            for key, host in order:
                pod = own.pods[key]
                api.create(pod_manifest(pod, prefer=f"{name}-{host}"))
                path = f"/api/v1/namespaces/{name}/pods/{pod.name}"
                api.wait(path, lambda found: found["spec"].get("nodeName"), timeout=20)
    finally:
        api.delete(f"/api/v1/namespaces/{name}")
