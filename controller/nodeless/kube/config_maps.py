"""ConfigMaps: one that is watched, its data as events of their own, and one in which a controller keeps data.

Neither is a part of the cluster's state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from nodeless.kube.errors import ApiError
from nodeless.kube.reflector import WatchedKind

if TYPE_CHECKING:
    from nodeless.kube.client import ApiClient


@dataclass(frozen=True, slots=True)
class ConfigMapSeen:
    name: str
    uid: str
    data: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ConfigMapGone:
    name: str


ConfigMapEvent: TypeAlias = ConfigMapSeen | ConfigMapGone


class _Metadata(msgspec.Struct):
    name: str
    uid: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] = {}


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)
_NOT_FOUND = 404


def watched_config_map(namespace: str, name: str) -> WatchedKind[ConfigMapEvent]:
    """The ConfigMap of that name, whether it is there or not."""

    def decode(raw: bytes) -> tuple[str, tuple[ConfigMapEvent, ...]]:
        document = _CONFIG_MAP.decode(raw)
        return document.metadata.name, (
            ConfigMapSeen(document.metadata.name, document.metadata.uid, document.data),
        )

    return WatchedKind(
        f"ConfigMap {name}",
        _collection(namespace),
        decode,
        ConfigMapGone,
        field_selector=f"metadata.name={name}",
    )


class KeptData:
    """Data that outlive a controller, in a ConfigMap of its own."""

    def __init__(self, client: "ApiClient", namespace: str, name: str) -> None:
        self._client = client
        self._collection = _collection(namespace)
        self._metadata = {"name": name, "namespace": namespace}
        self._path = f"{self._collection}/{name}"
        #: The keys that are there; None: not known yet.
        self._keys: frozenset[str] | None = None

    async def read(self) -> Mapping[str, str] | None:
        """What is kept; None where there is no ConfigMap.

        Raises:
            ApiError, ApiUnavailable: It cannot be read.
        """
        try:
            found = await self._client.get(self._path)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            self._keys = frozenset()
            return None
        data: Mapping[str, str] = found.get("data") or {}
        self._keys = frozenset(data)
        return data

    async def write(self, data: Mapping[str, str]) -> None:
        """Keep these and no others; the ConfigMap is made where there is none.

        Raises:
            ApiError, ApiUnavailable: They are not kept.
        """
        if self._keys is None:
            await self.read()
        # A merge patch keeps what it does not name.
        gone = dict.fromkeys((self._keys or frozenset()) - data.keys())
        try:
            await self._client.patch(self._path, {"data": {**data, **gone}})
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata, "data": data}
            await self._client.create(self._collection, made)
        self._keys = frozenset(data)


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
