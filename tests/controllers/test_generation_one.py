"""NodePools and EC2NodeClasses make nodes, and say on themselves whether they can."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from localenv.kubernetes import ApiError
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL
from nodeless.kube.cluster import Cluster
from nodeless.kube.kinds import watched_kinds
from nodeless.operator.timing import TIMING, Timing
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.world import CLAIMS, NODES, a_pod, changeable

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def clean(api, definitions):
    yield
    for kind in (NODE_POOL, EC2_NODE_CLASS):
        for found in api.list(kind.path()):
            path = kind.path(found["metadata"]["name"])
            # The controller of the test may have let it go meanwhile.
            with suppress(ApiError):
                api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


def conditions(found):
    status = (found or {}).get("status") or {}
    return {each["type"]: each for each in status.get("conditions") or ()}


def ready(status):
    return lambda found: conditions(found).get("Ready", {}).get("status") == status


async def seen(rig, kind, predicate):
    return await asyncio.to_thread(rig.api.wait, kind.path("default"), predicate)


def a_node_pool(**template):
    entries = [
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement("karpenter.sh/capacity-type", "In", "on-demand"),
        requirement("node.kubernetes.io/instance-type", "In", "m5.large"),
    ]
    return node_pool(template={"requirements": entries, **template})


def a_class(**spec):
    # AL2: its user data needs nothing of EKS, which has no cluster here.
    return ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}], **spec)


def test_a_pod_gets_a_node_from_a_node_pool(scene):
    async def scenario(rig, namespace):
        await rig.create(a_class(), a_node_pool(), a_pod("web", namespace))
        name = await rig.running(namespace, "web")

        node = await asyncio.to_thread(rig.api.get, f"/api/v1/nodes/{name}")
        labels = node["metadata"]["labels"]
        assert labels["karpenter.sh/nodepool"] == "default"
        assert labels["karpenter.k8s.aws/ec2nodeclass"] == "default"
        assert "karpenter.sh/provisioner-name" not in labels
        pool = await seen(rig, NODE_POOL, lambda found: (found or {}).get("status", {}).get("nodes") == 1)
        assert pool["status"]["resources"]["cpu"] == "2"
        assert conditions(pool)["Ready"]["status"] == "True"
        node_class = await seen(rig, EC2_NODE_CLASS, ready("True"))
        assert node_class["status"]["subnets"]
        assert node_class["status"]["amis"]
        assert node_class["status"]["instanceProfile"] == "nodes"

    scene(scenario)


def test_a_static_pool_holds_as_many_nodes_as_it_says(scene):
    async def scenario(rig, namespace):
        pool = a_node_pool()
        pool["spec"]["replicas"] = 2
        await rig.create(a_class(), pool)
        await rig.until(lambda: rig.network.instances("running"), lambda seen: len(seen) == 2)
        await seen(rig, NODE_POOL, lambda found: (found or {}).get("status", {}).get("nodes") == 2)
        await asyncio.to_thread(rig.api.patch, NODE_POOL.path("default"), {"spec": {"replicas": 1}})
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: len(claims) == 1)
        assert len(await asyncio.to_thread(rig.network.instances)) == 1

    scene(scenario)


def test_pods_run_on_the_node_of_a_static_pool_that_is_launched_in_the_same_pass(scene):
    static = a_node_pool()
    static["metadata"]["name"], static["spec"]["replicas"] = "static", 1

    async def scenario(rig, namespace):
        # Both pools can be used from the same moment on: once there is their class.
        await rig.create(
            a_node_pool(), static, *(a_pod(f"web-{each}", namespace, cpu="500m") for each in range(2))
        )
        await rig.create(a_class())
        names = {await rig.running(namespace, f"web-{each}") for each in range(2)}
        (node,) = await asyncio.to_thread(rig.api.list, NODES)
        assert names == {node["metadata"]["name"]}
        assert node["metadata"]["labels"]["karpenter.sh/nodepool"] == "static"
        (claim,) = await asyncio.to_thread(rig.api.list, CLAIMS)
        assert claim["metadata"]["annotations"]["nodeless.dev/planned-because"].startswith(
            "one of the replicas of NodePool/static, which has room for 2 pods"
        )

    scene(scenario)


def test_what_is_missing_stands_on_both_objects(scene):
    async def scenario(rig, namespace):
        nowhere = [{"tags": {"no": "such"}}]
        await rig.create(a_class(subnetSelectorTerms=nowhere), a_node_pool())

        node_class = conditions(await seen(rig, EC2_NODE_CLASS, ready("False")))
        assert node_class["SubnetsReady"]["status"] == "False"
        assert "subnetSelectorTerms" in node_class["SubnetsReady"]["message"]
        assert node_class["SecurityGroupsReady"]["status"] == "True"
        pool = conditions(await seen(rig, NODE_POOL, ready("False")))
        assert pool["NodeClassReady"]["status"] == "False"
        assert pool["ValidationSucceeded"]["status"] == "True"

    scene(scenario)


def test_a_kind_that_is_not_served_stops_nothing(on_cluster, definitions):
    kinds = [
        replace(kind, path="/apis/karpenter.sh/v0/nodepools") if kind.name == "nodepools" else kind
        for kind in watched_kinds(lambda *_: None)
    ]

    async def scenario(client):
        cluster = Cluster()
        task = asyncio.create_task(cluster.run(client, tuple(kinds)))
        try:
            await asyncio.wait_for(cluster.wait_for_sync(), 30)
            (problem,) = cluster.problems()
            assert "does not serve /apis/karpenter.sh/v0/nodepools" in problem
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    on_cluster(scenario)


def test_dn_15_a_node_whose_pool_gets_another_label_is_replaced_before_it_ends(scene):
    async def scenario(rig, namespace):
        await rig.create(a_class(), a_node_pool(), a_pod("web", namespace, cpu="200m"))
        await rig.running(namespace, "web")
        old = await rig.claim()
        name = old["metadata"]["name"]
        # What the cloud says of the instance is what the node class selects: nothing has drifted yet.
        await rig.drift.reconcile_once()
        seen = await asyncio.to_thread(rig.api.get, f"{CLAIMS}/{name}")
        assert not [each for each in seen["status"]["conditions"] if each["type"] == "Drifted"]
        label = {"spec": {"template": {"metadata": {"labels": {"team": "web"}}}}}
        await asyncio.to_thread(rig.api.patch, NODE_POOL.path("default"), label)
        await rig.until_gone(f"{CLAIMS}/{name}")
        left = await rig.claim()
        node = rig.api.get(f"{NODES}/{left['status']['nodeName']}")
        assert node["metadata"]["labels"]["team"] == "web"

    scene(scenario, timing=Timing(disruption_look=0.5))


def test_dn_23_a_drifted_node_of_a_static_pool_is_replaced_by_a_node_that_is_ready_before_it_ends(scene):
    pool = a_node_pool()
    pool["spec"]["replicas"] = 1

    async def scenario(rig, namespace):
        await rig.create(a_class(), pool)
        old = await rig.claim("Initialized")
        await rig.drift.reconcile_once()
        label = {"spec": {"template": {"metadata": {"labels": {"team": "web"}}}}}
        await asyncio.to_thread(rig.api.patch, NODE_POOL.path("default"), label)
        await rig.until_gone(f"{CLAIMS}/{old['metadata']['name']}")
        new = await rig.claim("Initialized")
        assert new["metadata"]["annotations"]["nodeless.dev/replaces"] == old["metadata"]["name"]
        assert new["metadata"]["annotations"]["nodeless.dev/planned-because"].startswith(
            "in place of default-"
        )
        assert len(await asyncio.to_thread(rig.api.list, CLAIMS)) == 1

    scene(scenario, timing=Timing(disruption_look=0.5))


def test_mc_14_a_pool_whose_machines_do_not_join_says_so_until_it_is_changed_and_one_joins(scene):
    timing = changeable(TIMING)
    timing.claims.registration = 1.0

    def healthy(status):
        return lambda found: conditions(found).get("NodeRegistrationHealthy", {}).get("status") == status

    async def scenario(rig, namespace):
        rig.kubelets.joining = False
        await rig.create(a_class(), a_node_pool())
        await seen(rig, NODE_POOL, healthy("Unknown"))
        await rig.create(a_pod("web", namespace, cpu="200m"))
        bad = await seen(rig, NODE_POOL, healthy("False"))
        assert "launches 2 ended without a node" in conditions(bad)["NodeRegistrationHealthy"]["message"]
        assert ready("True")(bad)
        timing.claims.registration = 900.0
        rig.kubelets.joining = True
        rig.kubelets.silent = set()
        label = {"spec": {"template": {"metadata": {"labels": {"team": "web"}}}}}
        await asyncio.to_thread(rig.api.patch, NODE_POOL.path("default"), label)
        await rig.running(namespace, "web")
        await seen(rig, NODE_POOL, healthy("True"))

    scene(scenario, timing=timing)
