"""A capacity buffer on a real API server: its room stands ready, and its conditions say so."""

import pytest

from localenv.kubernetes import is_established
from tests.controllers.buffers import DEFINITION, GROUP, a_buffer, a_definition, a_pod_template
from tests.controllers.world import a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


@pytest.fixture
def buffers(api, namespace):
    """The definition of buffers, as far as it matters here; gives back the path of this namespace's."""
    api.apply(a_definition())
    api.wait(DEFINITION, is_established)
    path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/capacitybuffers"
    yield path
    api.delete(DEFINITION, missing_ok=True)


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

    scene(scenario, settings={"capacity_buffers": True})
