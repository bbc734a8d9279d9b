"""When what happened, from the controllers' structured logs, in seconds since the first pending pod."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

#: A stage of the timeline, and how the log line begins that ends it.
STAGES = {
    "decided": "computed ",
    "launched": "launched instance",
    "registered": "registered node",
}


def log_lines(logs: Iterable[Path], since: float) -> Iterator[dict[str, Any]]:
    """The structured lines of all replicas from a moment on, in order of time.

    Args:
        logs: The log files.
        since: Seconds since the epoch.
    """
    found = []
    for log in logs:
        for text in log.read_text(errors="replace").splitlines():
            line = _parse(text)
            if line is not None and line["at"] >= since:
                found.append(line)
    yield from sorted(found, key=lambda line: line["at"])


def _parse(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
        line["at"] = datetime.fromisoformat(line["time"]).timestamp()
    except (ValueError, KeyError, TypeError):
        return None
    return line if isinstance(line.get("message"), str) else None


def timeline(lines: Iterable[dict[str, Any]], pending: float, running: float) -> dict[str, float]:
    """Seconds from the first pending pod to each stage; a stage that the log does not show is left out."""
    ends: dict[str, float] = {}
    for line in lines:
        for stage, beginning in STAGES.items():
            if stage not in ends and line["message"].startswith(beginning):
                ends[stage] = line["at"]
    moments = {
        "pending": pending,
        **{stage: ends[stage] for stage in STAGES if stage in ends},
        "running": running,
    }
    return {stage: round(max(at - pending, 0.0), 3) for stage, at in moments.items()}
