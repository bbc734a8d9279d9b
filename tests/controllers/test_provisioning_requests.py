"""Provisioning requests on a real API server, by Cluster Autoscaler's own definition."""

import pytest

from localenv.kubernetes import is_established
from localenv.kueue import provisioning_request_definition
from localenv.progress import silent
from tests.controllers.buffers import a_pod_template
from tests.controllers.requests import ATOMIC, CHECK, DEFINITION, GROUP, a_request
from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
ON = {"provisioning_requests": True}


@pytest.fixture
def requests(api, namespace):
    """The definition; gives back the path of this namespace's requests."""
    api.apply(provisioning_request_definition(silent))
    api.wait(DEFINITION, is_established)
    yield f"/apis/{GROUP}/v1/namespaces/{namespace}/provisioningrequests"
    api.delete(DEFINITION, missing_ok=True)


@pytest.fixture
def said(requests):
    """Wait until a request has a condition with a status; gives back the condition."""

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
