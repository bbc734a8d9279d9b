"""The certificate's Secret and the CA bundles, on the real API server."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from functools import partial
from typing import Any

import pytest

from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from nodeless.webhook import pki
from nodeless.webhook.certificates import SecretMissingError, ensure
from nodeless.webhook.injection import inject_ca_bundle
from tests.rights import as_the_controller

pytestmark = pytest.mark.cluster
DAY = 86400.0


def secret_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/karpenter-cert"


def stored(api: KubernetesApi, namespace: str) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in api.get(secret_path(namespace))["data"].items()}


def empty_secret(namespace: str, **members: Any) -> dict[str, Any]:
    metadata = {"name": "karpenter-cert", "namespace": namespace, "labels": {"kept": "yes"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", **members}


def test_an_absent_secret_is_made(on_cluster: Any, api: KubernetesApi, namespace: str) -> None:
    material = on_cluster(lambda client: ensure(client, namespace))

    assert stored(api, namespace) == {
        "server-key.pem": material.key,
        "server-cert.pem": material.certificate,
        "ca-cert.pem": material.bundle,
    }
    assert pki.usable(material, pki.service_names("karpenter", namespace), time.time())


def test_an_absent_secret_that_may_not_be_made_is_told_with_what_to_do_about_it(
    on_cluster: Any,
    control_plane: ControlPlane,
    api: KubernetesApi,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(as_the_controller(control_plane, namespace)))
    hint = f"hint: apply the stack again, .* create secret generic karpenter-cert --namespace {namespace}"
    with pytest.raises(SecretMissingError, match=hint):
        on_cluster(lambda client: ensure(client, namespace))
    api.create(empty_secret(namespace))
    material = on_cluster(lambda client: ensure(client, namespace))
    assert stored(api, namespace)["server-cert.pem"] == material.certificate


@pytest.mark.parametrize(
    "data", [None, {}, {"server-key.pem": "eA=="}, {"server-key.pem": "", "other": "eA=="}]
)
def test_an_empty_or_broken_secret_is_filled(
    on_cluster: Any, api: KubernetesApi, namespace: str, data: dict[str, str] | None
) -> None:
    api.create(empty_secret(namespace) if data is None else empty_secret(namespace, data=data))

    material = on_cluster(lambda client: ensure(client, namespace))

    secret = api.get(secret_path(namespace))
    assert stored(api, namespace)["server-cert.pem"] == material.certificate
    assert secret["metadata"]["labels"] == {"kept": "yes"}
    assert set(data or {}) <= set(secret["data"])


def test_good_material_is_left_alone_and_renewed_a_day_before_its_end(
    on_cluster: Any, api: KubernetesApi, namespace: str
) -> None:
    async def scenario(client: Any) -> list[pki.Material]:
        start = time.time()
        return [
            await ensure(client, namespace, now=partial(float, start + days * DAY))
            for days in (0.0, 5.0, 6.5)
        ]

    first, same, renewed = on_cluster(scenario)

    assert first == same
    assert renewed.certificate != first.certificate
    assert renewed.bundle.endswith(first.bundle)
    assert stored(api, namespace)["server-cert.pem"] == renewed.certificate


@pytest.mark.parametrize("present", [False, True])
def test_replicas_that_start_together_agree(
    on_cluster: Any, api: KubernetesApi, namespace: str, present: bool
) -> None:
    if present:
        api.create(empty_secret(namespace))

    async def scenario(client: Any) -> list[pki.Material]:
        return await asyncio.gather(*(ensure(client, namespace) for _ in range(4)))

    materials = on_cluster(scenario)

    assert len(set(materials)) == 1
    assert stored(api, namespace)["server-cert.pem"] == materials[0].certificate


def test_every_configuration_gets_bundle_and_path_and_gets_them_again(
    on_cluster: Any, api: KubernetesApi, configurations: list[str]
) -> None:
    bundle = pki.make(["a"], time.time()).bundle

    def clients() -> dict[str, tuple[str, bytes]]:
        found = {}
        for path in configurations:
            (webhook,) = api.get(path)["webhooks"]
            client = webhook["clientConfig"]
            found[path.rpartition("/")[2]] = (
                client["service"].get("path", ""),
                base64.b64decode(client.get("caBundle", "")),
            )
        return found

    assert on_cluster(lambda client: inject_ca_bundle(client, bundle)) == []
    written = clients()
    assert written == {
        "defaulting.webhook.karpenter.sh": ("/default/karpenter.sh", bundle),
        "defaulting.webhook.karpenter.k8s.aws": ("/default/karpenter.k8s.aws", bundle),
        "validation.webhook.karpenter.sh": ("/validate/karpenter.sh", bundle),
        "validation.webhook.karpenter.k8s.aws": ("/validate/karpenter.k8s.aws", bundle),
        "validation.webhook.config.karpenter.sh": ("/validate/config.karpenter.sh", bundle),
    }

    removal = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    api.patch(configurations[0], removal, kind="json")
    versions = [api.get(path)["metadata"]["resourceVersion"] for path in configurations[1:]]
    assert on_cluster(lambda client: inject_ca_bundle(client, bundle)) == []
    assert clients() == written
    assert [api.get(path)["metadata"]["resourceVersion"] for path in configurations[1:]] == versions


def test_a_configuration_that_is_not_installed_is_named(
    on_cluster: Any, api: KubernetesApi, configurations: list[str]
) -> None:
    api.delete(configurations[-1])
    bundle = pki.make(["a"], time.time()).bundle

    missing = on_cluster(lambda client: inject_ca_bundle(client, bundle))

    assert missing == ["validation.webhook.config.karpenter.sh"]
