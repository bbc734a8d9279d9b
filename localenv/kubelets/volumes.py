"""A pod's volumes as directories: ConfigMaps, Secrets, projected tokens, the downward API, emptyDir.

`Volumes.refresh` writes what changed, each file by rename, so a reader never sees half a file; tokens are
asked for anew before they end. It is called again and again while the pod lives.
"""

import base64
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localenv.kubelets.downward import field_value
from localenv.kubelets.variables import MissingReferenceError
from localenv.kubernetes import ApiError
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring

log = logging.getLogger(__name__)

#: Share of a token's life after which the kubelet asks for a new one.
_TOKEN_AGE = 0.8
_FILE_SOURCES = ("configMap", "secret", "projected", "downwardAPI")


class Volumes:
    """The volumes of one pod.

    Attributes:
        places: volume name -> directory (or the host's own path).
    """

    def __init__(self, api: AsyncKubernetesApi, pod: Mapping[str, Any], directory: Path) -> None:
        self._api = api
        self._pod = pod
        self._namespace = pod["metadata"]["namespace"]
        self._tokens: dict[tuple[str, int], tuple[str, float]] = {}
        self.places: dict[str, Path] = {}
        for volume in pod["spec"].get("volumes") or []:
            host_path = volume.get("hostPath")
            self.places[volume["name"]] = Path(host_path["path"]) if host_path else directory / volume["name"]

    async def refresh(self) -> None:
        """Bring all files up to date.

        Raises:
            MissingReferenceError: an object that is not optional does not exist, or a kind of volume that a
                local pod
                cannot have.
            ApiError: the API server refused.
        """
        for volume in self._pod["spec"].get("volumes") or []:
            place = self.places[volume["name"]]
            if "hostPath" in volume:
                continue
            if "emptyDir" in volume:
                place.mkdir(parents=True, exist_ok=True)
                continue
            source = next((name for name in _FILE_SOURCES if name in volume), None)
            if source is None:
                kinds = ", ".join(sorted(set(volume) - {"name"}))
                raise MissingReferenceError(
                    f"volume {volume['name']}: {kinds} cannot be mounted on this machine"
                )
            write_files(place, await self._files({source: volume[source]}))

    async def _files(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        if "projected" in source:
            files: dict[str, bytes] = {}
            for each in source["projected"].get("sources") or []:
                files.update(await self._files(each))
            return files
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            return {token["path"]: (await self._token(token)).encode()}
        if "downwardAPI" in source:
            items = source["downwardAPI"].get("items") or []
            return {
                item["path"]: field_value(self._pod, item["fieldRef"]["fieldPath"]).encode()
                for item in items
                if "fieldRef" in item
            }
        for field, plural in (("configMap", "configmaps"), ("secret", "secrets")):
            if field in source:
                return await self._object_files(plural, source[field])
        raise MissingReferenceError(f"projected source {sorted(source)} cannot be mounted on this machine")

    async def _object_files(self, plural: str, source: Mapping[str, Any]) -> dict[str, bytes]:
        name = source.get("secretName") or source.get("name")
        path = f"/api/v1/namespaces/{self._namespace}/{plural}/{name}"
        document = await ignoring(self._api.get(path), 404)
        if document is None:
            if source.get("optional"):
                return {}
            raise MissingReferenceError(f'{plural.removesuffix("s")} "{name}" not found')
        data = object_bytes(plural, document)
        items = source.get("items")
        if not items:
            return data
        missing = [item["key"] for item in items if item["key"] not in data]
        if missing and not source.get("optional"):
            raise MissingReferenceError(f"{plural} {name}: references non-existent key: {missing[0]}")
        return {item["path"]: data[item["key"]] for item in items if item["key"] in data}

    async def _token(self, source: Mapping[str, Any]) -> str:
        audience, seconds = source.get("audience") or "", int(source.get("expirationSeconds") or 3600)
        known = self._tokens.get((audience, seconds))
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        metadata = self._pod["metadata"]
        request: dict[str, Any] = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": seconds,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        if audience:
            request["spec"]["audiences"] = [audience]
        account = self._pod["spec"].get("serviceAccountName") or "default"
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        try:
            token: str = (await self._api.create(request, path=path))["status"]["token"]
        except ApiError as error:
            if error.status == 404 and known is None:
                raise MissingReferenceError(f'serviceaccount "{account}" not found') from None
            raise
        self._tokens[audience, seconds] = token, time.monotonic() + seconds * _TOKEN_AGE
        return token


def object_bytes(plural: str, document: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the contents of a ConfigMap or a Secret by key."""
    if plural == "secrets":
        return {key: base64.b64decode(value) for key, value in (document.get("data") or {}).items()}
    files = {key: value.encode() for key, value in (document.get("data") or {}).items()}
    files.update({key: base64.b64decode(value) for key, value in (document.get("binaryData") or {}).items()})
    return files


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory hold exactly these files, each replaced at once."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        target = directory / path
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.touch(mode=0o600)
        fresh.write_bytes(content)
        fresh.replace(target)
    for present in directory.rglob("*"):
        if present.is_file() and str(present.relative_to(directory)) not in files:
            present.unlink()
