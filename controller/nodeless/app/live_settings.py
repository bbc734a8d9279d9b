"""The settings of a running process: waited for at its start."""

import asyncio
from collections.abc import Iterable
from typing import Any

from nodeless.app.given import NOTHING_GIVEN, Given
from nodeless.app.logs import logger
from nodeless.app.settings import SETTINGS, SETTINGS_NAME, GlobalSettings, unknown_keys
from nodeless.watch import ApiClient, ApiError

_POLL_SECONDS = 0.5


async def read_global_settings(
    client: ApiClient, namespace: str, given: Given = NOTHING_GIVEN
) -> tuple[GlobalSettings, dict[str, str]]:
    """The settings, and the data of the ConfigMap that they are from; waits until it is there.

    With the cluster's name given to the process, as Karpenter v1 has it, no ConfigMap is needed.

    Raises:
        SettingsError, ApiError, ApiUnavailable: They cannot be had.
    """
    log = logger("settings")
    waiting = False
    while True:
        data = await _read(client, namespace)
        if data is None and _complete(given):
            data = {}
        if data is not None:
            settings = GlobalSettings.from_config_map(data, given)
            warn_of_unknown(unknown_keys(data), log)
            return settings, data
        if not waiting:
            log.info(f"waiting for ConfigMap {namespace}/{SETTINGS_NAME}")
            waiting = True
        await asyncio.sleep(_POLL_SECONDS)


def warn_of_unknown(keys: Iterable[str], log: Any) -> None:
    """Say that keys are ignored, as Karpenter ignores them."""
    if names := ", ".join(keys):
        log.warning(f"ConfigMap {SETTINGS_NAME} has keys that mean nothing and are ignored: {names}")


def _complete(given: Given) -> bool:
    return all(
        setting.variable and given.get(setting.variable) for setting in SETTINGS.values() if setting.required
    )


async def _read(client: ApiClient, namespace: str) -> dict[str, str] | None:
    try:
        config_map = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{SETTINGS_NAME}")
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return config_map.get("data") or {}
