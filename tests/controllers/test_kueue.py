"""Kueue's real controller: a Job is queued, gets its nodes by a ProvisioningRequest, and runs."""

import pytest

from localenv.kubernetes import is_established
from localenv.kueue import kueue, provisioning_request_definition, running_kueue
from localenv.progress import silent
from tests.controllers.requests import ATOMIC, DEFINITION, GROUP
from tests.controllers.world import CLAIMS, a_provisioner, a_template

pytestmark = pytest.mark.cluster
KUEUE = "kueue.x-k8s.io/v1beta2"


def an_object(kind, name, spec, namespace=None):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": spec}


def the_queue(namespace):
    """What an administrator sets up, in the order of Kueue's guide."""
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": 10}]}
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "nodes"}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    queue = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "nodes"}]},
    }
    yield an_object("ProvisioningRequestConfig", "nodes", {"provisioningClassName": ATOMIC})
    yield an_object("AdmissionCheck", "nodes", check)
    yield an_object("ResourceFlavor", "default", {})
    yield an_object("ClusterQueue", "all", queue)
    yield an_object("LocalQueue", "jobs", {"clusterQueue": "all"}, namespace)


def a_job(namespace):
    container = {
        "name": "c",
        "image": "registry.example/app",
        "resources": {"requests": {"cpu": "900m"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "jobs"},
        },
        "spec": {
            "suspend": True,
            "parallelism": 3,
            "completions": 3,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def test_a_job_waits_in_its_queue_until_its_nodes_are_there_and_then_runs_on_them(
    scene, api, control_plane, tmp_path, namespace
):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), *the_queue(namespace), a_job(namespace))
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/provisioningrequests"

        def provisioned(found):
            conditions = [each for one in found for each in one.get("status", {}).get("conditions", ())]
            return any((each["type"], each["status"]) == ("Provisioned", "True") for each in conditions)

        (request,) = await rig.until(lambda: rig.api.list(path), provisioned)
        assert request["spec"]["podSets"][0]["count"] == 3
        bought = {claim["metadata"]["name"] for claim in rig.api.list(CLAIMS)}
        assert bought
        pods = await rig.until(
            lambda: rig.api.list(f"/api/v1/namespaces/{namespace}/pods"),
            lambda found: len(found) == 3 and all(pod["status"].get("phase") == "Running" for pod in found),
        )
        used = {pod["metadata"]["annotations"][f"{GROUP}/consume-provisioning-request"] for pod in pods}
        assert used == {request["metadata"]["name"]}
        assert {claim["metadata"]["name"] for claim in rig.api.list(CLAIMS)} == bought

    api.apply(provisioning_request_definition(silent))
    api.wait(DEFINITION, is_established)
    try:
        with running_kueue(api, control_plane.kubeconfig, kueue(silent), tmp_path / "kueue"):
            scene(scenario, settings={"provisioning_requests": True})
    finally:
        api.delete(DEFINITION, missing_ok=True)
