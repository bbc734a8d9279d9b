"""kubernetes:* on the real engine and the real API server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import StackFailed
from localenv.pulumi.kubernetes.releases import content
from localenv.pulumi.kubernetes.waiting import Patience, delete
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import in_cluster
from tests.localenv.pulumi.ready_pods import ReadyPods

pytestmark = pytest.mark.cluster

SETTINGS = "/api/v1/namespaces/default/configmaps/settings"


@pytest.fixture(autouse=True)
def emptied(api: KubernetesApi) -> Iterator[None]:
    yield
    api.delete(SETTINGS, missing_ok=True)


def settings(control_plane: ControlPlane, name: str = "settings", **data: str) -> None:
    k8s.core.v1.ConfigMap(
        "settings", metadata={"name": name, "namespace": "default"}, data=data, opts=in_cluster(control_plane)
    )


def deployment(control_plane: ControlPlane, label: str = "web", timeout: str | None = None) -> None:
    timeouts = pulumi.CustomTimeouts(create=timeout, update=timeout)
    k8s.apps.v1.Deployment(
        "web",
        metadata={"name": "web", "namespace": "default"},
        spec={
            "replicas": 1,
            "selector": {"match_labels": {"app": label}},
            "template": {
                "metadata": {"labels": {"app": label}},
                "spec": {"containers": [{"name": "web", "image": "registry.invalid/web"}]},
            },
        },
        opts=in_cluster(control_plane, custom_timeouts=timeouts),
    )


def test_objects_are_applied_left_alone_changed_and_gone(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    shop.program = lambda: settings(control_plane, color="red", size="9")
    shop.stack.up()
    assert api.get(SETTINGS)["data"] == {"color": "red", "size": "9"}
    assert shop.stack.up() == {"same": 3}

    shop.program = lambda: settings(control_plane, color="blue")
    # As the real provider does with data of a ConfigMap, unless it is told that they are mutable.
    assert shop.stack.up()["replace"] == 1
    assert api.get(SETTINGS)["data"] == {"color": "blue"}, "a key that is no longer given goes away"

    shop.stack.destroy()
    assert api.find(SETTINGS) is None


def test_what_one_provider_resource_says_is_not_said_by_another(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    """pulumi-eks has one of its own: its `aws-auth` is not changed in place as ours says for our objects."""
    kubeconfig = control_plane.kubeconfig.read_text()

    def program(color: str) -> None:
        for name, mutable in (("changed", True), ("replaced", False)):
            provider = k8s.Provider(name, kubeconfig=kubeconfig, enable_config_map_mutable=mutable)
            metadata = {"name": name, "namespace": "default"}
            options = pulumi.ResourceOptions(provider=provider)
            k8s.core.v1.ConfigMap(name, metadata=metadata, data={"color": color}, opts=options)

    paths = {name: f"/api/v1/namespaces/default/configmaps/{name}" for name in ("changed", "replaced")}
    shop.program = lambda: program("red")
    shop.stack.up()
    made = {name: api.get(path)["metadata"]["uid"] for name, path in paths.items()}
    shop.program = lambda: program("blue")
    shop.stack.up()
    found = {name: api.get(path) for name, path in paths.items()}
    assert [each["data"] for each in found.values()] == [{"color": "blue"}] * 2
    assert {name: found[name]["metadata"]["uid"] == made[name] for name in made} == {
        "changed": True,
        "replaced": False,
    }


def test_another_name_is_another_object(shop: Shop, control_plane: ControlPlane, api: KubernetesApi) -> None:
    shop.program = lambda: settings(control_plane, color="red")
    shop.stack.up()
    shop.program = lambda: settings(control_plane, name="renamed", color="red")
    assert shop.stack.up()["replace"] == 1
    assert api.find(SETTINGS) is None
    assert api.get("/api/v1/namespaces/default/configmaps/renamed")["data"] == {"color": "red"}


def test_a_preview_applies_nothing(shop: Shop, control_plane: ControlPlane, api: KubernetesApi) -> None:
    shop.program = lambda: settings(control_plane, color="red")
    assert shop.stack.preview()["create"] == 3
    assert api.find(SETTINGS) is None


def test_what_is_there_is_not_made_again(shop: Shop, control_plane: ControlPlane, api: KubernetesApi) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
    api.create(theirs)
    shop.program = lambda: settings(control_plane, b="2")
    assert shop.stack.preview()["create"] > 0, "the real provider's preview says nothing of it either"
    with pytest.raises(StackFailed, match="already exists"):
        shop.stack.up()
    assert api.get(SETTINGS)["data"] == {"a": "1"}


@pytest.mark.parametrize("forced", [True, False])
def test_a_field_of_another_owner_is_refused_in_the_preview_too_unless_it_is_forced(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi, forced: bool
) -> None:
    annotations = {"pulumi.com/patchForce": "true"} if forced else {}

    def program(replicas: str) -> None:
        k8s.core.v1.ConfigMap(
            "settings",
            metadata={
                "name": "settings",
                "namespace": "default",
                "labels": {"replicas": replicas},
                "annotations": annotations,
            },
            opts=in_cluster(control_plane),
        )

    shop.program = lambda: program("1")
    shop.stack.up()
    theirs = {"name": "settings", "namespace": "default", "labels": {"replicas": "7"}}
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": theirs}, field_manager="somebody")
    shop.program = lambda: program("2")
    shop.stack.preview()  # the first update of what a create made is forced there
    if forced:
        assert shop.stack.up()["update"] == 1
        assert api.get(SETTINGS)["metadata"]["labels"] == {"replicas": "2"}
    else:
        for operation in (shop.stack.up, shop.stack.preview):
            with pytest.raises(StackFailed, match="conflict"):
                operation()


def test_a_key_that_a_program_drops_is_gone(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    def program(**labels: str) -> None:
        metadata = {"name": "settings", "namespace": "default", "labels": labels}
        k8s.core.v1.ConfigMap("settings", metadata=metadata, opts=in_cluster(control_plane))

    shop.program = lambda: program(a="1", b="2")
    shop.stack.up()
    shop.program = lambda: program(a="1")
    shop.stack.up()
    assert api.get(SETTINGS)["metadata"]["labels"] == {"a": "1"}


def test_a_misspelt_field_is_refused_by_the_server(shop: Shop, control_plane: ControlPlane) -> None:
    def program() -> None:
        k8s.apiextensions.CustomResource(
            "web",
            api_version="v1",
            kind="Service",
            metadata={"name": "web", "namespace": "default"},
            spec={"prts": []},
            opts=in_cluster(control_plane),
        )

    shop.program = program
    with pytest.raises(StackFailed, match=r"^up failed: kubernetes:v1:Service 'web': .*spec.prts"):
        shop.stack.up()


def test_a_deployment_is_made_when_its_pods_are_available(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    shop.program = lambda: deployment(control_plane)
    with ReadyPods(api):
        shop.stack.up()
        assert api.get("/apis/apps/v1/namespaces/default/deployments/web")["status"]["availableReplicas"] == 1
        shop.program = lambda: deployment(control_plane, label="shop")
        assert shop.stack.up()["replace"] == 1, "a selector cannot change"
        shop.stack.destroy()
    assert api.list("/api/v1/namespaces/default/pods") == [], "deleted in the foreground"


def test_a_deployment_that_does_not_start_says_why_and_is_gone_on_with(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    shop.program = lambda: deployment(control_plane, timeout="2s")
    with pytest.raises(StackFailed) as failure:
        shop.stack.up()
    first_line = str(failure.value).splitlines()[0]
    assert "Deployment 'web'" in first_line
    assert "0 of 1 replicas available" in first_line
    assert "no nodes available to schedule pods" in first_line

    shop.program = lambda: deployment(control_plane, timeout="30s")
    with ReadyPods(api):
        assert shop.stack.up()["update"] == 1, "it was recorded, so it is updated and not made twice"
        shop.stack.destroy()


def test_a_new_kind_is_waited_for_and_a_finalizer_holds_destroy(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    def program() -> None:
        options = in_cluster(control_plane)
        schema = {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        definition = k8s.apiextensions.v1.CustomResourceDefinition(
            "definition",
            metadata={"name": "lamps.shop.example"},
            spec={
                "group": "shop.example",
                "scope": "Cluster",
                "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                ],
            },
            opts=options,
        )
        k8s.apiextensions.CustomResource(
            "lamp",
            api_version="shop.example/v1",
            kind="Lamp",
            metadata={"name": "one", "finalizers": ["shop.example/hold"]},
            spec={"watts": 40},
            opts=pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[definition])),
        )

    lamp = "/apis/shop.example/v1/lamps/one"
    shop.program = program
    shop.stack.up()
    assert api.get(lamp)["spec"] == {"watts": 40}

    released: list[float] = []

    def release() -> None:
        api.wait(lamp, lambda found: bool(found and found["metadata"].get("deletionTimestamp")), timeout=60)
        released.append(time.monotonic())
        api.patch(lamp, {"metadata": {"finalizers": None}})

    releasing = threading.Thread(target=release)
    releasing.start()
    shop.stack.destroy()
    releasing.join()
    assert released
    assert api.find("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.shop.example") is None


def test_a_definition_that_does_not_go_is_changed_so_that_the_api_server_looks_again(
    api: KubernetesApi,
) -> None:
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/candles.shop.example"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    api.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "candles.shop.example", "finalizers": ["shop.example/hold"]},
            "spec": {
                "group": "shop.example",
                "scope": "Cluster",
                "names": {"plural": "candles", "singular": "candle", "kind": "Candle"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                ],
            },
        }
    )
    deleting = threading.Thread(target=delete, args=(api, definition, Patience(threading.Event(), 60.0)))
    deleting.start()
    try:
        api.wait(
            definition,
            lambda found: bool(found and "nodeless.dev/deletion-looked-at" in _annotations(found)),
            timeout=40,
        )
    finally:
        api.patch(definition, {"metadata": {"finalizers": None}})
    deleting.join()
    assert api.find(definition) is None


def _annotations(found: dict[str, Any]) -> dict[str, str]:
    annotations: dict[str, str] = found["metadata"].get("annotations") or {}
    return annotations


def test_an_unknown_kind_fails_and_is_named(shop: Shop, control_plane: ControlPlane) -> None:
    def program() -> None:
        k8s.apiextensions.CustomResource(
            "odd",
            api_version="apps/v1",
            kind="Oddity",
            metadata={"name": "odd"},
            opts=in_cluster(control_plane),
        )

    shop.program = program
    with pytest.raises(StackFailed, match="kubernetes:apps/v1:Oddity"):
        shop.stack.up()


def test_a_kubeconfig_of_another_cluster_is_refused(shop: Shop, control_plane: ControlPlane) -> None:
    text = control_plane.kubeconfig.read_text().replace(control_plane.endpoint, "https://cluster.example:443")

    def program() -> None:
        provider = k8s.Provider("cluster", kubeconfig=text)
        k8s.core.v1.Namespace("shop", opts=pulumi.ResourceOptions(provider=provider))

    shop.program = program
    with pytest.raises(StackFailed, match="not to the local control plane"):
        shop.stack.up()


def test_a_secret_stays_out_of_the_state_in_clear(shop: Shop, control_plane: ControlPlane) -> None:
    def program() -> None:
        k8s.core.v1.Secret(
            "password",
            metadata={"name": "password", "namespace": "default"},
            string_data={"password": pulumi.Output.secret("hunter-two")},
            opts=in_cluster(control_plane),
        )

    shop.program = program
    shop.stack.up()
    state = "".join(file.read_text() for file in shop.stack.project.state.rglob("*.json"))
    assert "password" in state
    assert "hunter-two" not in state


def test_a_helm_release_is_recorded_as_helm_does_it(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    def release(replicas: int) -> None:
        k8s.helm.v3.Release(
            "web",
            name="web",
            namespace="default",
            chart="nginx",
            version="1.2.3",
            values={"replicas": replicas},
            opts=in_cluster(control_plane),
        )

    def revisions() -> dict[str, Any]:
        found = api.list("/api/v1/namespaces/default/secrets", label_selector="owner=helm")
        return {each["metadata"]["labels"]["version"]: each for each in found}

    shop.program = lambda: release(1)
    shop.stack.up()
    assert shop.stack.up() == {"same": 3}
    assert content(revisions()["1"])["config"] == {"replicas": 1}

    shop.program = lambda: release(2)
    assert shop.stack.up()["update"] == 1
    kept = revisions()
    assert {version: each["metadata"]["labels"]["status"] for version, each in kept.items()} == {
        "1": "superseded",
        "2": "deployed",
    }
    assert content(kept["2"])["config"] == {"replicas": 2}

    shop.stack.destroy()
    assert revisions() == {}
