"""VerticalPodAutoscalers on the real API server: watched where that is turned on and the kind is served."""

import asyncio

import pytest

from tests.controllers.conftest import discovered, served
from tests.controllers.vertical_autoscalers import DEFINITION, a_vertical_autoscaler, a_vertical_definition
from tests.controllers.world import a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
ON = {"vertical_autoscalers": True}


@pytest.fixture
def definition(api):
    yield a_vertical_definition()
    if api.find(DEFINITION):
        api.delete(DEFINITION)
        api.wait_gone(DEFINITION)


def test_what_is_recommended_counts_once_the_kind_is_served(scene, definition):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_pod("db", namespace, cpu="500m"))
        await rig.running(namespace, "db")
        assert not rig.cluster.snapshot.vertical_autoscalers

        await rig.create(definition)
        autoscaler = a_vertical_autoscaler(namespace, "db", c={"cpu": "1500m"})
        status = {"status": autoscaler.pop("status")}
        path = f"/apis/autoscaling.k8s.io/v1/namespaces/{namespace}/verticalpodautoscalers"
        await rig.until(lambda: served(rig.api, path) and discovered(rig.api, autoscaler))
        await rig.create(autoscaler)
        await asyncio.to_thread(rig.api.patch, f"{path}/db", status, subresource="status")

        def seen():
            found = rig.cluster.snapshot.vertical_autoscalers.get(f"{namespace}/db")
            return found.recommended if found is not None else ()

        assert await rig.until(seen) == (("c", (("cpu", 1500),)),)
        assert rig.cluster.snapshot.pods[f"{namespace}/db"].container_requests == (("c", (("cpu", 500),)),)

        await asyncio.to_thread(rig.api.delete, f"{path}/db")
        await rig.until(lambda: not rig.cluster.snapshot.vertical_autoscalers)

    scene(scenario, settings=ON)


def test_nobody_asks_for_them_where_they_are_not_turned_on(scene):
    async def scenario(rig, namespace):
        assert "verticalpodautoscalers" not in {kind.name for kind in rig.kinds}
        await rig.create(a_template(), a_provisioner(), a_pod("db", namespace, cpu="500m"))
        await rig.running(namespace, "db")
        assert rig.cluster.snapshot.pods[f"{namespace}/db"].container_requests == ()

    scene(scenario)
