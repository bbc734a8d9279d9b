"""The controller's two ConfigMaps as data: its settings and its logging.

Makes no resource: `controller` puts the results into ConfigMaps. Keys and defaults are those of Karpenter
v0.27's `karpenter-global-settings` and `config-logging`, so that a user's knowledge of them stays true. What
the keys mean to the controller is documented with the controller's own settings.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import pulumi

GLOBAL_SETTINGS: Final = "karpenter-global-settings"
LOGGING: Final = "config-logging"
LOG_LEVELS: Final = ("debug", "info", "warn", "error")

DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "aws.enableENILimitedPodDensity": "true",
    "aws.enablePodENI": "false",
    "aws.interruptionQueueName": "",
    "aws.isolatedVPC": "false",
    "aws.nodeNameConvention": "ip-name",
    "aws.vmMemoryOverheadPercent": "0.075",
    "batchIdleDuration": "1s",
    "batchMaxDuration": "10s",
    "featureGates.driftEnabled": "false",
}
FIXED_SETTINGS: Final = ("aws.clusterName", "aws.clusterEndpoint", "aws.defaultInstanceProfile")
"""Settings that the component knows best: they follow from its other arguments."""


def global_settings(
    cluster: str, endpoint: Any, instance_profile: Any, overrides: Mapping[str, Any], tags: Mapping[str, Any]
) -> dict[str, Any]:
    """Data of the settings ConfigMap.

    `endpoint`, `instance_profile` and the values of overrides and tags may be outputs.

    Args:
        cluster: name of the cluster, for discovery and tags.
        endpoint: URL of the API server that nodes join.
        instance_profile: the profile of node templates that name none.
        overrides: settings of the user, by key.
        tags: tags for everything the controller makes in AWS.
    """
    data: dict[str, Any] = dict(DEFAULT_SETTINGS)
    if tags:
        data["aws.tags"] = _as_json(tags)
    data.update(overrides)
    data.update(zip(FIXED_SETTINGS, (cluster, endpoint, instance_profile), strict=True))
    return dict(sorted(data.items()))


def _as_json(values: Mapping[str, Any]) -> Any:
    """The document of values that may be outputs; a plain text where all of them are plain."""
    if all(isinstance(value, str) for value in values.values()):
        return json.dumps(dict(values), sort_keys=True)
    return pulumi.Output.json_dumps(dict(values), sort_keys=True)


def logging_settings(level: str) -> dict[str, str]:
    """Data of the logging ConfigMap: the level of the controller and of its webhook server, lines as JSON."""
    return {"loglevel.webhook": "error", "zap-logger-config": json.dumps(zap_config(level), indent=2)}


def zap_config(level: str) -> dict[str, Any]:
    """The document of the key `zap-logger-config`."""
    encoder = {
        "timeKey": "time",
        "levelKey": "level",
        "nameKey": "logger",
        "callerKey": "caller",
        "messageKey": "message",
        "stacktraceKey": "stacktrace",
        "levelEncoder": "capital",
        "timeEncoder": "iso8601",
    }
    return {
        "level": level,
        "development": False,
        "disableStacktrace": True,
        "disableCaller": True,
        "sampling": {"initial": 100, "thereafter": 100},
        "outputPaths": ["stdout"],
        "errorOutputPaths": ["stderr"],
        "encoding": "json",
        "encoderConfig": encoder,
    }


def checksum(data: Mapping[str, str]) -> str:
    """Digest of a ConfigMap's data: on the pod template, it restarts the pods when a setting changes."""
    return sha256(json.dumps(dict(data), sort_keys=True).encode()).hexdigest()
