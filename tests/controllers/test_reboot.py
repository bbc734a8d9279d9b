"""A broken machine is rebooted in place, on the real API server and the local AWS."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.nodeclaim.deadlines import Deadlines
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from tests.controllers.planning import a_workload
from tests.controllers.world import CLAIMS, CLUSTER, NODES, a_budget, a_pod, a_provisioner, a_template

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ILL = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "NvidiaXID95Error"}
WELL = {"type": "AcceleratedHardwareReady", "status": "True", "reason": "NvidiaReady"}


QUICK = Timing(disruption_look=0.5)


def repairing(rig, **settings):
    """The gate is open, and what is broken is tolerated for a second."""
    rig.disruption.use(GlobalSettings(CLUSTER, node_repair=True, repair_toleration=1.0, **settings))


async def report(rig, node, condition):
    """What a watcher of the machine writes on its node."""
    body = {"status": {"conditions": [condition]}}
    path = f"{NODES}/{node}"
    await asyncio.to_thread(rig.api.patch, path, body, kind="strategic", subresource="status")


def status_of(claim):
    return {each["type"]: each["status"] for each in claim.get("status", {}).get("conditions", ())}


def test_a_machine_whose_error_a_reboot_clears_is_drained_rebooted_and_used_again(scene):
    async def scenario(rig, namespace):
        repairing(rig)
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        name, instance = claim["metadata"]["name"], claim["status"]["providerID"].rpartition("/")[2]
        path = f"{NODES}/{node}"
        before = rig.api.get(path)["status"]["nodeInfo"]["bootID"]
        await report(rig, node, ILL)
        await rig.until(lambda: rig.network.reboots().get(instance))
        assert rig.api.find(f"/api/v1/namespaces/{namespace}/pods/web") is None
        await report(rig, node, WELL)
        await rig.event(namespace="default", name=node, reason="RebootObserved", about=instance)
        back = await rig.until(
            lambda: rig.api.get(f"{CLAIMS}/{name}"),
            lambda seen: (status_of(seen)["Rebooting"], status_of(seen)["Initialized"]) == ("False", "True"),
        )
        assert "karpenter.sh/reboot-pre-boot-id" not in back["metadata"]["annotations"]
        seen = rig.api.get(path)
        assert seen["status"]["nodeInfo"]["bootID"] != before
        assert not any("rebooting" in taint["key"] for taint in seen["spec"].get("taints", ()))
        # Another pod of its kind is planned onto it, and no second machine was bought meanwhile.
        await rig.create(a_pod("again", namespace))
        assert await rig.running(namespace, "again") == node
        assert [*rig.network.instances()] == [instance]

    scene(scenario, timing=QUICK)


def test_a_replica_that_left_runs_elsewhere_when_its_budget_holds_the_other_on_the_machine(scene):
    async def scenario(rig, namespace):
        repairing(rig)
        running = f"/api/v1/namespaces/{namespace}/pods"
        web = a_workload(
            namespace=namespace,
            cpu="200m",
            replicas=2,
            selector={"matchLabels": {"app": "web"}},
            pod={"terminationGracePeriodSeconds": 1},
        )
        await rig.create(a_template(), a_provisioner(), web, a_budget("web", namespace, app="web"))

        def homes():
            pods = rig.api.list(running)
            return [pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running"]

        node, other = await rig.until(homes, lambda found: len(found) == 2)
        assert node == other
        claim = await rig.claim()
        instance = claim["status"]["providerID"].rpartition("/")[2]
        await report(rig, node, ILL)
        # Long before the drain of five minutes is over.
        await rig.until(lambda: rig.network.reboots().get(instance))
        await rig.until(homes, lambda found: found and node not in found)

    scene(scenario, timing=QUICK)


def test_a_machine_that_does_not_come_back_is_given_up(scene):
    async def scenario(rig, namespace):
        repairing(rig)
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        instance = claim["status"]["providerID"].rpartition("/")[2]
        rig.kubelets.silent.add(instance)
        await report(rig, node, ILL)
        await rig.event(namespace="default", name=node, reason="RebootFailed", about=instance)
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        assert instance not in rig.network.instances()

    scene(scenario, timing=replace(QUICK, claims=Deadlines(reboot=1.0)))


def test_a_reboot_that_may_not_be_asked_for_ends_the_node(scene, aws):
    async def scenario(rig, namespace):
        repairing(rig)
        aws.set_faults(errors={"RebootInstances": {"code": "UnauthorizedOperation", "status": 403}})
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        await report(rig, node, ILL)
        await rig.event(namespace="default", name=node, reason="RebootFailed", about="could not be asked for")
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")

    scene(scenario, timing=replace(QUICK, claims=Deadlines(reboot_request=2.0)))


def test_by_the_legacy_rules_the_machine_ends_at_once_whatever_protects_its_pod(scene):
    async def scenario(rig, namespace):
        repairing(rig, legacy_repair=True)
        protected = a_pod("web", namespace)
        protected["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
        await rig.create(a_template(), a_provisioner(), protected)
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        await report(rig, node, ILL)
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        assert claim["status"]["providerID"].rpartition("/")[2] not in rig.network.instances()
        assert not rig.network.reboots()

    scene(scenario, timing=QUICK)


def test_a_drain_that_a_budget_holds_ends_when_its_node_breaks(scene):
    async def scenario(rig, namespace):
        repairing(rig, legacy_repair=True)
        await rig.create(
            a_budget("web", namespace, "web"), a_template(), a_provisioner(), a_pod("web", namespace)
        )
        node = await rig.running(namespace, "web")
        claim = await rig.claim()
        await asyncio.to_thread(rig.api.delete, f"{NODES}/{node}")
        await rig.event("default", node, "FailedDraining")
        await report(rig, node, ILL)
        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")
        assert claim["status"]["providerID"].rpartition("/")[2] not in rig.network.instances()

    scene(scenario, timing=QUICK)
