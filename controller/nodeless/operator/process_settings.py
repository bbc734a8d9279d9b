"""Settings of the process: flags and environment variables, which hold from its start to its end.

Names and defaults are Karpenter's, of both generations. Karpenter v0.27 falls back to the default when a
variable makes no sense; here the process says so, and does not start.
"""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from nodeless.operator.config_sources import NO_SOURCES, ConfigSources
from nodeless.operator.setting_values import (
    UnusableValue,
    address_to_listen_on,
    boolean,
    log_level,
    port,
    positive,
    text,
    version,
)
from nodeless.operator.settings import SettingsError

_SETTING = "setting"


@dataclass(frozen=True, slots=True)
class ProcessSetting:
    """One line of the table."""

    variable: str
    read: Callable[[str], Any]
    """Makes the value of a text; raises UnusableValue."""
    default: str
    meaning: str
    flag: bool = True
    """Whether there is a flag too."""
    required: bool = False
    inverse: str = ""
    """A variable that says the opposite."""
    fallback: str = ""
    """A variable that says the same, looked at when the first is not given."""


def _declare_setting(
    variable: str, read: Callable[[str], Any], default: str, meaning: str, **more: Any
) -> Any:
    return field(
        default=read(default),
        metadata={_SETTING: ProcessSetting(variable, read, default, meaning, **more)},
    )


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The table: a field for each setting."""

    # fmt: off
    namespace: str = _declare_setting(
        "SYSTEM_NAMESPACE", text, "", "Namespace of the controller and of its ConfigMaps, Secret and Lease.",
        flag=False, required=True)
    identity: str = _declare_setting(
        "POD_NAME", text, "",
        "Name under which this replica holds the Lease. If empty, the host name and the process ID.",
        flag=False)
    bind_address: str = _declare_setting(
        "POD_IP", address_to_listen_on, "0.0.0.0",
        "Address of the pod. The ports are opened on all addresses of its family, or on this one alone if it "
        "is a loopback address.",
        flag=False)
    webhook_port: int = _declare_setting("WEBHOOK_PORT", port, "8443", "Port of the webhook.")
    metrics_port: int = _declare_setting("METRICS_PORT", port, "8080", "Port of the metrics.")
    health_port: int = _declare_setting("HEALTH_PROBE_PORT", port, "8081", "Port of the health probes.")
    service: str = _declare_setting(
        "KARPENTER_SERVICE", text, "karpenter",
        "Name of the Service in front of the webhook. The Secret NAME-cert holds its certificate.")
    webhook_disabled: bool = _declare_setting(
        "DISABLE_WEBHOOK", boolean, "false", "Do not serve the webhook, and do not manage its certificate.")
    leader_elect: bool = _declare_setting(
        "LEADER_ELECT", boolean, "true", "Act only while this replica holds the Lease.",
        inverse="DISABLE_LEADER_ELECTION")
    client_rate: int = _declare_setting(
        "KUBE_CLIENT_QPS", positive, "200", "Requests per second to the API server, on average over time.")
    client_burst: int = _declare_setting(
        "KUBE_CLIENT_BURST", positive, "300",
        "Requests to the API server that may be sent at once after a pause.")
    profiling: bool = _declare_setting(
        "ENABLE_PROFILING", boolean, "false",
        "Serve /debug/pprof/ on the metrics port: profile, heap, goroutine.")
    logging_name: str = _declare_setting(
        "CONFIG_LOGGING_NAME", text, "config-logging", "Name of the ConfigMap that configures logging.",
        flag=False)
    log_level: str = _declare_setting(
        "LOG_LEVEL", log_level, "", "Log level: debug, info, warn or error. Overrides the ConfigMap.")
    log_output_paths: str = _declare_setting(
        "LOG_OUTPUT_PATHS", text, "", "Where logs go: stdout, stderr or files. Overrides the ConfigMap.")
    oldest_server: tuple[int, int, int] = _declare_setting(
        "KUBERNETES_MIN_VERSION", version, "1.24.0",
        "Oldest Kubernetes version of the API server with which the webhook serves.", flag=False)
    region: str = _declare_setting(
        "AWS_REGION", text, "", "Region of the cluster.", flag=False, fallback="AWS_DEFAULT_REGION")
    decisions_folder: str = _declare_setting(
        "NODELESS_DECISIONS", text, "",
        "Folder into which each pass writes its decision, for nodeless replay.")
    decisions_kept: int = _declare_setting(
        "NODELESS_DECISIONS_KEPT", positive, "100", "How many decisions are kept in that folder.")
    # fmt: on
    sources: ConfigSources = NO_SOURCES
    """What all of this was read from; other settings are in it too."""

    @property
    def webhook_enabled(self) -> bool:
        return not self.webhook_disabled

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, flags: Mapping[str, str] | None = None
    ) -> "ProcessSettings":
        """Read flags (by variable) and environment. Raises SettingsError with every fault."""
        sources = ConfigSources(dict(environment), flags or {})
        values: dict[str, Any] = {}
        faults: list[str] = []
        for name, setting in PROCESS_SETTINGS.items():
            try:
                values[name] = _value(setting, sources)
            except UnusableValue as error:
                faults.append(str(error))
        if faults:
            raise SettingsError(faults)
        values["identity"] = values["identity"] or f"{socket.gethostname()}-{os.getpid()}"
        return cls(**values, sources=sources)


PROCESS_SETTINGS: Mapping[str, ProcessSetting] = {
    field_.name: field_.metadata[_SETTING]
    for field_ in fields(ProcessSettings)
    if _SETTING in field_.metadata
}
"""The table by field of `ProcessSettings`."""


def _value(setting: ProcessSetting, sources: ConfigSources) -> Any:
    for variable in (setting.variable, setting.inverse, setting.fallback):
        found = sources.get(variable) if variable else None
        if found is None:
            continue
        try:
            value = setting.read(found.text)
        except UnusableValue as error:
            raise UnusableValue(f"{found} {error.problem}", error.hint) from error
        return not value if variable == setting.inverse else value
    if setting.required:
        meaning = (setting.meaning[0].lower() + setting.meaning[1:]).removesuffix(".")
        raise UnusableValue(f"environment variable {setting.variable} is not set", meaning)
    return setting.read(setting.default)
