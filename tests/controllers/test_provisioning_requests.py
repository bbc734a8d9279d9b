"""Provisioning requests on a real API server, by Cluster Autoscaler's own definition."""

import asyncio

import pytest

from localenv.kubernetes import is_established
from localenv.kueue import provisioning_request_definition
from localenv.progress import silent
from nodeless.controllers.provisioning.request_answers import LAUNCH_SECONDS
from nodeless.model.labels import EMPTINESS_TIMESTAMP, LAUNCHED_FOR_REQUEST
from nodeless.operator.work_metrics import CLAIM_LIFECYCLE
from tests.controllers.buffers import a_pod_template
from tests.controllers.requests import ATOMIC, CHECK, DEFINITION, GROUP, a_request
from tests.controllers.world import CLAIMS, a_part, a_pod, a_provisioner, a_template, a_tight_pool

pytestmark = pytest.mark.cluster
ON = {"provisioning_requests": True}


@pytest.fixture
def requests(api, namespace):
    """The definition; gives back the path of this namespace's requests."""
    api.apply(provisioning_request_definition(silent))
    api.wait(DEFINITION, is_established)
    yield f"/apis/{GROUP}/v1/namespaces/{namespace}/provisioningrequests"
    api.delete(DEFINITION, missing_ok=True)
    api.wait_gone(DEFINITION)


@pytest.fixture
def said(requests):
    """Wait until a request has a condition with a status; gives back the condition."""
    return said_at(requests)


def said_at(requests):
    async def wait(rig, type_, status="True", name="job"):
        def conditions(found):
            given = found.get("status", {}).get("conditions") or []
            return [each for each in given if (each["type"], each["status"]) == (type_, status)]

        found = await rig.until(lambda: rig.api.get(f"{requests}/{name}"), conditions)
        return conditions(found)[0]

    return wait


def test_a_request_gets_its_nodes_its_pods_take_them_and_nothing_is_bought_twice(scene, requests, said):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_request(namespace, version="v1beta1"))
        condition = await said(rig, "Accepted", "False")
        assert "PodTemplate" in condition["message"]
        await rig.create(a_pod_template(namespace))
        claim = await rig.claim()
        condition = await said(rig, "Provisioned")
        assert condition["reason"] == "CapacityIsProvisioned"
        assert rig.api.get(f"{requests}/job")["status"]["provisioningClassDetails"]["LaunchingSince"]
        assert (await rig.event(namespace, "job", "Provisioned"))["type"] == "Normal"
        await rig.until(lambda: dict(rig.cluster.snapshot.buffered))
        pod = a_pod("web", namespace, cpu="900m")
        pod["metadata"]["annotations"] = {f"{GROUP}/consume-provisioning-request": "job"}
        await rig.create(pod)
        assert await rig.running(namespace, "web") == claim["status"]["nodeName"]
        assert len(rig.api.list(CLAIMS)) == 1

    scene(scenario, settings=ON)


def test_what_cannot_be_had_is_refused_as_a_whole_and_others_are_left_alone(scene, requests, said):
    async def scenario(rig, namespace):
        tight = a_provisioner(limits={"resources": {"cpu": "2"}})
        foreign = a_request(namespace, "foreign", class_name="queued-provisioning.gke.io")
        await rig.create(
            a_template(), tight, a_pod_template(namespace), foreign, a_request(namespace, count=50)
        )
        condition = await said(rig, "Provisioned", "False")
        assert condition["reason"] == "CapacityIsNotFound"
        assert "of 50 pods would have no place" in condition["message"]
        assert not rig.api.list(CLAIMS)
        assert "status" not in rig.api.get(f"{requests}/foreign")

    scene(scenario, settings=ON)


def test_a_check_buys_nothing_and_finds_the_room_once_it_is_there(scene, requests, said):
    async def scenario(rig, namespace):
        check = a_request(namespace, "check", count=1, class_name=CHECK, parameters={"noRetry": "true"})
        await rig.create(a_template(), a_provisioner(), a_pod_template(namespace), check)
        condition = await said(rig, "Failed", name="check")
        assert "room for 0 of 1 pods" in condition["message"]
        assert not rig.api.list(CLAIMS)
        await rig.create(a_pod("web", namespace, cpu="100m"))
        await rig.running(namespace, "web")
        await rig.create(a_request(namespace, "again", count=1, class_name=CHECK))
        condition = await said(rig, "Provisioned", name="again")
        assert condition["reason"] == "CapacityIsFound"
        assert len(rig.api.list(CLAIMS)) == 1

    scene(scenario, settings=ON)


def test_a_request_that_is_deleted_while_its_node_is_launched_leaves_nothing(scene, requests):
    async def scenario(rig, namespace):
        pool = a_provisioner(ttlSecondsAfterEmpty=1)
        await rig.create(a_template(), pool, a_pod_template(namespace), a_request(namespace))
        await rig.until(lambda: rig.api.list(CLAIMS))
        rig.api.delete(f"{requests}/job")
        await rig.until(lambda: not rig.api.list(CLAIMS))

    scene(scenario, settings=ON)


def test_a_controller_that_begins_anew_goes_on_from_the_conditions(scene, requests, said):
    async def first(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod_template(namespace), a_request(namespace))
        await rig.until(lambda: rig.api.list(CLAIMS))

    async def second(rig, namespace):
        await said(rig, "Provisioned")
        assert len(rig.api.list(CLAIMS)) == 1
        assert rig.api.get(f"{requests}/job")["spec"]["provisioningClassName"] == ATOMIC

    scene(first, settings=ON)
    scene(second, settings=ON)


async def launched_in_part(rig, namespace, requests):
    """A request for eight pods, two to a node, of which EC2 has two nodes: wait until these are there."""
    await rig.create(a_template(), a_tight_pool(), a_pod_template(namespace), a_request(namespace, count=8))
    await rig.until(lambda: rig.network.instances("running"), lambda found: len(found) == 2)

    def marked(claims):
        marks = [claim["metadata"]["annotations"].get(LAUNCHED_FOR_REQUEST) for claim in claims]
        return marks == [f"{namespace}/job"] * 2

    await rig.until(lambda: rig.api.list(CLAIMS), marked)
    await rig.until(lambda: len(ready_nodes(rig)) == 2)
    await rig.until(lambda: rig.api.get(f"{requests}/job"), lacks_capacity)


def lacks_capacity(request):
    """Whether a request was told that it cannot be had whole."""
    conditions = request.get("status", {}).get("conditions") or []
    return "CapacityIsNotFound" in {each["reason"] for each in conditions}


def ready_nodes(rig):
    return [claim for claim in rig.cluster.snapshot.claims.values() if claim.is_true("Initialized")]


def test_a_request_of_which_ec2_has_a_part_fails_in_time_and_its_nodes_end(
    scene, aws, requests, said, clocks
):
    aws.set_faults(capacity=a_part(2))

    async def scenario(rig, namespace):
        # The pool keeps empty nodes for ever.
        await launched_in_part(rig, namespace, requests)
        names = [claim.name for claim in ready_nodes(rig)]
        clocks.controllers = LAUNCH_SECONDS + 1
        condition = await said(rig, "Failed")
        assert condition["reason"] == "LaunchTookTooLong"
        assert "of 8 pods would have no place" in condition["message"]
        await rig.until(lambda: not rig.api.list(CLAIMS))
        await rig.until(lambda: not rig.network.instances("pending", "running"))
        event = await rig.event("default", names[0], "RequestNodesReleased")
        assert f"ProvisioningRequest {namespace}/job failed" in event["message"]

    async def once_there_is_capacity(rig, namespace):
        await rig.create(a_request(namespace, "again", count=8))
        await said(rig, "Provisioned", name="again")
        assert len(rig.api.list(CLAIMS)) == len(rig.network.instances("running")) == 4

    scene(scenario, settings=ON, **clocks.options)
    aws.set_faults()
    clocks.controllers = 0.0
    scene(once_there_is_capacity, settings=ON, **clocks.options)


def test_what_ec2_lacked_is_launched_later_for_the_same_request_beside_what_came(
    scene, aws, requests, said, clocks
):
    aws.set_faults(capacity=a_part(2))

    async def scenario(rig, namespace):
        await launched_in_part(rig, namespace, requests)
        first = set(rig.network.instances("running"))
        aws.set_faults()
        # The pause of the request, and that of the offerings that EC2 ran out of.
        clocks.controllers, clocks.cloud = 61.0, 600.0
        await said(rig, "Provisioned")
        assert len(rig.api.list(CLAIMS)) == 4
        assert first < set(rig.network.instances("running"))

    scene(scenario, settings=ON, **clocks.options)


def test_of_two_checks_of_one_pass_for_the_same_room_one_gets_it(scene, api, requests, said, namespace):
    async def one_node(rig, namespace):
        await rig.create(a_template(), a_tight_pool(), a_pod_template(namespace))
        await rig.create(a_pod("web", namespace, cpu="100m"))
        await rig.running(namespace, "web")
        await rig.claim()

    async def both_are_answered(rig, namespace):
        # Nobody watched when they were made: the first pass looks at both.
        await said(rig, "Provisioned", name="first")
        condition = await said(rig, "Provisioned", "False", name="second")
        assert "room for 0 of 2 pods" in condition["message"]
        # Once the first is gone its room is free again.
        await asyncio.to_thread(rig.api.delete, f"{requests}/first")
        await rig.until(lambda: not rig.cluster.snapshot.provisioning_requests.get(f"{namespace}/first"))
        await rig.create(a_request(namespace, "third", class_name=CHECK))
        await said(rig, "Provisioned", name="third")
        assert len(rig.api.list(CLAIMS)) == 1

    scene(one_node, settings=ON)
    for name in ("first", "second"):
        api.create(a_request(namespace, name, class_name=CHECK))
    scene(both_are_answered, settings=ON)


def test_a_cluster_with_the_definition_of_an_older_autoscaler_is_served_by_its_version(scene, api, namespace):
    old = provisioning_request_definition(silent)
    (beta,) = (each for each in old["spec"]["versions"] if each["name"] == "v1beta1")
    old["spec"]["versions"] = [beta | {"storage": True, "served": True}]
    api.apply(old)
    api.wait(DEFINITION, is_established)
    path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/provisioningrequests"

    async def scenario(rig, namespace):
        request = a_request(namespace, version="v1beta1")
        await rig.create(a_template(), a_provisioner(), a_pod_template(namespace), request)
        condition = await said_at(path)(rig, "Provisioned")
        assert condition["reason"] == "CapacityIsProvisioned"
        assert len(rig.api.list(CLAIMS)) == 1

    try:
        scene(scenario, settings=ON)
    finally:
        api.delete(DEFINITION, missing_ok=True)
        api.wait_gone(DEFINITION)


def test_a_leader_that_has_not_planned_yet_keeps_every_node_and_lets_go_what_is_not_booked_any_more(
    scene, requests, said
):
    async def booked(rig, namespace):
        pool = a_provisioner(ttlSecondsAfterEmpty=0)
        await rig.create(a_template(), pool, a_pod_template(namespace), a_request(namespace))
        await said(rig, "Provisioned")

    async def first_looks(rig, namespace):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(rig.claims.run())]
            await rig.until(lambda: looks(rig))
            (node,) = rig.cluster.snapshot.nodes.values()
            assert EMPTINESS_TIMESTAMP not in node.annotations
            # The first pass says where room is kept; once the booking is gone nothing else touches the node.
            tasks.append(group.create_task(rig.provisioning.run()))
            await rig.until(lambda: dict(rig.cluster.snapshot.buffered))
            assert len(rig.api.list(CLAIMS)) == 1
            await asyncio.to_thread(rig.api.delete, f"{requests}/job")
            await rig.until(lambda: not rig.api.list(CLAIMS))
            for task in tasks:
                task.cancel()

    scene(booked, settings=ON)
    scene(first_looks, settings=ON, act=False)


def looks(rig):
    """How often a claim was looked at to the end."""
    name, labels = "controller_runtime_reconcile_total", {"controller": CLAIM_LIFECYCLE}
    samples = (each for metric in rig.metrics.registry.collect() for each in metric.samples)
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())
