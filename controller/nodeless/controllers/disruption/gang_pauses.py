"""The pauses of gangs that could not be had, kept over restarts in a ConfigMap.

A controller that has forgotten them would buy at once what it has just ended. What cannot be read of it is
skipped: at worst a gang is tried too early.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeless.api.times import format_time, parse_time

PAUSES_NAME = "nodeless-gang-pauses"
_PAUSES = "pauses"
#: Gangs kept at most, those that wait longest: a ConfigMap holds 1 MiB.
MOST_KEPT = 2_000
_LONGEST_NAME = 400

Pauses = dict[str, tuple[float, float]]
"""By gang: when it is planned again, in seconds since the epoch, and the pause before that in seconds."""


def read_pauses(data: Mapping[str, Any], now: float, longest: float) -> Pauses:
    """The pauses that a ConfigMap has, without those that nobody could have written.

    Args:
        data: Of the ConfigMap.
        now: Seconds since the epoch; no pause ends later than its own length from now.
        longest: Seconds that a pause lasts at most.
    """
    try:
        document = msgspec.json.decode(str(data.get(_PAUSES) or "{}"))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    found: Pauses = {}
    for name, said in document.items() if isinstance(document, dict) else ():
        try:
            until, pause = parse_time(said["until"]), float(said["seconds"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 < pause <= longest and len(name) <= _LONGEST_NAME:
            found[name] = (min(until, now + pause), pause)
    return found


def write_pauses(pauses: Pauses) -> dict[str, str]:
    """The data of a ConfigMap: one JSON document, for names of gangs are no keys of ConfigMaps."""
    kept = sorted(pauses, key=lambda name: (-pauses[name][0], name))[:MOST_KEPT]
    document = {
        name: {"until": format_time(pauses[name][0]), "seconds": pauses[name][1]} for name in sorted(kept)
    }
    return {_PAUSES: msgspec.json.encode(document).decode()}
