"""Gangs on a real API server: launched whole, released when they cannot be had."""

import asyncio

import pytest

from localenv.kubernetes import is_established
from nodeless.controllers.disruption.gang_pauses import PAUSES_NAME
from nodeless.model.events import ClaimSeen
from nodeless.model.gangs import JOB, POD_GROUP
from nodeless.model.labels import GANG, GANG_SIZE, LAUNCHED_FOR_GANG
from tests.controllers.gangs import PATHS, gang_definitions
from tests.controllers.gangs import POD_GROUP as GROUP
from tests.controllers.world import CLAIMS, a_part, a_pod, a_template, a_tight_pool

pytestmark = pytest.mark.cluster


def a_member(number, namespace, size=8, **spec):
    pod = a_pod(f"train-{number}", namespace, cpu="1500m", **spec)
    pod["metadata"]["labels"] = {f"{GROUP}/pod-group": "train"}
    if size:
        pod["metadata"]["annotations"] = {GANG_SIZE: str(size)}
    return pod


def a_pod_group(namespace, members):
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {"minMember": members},
    }


@pytest.fixture
def pod_groups(api, namespace):
    """The definitions; gives back the path of the PodGroup of this namespace."""
    for definition, path in zip(gang_definitions(), PATHS, strict=True):
        api.apply(definition)
        api.wait(path, is_established)
    yield f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/podgroups/train"
    for path in PATHS:
        api.delete(path, missing_ok=True)


def marks(claims):
    return [claim["metadata"].get("annotations", {}).get(LAUNCHED_FOR_GANG) for claim in claims]


async def known(rig, kind, namespace):
    """Wait until the controllers know the size: its watch is not the one that brings the pods."""
    await rig.until(lambda: rig.cluster.snapshot.gang_sizes.get(f"{kind}/{namespace}/train"))


async def whole(rig, namespace, number):
    """Wait until the members run, and their nodes are like any other."""
    await rig.running(namespace, *(f"train-{at}" for at in range(number)))
    claims = await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not any(marks(claims)))
    assert len(claims) == number


async def create_waiting(rig, namespace, numbers, size=8):
    """Members of a scheduler that binds gangs whole: it says that they lack capacity, and waits."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    for number in numbers:
        await rig.create(a_member(number, namespace, size, schedulerName="gangs"))
        path = f"/api/v1/namespaces/{namespace}/pods/train-{number}"
        await asyncio.to_thread(
            rig.api.patch,
            path,
            {"status": {"conditions": [refused]}},
            kind="strategic",
            subresource="status",
        )


async def bind_whole(rig, namespace, number):
    """What that scheduler does once there is room for all."""

    def initialized(claims):
        return len(claims) == number and all(
            {"Initialized"}
            & {
                each["type"]
                for each in claim.get("status", {}).get("conditions", ())
                if each["status"] == "True"
            }
            for claim in claims
        )

    claims = await rig.until(lambda: rig.api.list(CLAIMS), initialized)
    for at, claim in enumerate(claims):
        name = f"train-{at}"
        await asyncio.to_thread(
            rig.api.create,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": claim["status"]["nodeName"]},
            },
            path=f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
        )


def test_a_gang_of_eight_waits_for_its_last_pod_and_runs_whole(scene, clocks):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_tight_pool(), *(a_member(at, namespace) for at in range(7)))
        await rig.event(namespace, "train-0", "FailedScheduling", "7 of 8 pods exist")
        assert not rig.api.list(CLAIMS)
        await rig.create(a_member(7, namespace))
        claims = await rig.until(lambda: rig.api.list(CLAIMS))
        assert set(marks(claims)) <= {f"{namespace}/train", None}
        await whole(rig, namespace, 8)

    scene(scenario, **clocks.options)


def test_a_pod_group_that_grows_while_it_is_launched_runs_whole(scene, pod_groups, clocks):
    async def scenario(rig, namespace):
        members = [a_member(at, namespace, size=None) for at in range(6)]
        await rig.create(a_template(), a_tight_pool(), a_pod_group(namespace, 4))
        await known(rig, POD_GROUP, namespace)
        await rig.create(*members[:3])
        await rig.event(namespace, "train-0", "FailedScheduling", "3 of 4 pods exist")
        await rig.create(members[3])
        await rig.until(lambda: rig.api.list(CLAIMS))
        await asyncio.to_thread(rig.api.patch, pod_groups, {"spec": {"minMember": 6}})
        await rig.create(*members[4:])
        await whole(rig, namespace, 6)

    scene(scenario, **clocks.options)


def test_a_gang_of_which_ec2_has_a_part_is_released_and_had_later(scene, aws, clocks, api, namespace):
    aws.set_faults(capacity=a_part(5))

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_tight_pool())
        await create_waiting(rig, namespace, range(8))
        await rig.event(namespace, "train-7", "FailedScheduling", "of 8 pods fit")
        claims = await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: len(claims) == 5)
        assert set(marks(claims)) == {f"{namespace}/train"}
        await rig.until(lambda: rig.network.instances("running"), lambda found: len(found) == 5)
        clocks.controllers = 601.0
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not claims)
        await rig.until(lambda: rig.network.instances("pending", "running"), lambda found: not found)
        event = await rig.event(namespace, "train-0", "GangNodesReleased")
        assert "0 of 8 pods run" in event["message"]
        await rig.event(namespace, "train-0", "FailedScheduling", "it is planned again at")
        # There is capacity again, and the gang waits until its pause is over.
        aws.set_faults()
        clocks.cloud = 600.0
        assert not rig.api.list(CLAIMS)
        launched = set()
        rig.cluster.listen(
            lambda event, *_: launched.add(event.claim.name) if isinstance(event, ClaimSeen) else None
        )
        clocks.controllers += 300.0
        await rig.until(lambda: len(launched), lambda number: number >= 8)

    async def by_the_usual_clock(rig, namespace):
        await bind_whole(rig, namespace, 8)
        await whole(rig, namespace, 8)

    scene(scenario, **clocks.options)
    # By the usual clock its pause is not over.
    api.delete(f"/api/v1/namespaces/{namespace}/configmaps/{PAUSES_NAME}")
    clocks.controllers = 0.0
    scene(by_the_usual_clock, **clocks.options)


def test_a_controller_that_begins_anew_releases_what_the_one_before_launched(scene, aws, clocks):
    aws.set_faults(capacity=a_part(3))

    async def first(rig, namespace):
        await rig.create(a_template(), a_tight_pool())
        await create_waiting(rig, namespace, range(4), size=4)
        await rig.event(namespace, "train-3", "FailedScheduling", "of 4 pods fit")
        await rig.until(lambda: rig.network.instances("running"), lambda found: len(found) == 3)
        # The claim that got no instance goes, too.
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: len(claims) == 3)

    async def second(rig, namespace):
        clocks.controllers = 601.0
        await rig.until(lambda: rig.network.instances("pending", "running"), lambda found: not found)
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: not claims)

    scene(first, **clocks.options)
    scene(second, **clocks.options)


def test_a_controller_that_begins_anew_launches_nothing_for_a_gang_that_was_just_released(scene, aws, clocks):
    aws.set_faults(capacity=a_part(3))

    async def first(rig, namespace):
        await rig.create(a_template(), a_tight_pool())
        await create_waiting(rig, namespace, range(4), size=4)
        await rig.until(lambda: rig.network.instances("running"), lambda found: len(found) == 3)
        await rig.until(lambda: rig.api.list(CLAIMS), lambda claims: len(claims) == 3)
        clocks.controllers = 601.0
        await rig.until(lambda: not rig.api.list(CLAIMS))

    async def second(rig, namespace):
        # There is capacity again, and a pod that is in no gang gets some of it.
        await rig.create(a_pod("web", namespace, cpu="1500m"))
        await rig.event(namespace, "web", "Nominated")
        (claim,) = rig.api.list(CLAIMS)
        assert marks([claim]) == [None]
        launched = set()
        rig.cluster.listen(
            lambda event, *_: launched.add(event.claim.name) if isinstance(event, ClaimSeen) else None
        )
        clocks.controllers += 300.0
        await rig.until(lambda: launched - {claim["metadata"]["name"]}, lambda found: len(found) >= 4)

    scene(first, **clocks.options)
    aws.set_faults()
    # What the API server dates would seem to be ten minutes old, and claims to have waited too long.
    clocks.controllers = 0.0
    scene(second, **clocks.options)


def test_the_pods_of_a_job_with_the_label_are_a_gang_of_its_size(scene, clocks):
    async def scenario(rig, namespace):
        container = {"name": "c", "image": "pause"}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": namespace, "labels": {GANG: "true"}},
            "spec": {
                "completions": 3,
                "parallelism": 3,
                # The Job controller leaves it alone: of a suspended Job it would take the test's pods away.
                "managedBy": "nodeless.dev/tests",
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            },
        }
        made = await asyncio.to_thread(rig.api.create, job)
        await known(rig, JOB, namespace)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
        members = [a_pod(f"train-{at}", namespace, cpu="1500m") for at in range(3)]
        for pod in members:
            pod["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
        await rig.create(a_template(), a_tight_pool(), *members[:2])
        await rig.event(namespace, "train-0", "FailedScheduling", "2 of 3 pods exist")
        assert not rig.api.list(CLAIMS)
        await rig.create(members[2])
        await whole(rig, namespace, 3)

    scene(scenario, **clocks.options)
