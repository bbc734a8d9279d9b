"""Instances of the local AWS become Nodes of the real cluster and go with their instance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.localenv.kubelets.world import World, is_true

pytestmark = pytest.mark.cluster


def test_an_instance_with_a_bootstrap_becomes_a_ready_node_as_its_kubelet_makes_it(world: World) -> None:
    instance = world.launch(
        world.bootstrap(
            "--node-labels=karpenter.sh/capacity-type=spot,team=blue "
            "--register-with-taints=dedicated=blue:NoSchedule"
        )
    )

    node = world.ready_node(instance)

    zone = instance["Placement"]["AvailabilityZone"]
    assert node["spec"]["providerID"] == f"aws:///{zone}/{instance['InstanceId']}"
    assert (
        node["metadata"]["labels"].items()
        >= {
            "karpenter.sh/capacity-type": "spot",
            "team": "blue",
            "kubernetes.io/hostname": instance["PrivateDnsName"],
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "t3a.large",
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": "us-east-1",
        }.items()
    )
    assert node["spec"]["taints"] == [{"key": "dedicated", "value": "blue", "effect": "NoSchedule"}]
    # t3a.large: 3 interfaces of 12 addresses; 2 vCPU reserve 70m.
    assert node["status"]["capacity"]["pods"] == "35"
    assert node["status"]["allocatable"]["cpu"] == "1930m"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{instance['PrivateDnsName']}"
    held = world.api.wait(lease)
    assert held["spec"]["holderIdentity"] == instance["PrivateDnsName"]
    (owner,) = held["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Node", node["metadata"]["uid"])
    world.api.delete(f"/api/v1/nodes/{instance['PrivateDnsName']}")
    world.api.wait_gone(lease)
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def test_a_terminated_instance_takes_its_node_and_its_pods_with_it(world: World, namespace: str) -> None:
    instance = world.launch(world.bootstrap())
    node = world.ready_node(instance)["metadata"]["name"]
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "inhabitant", "namespace": namespace},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]},
        }
    )
    pod = f"/api/v1/namespaces/{namespace}/pods/inhabitant"
    world.api.wait(pod, lambda found: found["status"]["phase"] == "Running")

    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])

    world.api.wait_gone(f"/api/v1/nodes/{node}")
    world.api.wait_gone(pod)


def test_an_instance_with_the_address_of_one_that_is_still_going_waits_and_then_runs_its_pods(
    world: World, namespace: str
) -> None:
    ec2, log = world.aws.client("ec2"), world.kubelets.directory / "kubelets.log"
    first = world.launch(world.bootstrap())
    name = world.ready_node(first)["metadata"]["name"]
    node = f"/api/v1/nodes/{name}"
    # As a controller does that has something to do before the Node goes.
    world.api.patch(node, {"metadata": {"finalizers": ["example.com/busy"]}})
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    world.api.wait(node, lambda found: found["metadata"].get("deletionTimestamp"))

    second = world.launch(world.bootstrap(), address=first["PrivateIpAddress"])
    assert second["PrivateDnsName"] == name
    world.api.wait(
        lambda: f"{second['InstanceId']} waits: node {name}" in log.read_text(), what="the second to wait"
    )
    world.api.patch(node, {"metadata": {"finalizers": None}})

    world.ready_node(second)
    world.api.create(_bound_pod("inhabitant", namespace, name))
    pod = f"/api/v1/namespaces/{namespace}/pods/inhabitant"
    world.api.wait(pod, lambda found: found["status"]["phase"] == "Running")
    ec2.terminate_instances(InstanceIds=[second["InstanceId"]])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no bootstrap", "no bootstrap found"),
        ("a label kubelets may not set", "kubelet refuses --node-labels node-role.kubernetes.io/x"),
        ("a wrong CA", "its cluster CA is not a certificate"),
        ("another cluster", "knows no cluster 'elsewhere'"),
        ("a role without access", "has no access entry and no line in aws-auth"),
    ],
)
def test_what_keeps_a_real_instance_out_keeps_this_one_out_and_is_logged(
    world: World, fault: str, message: str
) -> None:
    user_data = {
        "no bootstrap": "#!/bin/sh\necho hello\n",
        "a label kubelets may not set": world.bootstrap("--node-labels=node-role.kubernetes.io/x=y"),
        "a wrong CA": world.bootstrap(authority="bm9uZQ=="),
        "another cluster": "#!/bin/sh\n/etc/eks/bootstrap.sh elsewhere\n",
        "a role without access": world.bootstrap(),
    }[fault]
    instance = world.launch(user_data, profile="strangers" if "role" in fault else "nodes")

    log = world.kubelets.directory / "kubelets.log"
    world.api.wait(
        lambda: [
            line
            for line in log.read_text().splitlines()
            if instance["InstanceId"] in line and message in line
        ],
        what=f"{message!r} about {instance['InstanceId']} in the log",
    )
    # By instance, not by name: an address, and so a name, may have been another instance's before.
    joined = {node["spec"].get("providerID", "") for node in world.api.list("/api/v1/nodes")}
    assert not any(provider_id.endswith(instance["InstanceId"]) for provider_id in joined)
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def test_a_node_whose_role_is_mapped_later_joins_then(world: World) -> None:
    instance = world.launch(world.bootstrap(), profile="latecomers")
    log = world.kubelets.directory / "kubelets.log"
    world.api.wait(
        lambda: f"{instance['InstanceId']} is not authorized" in log.read_text(), what="the refusal"
    )

    entry = (
        "- rolearn: arn:aws:iam::123456789012:role/latecomer\n"
        "  groups: [system:bootstrappers, system:nodes]\n"
    )
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "aws-auth", "namespace": "kube-system"},
        "data": {"mapRoles": entry},
    }
    world.api.apply(config)

    world.ready_node(instance)
    world.api.delete("/api/v1/namespaces/kube-system/configmaps/aws-auth")
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def test_a_slow_boot_joins_late_and_a_failed_one_never(world: World) -> None:
    late = {"instanceType": "t3a.large", "seconds": 3.0}
    world.aws.set_faults(boot=[late, {"instanceType": "t3a.xlarge", "outcome": "never"}])
    lost = world.launch(world.bootstrap(), instance_type="t3a.xlarge")
    slow = world.launch(world.bootstrap())
    usual = world.launch(world.bootstrap(), instance_type="t3a.medium")

    joined = world.ready_node(usual)["metadata"]["creationTimestamp"]
    assert world.ready_node(slow)["metadata"]["creationTimestamp"] > joined
    # What never joins had more time than what joined late.
    assert world.api.find(f"/api/v1/nodes/{lost['PrivateDnsName']}") is None

    world.aws.set_faults()
    ids = [each["InstanceId"] for each in (lost, slow, usual)]
    world.aws.client("ec2").terminate_instances(InstanceIds=ids)


def test_a_node_that_was_taken_for_lost_is_ready_again_with_its_pods(world: World, namespace: str) -> None:
    """The node lifecycle controller writes so when heartbeats come late; a kubelet's next sync says more."""
    instance = world.launch(world.bootstrap())
    node = world.ready_node(instance)["metadata"]["name"]
    world.api.create(_bound_pod("inhabitant", namespace, node))
    pod = f"/api/v1/namespaces/{namespace}/pods/inhabitant"
    world.api.wait(pod, lambda found: is_true(found, "Ready"))

    lost = [
        {"type": each, "status": "Unknown", "reason": "NodeStatusUnknown"}
        for each in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    path = f"/api/v1/nodes/{node}"
    world.api.patch(path, {"status": {"conditions": lost}}, kind="strategic", subresource="status")
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    world.api.patch(pod, unready, kind="strategic", subresource="status")

    found = world.api.wait(path, lambda found: is_true(found, "Ready"))
    assert {
        condition["status"] for condition in found["status"]["conditions"] if condition["type"] != "Ready"
    } == {"False"}
    world.api.wait(pod, lambda found: is_true(found, "Ready"))
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def test_a_condition_that_somebody_else_reports_is_left_alone(world: World) -> None:
    instance = world.launch(world.bootstrap())
    path = f"/api/v1/nodes/{world.ready_node(instance)['metadata']['name']}"
    ill = {"type": "KernelReady", "status": "False", "reason": "ForkFailedOutOfPIDs"}
    lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    world.api.patch(path, {"status": {"conditions": [ill, lost]}}, kind="strategic", subresource="status")
    found = world.api.wait(path, lambda found: is_true(found, "Ready"))
    assert [
        condition["reason"]
        for condition in found["status"]["conditions"]
        if condition["type"] == "KernelReady"
    ] == ["ForkFailedOutOfPIDs"]
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def test_a_rebooted_instance_comes_back_with_another_boot_id_and_its_pods_start_anew(
    world: World, namespace: str
) -> None:
    instance = world.launch(world.bootstrap())
    node = world.ready_node(instance)
    before, path = node["status"]["nodeInfo"]["bootID"], f"/api/v1/nodes/{node['metadata']['name']}"
    world.api.create(_bound_pod("inhabitant", namespace, node["metadata"]["name"]))
    pod = f"/api/v1/namespaces/{namespace}/pods/inhabitant"
    world.api.wait(pod, lambda found: is_true(found, "Ready"))

    world.aws.client("ec2").reboot_instances(InstanceIds=[instance["InstanceId"]])

    world.api.wait(path, lambda found: not is_true(found, "Ready"))
    world.api.wait(
        path,
        lambda found: is_true(found, "Ready") and found["status"]["nodeInfo"]["bootID"] != before,
    )
    again = world.api.wait(
        pod,
        lambda found: (
            is_true(found, "Ready") and found["status"]["containerStatuses"][0]["restartCount"] == 1
        ),
    )
    assert again["spec"]["nodeName"] == node["metadata"]["name"]
    world.aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])


def _bound_pod(name: str, namespace: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]},
    }
