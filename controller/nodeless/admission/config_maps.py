"""What is asked about the controller's own ConfigMaps: does the logging configuration make sense?

The keys of the global settings are known to the part that reads them; it may be given to
`AdmissionServer` as a check.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

SettingsCheck: TypeAlias = Callable[[Mapping[str, str]], list[str]]
"""Takes a ConfigMap's data, gives its faults, one line each."""

LOGGING_NAME = "config-logging"
SETTINGS_NAME = "karpenter-global-settings"
_LEVELS = ("debug", "info", "warn", "error", "dpanic", "panic", "fatal")
_ZAP = "zap-logger-config"


def config_map_faults(manifest: Mapping[str, Any], check_settings: SettingsCheck | None = None) -> list[str]:
    """The faults of one of our ConfigMaps; none for any other."""
    metadata, data = manifest.get("metadata"), manifest.get("data")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    texts = data if isinstance(data, Mapping) else {}
    if name == LOGGING_NAME:
        return list(_logging_faults(texts))
    if name == SETTINGS_NAME and check_settings is not None:
        return check_settings(texts)
    return []


def _logging_faults(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key.startswith("loglevel."):
            yield from _level_faults(value, f'data["{key}"]')
    text = data.get(_ZAP)
    if not text:
        return
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        yield f'data["{_ZAP}"]: is not JSON: {error}'
        return
    if not isinstance(document, dict):
        yield f'data["{_ZAP}"]: must be a JSON object'
    elif "level" in document:
        yield from _level_faults(document["level"], f'data["{_ZAP}"].level')


def _level_faults(level: Any, path: str) -> Iterator[str]:
    if not isinstance(level, str) or level.lower() not in _LEVELS:
        yield f"{path}: {json.dumps(level)} is no level; hint: use one of {', '.join(_LEVELS)}"
