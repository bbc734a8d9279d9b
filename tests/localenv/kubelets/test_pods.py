"""Pods on simulated nodes: scheduled by the real scheduler, running, refused when they do not fit, ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.localenv.kubelets.world import World, is_true

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def node(world: World) -> Iterator[str]:
    """A t3a.large without taints."""
    instance = world.launch(world.bootstrap())
    yield world.ready_node(instance)["metadata"]["name"]
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    world.api.wait_gone(f"/api/v1/nodes/{instance['PrivateDnsName']}")


def _pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    requests = spec.pop("requests", {})
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], **spec},
    }


def test_a_scheduled_pod_runs_with_an_address_of_its_subnet(world: World, node: str, namespace: str) -> None:
    world.api.create(_pod("one", namespace))

    pod = world.api.wait(f"/api/v1/namespaces/{namespace}/pods/one", lambda found: is_true(found, "Ready"))

    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"].startswith("10.0.0.")
    assert pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]


def test_a_pod_that_does_not_fit_is_refused_as_a_kubelet_refuses_it(
    world: World, node: str, namespace: str
) -> None:
    world.api.create(_pod("fits", namespace, nodeName=node, requests={"cpu": "1500m"}))
    world.api.wait(f"/api/v1/namespaces/{namespace}/pods/fits", lambda found: is_true(found, "Ready"))
    # Bound by hand: the scheduler would not do it, a wrong plan might.
    world.api.create(_pod("too-much", namespace, nodeName=node, requests={"cpu": "500m"}))

    pod = world.api.wait(
        f"/api/v1/namespaces/{namespace}/pods/too-much", lambda found: found["status"]["phase"] != "Pending"
    )

    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "OutOfcpu")
    assert "requested: 500, used: 1500, capacity: 1930" in pod["status"]["message"]


def test_a_deleted_pod_ends_although_its_grace_period_is_long(
    world: World, node: str, namespace: str
) -> None:
    world.api.create(_pod("slow", namespace, terminationGracePeriodSeconds=600))
    path = f"/api/v1/namespaces/{namespace}/pods/slow"
    world.api.wait(path, lambda found: is_true(found, "Ready"))

    world.api.delete(path)

    world.api.wait_gone(path, timeout=15)


def test_kubelets_survive_a_killed_api_server(world: World, node: str, namespace: str) -> None:
    world.control_plane.restart("kube-apiserver")

    world.api.create(_pod("after", namespace))

    world.api.wait(
        f"/api/v1/namespaces/{namespace}/pods/after", lambda found: is_true(found, "Ready"), timeout=60
    )


def test_a_pod_that_only_sleeps_succeeds_and_gives_back_what_it_held(
    world: World, node: str, namespace: str
) -> None:
    sleeper = _pod("sleeper", namespace, nodeName=node, restartPolicy="Never", requests={"memory": "5Gi"})
    sleeper["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", "sleep 1"]
    world.api.create(sleeper)

    ended = world.api.wait(
        f"/api/v1/namespaces/{namespace}/pods/sleeper", lambda found: found["status"]["phase"] == "Succeeded"
    )
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    world.api.create(_pod("next", namespace, nodeName=node, requests={"memory": "5Gi"}))
    world.api.wait(f"/api/v1/namespaces/{namespace}/pods/next", lambda found: is_true(found, "Ready"))


def test_a_pod_stays_for_its_hook_unless_it_is_given_less_time(
    world: World, node: str, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/waits"
    waits = _pod("waits", namespace, nodeName=node, terminationGracePeriodSeconds=3600)
    waits["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 3600}}}
    world.api.create(waits)
    world.api.wait(path, lambda found: is_true(found, "Ready"))

    world.api.delete(path)
    # Whoever was deleted after it, without a hook, is gone while it is still ready.
    world.api.create(_pod("other", namespace, nodeName=node))
    world.api.wait(f"/api/v1/namespaces/{namespace}/pods/other", lambda found: is_true(found, "Ready"))
    world.api.delete(f"/api/v1/namespaces/{namespace}/pods/other")
    world.api.wait_gone(f"/api/v1/namespaces/{namespace}/pods/other")
    assert is_true(world.api.get(path), "Ready")

    world.api.delete(path, grace_seconds=1)
    world.api.wait_gone(path)


def test_the_daemon_of_the_ebs_driver_registers_it_on_its_node(
    world: World, node: str, namespace: str
) -> None:
    driver = _pod("ebs-csi-node", namespace, nodeName=node)
    driver["spec"]["containers"][0] |= {"name": "ebs-plugin", "args": ["node", "--volume-attach-limit=7"]}
    world.api.create(driver)

    found = world.api.wait(
        f"/api/v1/nodes/{node}", lambda each: "topology.ebs.csi.aws.com/zone" in each["metadata"]["labels"]
    )
    labels = found["metadata"]["labels"]
    assert labels["topology.ebs.csi.aws.com/zone"] == labels["topology.kubernetes.io/zone"]
    (registered,) = world.api.get(f"/apis/storage.k8s.io/v1/csinodes/{node}")["spec"]["drivers"]
    assert registered["name"] == "ebs.csi.aws.com"
    assert registered["allocatable"] == {"count": 7}
    assert found["spec"]["providerID"].endswith(registered["nodeID"])
