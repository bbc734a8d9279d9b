"""What an update waits for, as the real Kubernetes provider does, on the real engine and API server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import StackFailed
from localenv.pulumi.kubernetes.readiness import FIXED_SECONDS, READY
from localenv.pulumi.kubernetes.wait_for import find_missing
from localenv.pulumi.kubernetes.waiting import Patience, delete
from localenv.pulumi.resources import ResourceFailed
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import in_cluster

pytestmark = pytest.mark.cluster

WAIT_FOR = "pulumi.com/waitFor"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "persistentVolumeReclaimPolicy": "Retain",
    "storageClassName": "by-hand",
    "hostPath": {"path": "/tmp"},
}


def an_object(
    options: pulumi.ResourceOptions,
    kind: type[pulumi.Resource],
    name: str,
    annotations: dict[str, str] | None = None,
    **fields: Any,
) -> None:
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    kind(name, metadata=metadata, opts=options, **fields)


def quickly(plane: ControlPlane) -> pulumi.ResourceOptions:
    return in_cluster(plane, custom_timeouts=pulumi.CustomTimeouts(create="2s", update="2s"))


@contextmanager
def impatience() -> Iterator[None]:
    """Kinds that are waited for for minutes, whatever timeout they are given, fail at once."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in FIXED_SECONDS:
            patch.setitem(FIXED_SECONDS, kind, 3.0)  # type: ignore[arg-type]
        yield


@pytest.fixture
def classes(api: KubernetesApi) -> Iterator[None]:
    """Two storage classes without a provisioner: one waits for a pod, one binds at once."""
    folder = "/apis/storage.k8s.io/v1/storageclasses"
    for name, mode in (("waits", "WaitForFirstConsumer"), ("by-hand", "Immediate")):
        document = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        api.create({**document, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode})
    yield
    for name in ("waits", "by-hand"):
        api.delete(f"{folder}/{name}")


def test_a_claim_whose_class_waits_for_a_pod_is_made_while_it_is_pending(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi, classes: None
) -> None:
    claim = k8s.core.v1.PersistentVolumeClaim
    shop.program = lambda: an_object(
        quickly(control_plane), claim, "data", spec={**CLAIM, "storageClassName": "waits"}
    )
    shop.stack.up()
    phase = api.get("/api/v1/namespaces/default/persistentvolumeclaims/data")["status"]["phase"]
    assert phase == "Pending"
    shop.stack.destroy()


def test_a_claim_of_another_class_is_made_when_it_is_bound(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi, classes: None
) -> None:
    claim = k8s.core.v1.PersistentVolumeClaim
    spec = {**CLAIM, "storageClassName": "by-hand"}
    shop.program = lambda: an_object(quickly(control_plane), claim, "data", spec=spec)
    with impatience(), pytest.raises(StackFailed, match="PersistentVolumeClaim default/data is Pending"):
        shop.stack.up()

    def with_volume() -> None:
        options = quickly(control_plane)
        an_object(options, k8s.core.v1.PersistentVolume, "disk", spec=VOLUME)
        an_object(options, claim, "data", spec=spec)

    shop.program = with_volume
    shop.stack.up()
    assert api.get("/api/v1/persistentvolumes/disk")["status"]["phase"] == "Bound"
    shop.stack.destroy()


def test_a_quota_is_made_when_it_is_in_force_and_a_token_when_it_is_there(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    account = {"kubernetes.io/service-account.name": "default"}

    def program() -> None:
        options = quickly(control_plane)
        an_object(options, k8s.core.v1.ResourceQuota, "few", spec={"hard": {"pods": "7"}})
        kind = "kubernetes.io/service-account-token"
        an_object(options, k8s.core.v1.Secret, "token", account, type=kind)

    shop.program = program
    shop.stack.up()
    quota = api.get("/api/v1/namespaces/default/resourcequotas/few")
    assert quota["status"]["hard"] == quota["spec"]["hard"]
    assert api.get("/api/v1/namespaces/default/secrets/token")["data"]["token"]
    shop.stack.destroy()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("condition=Ready", "ConfigMap words has no condition Ready=True"),
        ("jsonpath={.data.color}=blue", "waits for jsonpath={.data.color}=blue (found red)"),
        ('["jsonpath={.data.color}=red", "jsonpath={.data.size}"]', "(found nothing)"),
        ("Ready", 'expected a "jsonpath=" or "condition=" prefix, got "Ready"'),
    ],
)
def test_an_object_that_is_not_what_its_annotation_waits_for_fails(
    shop: Shop, control_plane: ControlPlane, asked: str, said: str
) -> None:
    def program(asked: str) -> Callable[[], None]:
        kind = k8s.core.v1.ConfigMap
        return lambda: an_object(
            quickly(control_plane), kind, "words", {WAIT_FOR: asked}, data={"color": "red"}
        )

    shop.program = program(asked)
    with pytest.raises(StackFailed) as failure:
        shop.stack.up()
    assert said in str(failure.value)
    shop.program = program("jsonpath={.data.color}=red")
    shop.stack.up()
    shop.stack.destroy()


def test_a_deployment_that_says_what_it_waits_for_needs_no_pod(
    shop: Shop, control_plane: ControlPlane
) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "registry.invalid/web"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    asked = {WAIT_FOR: "jsonpath={.status.observedGeneration}=1"}
    shop.program = lambda: an_object(quickly(control_plane), k8s.apps.v1.Deployment, "web", asked, spec=spec)
    shop.stack.up()
    shop.stack.destroy()


@pytest.mark.parametrize("status", [{}, {"availableReplicas": 1}])
def test_a_replication_controller_waits_for_all_of_its_replicas(
    api: KubernetesApi, status: dict[str, int]
) -> None:
    obj = {
        "kind": "ReplicationController",
        "metadata": {"name": "rc", "namespace": "n"},
        "spec": {"replicas": 2},
    }
    rule = READY["ReplicationController"]
    assert "of 2 replicas available" in str(rule(api, {**obj, "status": status}))
    assert rule(api, {**obj, "status": {"availableReplicas": 2}}) is None


def test_an_ingress_waits_for_the_endpoints_of_its_services_and_for_an_address(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    backend = {"service": {"name": "shop", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    shop.program = lambda: an_object(
        quickly(control_plane),
        k8s.networking.v1.Ingress,
        "shop",
        spec={"rules": [{"http": {"paths": paths}}]},
    )
    with pytest.raises(StackFailed, match="service shop has no endpoints"):
        shop.stack.up()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    }
    api.create(service)
    with pytest.raises(StackFailed, match="default/shop has no address"):
        shop.stack.up()
    path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/shop"
    address = {"status": {"loadBalancer": {"ingress": [{"hostname": "shop.example.com"}]}}}
    api.patch(path, address, subresource="status")
    shop.stack.up()
    shop.stack.destroy()
    api.delete("/api/v1/namespaces/default/services/shop")


@pytest.mark.parametrize("asked", ["[]", "jsonpath=.status", "jsonpath={.status[}", "phase=Bound"])
def test_what_cannot_be_waited_for_is_refused(asked: str) -> None:
    with pytest.raises(ResourceFailed, match=WAIT_FOR):
        find_missing(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "jsonpath={.status.phase}=Bound",
        "jsonpath={.status.phase}",
        "jsonpath={.status.count}=3",
        "jsonpath={.status.addresses[0].ip}=10.0.0.1",
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
        "condition=Ready",
        "condition=Failed=False",
        '["condition=Ready", "jsonpath={.status.phase}=Bound"]',
    ],
)
def test_what_is_there_is_not_waited_for(asked: str) -> None:
    conditions = [{"type": "Failed", "status": "False"}, {"type": "Ready", "status": "True"}]
    status = {"phase": "Bound", "count": 3, "addresses": [{"ip": "10.0.0.1"}], "conditions": conditions}
    assert find_missing(asked)({"kind": "Thing", "metadata": {"name": "one"}, "status": status}) is None


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap"])
def test_only_of_some_kinds_the_deletion_is_not_waited_for_where_waiting_is_skipped(
    api: KubernetesApi, kind: str
) -> None:
    held = {"name": "held", "namespace": "default", "finalizers": ["example.com/held"]}
    metadata = {**held, "annotations": {"pulumi.com/skipAwait": "true"}}
    spec = (
        {"spec": {"containers": [{"name": "web", "image": "registry.invalid/web"}]}} if kind == "Pod" else {}
    )
    made = api.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, **spec})
    path, patience = api.path_of(made), Patience(threading.Event(), 1.0)
    if kind == "Pod":
        delete(api, path, patience)
    else:
        with pytest.raises(ResourceFailed, match="ConfigMap held is still there"):
            delete(api, path, patience)
    assert api.get(path)["metadata"]["deletionTimestamp"]
    api.patch(path, {"metadata": {"finalizers": None}}, kind="merge")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_job_that_is_not_ready_is_waited_for_again_or_replaced_as_its_annotation_says(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi, replaced: bool
) -> None:
    """Nothing runs its pod, so that it never completes by itself."""
    container = {"name": "once", "image": "registry.invalid/once"}
    spec = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    annotations = {"pulumi.com/replaceUnready": "true"} if replaced else {}

    def program() -> None:
        an_object(quickly(control_plane), k8s.batch.v1.Job, "once", annotations, spec=spec)

    shop.program = program
    path = "/apis/batch/v1/namespaces/default/jobs/once"
    made = []
    for _ in range(2):
        with pytest.raises(StackFailed, match="Job default/once is not complete"):
            shop.stack.up()
        made.append(api.get(path)["metadata"]["uid"])
    assert (made[0] != made[1]) == replaced
    shop.stack.destroy()
