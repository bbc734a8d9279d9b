"""Pods with volumes on a real API server: the node comes up where the volume can, and what cannot is told."""

import asyncio

import pytest

from tests.controllers.world import a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.fixture
def waiting_class(api, namespace):
    """A storage class that makes its volumes in us-east-1b, once a pod has a node."""
    name = f"waiting-{namespace}"
    api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [
                {
                    "matchLabelExpressions": [
                        {"key": "topology.ebs.csi.aws.com/zone", "values": ["us-east-1b"]},
                    ]
                }
            ],
        }
    )
    yield name
    api.delete(f"{CLASSES}/{name}", missing_ok=True)


def a_volume_claim(name, namespace, storage_class):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }


def mounting(claim):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def test_pe_13_the_node_comes_up_where_the_volume_can_and_a_claim_without_class_is_told(scene, waiting_class):
    async def scenario(rig, namespace):
        await rig.create(
            a_template(),
            a_provisioner(),
            a_volume_claim("data", namespace, waiting_class),
            a_volume_claim("lost", namespace, "nowhere"),
            a_pod("db", namespace, **mounting("data")),
            a_pod("stuck", namespace, **mounting("lost")),
        )
        await rig.event(namespace, "stuck", "FailedScheduling", "storage class nowhere")
        await rig.claim("Launched")
        (instance,) = (await asyncio.to_thread(rig.network.instances)).values()
        assert instance["Placement"]["AvailabilityZone"] == "us-east-1b"

    scene(scenario)
