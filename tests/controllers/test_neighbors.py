"""Another autoscaler beside the controller on a real API server: events, lines of the log, and the rights."""

import asyncio

import pytest
from structlog.testing import capture_logs

from nodeless.operator.timing import Timing
from tests.controllers.world import a_pod, a_provisioner, a_template
from tests.kube.test_autoscaler_status import OF_YAML
from tests.rights import allow

pytestmark = pytest.mark.cluster

NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
REASON = "OtherAutoscaler"
AUTOSCALER = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
KARPENTER = "public.ecr.aws/karpenter/controller:1.8.0"


def a_program(namespace, image, name="other"):
    pod = a_pod(name, namespace, tolerations=[{"key": "none"}])
    pod["spec"]["containers"][0]["image"] = image
    return pod


def of_auto_mode(name="general-purpose"):
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
    }


def warnings(logs):
    return [line["event"] for line in logs if line["log_level"] == "warning" and "serves" in line["event"]]


def test_a_karpenter_is_told_of_on_the_pool_and_in_the_log_until_it_is_gone(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), a_program(namespace, KARPENTER))
        await rig.until(lambda: len(rig.cluster.snapshot.pods) == 1 and rig.cluster.snapshot.pools)
        with capture_logs() as logs:
            await rig.neighbors.reconcile_once()
            await rig.neighbors.reconcile_once()
            (line,) = warnings(logs)
            assert "it serves the same pools: Provisioner/default" in line
            event = await rig.event("default", "default", REASON, namespace)
            assert event["type"] == "Warning"
            assert "hint: let one of the two run" in event["message"]
            path = f"/api/v1/namespaces/{namespace}/pods/other"
            rig.api.delete(path, grace_seconds=0)
            await rig.until(lambda: not rig.cluster.snapshot.pods)
            await rig.neighbors.reconcile_once()
        assert "Karpenter does not serve this cluster any more" in [line["event"] for line in logs]
        events = [each for each in rig.api.events("default", "default") if namespace in each["message"]]
        assert [each["reason"] for each in events].count(REASON) == 1

    scene(scenario)


def test_pools_of_auto_mode_are_rivals_and_are_left_alone(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), of_auto_mode())
        try:
            await rig.until(lambda: rig.cluster.snapshot.neighbor_pools and rig.cluster.snapshot.pools)
            assert list(rig.cluster.snapshot.pools) == ["Provisioner/default"]
            await rig.neighbors.reconcile_once()
            await rig.event("default", "default", REASON, "its pool general-purpose can take pods")
            untouched = rig.api.get(f"{NODE_POOLS}/general-purpose")
            assert "finalizers" not in untouched["metadata"]
            assert "status" not in untouched
        finally:
            rig.api.delete(f"{NODE_POOLS}/general-purpose")
        await rig.until(lambda: not rig.cluster.snapshot.neighbor_pools)

    scene(scenario)


def test_groups_that_may_not_be_read_are_told_of_once_and_read_once_they_may(scene, control_plane):
    async def scenario(rig, namespace):
        status = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-status", "namespace": namespace},
            "data": {"status": OF_YAML},
        }
        await rig.create(status, a_template(), a_provisioner(), a_program(namespace, AUTOSCALER))
        await rig.until(lambda: len(rig.cluster.snapshot.pods) == 1 and rig.cluster.snapshot.pools)
        with capture_logs() as logs:
            for _ in range(2):
                await rig.neighbors.reconcile_once()
        (refused,) = [line["event"] for line in logs if "that have nodes are known" in line["event"]]
        assert f"hint: allow `get` of ConfigMap {namespace}/cluster-autoscaler-status" in refused
        await rig.event("default", "default", REASON, "whether its groups can take pods")
        allow(control_plane, namespace, "configmaps", "get", name="cluster-autoscaler-status")
        with capture_logs() as logs:
            await rig.neighbors.reconcile_once()
        (line,) = warnings(logs)
        assert "Provisioner/default (batch, eks-web-0aca)" in line
        assert [group.most for group in rig.cluster.snapshot.autoscaler_groups] == [4, 10]
        await rig.event("default", "default", REASON, "its node groups batch, eks-web-0aca can take pods")

    scene(scenario)


def test_the_loop_looks_at_once_when_another_autoscaler_comes(scene):
    """Between two rounds by the clock is an hour here."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner())
        await rig.until(lambda: rig.cluster.snapshot.pools)
        rig.tasks.append(asyncio.create_task(rig.neighbors.run(), name="neighbors"))
        await rig.create(a_program(namespace, KARPENTER))
        await rig.event("default", "default", REASON, namespace)

    scene(scenario, timing=Timing(neighbors=3600.0))
