"""The webhook server of a test, asked by the real API server through a Service."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from localenv.control_plane import ControlPlane
from localenv.kubernetes import ApiError, KubernetesApi, is_established
from nodeless.api.crds import all_crds
from nodeless.kube import ApiClient
from nodeless.manager.validation_context import ValidationContextWatch
from nodeless.operator.settings import settings_faults, settings_warnings
from nodeless.webhook import AdmissionServer, Certificates
from tests.api.manifests import article, provisioner
from tests.localenv.control_plane.connect_proxy import ConnectProxy

KINDS = {
    "karpenter.sh": ("v1alpha5", "provisioners"),
    "karpenter.k8s.aws": ("v1alpha1", "awsnodetemplates"),
    "config.karpenter.sh": ("v1", "configmaps"),
}
MORE = {"karpenter.sh": ["nodepools"], "karpenter.k8s.aws": ["ec2nodeclasses"]}
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_MUTATING = f"{_GROUP}/mutatingwebhookconfigurations"
_VALIDATING = f"{_GROUP}/validatingwebhookconfigurations"
_POOLS = "webhook.karpenter.sh"
Scenario = Callable[[ApiClient], Awaitable[Any]]


@pytest.fixture
def on_cluster(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], Any]:
    """Run a scenario that gets a client of the control plane; within the time of a slow machine."""
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))

    def run(scenario: Scenario) -> Any:
        async def connected() -> Any:
            client = await ApiClient.connect()
            try:
                return await asyncio.wait_for(scenario(client), 300)
            finally:
                await client.close()

        return asyncio.run(connected())

    return run


@pytest.fixture(scope="session")
def definitions(api: KubernetesApi) -> None:
    """The kinds that we serve are known to the API server."""
    for crd in all_crds():
        api.apply(crd)
    for crd in all_crds():
        name = crd["metadata"]["name"]
        api.wait(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", is_established)


@pytest.fixture
def configurations(api: KubernetesApi, namespace: str) -> Iterator[list[str]]:
    """The webhook configurations of an installation in the test's namespace."""
    with configured(api, namespace) as paths:
        yield paths


@contextmanager
def configured(api: KubernetesApi, namespace: str) -> Iterator[list[str]]:
    """The five webhook configurations as an installation makes them: without path and CA bundle."""
    made = [
        configuration(kind, f"{verb}.webhook.{group}", group, namespace)
        for kind, verb, groups in (
            ("MutatingWebhookConfiguration", "defaulting", ["karpenter.sh", "karpenter.k8s.aws"]),
            ("ValidatingWebhookConfiguration", "validation", list(KINDS)),
        )
        for group in groups
    ]
    paths = [api.path_of(one) for one in made]
    try:
        for one in made:
            api.create(one)
        yield paths
    finally:
        for path in paths:
            api.delete(path, missing_ok=True)


def configuration(kind: str, name: str, group: str, namespace: str) -> dict[str, Any]:
    version, plural = KINDS[group]
    webhook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "karpenter", "namespace": namespace, "port": 443}},
        "failurePolicy": "Ignore" if group.startswith("config.") else "Fail",
        "sideEffects": "None",
        "objectSelector": {"matchLabels": {"app.kubernetes.io/part-of": "karpenter"}}
        if group.startswith("config.")
        else {},
        "rules": [
            {
                "apiGroups": ["" if plural == "configmaps" else group],
                "apiVersions": [version] if plural == "configmaps" else [version, "v1"],
                "resources": [plural, *MORE.get(group, ())],
                "operations": ["CREATE", "UPDATE"],
            }
        ],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


class Serving:
    """A webhook server on a loop of its own, in a thread, so that the test may block."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.port = 0
        self.bundle = b""
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Serving:
        self._thread.start()
        assert self._started.wait(30), "the webhook server did not start"
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_args: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def trust(self) -> ssl.SSLContext:
        """What a client that got our bundle verifies us with."""
        return ssl.create_default_context(cadata=self.bundle.decode())

    def await_use(self, api: KubernetesApi) -> None:
        """Wait until the API server asks us: it learns of a configuration a moment after its making."""
        for manifest, fault in (
            (article(), "has blanks around it"),  # told while defaulting
            (provisioner(ttlSecondsAfterEmpty=-1), "must not be negative"),  # told while validating
        ):
            api.wait(partial(_refusal, api, manifest), lambda message, fault=fault: fault in message)

    @contextmanager
    def switched_off(self, api: KubernetesApi) -> Iterator[None]:
        """For the length of a block no webhook is asked about provisioners."""
        rules = {}
        for path in (f"{_MUTATING}/defaulting.{_POOLS}", f"{_VALIDATING}/validation.{_POOLS}"):
            rules[path] = api.get(path)["webhooks"][0]["rules"]
            api.patch(path, [{"op": "remove", "path": "/webhooks/0/rules"}], kind="json")
        off = provisioner(ttlSecondsAfterEmpty=-1)
        api.wait(partial(_refusal, api, off), lambda message: message == "")
        yield
        for path, former in rules.items():
            api.patch(path, [{"op": "add", "path": "/webhooks/0/rules", "value": former}], kind="json")
        self.await_use(api)

    @property
    def name(self) -> str:
        return f"karpenter.{self.namespace}.svc"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        client = await ApiClient.connect()
        certificates, around = Certificates(client, self.namespace), ValidationContextWatch(client)
        try:
            server = AdmissionServer(
                "127.0.0.1",
                0,
                certificates,
                check_settings=settings_faults,
                advise_on_settings=settings_warnings,
                context_source=around.current,
            )
            async with asyncio.TaskGroup() as group, server:
                self.port, self.bundle = server.port, certificates.bundle
                background = [group.create_task(work) for work in (certificates.keep(), around.run())]
                self._started.set()
                await self._stop.wait()
                for task in background:
                    task.cancel()
        finally:
            await client.close()


@pytest.fixture
def serving(
    control_plane: ControlPlane,
    api: KubernetesApi,
    namespace: str,
    definitions: None,
    configurations: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Serving]:
    """Our server behind Service `karpenter` of the test's namespace, known to all five configurations."""
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))
    with served(control_plane, api, namespace) as server:
        yield server


@pytest.fixture(scope="module")
def admission(control_plane: ControlPlane, api: KubernetesApi, definitions: None) -> Iterator[Serving]:
    """The same once for a whole module, whose tests leave nothing behind (dry runs)."""
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
    namespace = made["metadata"]["name"]
    api.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))
        with configured(api, namespace), served(control_plane, api, namespace) as server:
            yield server
    api.delete(f"/api/v1/namespaces/{namespace}")


@contextmanager
def served(control_plane: ControlPlane, api: KubernetesApi, namespace: str) -> Iterator[Serving]:
    """A server that the API server asks; the configurations must be there."""
    ports = [{"name": "https-webhook", "port": 443, "targetPort": 8443}]
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "karpenter", "namespace": namespace},
            "spec": {"ports": ports},
        }
    )
    with Serving(namespace) as server, ConnectProxy(control_plane.kubeconfig.parent / "proxy") as proxy:
        proxy.backend = ("127.0.0.1", server.port)
        server.await_use(api)
        yield server


def _refusal(api: KubernetesApi, manifest: dict[str, Any]) -> str:
    """What the API server would say to a manifest; empty when it would take it."""
    try:
        api.apply(manifest, dry_run=True)
    except ApiError as error:
        return str(error)
    return ""
