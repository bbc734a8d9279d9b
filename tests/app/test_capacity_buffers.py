"""A capacity buffer on a real API server: its room stands ready, and its conditions say so."""

import pytest

from nodeless.watch.buffers import watched_buffers
from tests.app.world import a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
GROUP = "autoscaling.x-k8s.io"
DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/capacitybuffers.{GROUP}"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def buffers(api, namespace):
    """The definition of buffers, as far as it matters here; gives back the path of this namespace's."""
    api.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"capacitybuffers.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": "CapacityBuffer", "plural": "capacitybuffers"},
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {"spec": OPEN, "status": OPEN},
                            }
                        },
                    }
                ],
            },
        }
    )
    api.wait(
        DEFINITION,
        lambda found: any(
            each["type"] == "Established" and each["status"] == "True"
            for each in found.get("status", {}).get("conditions") or []
        ),
    )
    path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/capacitybuffers"
    yield path
    api.delete(DEFINITION, missing_ok=True)


def a_buffer(namespace, **spec):
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": namespace},
        "spec": {"podTemplateRef": {"name": "chunk"}, **spec},
    }


def a_pod_template(namespace):
    requests = {"requests": {"cpu": "900m"}}
    containers = [{"name": "c", "image": "registry.example/app", "resources": requests}]
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "chunk", "namespace": namespace},
        "template": {"spec": {"containers": containers}},
    }


def test_a_buffer_gets_a_node_and_pods_take_its_room(scene, buffers):
    async def scenario(rig, namespace):
        async def reason(type_, expected):
            def said(found):
                conditions = found.get("status", {}).get("conditions") or []
                return [each for each in conditions if (each["type"], each["reason"]) == (type_, expected)]

            return await rig.until(lambda: rig.api.get(f"{buffers}/spare"), said)

        await rig.create(a_template(), a_provisioner(), a_buffer(namespace, replicas=2))
        await reason("ReadyForProvisioning", "PodTemplateNotFound")
        await rig.create(a_pod_template(namespace))
        claim = await rig.claim()
        buffer = await reason("Provisioning", "FitsExistingCapacity")
        assert buffer["status"]["replicas"] == 2
        assert buffer["status"]["podTemplateRef"] == {"name": "chunk"}
        await rig.until(lambda: dict(rig.cluster.snapshot.buffered))
        await rig.create(a_pod("web", namespace, cpu="900m"))
        assert await rig.running(namespace, "web") == claim["status"]["nodeName"]
        # The pod took the room of a placeholder, which asks for more.
        await rig.until(lambda: len(rig.cluster.snapshot.claims) == 2)

    scene(scenario, more=watched_buffers())
