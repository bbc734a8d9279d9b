"""What goes wrong is told where the user looks, does no harm meanwhile, and ends when its cause does."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from nodeless.controllers.nodeclaim.controller import ClaimLoop
from nodeless.controllers.nodeclaim.launcher import RetryLaterError
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeClassSeen
from nodeless.model.instructions import CreateClaim
from nodeless.model.pools import NodeClass
from nodeless.operator.metrics import Metrics
from tests.controllers.conftest import eventually
from tests.controllers.world import (
    CLAIMS,
    NODES,
    POOLS,
    TEMPLATES,
    a_pod,
    a_provisioner,
    a_template,
)
from tests.factories import TEMPLATE, a_claim

EXCLUSIVE = {"ttlSecondsAfterEmpty": 1, "consolidation": {"enabled": True}}
cluster_test = pytest.mark.cluster


def described(api, path):
    """The events that `kubectl describe` shows of an object: it asks for them by name, kind and uid."""
    found = api.get(path)
    metadata = found["metadata"]
    asked = {"name": metadata["name"], "kind": found["kind"], "uid": metadata["uid"]}
    if "namespace" in metadata:
        asked["namespace"] = metadata["namespace"]
    selector = ",".join(f"involvedObject.{key}={value}" for key, value in asked.items())
    return "\n".join(event["message"] for event in api.list("/api/v1/events", field_selector=selector))


@cluster_test
def test_a_pool_that_an_edit_makes_invalid_keeps_its_nodes_and_works_again_once_corrected(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(ttlSecondsAfterEmpty=3600), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        await rig.claim()
        spec = {"spec": EXCLUSIVE}
        await asyncio.to_thread(rig.api.patch, f"{POOLS}/default", spec)
        await rig.until(lambda: rig.cluster.snapshot.pools["Provisioner/default"].invalid)
        # An empty node of a pool without readable rules stays; a new pod is told what is wrong.
        await asyncio.to_thread(rig.api.delete, f"/api/v1/namespaces/{namespace}/pods/web", grace_seconds=0)
        await rig.create(a_pod("big", namespace, cpu="3"))
        refusal = await rig.event(namespace, "big", "FailedScheduling", "Provisioner/default")
        assert "mutually exclusive" in refusal["message"] or "consolidation" in refusal["message"]
        assert rig.api.get(f"{NODES}/{node}")["metadata"].get("deletionTimestamp") is None
        corrected = {"spec": {"ttlSecondsAfterEmpty": 3600, "consolidation": None}}
        await asyncio.to_thread(rig.api.patch, f"{POOLS}/default", corrected)
        assert await rig.running(namespace, "big") != node

    scene(scenario)


@cluster_test
def test_an_invalid_pool_is_still_deleted_only_after_its_nodes(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        await rig.claim()
        await asyncio.to_thread(rig.api.patch, f"{POOLS}/default", {"spec": EXCLUSIVE})
        await rig.until(lambda: rig.cluster.snapshot.pools["Provisioner/default"].invalid)
        await asyncio.to_thread(rig.api.delete, f"{POOLS}/default")
        await rig.until_gone(f"{POOLS}/default")
        assert rig.api.find(f"{NODES}/{node}") is None
        assert not rig.network.instances()

    scene(scenario)


@cluster_test
def test_a_missing_security_group_is_told_to_pod_pool_and_template_and_cured_by_making_it(scene, network):
    (group,) = network.ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["nodes"]}])[
        "SecurityGroups"
    ]
    network.ec2.delete_security_group(GroupId=group["GroupId"])
    now = [time.time()]

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        refusal = await rig.event(namespace, "web", "FailedScheduling", "security group")
        await rig.event("default", "default", "NotReady")
        pod = f"/api/v1/namespaces/{namespace}/pods/web"
        for path in (pod, f"{POOLS}/default", f"{TEMPLATES}/default"):
            await rig.until(lambda path=path: "security group" in described(rig.api, path))
        assert refusal["type"] == "Warning"
        await asyncio.to_thread(network.add_security_group)
        # What was not found may be looked up again only after a while.
        now[0] += 600
        assert await rig.running(namespace, "web")

    scene(scenario, clock=lambda: now[0])


@cluster_test
def test_mc_02_sold_out_capacity_is_told_to_the_pod_and_had_once_it_is_there(scene, aws):
    aws.set_faults(capacity=[{"instanceType": "m5.large"}, {"instanceType": "m5.xlarge"}])
    now = [time.time()]

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        event = await rig.event(namespace, "web", "InsufficientCapacity")
        assert "other capacity is being planned" in event["message"]
        assert await rig.event(namespace, "web", "FailedScheduling", "Provisioner/default")
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not claims)
        assert not rig.provisioning._planned
        assert not rig.cluster.snapshot.nominations
        aws.set_faults()
        now[0] += 600
        assert await rig.running(namespace, "web")

    scene(scenario, clock=lambda: now[0])


@cluster_test
def test_mc_02_a_launch_that_fails_otherwise_stands_on_the_claim_which_is_kept_and_launched_later(scene, aws):
    refused = {"code": "UnauthorizedOperation", "status": 403, "message": "you are not authorized"}
    aws.set_faults(errors={"CreateFleet": refused})

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.event(namespace, "web", "FailedLaunch", "not authorized")

        def launched(claims):
            conditions = (each for claim in claims for each in claim.get("status", {}).get("conditions", ()))
            return next((each for each in conditions if each["type"] == "Launched"), {})

        (kept,) = await rig.until(
            lambda: rig.api.list(CLAIMS), lambda claims: launched(claims).get("status") == "False"
        )
        assert launched([kept])["reason"] == "Unauthorized"
        assert "you are not authorized" in launched([kept])["message"]
        aws.set_faults()
        assert await rig.running(namespace, "web")
        (same,) = rig.api.list(CLAIMS)
        assert same["metadata"]["uid"] == kept["metadata"]["uid"]

    scene(scenario)


@cluster_test
def test_a_template_deleted_before_the_launch_is_named_and_the_pods_are_planned_again(scene):
    async def scenario(rig, namespace):
        rig.provisioning._executor = Planner(rig.executor, rig.api)
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        event = await rig.event(namespace, "web", "FailedLaunch")
        assert "AWSNodeTemplate/default does not exist" in event["message"]
        (first,) = rig.provisioning._executor.claims
        assert await rig.event("default", first, "NodeClassNotReady")
        await rig.until_gone(f"{CLAIMS}/{first}")
        rig.provisioning._executor = rig.executor
        await rig.create(a_template())
        await rig.running(namespace, "web")
        assert (await rig.claim())["metadata"]["name"] != first

    scene(scenario)


class Planner:
    """Hands that lose the node template at the very moment at which a claim is written."""

    def __init__(self, executor, api):
        self._executor, self._api = executor, api
        self.claims = []

    async def carry_out(self, instructions):
        instructions = list(instructions)
        self.claims += [each.claim.name for each in instructions if isinstance(each, CreateClaim)]
        path = f"{TEMPLATES}/default"
        await asyncio.to_thread(self._api.delete, path, missing_ok=True)
        await eventually(
            lambda: "AWSNodeTemplate/default" not in self._executor._cluster.snapshot.node_classes
        )
        await self._executor.carry_out(instructions)


class Launches:
    """A launcher that always fails and counts."""

    def __init__(self):
        self.count = 0

    async def launch(self, _claim, _waiting):
        self.count += 1
        raise RetryLaterError


class NoExecutor:
    instances = SimpleNamespace(gone=frozenset())
    evictions = SimpleNamespace(is_refused=lambda _uid: False)

    async def carry_out(self, instructions):
        assert not list(instructions), "nothing to carry out"


def waiting_claim():
    return a_claim(created_at=time.time())


def test_news_of_a_claim_do_not_hasten_the_next_try_of_a_failed_launch_but_a_new_template_does():
    async def scenario():
        cluster, launches = Cluster(), Launches()
        loop = ClaimLoop(cluster, NoExecutor(), launches, Metrics())
        work = asyncio.create_task(loop.run())
        claim = waiting_claim()
        for version in range(1, 20):
            # Each failure writes a condition, and that comes back as news.
            cluster.handle(ClaimSeen(a_claim(created_at=claim.created_at, resource_version=str(version))))
            await asyncio.sleep(0.01)
        assert launches.count == 1
        cluster.handle(NodeClassSeen(NodeClass(TEMPLATE)))
        await eventually(lambda: launches.count == 2, seconds=0.4)
        cluster.handle(ClaimGone(claim.name))
        await eventually(lambda: not loop._failures and not loop._launch_after)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(scenario())


def test_the_wait_between_tries_is_bounded_however_often_a_step_failed():
    async def scenario():
        loop = ClaimLoop(Cluster(), NoExecutor(), Launches(), Metrics())
        delays = [loop._again("a") for _ in range(2000)]
        assert delays[:3] == [0.5, 1.0, 2.0]
        assert delays[-1] == 60.0

    asyncio.run(scenario())


def test_an_unexpected_error_in_one_launch_concerns_its_claim_alone():
    async def scenario():
        launched = []

        class Broken(Launches):
            async def launch(self, claim, _waiting):
                if claim.name == "broken":
                    raise KeyError("a bug")
                launched.append(claim.name)

        class RecordingExecutor(NoExecutor):
            async def carry_out(self, instructions):
                """Conditions that tell of the failure."""

        cluster = Cluster()
        loop = ClaimLoop(cluster, RecordingExecutor(), Broken(), Metrics())
        work = asyncio.create_task(loop.run())
        for name in ("broken", "good"):
            cluster.handle(ClaimSeen(a_claim(name, created_at=time.time())))
        await eventually(lambda: launched and "KeyError" in loop._boundary.cause("broken"))
        assert set(launched) == {"good"}
        assert not work.done()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(scenario())
