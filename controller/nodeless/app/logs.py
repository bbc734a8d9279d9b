"""Structured logs: one JSON object a line on stdout, or readable lines on a terminal.

Keys are those of Karpenter's console and JSON encoders where both have one: `time`,
`level`, `logger`, `message`.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog


def configure(level: str = "", *, terminal: bool | None = None) -> None:
    """Set up logging for the process. `level` is a word such as info; debug shows every instruction."""
    number = logging.getLevelNamesMapping().get((level or "info").upper(), logging.INFO)
    readable = sys.stdout.isatty() if terminal is None else terminal
    renderers: list[Any] = (
        [structlog.dev.ConsoleRenderer()]
        if readable
        else [_karpenter_keys, structlog.processors.JSONRenderer(sort_keys=False)]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", key="time"),
            structlog.processors.format_exc_info,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )


def only_errors() -> None:
    """For commands: nothing but errors, on stderr, so that stdout holds data alone."""
    structlog.configure(
        processors=[structlog.dev.ConsoleRenderer(colors=False)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def logger(name: str) -> Any:
    """A logger that says which part speaks."""
    return structlog.get_logger().bind(logger=name)


def _karpenter_keys(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    ordered = {"level": str(entry.pop("level")).upper(), "time": entry.pop("time")}
    if "logger" in entry:
        ordered["logger"] = entry.pop("logger")
    ordered["message"] = entry.pop("event")
    return {**ordered, **entry}
