"""What is asked about the controller's own ConfigMaps: do settings and logging configuration make sense?

The keys of the global settings are known to the part that reads them; it may be given to
`AdmissionServer` as a check, and as advice about what is legal and probably not meant.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from nodeless.api.logging_config import read_logging

SettingsCheck: TypeAlias = Callable[[Mapping[str, str]], list[str]]
"""Takes a ConfigMap's data, gives its faults, or its warnings, one line each."""

LOGGING_NAME = "config-logging"
SETTINGS_NAME = "karpenter-global-settings"


def config_map_warnings(
    manifest: Mapping[str, Any], advise_on_settings: SettingsCheck | None = None
) -> list[str]:
    """What is suspicious in one of our ConfigMaps; nothing about any other."""
    if advise_on_settings is None or _name_of(manifest) != SETTINGS_NAME:
        return []
    return advise_on_settings(_data_of(manifest))


def config_map_faults(manifest: Mapping[str, Any], check_settings: SettingsCheck | None = None) -> list[str]:
    """The faults of one of our ConfigMaps; none for any other."""
    name = _name_of(manifest)
    if name == LOGGING_NAME:
        return [str(fault) for fault in read_logging(_data_of(manifest))[1]]
    if name == SETTINGS_NAME and check_settings is not None:
        return check_settings(_data_of(manifest))
    return []


def _name_of(manifest: Mapping[str, Any]) -> object:
    metadata = manifest.get("metadata")
    return metadata.get("name") if isinstance(metadata, Mapping) else None


def _data_of(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    """The texts; the API server lets nothing else into a ConfigMap."""
    data = manifest.get("data")
    texts = data.items() if isinstance(data, Mapping) else ()
    return {key: text for key, text in texts if isinstance(key, str) and isinstance(text, str)}
