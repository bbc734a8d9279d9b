"""The webhook's certificate: one Secret that all replicas share, and what each keeps doing about it.

Whoever finds the Secret absent, empty, broken or near its end makes new material and
writes it; when two do so at once the API server lets one win (optimistic concurrency)
and the other uses what was won. The order of a change is: write the Secret, tell the API
server to trust it, only then show it. The bundle also holds the authority before, so
that a replica that has not looked yet is trusted as well. Times are the API server's,
which is who judges the certificate.
"""

import asyncio
import base64
import binascii
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

import structlog

from nodeless.operator.clock import wall_clock
from nodeless.webhook import pki
from nodeless.webhook.access import Api, Json, find, status_of
from nodeless.webhook.injection import inject_ca_bundle

KEY, CERTIFICATE, BUNDLE = "server-key.pem", "server-cert.pem", "ca-cert.pem"
#: How often the Secret and the configurations are looked at, and retried after a failure.
_LOOK_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_ATTEMPTS = 5


class CertificateContentionError(Exception):
    """Other writers changed the Secret each time that we tried to."""


class SecretMissingError(Exception):
    """There is no Secret, and the controller may not make one."""


async def ensure(
    api: Api,
    namespace: str,
    service: str = "karpenter",
    *,
    now: Callable[[], float] = wall_clock,
) -> pki.Material:
    """The material in the Secret `<service>-cert`, made or renewed when that is needed.

    Raises:
        CertificateContentionError: Somebody else keeps changing the Secret.
        SecretMissingError: It is not there and may not be made, as the component's roles have it.
    """
    names = pki.service_names(service, namespace)
    collection = f"/api/v1/namespaces/{namespace}/secrets"
    path = f"{collection}/{service}-cert"
    for _ in range(_ATTEMPTS):
        secret = await find(api, path)
        present = _material(secret)
        if pki.usable(present, names, now()):
            return present
        made = pki.make(names, now(), present.bundle)
        try:
            if secret is None:
                await api.create(collection, _secret(namespace, f"{service}-cert", made))
            else:
                await api.replace(path, {**secret, "data": {**(secret.get("data") or {}), **_data(made)}})
        except Exception as error:
            if secret is None and status_of(error) == 403:
                raise SecretMissingError(
                    f"Secret {namespace}/{service}-cert is not there and may not be made by the controller"
                    "; hint: apply the stack again, or make it empty: "
                    f"kubectl create secret generic {service}-cert --namespace {namespace}"
                ) from error
            if status_of(error) not in (404, 409):
                raise
        else:
            return made
    raise CertificateContentionError(
        f"Secret {namespace}/{service}-cert changed under each of {_ATTEMPTS} attempts to write the "
        "webhook's certificate; hint: something else manages its data"
    )


class Certificates:
    """The certificate as one replica serves it; `keep` renews it for as long as the replica lives."""

    def __init__(
        self, api: Api, namespace: str, service: str = "karpenter", *, now: Callable[[], float] = wall_clock
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._service = service
        self._now = now
        self._shown: pki.Material | None = None
        self._missing: list[str] = []
        self._log = structlog.get_logger().bind(logger="webhook")
        #: What the server listens with: always the newest certificate that clients trust.
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A handshake costs the server far more than the client: one for each connection.
        self.context.options |= ssl.OP_NO_RENEGOTIATION

    @property
    def bundle(self) -> bytes:
        """PEM certificates that verify this server; empty before the first `refresh`."""
        return self._shown.bundle if self._shown is not None else b""

    async def refresh(self) -> list[str]:
        """Bring Secret, configurations and server into line once.

        Returns:
            The names of webhook configurations that do not exist.
        """
        material = await ensure(self._api, self._namespace, self._service, now=self._now)
        missing = await inject_ca_bundle(self._api, material.bundle)
        if material != self._shown:
            await asyncio.to_thread(_load, self.context, material)
            self._shown = material
            self._log.info("webhook certificate is in use", secret=f"{self._namespace}/{self._service}-cert")
        return missing

    async def prepare(self) -> None:
        """`refresh` until it works: the API server may be late, and permissions may be."""
        said = ""
        while True:
            try:
                missing = await self.refresh()
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    self._log.error(f"the webhook certificate is not ready yet: {error}")
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if missing != self._missing:
                self._missing = missing
                for name in missing:
                    self._log.warning(
                        f"webhook configuration {name} does not exist: its objects go unchecked; "
                        "hint: install it, the rest follows by itself"
                    )
            return

    async def keep(self) -> None:
        """`refresh` from time to time, for ever: renewal, and configurations that something else rewrote."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await self.prepare()


def _load(context: ssl.SSLContext, material: pki.Material) -> None:
    """Later handshakes use the material; `ssl` reads it from files only."""
    with tempfile.TemporaryDirectory(prefix="nodeless-webhook-") as directory:
        key, certificate = Path(directory, KEY), Path(directory, CERTIFICATE)
        key.touch(mode=0o600)
        key.write_bytes(material.key)
        certificate.write_bytes(material.certificate)
        context.load_cert_chain(certificate, key)


def _material(secret: Json | None) -> pki.Material:
    data = (secret or {}).get("data") or {}
    return pki.Material(*(_decode(data.get(name)) for name in (KEY, CERTIFICATE, BUNDLE)))


def _decode(text: object) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except binascii.Error:
        return b""


def _data(material: pki.Material) -> dict[str, str]:
    parts = {KEY: material.key, CERTIFICATE: material.certificate, BUNDLE: material.bundle}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def _secret(namespace: str, name: str, material: pki.Material) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": _data(material),
    }
