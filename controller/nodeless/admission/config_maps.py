"""What is asked about the controller's own ConfigMaps: do settings and logging configuration make sense?

The keys of the global settings are known to the part that reads them; it may be given to
`AdmissionServer` as a check.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from nodeless.admission.logging_config import read_logging

SettingsCheck: TypeAlias = Callable[[Mapping[str, str]], list[str]]
"""Takes a ConfigMap's data, gives its faults, one line each."""

LOGGING_NAME = "config-logging"
SETTINGS_NAME = "karpenter-global-settings"


def config_map_faults(manifest: Mapping[str, Any], check_settings: SettingsCheck | None = None) -> list[str]:
    """The faults of one of our ConfigMaps; none for any other."""
    metadata, data = manifest.get("metadata"), manifest.get("data")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    texts = data if isinstance(data, Mapping) else {}
    if name == LOGGING_NAME:
        return [str(fault) for fault in read_logging(texts)[1]]
    if name == SETTINGS_NAME and check_settings is not None:
        return check_settings(texts)
    return []
