"""The settings of a running process: waited for at its start, then kept current.

A change of a ConfigMap takes effect at once where that is safe; where it is not, the log says that a
restart is needed, and the old value holds until then. A value that cannot be used never ends a process that
runs: the last good one stays, and log, event and metric say so until it is corrected.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodeless.kube import ApiClient, ApiError, ConfigMapEvent, ConfigMapSeen
from nodeless.operator.config_sources import NO_SOURCES, ConfigSources
from nodeless.operator.logs import logger
from nodeless.operator.settings import (
    SETTINGS,
    SETTINGS_NAME,
    Fault,
    GlobalSettings,
    SettingsError,
    overriding,
    read_settings,
    unknown_keys,
)

_POLL_SECONDS = 0.5
#: Failures of the API server to give a ConfigMap, in half a minute, after which it is taken for missing.
_MOST_FAILURES = 60
#: Refusals that do not pass by themselves.
_FORBIDDEN = (401, 403)

_BY_KEY = {setting.key: setting for setting in SETTINGS.values()}

Faults = Mapping[str, str]
"""What is wrong, by key."""
Complain = Callable[[str, str, Faults], None]
"""Told of the faults of a ConfigMap (its name and uid) each time that they change; none: all is well."""


class LiveSettings:
    """The settings in force."""

    def __init__(
        self, started: GlobalSettings, data: Mapping[str, str], given: ConfigSources, complain: Complain
    ) -> None:
        self.current = started
        self._wanted = started
        self._data = dict(data)
        self._given = given
        self._report_invalid = complain
        self._faults: Faults = {}
        self._unknown: tuple[str, ...] = unknown_keys(data)
        self._listeners: list[Callable[[GlobalSettings], None]] = []
        self._log = logger("settings")

    def listen(self, listener: Callable[[GlobalSettings], None]) -> None:
        """Have a function called with the settings in force, now and after each change."""
        self._listeners.append(listener)
        listener(self.current)

    def handle(self, event: ConfigMapEvent) -> None:
        """Take the ConfigMap in as it is now."""
        if not isinstance(event, ConfigMapSeen):
            self._log.warning(
                f"ConfigMap {SETTINGS_NAME} is gone: the settings stay as they are until it is back"
            )
            return
        wanted, faults = read_settings(event.data, self._given, self._wanted)
        self._say_overridden(event.data)
        self._say_unknown(event.data)
        self._data = dict(event.data)
        self._tell_faults(event, {fault.key: str(fault) for fault in faults})
        changed = {name: value for name, value in _fields(wanted) if value != getattr(self._wanted, name)}
        if changed:
            self._apply(wanted, changed)

    def _apply(self, wanted: GlobalSettings, changed: Mapping[str, Any]) -> None:
        live = {}
        for name, value in changed.items():
            setting, old = SETTINGS[name], getattr(self._wanted, name)
            text = f"setting {setting.key} changed from {old!r} to {value!r}"
            if setting.live:
                live[name] = value
                self._log.info(text, key=setting.key, old=old, new=value)
            else:
                text += "; restart the controller for it to take effect"
                self._log.warning(text, key=setting.key, old=old, new=value)
        self._wanted = wanted
        if live:
            self.current = replace(self.current, **live)
            for listener in self._listeners:
                listener(self.current)

    def _tell_faults(self, event: ConfigMapSeen, faults: Faults) -> None:
        if faults == self._faults:
            return
        for key, text in faults.items():
            if self._faults.get(key) != text:
                self._log.error(f"{text}; the last good value stays in force", key=key)
        for key in self._faults.keys() - faults.keys():
            self._log.info(f"setting {key} can be used again", key=key)
        self._faults = faults
        self._report_invalid(event.name, event.uid, faults)

    def _say_overridden(self, data: Mapping[str, str]) -> None:
        for setting in SETTINGS.values():
            decider = overriding(setting, self._given)
            if decider and data.get(setting.key) != self._data.get(setting.key):
                self._log.warning(f"the change of setting {setting.key} has no effect: {decider} decides it")

    def _say_unknown(self, data: Mapping[str, str]) -> None:
        unknown = unknown_keys(data)
        if unknown != self._unknown:
            warn_of_unknown(unknown, self._log)
        self._unknown = unknown


def _fields(settings: GlobalSettings) -> Iterable[tuple[str, Any]]:
    return ((name, getattr(settings, name)) for name in SETTINGS)


async def read_global_settings(
    client: ApiClient, namespace: str, given: ConfigSources = NO_SOURCES, poll: float = _POLL_SECONDS
) -> tuple[GlobalSettings, dict[str, str]]:
    """The settings, and the data of the ConfigMap that they are from; waits until it is there.

    With the cluster's name given to the process, as Karpenter v1 has it, no ConfigMap is needed. One that may
    not be read is as if it were not there, and so is one that the API server keeps failing to give
    (`_MOST_FAILURES`); both are said. Of a value that cannot be used the default holds; where there is none,
    its correction is waited for. It is read every `poll` seconds.

    Raises:
        SettingsError: What the process was given cannot be used.
        ApiUnavailable: The API server does not answer.
    """
    log, logged, failures = logger("settings"), "", 0
    name = f"ConfigMap {namespace}/{SETTINGS_NAME}"
    while True:
        data, refusal, settled = None, "", True
        try:
            data = await _read(client, namespace)
        except ApiError as error:
            refusal = f"{name} cannot be read: {error}"
            failures += 1
            settled = error.status in _FORBIDDEN or failures >= _MOST_FAILURES
        if data is None and settled and _complete(given):
            data = {}
            if refusal:
                log.error(f"{refusal}; what the process was given holds, and defaults, until it can")
        if data is not None:
            settings, faults = _usable(data, given)
            if not any(_BY_KEY[fault.key].required for fault in faults):
                for fault in faults:
                    log.error(f"{fault}; the default holds until it is corrected", key=fault.key)
                warn_of_unknown(unknown_keys(data), log)
                return settings, data
            refusal = "; ".join(map(str, faults))
        if (refusal or name) != logged:
            logged = refusal or name
            log.error(refusal) if refusal else log.info(f"waiting for {name}")
        await asyncio.sleep(poll)


def _usable(data: Mapping[str, str], given: ConfigSources) -> tuple[GlobalSettings, tuple[Fault, ...]]:
    """The settings, and what cannot be used of the ConfigMap. Raises SettingsError for what was given."""
    settings, faults = read_settings(data, given)
    if any(fault.key not in _BY_KEY or overriding(_BY_KEY[fault.key], given) for fault in faults):
        raise SettingsError([str(fault) for fault in faults])
    return settings, faults


def warn_of_unknown(keys: Iterable[str], log: Any) -> None:
    """Say that keys are ignored, as Karpenter ignores them."""
    if names := ", ".join(keys):
        log.warning(f"ConfigMap {SETTINGS_NAME} has keys that mean nothing and are ignored: {names}")


def _complete(given: ConfigSources) -> bool:
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
