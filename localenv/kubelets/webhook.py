"""The mutating webhook for pods that EKS's own control plane has: Fargate's claim, IRSA and Pod Identity.

A TLS server on loopback and its MutatingWebhookConfiguration, given by URL as EKS does. Failure policy
Ignore: a pod created while nobody answers stays as it is, and on EKS, too, must be made again. The rules are
`pod_identity`'s.
"""

import asyncio
import base64
import contextlib
import json
import logging
import ssl
from pathlib import Path
from typing import Any

from aiohttp import web

from localenv.certificates import CertificateAuthority
from localenv.kubelets.cluster import Cluster
from localenv.kubelets.objects import ServiceAccount
from localenv.kubelets.pod_identity import Patch, fargate_patches, identity_patches
from localenv.kubelets.pod_identity_agent import PodIdentityAgent
from localenv.kubernetes import ApiError, ApiUnreachable
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist
from localenv.kubernetes.reflector import Reflector

log = logging.getLogger(__name__)

CONFIGURATION = "eks-pod-mutation"
_PATH = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{CONFIGURATION}"
_PROBE_SECONDS = 0.1


class Webhook:
    """The server and its registration."""

    def __init__(
        self,
        api: AsyncKubernetesApi,
        cluster: Cluster,
        accounts: Reflector[ServiceAccount],
        agent: PodIdentityAgent,
        region: str,
        directory: Path,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._accounts = accounts
        self._agent = agent
        self._region = region
        self._directory = directory
        self._asked = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Serve, register, and wait until the API server asks."""
        authority = CertificateAuthority(self._directory / "webhook", "local-eks-webhooks")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*authority.write("server", authority.server("127.0.0.1", ["127.0.0.1"])))
        application = web.Application(client_max_size=16 * 2**20)
        application.router.add_post("/mutate", self._review)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        body = _configuration(f"https://{host}:{port}/mutate", authority.certificate)
        await persist(lambda: self._api.apply(body, path=_PATH, field_manager="eks"))
        await self._wait_until_asked()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _wait_until_asked(self) -> None:
        """Offer the API server pods to admit, without creating any, until one arrives here."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "eks-pod-mutation-probe"},
            "spec": {"containers": [{"name": "probe", "image": "probe"}]},
        }
        while not self._asked.is_set():
            try:
                await self._api.create(pod, path="/api/v1/namespaces/default/pods", dry_run=True)
            except (ApiError, ApiUnreachable) as error:
                log.info("waiting for pods to be admitted: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_SECONDS):
                    await self._asked.wait()

    async def _review(self, request: web.Request) -> web.Response:
        self._asked.set()
        review = json.loads(await request.read())
        asked = review["request"]
        patches = await self._patches(asked["object"], asked["namespace"])
        answer: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
        if patches:
            answer["patchType"] = "JSONPatch"
            answer["patch"] = base64.b64encode(json.dumps(patches).encode()).decode()
        return web.json_response(
            {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": answer}
        )

    async def _patches(self, pod: dict[str, Any], namespace: str) -> list[Patch]:
        await self._cluster.fresh()
        account = pod["spec"].get("serviceAccountName") or "default"
        annotations = await self._account_annotations(namespace, account)
        fargate = fargate_patches(pod, namespace, self._cluster.profiles)
        # Fargate has no agent.
        agent = self._agent.url if (namespace, account) in self._cluster.pod_identities else ""
        return [*fargate, *identity_patches(pod, annotations, self._region, "" if fargate else agent)]

    async def _account_annotations(self, namespace: str, name: str) -> dict[str, str]:
        account = self._accounts.get(namespace, name)
        if account is not None:
            return account.metadata.annotations
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        document = await ignoring(self._api.get(path), 404) or {"metadata": {}}
        annotations: dict[str, str] = document["metadata"].get("annotations") or {}
        return annotations


def _configuration(url: str, authority: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [
            {
                "name": "pod-mutation.amazonaws.com",
                "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "reinvocationPolicy": "IfNeeded",
                "timeoutSeconds": 10,
            }
        ],
    }
