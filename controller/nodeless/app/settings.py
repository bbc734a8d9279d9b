"""Settings: the process's environment and the ConfigMap `karpenter-global-settings`.

Keys, defaults and validation are Karpenter v0.27's; all faults are told at once, each
with its key and value.
"""

import asyncio
import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import structlog

from nodeless.app.solver_settings import SolverSettings
from nodeless.model.packing import LOWEST_PRICE, packing_defect
from nodeless.watch import ApiClient, ApiError

SETTINGS_NAME = "karpenter-global-settings"
_POLL_SECONDS = 0.5
_DURATION_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class SettingsError(Exception):
    """One or more settings cannot be used; one line each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What the environment of the process says."""

    namespace: str
    identity: str
    bind_address: str = "0.0.0.0"
    webhook_port: int = 8443
    metrics_port: int = 8080
    health_port: int = 8081
    service: str = "karpenter"
    webhook_enabled: bool = True
    leader_elect: bool = True
    region: str = ""
    log_level: str = ""
    packing: str = LOWEST_PRICE

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ProcessSettings":
        """Read the environment. Raises SettingsError."""
        faults: list[str] = []

        def port(name: str, default: int) -> int:
            text = environment.get(name, "")
            if not text:
                return default
            if text.isdigit() and int(text) < 65536:
                return int(text)
            faults.append(f"environment variable {name}={text!r} is no port; hint: a number below 65536")
            return default

        def flag(name: str, default: bool) -> bool:
            text = environment.get(name, "")
            if text and text not in _BOOLEANS:
                faults.append(f"environment variable {name}={text!r} is neither true nor false")
            return _BOOLEANS.get(text, default)

        namespace = environment.get("SYSTEM_NAMESPACE", "")
        if not namespace:
            faults.append(
                "environment variable SYSTEM_NAMESPACE is not set; hint: the controller's namespace"
            )
        settings = cls(
            namespace=namespace,
            identity=environment.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}",
            bind_address=environment.get("POD_IP") or "0.0.0.0",
            webhook_port=port("WEBHOOK_PORT", 8443),
            metrics_port=port("METRICS_PORT", 8080),
            health_port=port("HEALTH_PROBE_PORT", 8081),
            service=environment.get("KARPENTER_SERVICE") or "karpenter",
            webhook_enabled=not flag("DISABLE_WEBHOOK", False),
            leader_elect=flag("LEADER_ELECT", True),
            region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "",
            log_level=environment.get("LOG_LEVEL", ""),
            packing=environment.get("NODELESS_PACKING") or LOWEST_PRICE,
        )
        if defect := packing_defect(settings.packing):
            faults.append(f"environment variable NODELESS_PACKING={settings.packing!r} {defect}")
        if faults:
            raise SettingsError(faults)
        return settings


@dataclass(frozen=True, slots=True)
class GlobalSettings:
    """What the ConfigMap says. Durations in seconds."""

    cluster_name: str
    cluster_endpoint: str = ""
    default_instance_profile: str = ""
    batch_max_seconds: float = 10.0
    batch_idle_seconds: float = 1.0
    vm_memory_overhead_percent: float = 0.075
    enable_pod_eni: bool = False
    enable_eni_limited_pod_density: bool = True
    isolated_vpc: bool = False
    node_name_convention: str = "ip-name"
    interruption_queue_name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    solver: SolverSettings = field(default_factory=SolverSettings)

    @classmethod
    def from_config_map(cls, data: Mapping[str, str]) -> "GlobalSettings":
        """Parse the ConfigMap's data. Raises SettingsError with every fault."""
        reader = _Reader(data)
        settings = cls(
            cluster_name=reader.required("aws.clusterName"),
            cluster_endpoint=reader.url("aws.clusterEndpoint"),
            default_instance_profile=data.get("aws.defaultInstanceProfile", ""),
            batch_max_seconds=reader.duration("batchMaxDuration", 10.0),
            batch_idle_seconds=reader.duration("batchIdleDuration", 1.0),
            vm_memory_overhead_percent=reader.fraction("aws.vmMemoryOverheadPercent", 0.075),
            enable_pod_eni=reader.boolean("aws.enablePodENI", False),
            enable_eni_limited_pod_density=reader.boolean("aws.enableENILimitedPodDensity", True),
            isolated_vpc=reader.boolean("aws.isolatedVPC", False),
            node_name_convention=data.get("aws.nodeNameConvention") or "ip-name",
            interruption_queue_name=data.get("aws.interruptionQueueName", ""),
            tags=reader.tags("aws.tags"),
            solver=SolverSettings.read(data, reader.fault),
        )
        if reader.faults:
            raise SettingsError(reader.faults)
        return settings


class _Reader:
    """Reads typed values and keeps the faults."""

    def __init__(self, data: Mapping[str, str]) -> None:
        self._data = data
        self.faults: list[str] = []

    def fault(self, key: str, problem: str, hint: str) -> None:
        """Remember what is wrong with the value of a key."""
        value = self._data.get(key)
        self.faults.append(f"ConfigMap {SETTINGS_NAME}, key {key}={value!r}: {problem}; hint: {hint}")

    def required(self, key: str) -> str:
        value = self._data.get(key, "")
        if not value:
            self.fault(key, "is required", "the name of the EKS cluster")
        return value

    def duration(self, key: str, default: float) -> float:
        if key not in self._data:
            return default
        text = self._data[key]
        parts = _DURATION_PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fault(key, "is no duration", "write for example 10s or 1m30s")
            return default
        seconds = sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)
        if seconds <= 0:
            self.fault(key, "must be positive", "write for example 1s")
            return default
        return seconds

    def boolean(self, key: str, default: bool) -> bool:
        text = self._data.get(key, "")
        if text and text not in _BOOLEANS:
            self.fault(key, "is neither true nor false", "write true or false")
        return _BOOLEANS.get(text, default)

    def fraction(self, key: str, default: float) -> float:
        text = self._data.get(key, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1:
            self.fault(key, "must be a fraction from 0 to below 1", "0.075 stands for 7.5 percent")
            return default
        return value

    def url(self, key: str) -> str:
        text = self._data.get(key, "")
        if text and not urlsplit(text).hostname:
            self.fault(key, "is no absolute URL", "write https://HOST")
        return text

    def tags(self, key: str) -> dict[str, str]:
        text = self._data.get(key, "")
        if not text:
            return {}
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            self.fault(key, "is no JSON object of strings", 'write {"team": "platform"}')
            return {}
        return value


def settings_faults(data: Mapping[str, str]) -> list[str]:
    """What is wrong with the data of the settings' ConfigMap; empty when it can be used."""
    try:
        GlobalSettings.from_config_map(data)
    except SettingsError as error:
        return error.faults
    return []


async def read_global_settings(client: ApiClient, namespace: str) -> GlobalSettings:
    """Wait for the ConfigMap and parse it. Raises SettingsError, ApiError, ApiUnavailable."""
    log = structlog.get_logger().bind(logger="settings")
    waiting = False
    while True:
        try:
            config_map = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{SETTINGS_NAME}")
            return GlobalSettings.from_config_map(config_map.get("data") or {})
        except ApiError as error:
            if error.status != 404:
                raise
        if not waiting:
            log.info(f"waiting for ConfigMap {namespace}/{SETTINGS_NAME}")
            waiting = True
        await asyncio.sleep(_POLL_SECONDS)
