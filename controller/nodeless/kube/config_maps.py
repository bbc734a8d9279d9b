"""One ConfigMap, watched: its data as events of their own, for they are no part of the cluster's state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from nodeless.kube.reflector import WatchedKind


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


def watched_config_map(namespace: str, name: str) -> WatchedKind[ConfigMapEvent]:
    """The ConfigMap of that name, whether it is there or not."""

    def decode(raw: bytes) -> tuple[str, tuple[ConfigMapEvent, ...]]:
        document = _CONFIG_MAP.decode(raw)
        return document.metadata.name, (
            ConfigMapSeen(document.metadata.name, document.metadata.uid, document.data),
        )

    return WatchedKind(
        f"ConfigMap {name}",
        f"/api/v1/namespaces/{namespace}/configmaps",
        decode,
        ConfigMapGone,
        field_selector=f"metadata.name={name}",
    )
