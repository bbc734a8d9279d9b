"""Nothing is left behind: teardown of a whole stack, and what lost its other half."""

import asyncio
from collections.abc import Iterator

import pytest

from nodeless.controllers.executor.teardown_guard import GUARD_NAME, HOLD_NAMESPACE
from nodeless.model.instructions import ReleaseGuard
from nodeless.nodeclaim.deadlines import Deadlines
from nodeless.operator.timing import TIMING, Timing
from tests.controllers.world import CLAIMS, NODES, POOLS, a_pod, a_provisioner, a_template, changeable

pytestmark = pytest.mark.cluster
HOLDS = f"/apis/coordination.k8s.io/v1/namespaces/{HOLD_NAMESPACE}/leases"


def a_guard(namespace, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": GUARD_NAME, "namespace": namespace, "finalizers": ["nodeless.dev/teardown"]},
        "data": data,
    }


def a_hold(name="nodeless-hold-12345678"):
    """What a stack makes after the guard, and deletes before it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": HOLD_NAMESPACE, "labels": {"nodeless.dev/teardown": "hold"}},
        "spec": {"holderIdentity": "shop/prod"},
    }


@pytest.fixture
def held(api) -> Iterator[str]:
    """The path of a hold that stands."""
    made = api.create(a_hold())
    path = f"{HOLDS}/{made['metadata']['name']}"
    yield path
    api.delete(path, missing_ok=True)


def an_unclaimed_instance(network, cluster="demo", **others):
    """An instance that looks like ours and has no claim: somebody removed the claim by force.

    Of another cluster, or without our tags where `others` take their place.
    """
    image = network.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    ours = {"karpenter.sh/nodeclaim": "default-aaaaa", "karpenter.sh/provisioner-name": "default"}
    tags = {f"kubernetes.io/cluster/{cluster}": "owned", **(others or ours)}
    answer = network.ec2.run_instances(
        ImageId=image,
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    )
    return answer["Instances"][0]["InstanceId"]


def test_the_guard_holds_until_pools_claims_instances_and_templates_are_gone(scene):
    async def scenario(rig, namespace):
        await rig.create(
            a_guard(namespace), a_template(), a_provisioner(), a_provisioner("other"), a_pod("web", namespace)
        )
        await rig.running(namespace, "web")
        await rig.claim()
        rig.kubelets.joining = False
        await asyncio.to_thread(an_unclaimed_instance, rig.network)
        guard = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        await asyncio.to_thread(rig.api.delete, guard)
        # New work gets no capacity any more.
        await rig.until(lambda: rig.cluster.snapshot.teardown)
        await rig.create(a_pod("late", namespace))
        await rig.until_gone(guard)
        assert rig.api.list(POOLS) == rig.api.list(CLAIMS) == rig.api.list(NODES) == []
        assert not rig.network.instances()
        assert not rig.network.ec2.describe_launch_templates()["LaunchTemplates"]

    scene(scenario)


def test_a_guard_that_came_after_the_one_that_was_deleted_keeps_its_finalizer(scene):
    """What let the old one go may be carried out again before it is seen gone: the new one guards still."""

    async def scenario(rig, namespace):
        await rig.create(a_guard(namespace))
        guard = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        await rig.executor.carry_out((ReleaseGuard("teardown"),))
        assert rig.api.get(guard)["metadata"]["finalizers"] == ["nodeless.dev/teardown"]
        await asyncio.to_thread(rig.api.delete, guard)
        await rig.until_gone(guard)

    scene(scenario)


@pytest.mark.parametrize("again", [True, False], ids=["replaced", "deleted"])
def test_while_the_stack_holds_its_capacity_a_deleted_guard_ends_nothing(scene, held, again):
    timing = changeable(TIMING)

    async def scenario(rig, namespace):
        await rig.create(
            a_guard(namespace, drainTimeout="90s"), a_template(), a_provisioner(), a_pod("web", namespace)
        )
        await rig.running(namespace, "web")
        claim = await rig.claim()
        guard = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        uid = rig.api.get(guard)["metadata"]["uid"]
        if not again:  # only now: a leader that finds no guard at its start makes one, too
            timing.guard_restore = 0.1
        await asyncio.to_thread(rig.api.delete, guard)
        if again:
            await rig.until_gone(guard)
            await rig.create(a_guard(namespace))
        back = await rig.until(
            lambda: rig.api.find(guard), lambda found: found and found["metadata"]["uid"] != uid
        )
        assert back["metadata"]["finalizers"] == ["nodeless.dev/teardown"]
        if not again:
            assert back["metadata"]["annotations"]["nodeless.dev/teardown-drain"] == "90s"
        ignored = await rig.event(namespace, GUARD_NAME, "GuardDeletionIgnored")
        assert "nodeless-hold-12345678 of shop/prod" in ignored["message"]
        # New work is served as before, and nothing was ended.
        await rig.until(lambda: not rig.cluster.snapshot.teardown)
        await rig.create(a_pod("late", namespace))
        await rig.running(namespace, "late")
        assert claim["metadata"]["uid"] in {each["metadata"]["uid"] for each in rig.api.list(CLAIMS)}
        assert not any("deletionTimestamp" in each["metadata"] for each in rig.api.list(CLAIMS))
        # The end is meant once the hold goes first, as a destruction has it.
        await asyncio.to_thread(rig.api.delete, held)
        await asyncio.to_thread(rig.api.delete, guard)
        await rig.until_gone(guard)
        assert rig.api.list(POOLS) == rig.api.list(CLAIMS) == rig.api.list(NODES) == []

    scene(scenario, timing=timing)


def test_a_destruction_that_is_called_off_halfway_ends_no_more(scene, api, held):
    """The engine was interrupted after the guard's deletion; the next update makes the hold again."""

    async def scenario(rig, namespace):
        await rig.create(a_guard(namespace), a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        guard = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        await asyncio.to_thread(rig.api.delete, held)
        stuck = {"metadata": {"finalizers": ["example.com/stuck"]}}
        await asyncio.to_thread(rig.api.patch, f"{CLAIMS}/{claim['metadata']['name']}", stuck)
        await asyncio.to_thread(rig.api.delete, guard)
        await rig.until(lambda: rig.api.list(CLAIMS)[0]["metadata"].get("deletionTimestamp"))
        await rig.create(a_hold())
        await rig.until_gone(guard)
        await rig.until(lambda: not rig.cluster.snapshot.teardown)
        await asyncio.to_thread(
            rig.api.patch, f"{CLAIMS}/{claim['metadata']['name']}", {"metadata": {"finalizers": None}}
        )

    scene(scenario)


def test_a_budget_that_never_yields_holds_no_destruction(scene):
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "never"},
        "spec": {"maxUnavailable": 0, "selector": {}},
    }

    async def scenario(rig, namespace):
        held = {**budget, "metadata": {**budget["metadata"], "namespace": namespace}}
        guard = a_guard(namespace, drainTimeout="2s")
        await rig.create(guard, held, a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        await rig.claim()
        path = f"/api/v1/namespaces/{namespace}/configmaps/{GUARD_NAME}"
        await asyncio.to_thread(rig.api.delete, path)
        await rig.until_gone(path)
        assert rig.api.list(POOLS) == rig.api.list(CLAIMS) == rig.api.list(NODES) == []
        assert not rig.network.instances()

    scene(scenario)


def test_mc_10_mc_11_an_instance_without_claim_is_terminated_and_all_others_are_spared(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        rig.kubelets.joining = False
        await asyncio.to_thread(an_unclaimed_instance, rig.network)
        foreign = await asyncio.to_thread(an_unclaimed_instance, rig.network, "other")
        untagged = await asyncio.to_thread(an_unclaimed_instance, rig.network, Name="somebody's own")
        await rig.collector.collect_once()
        left = set(await asyncio.to_thread(rig.network.instances))
        assert left == {claim["status"]["providerID"].rpartition("/")[2], foreign, untagged}
        await rig.collector.collect_once()
        assert rig.api.list(CLAIMS)[0]["metadata"].get("deletionTimestamp") is None

    scene(scenario, timing=Timing(claims=Deadlines(instance_grace=-60.0, claim_grace=-60.0)))


def test_mc_06_mc_16_a_claim_whose_instance_vanished_ends_and_its_pods_get_another_node(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        claim = await rig.claim()
        name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
        (lost,) = await asyncio.to_thread(rig.network.instances)
        rig.kubelets.silent.add(lost)
        await asyncio.to_thread(rig.network.terminate, lost)
        # A Ready node would prove that the listing is wrong.
        await rig.collector.collect_once()
        assert rig.api.get(f"{CLAIMS}/{name}")["metadata"].get("deletionTimestamp") is None
        unready = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        await asyncio.to_thread(
            rig.api.patch, f"{NODES}/{node}", unready, kind="strategic", subresource="status"
        )
        await rig.until(lambda: not rig.cluster.snapshot.nodes[node].ready)
        await rig.collector.collect_once()
        assert rig.api.get(f"{CLAIMS}/{name}")["metadata"].get("deletionTimestamp") is None
        # One list proves nothing; after the second one EC2 is asked for the instance itself.
        await rig.collector.collect_once()
        assert await rig.event("default", name, "InstanceGone")
        await rig.until_gone(f"{CLAIMS}/{name}")
        await rig.until_gone(f"{NODES}/{node}", of=claim)

    scene(scenario, timing=Timing(claims=Deadlines(claim_grace=-60.0)))
