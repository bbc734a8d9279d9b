"""The logging configuration of a running process: ConfigMap `config-logging`, taken in whenever it changes.

It may be missing: then defaults hold. What cannot be used is told, and what held before stays.
"""

from nodeless.api.errors import problem_of
from nodeless.api.logging_config import LoggingConfig, LoggingFault, read_logging
from nodeless.kube import ApiClient, ApiError, ApiUnavailable, ConfigMapEvent, ConfigMapSeen
from nodeless.manager.live_settings import Complain
from nodeless.operator import logs
from nodeless.operator.logs import logger


class LiveLogging:
    """Hands the ConfigMap's configuration to `logs`."""

    def __init__(self, complain: Complain) -> None:
        self._report_invalid = complain
        self._good = LoggingConfig()
        self._faults: dict[str, str] = {}
        self._log = logger("settings")

    async def read(self, client: ApiClient, namespace: str, name: str) -> None:
        """Take it in once, as it is at the start; defaults hold where it cannot be read, which is said."""
        try:
            document = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except (ApiError, ApiUnavailable) as error:
            if not (isinstance(error, ApiError) and error.status == 404):
                self._log.error(
                    f"ConfigMap {namespace}/{name} cannot be read: {error}; defaults hold until it can"
                )
            return
        uid = document["metadata"].get("uid", "")
        try:
            self.handle(ConfigMapSeen(name, uid, document.get("data") or {}))
        except Exception as error:  # the process starts, and logs as it does without the ConfigMap
            self._log.error(f"ConfigMap {name} cannot be used: {problem_of(error)}")

    def handle(self, event: ConfigMapEvent) -> None:
        """Take the ConfigMap in as it is now."""
        seen = event if isinstance(event, ConfigMapSeen) else None
        config, faults = read_logging(seen.data if seen else {}, self._good)
        messages = _by_key(event.name, faults)
        try:
            logs.reconfigure(config)
        except OSError as error:
            messages["zap-logger-config"] = (
                f"ConfigMap {event.name}: cannot write logs to {error.filename}: {error.strerror}"
                "; hint: outputPaths takes stdout, stderr and files that can be written"
            )
        else:
            if config != self._good:
                self._log.info("logging is configured anew", **_differences(self._good, config))
            self._good = config
        for key, text in messages.items():
            if self._faults.get(key) != text:
                self._log.error(f"{text}; what held before stays in force", key=key)
        if messages != self._faults and seen is not None:
            self._report_invalid(event.name, seen.uid, messages)
        self._faults = messages


def _by_key(name: str, faults: tuple[LoggingFault, ...]) -> dict[str, str]:
    messages: dict[str, str] = {}
    for fault in faults:
        text = f"ConfigMap {name}, {fault}"
        messages[fault.key] = f"{messages[fault.key]}; {text}" if fault.key in messages else text
    return messages


def _differences(old: LoggingConfig, new: LoggingConfig) -> dict[str, str]:
    return {
        name: f"{getattr(old, name)!r} -> {getattr(new, name)!r}"
        for name in LoggingConfig.__slots__
        if getattr(old, name) != getattr(new, name)
    }
