from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from localenv.control_plane import ControlPlane
from localenv.kubernetes import (
    ApiError,
    ApiUnreachable,
    ConditionNotMet,
    KubernetesApi,
    UnknownKind,
)

pytestmark = pytest.mark.cluster


def config_map(namespace: str, name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def pod(namespace: str, name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }


def test_paths_come_from_discovery(api: KubernetesApi) -> None:
    assert api.path("v1", "Pod", "shop", "web") == "/api/v1/namespaces/shop/pods/web"
    assert api.path("v1", "Pod") == "/api/v1/pods"
    assert api.path("v1", "Node", None, "one") == "/api/v1/nodes/one"
    assert api.path("v1", "Node", "shop", "one") == "/api/v1/nodes/one"
    assert api.path("apps/v1", "Deployment", "shop", "web", "scale") == (
        "/apis/apps/v1/namespaces/shop/deployments/web/scale"
    )


def test_an_object_without_its_namespace_has_no_path(api: KubernetesApi) -> None:
    with pytest.raises(ValueError, match=r"hint: give metadata\.namespace"):
        api.path("v1", "Pod", None, "web")


def test_a_kind_is_found_once_its_definition_is_served(api: KubernetesApi) -> None:
    with pytest.raises(UnknownKind, match="CustomResourceDefinition"):
        api.path("test.nodeless.dev/v1", "Lamp")
    api.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "lamps.test.nodeless.dev"},
            "spec": {
                "group": "test.nodeless.dev",
                "scope": "Cluster",
                "names": {"kind": "Lamp", "plural": "lamps"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
    )

    def served() -> str | None:
        try:
            return api.path("test.nodeless.dev/v1", "Lamp", None, "desk")
        except UnknownKind:
            return None

    assert api.wait(served, what="lamps to be served") == "/apis/test.nodeless.dev/v1/lamps/desk"


def test_apply_makes_then_changes_then_leaves_alone(api: KubernetesApi, namespace: str) -> None:
    made = api.apply(config_map(namespace, "settings", color="red"))
    changed = api.apply(config_map(namespace, "settings", color="blue"))
    same = api.apply(config_map(namespace, "settings", color="blue"))

    assert made["data"] == {"color": "red"}
    assert changed["data"] == {"color": "blue"}
    assert same["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


def test_apply_without_force_respects_another_manager(api: KubernetesApi, namespace: str) -> None:
    api.apply(config_map(namespace, "settings", color="red"), field_manager="one")

    with pytest.raises(ApiError, match='conflict with "one"') as refusal:
        api.apply(config_map(namespace, "settings", color="blue"), field_manager="two", force=False)

    assert refusal.value.status == 409
    assert refusal.value.causes[0].field == ".data.color"


def test_a_dry_run_makes_nothing(api: KubernetesApi, namespace: str) -> None:
    path = api.path_of(api.apply(config_map(namespace, "settings"), dry_run=True))

    assert api.find(path) is None


def test_an_unknown_field_is_refused(api: KubernetesApi, namespace: str) -> None:
    wrong = config_map(namespace, "settings") | {"dta": {}}

    with pytest.raises(ApiError, match="dta") as refusal:
        api.create(wrong)

    assert refusal.value.status == 400


def test_every_fault_of_an_object_is_a_cause(api: KubernetesApi, namespace: str) -> None:
    wrong = pod(namespace, "web")
    wrong["spec"]["containers"] = [{"name": "UPPER", "image": "a"}, {"name": "b", "image": ""}]

    with pytest.raises(ApiError) as refusal:
        api.create(wrong)

    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
    assert {cause.field for cause in refusal.value.causes} == {
        "spec.containers[0].name",
        "spec.containers[1].image",
    }


def test_patches_of_three_kinds(api: KubernetesApi, namespace: str) -> None:
    path = api.path_of(api.create(pod(namespace, "web", tier="front")))

    merged = api.patch(path, {"metadata": {"labels": {"tier": None, "app": "web"}}})
    assert merged["metadata"]["labels"] == {"app": "web"}
    replaced = api.patch(path, [{"op": "add", "path": "/metadata/labels/app", "value": "shop"}], kind="json")
    assert replaced["metadata"]["labels"] == {"app": "shop"}
    condition = {"type": "Ready", "status": "False"}
    status = api.patch(path, {"status": {"conditions": [condition]}}, kind="strategic", subresource="status")
    assert "Ready" in {condition["type"] for condition in status["status"]["conditions"]}


def test_an_outdated_replacement_conflicts(api: KubernetesApi, namespace: str) -> None:
    old = api.create(config_map(namespace, "settings", color="red"))
    api.replace(old | {"data": {"color": "blue"}})

    with pytest.raises(ApiError) as refusal:
        api.replace(old | {"data": {"color": "green"}})

    assert refusal.value.reason == "Conflict"


def test_lists_select_and_name_their_kind(api: KubernetesApi, namespace: str) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        api.create(pod(namespace, name, tier=tier))
    path = api.path("v1", "Pod", namespace)

    front = api.list(path, label_selector="tier=front")
    named = api.list(path, field_selector="metadata.name=b")

    assert [(one["kind"], one["metadata"]["name"]) for one in front] == [("Pod", "a"), ("Pod", "c")]
    assert [one["metadata"]["name"] for one in named] == ["b"]


def test_a_long_list_comes_whole(api: KubernetesApi, namespace: str) -> None:
    path = api.path("v1", "ConfigMap", namespace)
    for number in range(501):
        api.create(config_map(namespace, f"page-{number}"), path=path)

    assert len(api.list(path, field_selector="metadata.name!=kube-root-ca.crt")) == 501


def test_deletion_honors_preconditions(api: KubernetesApi, namespace: str) -> None:
    made = api.create(config_map(namespace, "settings"))
    path = api.path_of(made)

    with pytest.raises(ApiError) as refusal:
        api.delete(path, uid="00000000-0000-0000-0000-000000000000")
    assert refusal.value.status == 409
    api.delete(path, uid=made["metadata"]["uid"])
    api.wait_gone(path)
    api.delete(path, missing_ok=True)
    with pytest.raises(ApiError, match="not found"):
        api.delete(path)


def test_an_eviction_against_a_budget_is_refused_with_its_cause(api: KubernetesApi, namespace: str) -> None:
    api.create(pod(namespace, "web", app="web"))
    budget = api.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "always-one", "namespace": namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
    )
    api.patch(
        api.path("v1", "Pod", namespace, "web"),
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        kind="strategic",
        subresource="status",
    )
    api.wait(
        api.path_of(budget), lambda seen: seen.get("status", {}).get("currentHealthy") == 1, what="the budget"
    )

    with pytest.raises(ApiError) as refusal:
        api.evict(namespace, "web")

    assert refusal.value.status == 429
    assert refusal.value.causes[0].reason == "DisruptionBudget"


def test_an_eviction_without_a_budget_deletes_the_pod(api: KubernetesApi, namespace: str) -> None:
    path = api.path_of(api.create(pod(namespace, "web")))

    api.evict(namespace, "web", grace_seconds=0)

    api.wait_gone(path)


def test_waiting_in_vain_shows_the_last_state(
    api: KubernetesApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KubernetesApi, "patience", 2.0)
    path = api.path_of(api.create(config_map(namespace, "settings", color="red")))

    with pytest.raises(ConditionNotMet, match=r"waited 0\.4 s for blue settings; last seen: .*red"):
        api.wait(path, lambda seen: seen["data"]["color"] == "blue", timeout=0.2, what="blue settings")


def test_a_server_that_is_not_there_is_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(
        control_plane.kubeconfig.read_text().replace(control_plane.endpoint, "https://127.0.0.1:1")
    )

    with pytest.raises(ApiUnreachable, match=r"https://127\.0\.0\.1:1 does not answer GET /version.*hint: "):
        KubernetesApi.from_kubeconfig(elsewhere).request("GET", "/version")


def test_a_kubeconfig_may_name_files_beside_it(
    control_plane: ControlPlane, api: KubernetesApi, namespace: str, tmp_path: Path
) -> None:
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    cluster = document["clusters"][0]["cluster"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
    cluster["certificate-authority"] = "ca.crt"
    (tmp_path / "token").write_text(api.token(namespace, "default") + "\n")
    document["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))

    with closing(KubernetesApi.from_kubeconfig(tmp_path / "kubeconfig")) as someone:
        review = someone.create(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}},
            path="/apis/authentication.k8s.io/v1/selfsubjectreviews",
        )

    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_an_incomplete_kubeconfig_says_what_is_missing(control_plane: ControlPlane, tmp_path: Path) -> None:
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    document["current-context"] = "production"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))

    with pytest.raises(ValueError, match="there is no context 'production'"):
        KubernetesApi.from_kubeconfig(tmp_path / "kubeconfig")
