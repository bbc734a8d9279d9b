"""The ConfigMap `config-logging`: what is logged, how, and where to.

Keys are those of Karpenter v0.27 (zap's configuration as JSON, and a level for each component). Of zap's
fields those count that change what a reader sees; the others are checked no further and have no effect.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

ZAP = "zap-logger-config"
LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40, "dpanic": 50, "panic": 50, "fatal": 50}
"""Words for levels and their numbers, those of Python's `logging`."""
ENCODINGS = ("console", "json")
_TIMES = ("iso8601", "rfc3339", "rfc3339nano", "epoch", "millis")
_CASES = ("capital", "lowercase", "capitalColor", "color")
_KEYS = {
    "timeKey": "time_key",
    "levelKey": "level_key",
    "nameKey": "name_key",
    "callerKey": "caller_key",
    "messageKey": "message_key",
    "stacktraceKey": "stacktrace_key",
}
_SAMPLING = ("initial", "thereafter")


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """How to log. The defaults are what holds without the ConfigMap."""

    level: str = "info"
    controller_level: str = ""
    """Empty: `level`."""
    webhook_level: str = ""
    encoding: str = ""
    """Empty: lines for people on a terminal, JSON elsewhere."""
    output_paths: tuple[str, ...] = ("stdout",)
    time_key: str = "time"
    level_key: str = "level"
    name_key: str = "logger"
    message_key: str = "message"
    stacktrace_key: str = "exception"
    caller_key: str = ""
    """Empty: lines do not say where in the code they come from."""
    disable_caller: bool = False
    sampling: tuple[int, int] | None = None
    """Equal lines of a second: so many are written, then each so-manieth; None: all."""
    error_output_paths: tuple[str, ...] = ("stderr",)
    """Where it is told that logs cannot be written."""
    time_encoder: str = "iso8601"
    level_encoder: str = "capital"

    def threshold(self, component: str) -> int:
        """The lowest level that `controller` or `webhook` logs."""
        own = self.webhook_level if component == "webhook" else self.controller_level
        return LEVELS[own or self.level]


@dataclass(frozen=True, slots=True)
class LoggingFault:
    """What is wrong with one key."""

    key: str
    path: str
    """Below the key, such as `.level`; empty for the key itself."""
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f'data["{self.key}"]{self.path}: {self.problem}'
        return f"{text}; hint: {self.hint}" if self.hint else text


def read_logging(
    data: Mapping[str, Any], last: LoggingConfig | None = None
) -> tuple[LoggingConfig, tuple[LoggingFault, ...]]:
    """The configuration, and what of it cannot be used: there `last` holds, or the default."""
    base = last or LoggingConfig()
    config, faults = _read_zap(data, base)
    levels: dict[str, Any] = {}
    for component in ("controller", "webhook"):
        key, name = f"loglevel.{component}", f"{component}_level"
        level = data.get(key, "")
        if level and (fault := _level_fault(level, key)):
            faults.append(fault)
            level = getattr(base, name)
        levels[name] = level.lower()
    faults += [
        fault
        for key, level in sorted(data.items())
        if key.startswith("loglevel.")
        and key not in ("loglevel.controller", "loglevel.webhook")
        and (fault := _level_fault(level, key))
    ]
    return replace(config, **levels), tuple(faults)


def _read_zap(data: Mapping[str, Any], base: LoggingConfig) -> tuple[LoggingConfig, list[LoggingFault]]:
    text = data.get(ZAP)
    if not text:
        return LoggingConfig(), []
    try:
        document = json.loads(text)
        # What JSON can spell and no text can hold, half a character, would fail wherever it is written.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return base, [LoggingFault(ZAP, "", f"is not JSON: {error}")]
    if not isinstance(document, dict):
        return base, [LoggingFault(ZAP, "", "must be a JSON object")]
    return _Zap(document, base).read()


class _Zap:
    """Reads zap's configuration member by member, and keeps the faults."""

    def __init__(self, document: dict[str, Any], base: LoggingConfig) -> None:
        self._document = document
        self._base = base
        self._values: dict[str, Any] = {}
        self._faults: list[LoggingFault] = []

    def read(self) -> tuple[LoggingConfig, list[LoggingFault]]:
        document = self._document
        if "level" in document:
            fault = _level_fault(document["level"], ZAP, ".level")
            self._take("level", None if fault else document["level"].lower(), fault)
        self._choice("encoding", "encoding", document, ENCODINGS, "")
        self._paths("output_paths", "outputPaths")
        self._paths("error_output_paths", "errorOutputPaths")
        self._check_sampling()
        self._disable_caller()
        encoder = document.get("encoderConfig", {})
        if not isinstance(encoder, dict):
            self._faults.append(LoggingFault(ZAP, ".encoderConfig", "must be a JSON object"))
            encoder = {}
        self._choice("time_encoder", "timeEncoder", encoder, _TIMES, ".encoderConfig")
        self._choice("level_encoder", "levelEncoder", encoder, _CASES, ".encoderConfig")
        for member, name in _KEYS.items():
            if isinstance(encoder.get(member), str):
                self._values[name] = encoder[member]
        return replace(LoggingConfig(), **self._values), self._faults

    def _take(self, name: str, value: Any, fault: LoggingFault | None) -> None:
        if fault is not None:
            self._faults.append(fault)
        self._values[name] = getattr(self._base, name) if fault else value

    def _choice(
        self, name: str, member: str, document: dict[str, Any], known: tuple[str, ...], path: str
    ) -> None:
        if member not in document:
            return
        value = document[member]
        fault = None
        if value not in known:
            problem = f"{json.dumps(value)} is not known"
            fault = LoggingFault(ZAP, f"{path}.{member}", problem, f"use one of {', '.join(known)}")
        self._take(name, value, fault)

    def _paths(self, name: str, member: str) -> None:
        if member not in self._document:
            return
        paths = self._document[member]
        fault = None
        if not isinstance(paths, list) or not paths or not all(map(_is_path, paths)):
            hint = 'write for example ["stdout"]'
            fault = LoggingFault(ZAP, f".{member}", f"{json.dumps(paths)} is not a list of paths", hint)
        self._take(name, None if fault else tuple(paths), fault)

    def _check_sampling(self) -> None:
        document = self._document.get("sampling")
        if document is None:
            return
        numbers = [document.get(name, 0) for name in _SAMPLING] if isinstance(document, dict) else []
        fault = None
        if not numbers or not all(type(number) is int and number >= 0 for number in numbers):
            hint = 'write {"initial": 100, "thereafter": 100}'
            fault = LoggingFault(
                ZAP, ".sampling", f"{json.dumps(document)} is not a sampling configuration", hint
            )
        self._take("sampling", None if fault else tuple(numbers), fault)

    def _disable_caller(self) -> None:
        if "disableCaller" not in self._document:
            return
        value = self._document["disableCaller"]
        fault = None
        if not isinstance(value, bool):
            problem = f"{json.dumps(value)} is neither true nor false"
            fault = LoggingFault(ZAP, ".disableCaller", problem, "write true or false")
        self._take("disable_caller", value, fault)


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _level_fault(level: Any, key: str, path: str = "") -> LoggingFault | None:
    if isinstance(level, str) and level.lower() in LEVELS:
        return None
    return LoggingFault(key, path, f"{json.dumps(level)} is not a level", f"use one of {', '.join(LEVELS)}")
