"""The EKS Pod Identity agent: hands out the credentials of a pod's role to who shows the pod's token.

On EKS a DaemonSet listens on a link-local address of each node; here one server on loopback stands for all of
them. It answers once the cluster has the add-on, and asks EKS, which knows the associations. Which pods are
told of it says `webhook`.
"""

import logging
from typing import Any

from aiohttp import web
from botocore.exceptions import BotoCoreError, ClientError

from localenv.kubelets.cloud import Cloud
from localenv.kubelets.cluster import Cluster

log = logging.getLogger(__name__)

ADDON = "eks-pod-identity-agent"


class PodIdentityAgent:
    """The server; `url` is known once it has started."""

    def __init__(self, cloud: Cloud, cluster: Cluster) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._runner: web.AppRunner | None = None
        #: What the SDKs of pods are told to ask.
        self.url = ""

    async def start(self) -> None:
        """Serve on a free port of loopback, which the SDKs allow without TLS."""
        application = web.Application()
        application.router.add_get("/v1/credentials", self._credentials)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1/credentials"

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _credentials(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "")
        if not token:
            return _refuse(400, "the request has no token")
        try:
            if ADDON not in await self._cloud.addons(self._cluster.name):
                return _refuse(503, f"the add-on {ADDON} is not installed")
            answer = await self._cloud.pod_credentials(self._cluster.name, token)
        except ClientError as error:
            log.warning("Pod Identity: %s", error)
            return _refuse(400, str(error))
        except BotoCoreError as error:
            return _refuse(500, str(error))
        return web.json_response(_as_sdks_read(answer))


def _as_sdks_read(answer: dict[str, Any]) -> dict[str, str]:
    given = answer["credentials"]
    return {
        "AccessKeyId": given["accessKeyId"],
        "SecretAccessKey": given["secretAccessKey"],
        "Token": given["sessionToken"],
        "AccountId": answer["assumedRoleUser"]["arn"].split(":")[4],
        "Expiration": given["expiration"].strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)
