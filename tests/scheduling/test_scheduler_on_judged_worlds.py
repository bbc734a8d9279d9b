"""The real kube-scheduler on worlds of the judge of many passes: what it refuses, the judge's filters refuse.

Nodes are made as the plan says; pods come all at once, each nominated to its node as the controller does,
and the scheduler takes them in its own order. At rest every pod runs, or no node may have it by the filters
of `scheduler`, with all pods where they really are.
"""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from tests.scheduling.factories import pods, snapshot
from tests.scheduling.manifests import pod_manifest
from tests.scheduling.many_passes import World
from tests.scheduling.scheduler import Cluster
from tests.scheduling.test_many_passes import TYPES, pools_of, workloads
from tests.scheduling.test_scheduler_agrees import FEW, fenced, on_the_control_plane

pytestmark = pytest.mark.cluster


@st.composite
def clusters(draw):
    """The pods of some workloads, and pools; no pod has a volume."""
    made = []
    for index, wanted in enumerate(draw(st.lists(workloads(), min_size=1, max_size=3))):
        asked = {**wanted}
        del asked["volume"]
        made += pods(asked.pop("number"), asked.pop("cpu"), asked.pop("memory"), name=f"w{index}", **asked)
    return snapshot(made, draw(pools_of()))


def nominated(api, pod, node):
    """A pod that the scheduler finds with its nomination from the first look on."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    api.create(pod_manifest(pod, gated=True))
    api.patch(f"{path}/status", {"status": {"nominatedNodeName": node}})
    return path


def at_rest(api, seen, cluster: Cluster, world: str) -> bool:
    """Whether every pod runs, or has no node that the judge's filters would let it on."""
    found = {each["metadata"]["name"]: each for each in api.list(f"/api/v1/namespaces/{world}/pods")}
    hosts = {name: replace(host, pods=list(host.pods)) for name, host in cluster.hosts.items()}
    waiting = []
    for pod in seen.pods.values():
        there = found[pod.name]
        node = there["spec"].get("nodeName", "").removeprefix(f"{world}-")
        if node:
            hosts[node].pods.append(pod)
        else:
            conditions = there["status"].get("conditions", ())
            if not any(each.get("reason") == "Unschedulable" for each in conditions):
                return False
            waiting.append(pod)
    now = Cluster(hosts)
    return all(now.obstacle(pod, host) is not None for pod in waiting for host in hosts.values())


@FEW
@given(
    seen=clusters(),
    packing=st.sampled_from([FEWEST_NODES, LOWEST_PRICE]),
    which=st.integers(0, 59),
    chance=st.integers(0, 2**32),
)
def test_every_planned_pod_is_bound_or_refused_by_the_same_rules(api, seen, packing, which, chance):
    world = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "world-"}})
    name = world["metadata"]["name"]
    try:
        api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        own = fenced(seen, name)
        plan = solve(own, dict.fromkeys(own.pools, TYPES), Policy(packing=packing, time_box=0))
        assume(plan.new_nodes)
        judged = World({each.key: each for each in own.pools.values()}, TYPES, packing, Random(chance))
        cluster, wanted = judged.carried_out(own, plan, which)
        planned = [(pod, host) for host, some in sorted(wanted.items()) for pod in some]
        judged.chance.shuffle(planned)
        own = replace(own, pods=own.pods.__class__({pod.key: pod for pod, _ in planned}))
        with on_the_control_plane(api, cluster, name):
            for path in [nominated(api, pod, f"{name}-{host}") for pod, host in planned]:
                api.patch(path, {"spec": {"schedulingGates": None}})
            api.wait(lambda: at_rest(api, own, cluster, name), what=f"pods of {name} to run", timeout=20)
    finally:
        api.delete(f"/api/v1/namespaces/{name}")
