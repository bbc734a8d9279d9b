"""Structured logs, and the configuration that can change while they are written.

Keys are those of Karpenter's encoders: `time`, `level`, `logger`, `message`. JSON is one object a line;
`console` is zap's form (time, level, logger, message, then the rest as JSON, with tabs between); a terminal
gets lines for people, unless an encoding is asked for. Secrets that pass by are blotted out. What libraries
log from `warning` on is written in the same form.
"""

import contextlib
import json
import logging
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO, Any

import structlog
from structlog.processors import CallsiteParameter

from nodeless.api.logging_config import LEVELS, LoggingConfig

_WEBHOOK = "webhook"
_STANDARD = ("stdout", "stderr")
#: Variables whose values no line may show.
_SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN")
_SECRETS = re.compile(
    r"(?P<keep>[Bb]earer )[\w.~+/=-]{8,}"
    r"|(?P<header>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?P<parameter>X-Amz-(?:Security-Token|Signature)=)[^&\s\"]+",
    re.DOTALL,
)
_BLOTTED = "(secret)"


def configure(level: str = "", *, outputs: str = "", terminal: bool | None = None) -> None:
    """Set up logging for the process: with defaults at first, `reconfigure` brings the ConfigMap's.

    Args:
        level: A word such as info; it holds whatever the configuration says.
        outputs: `stdout`, `stderr` or files, with commas between; holds likewise.
        terminal: Whether people read standard output; by default it is asked.
    """
    _state.start(level.lower(), tuple(filter(None, outputs.split(","))), terminal)
    structlog.configure(
        processors=[
            _drop_below_threshold,
            _drop_repeated,
            _add_caller,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *_: _Output(),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_FromLibraries()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


def reconfigure(config: LoggingConfig) -> None:
    """Use another configuration from the next line on. Raises OSError when an output cannot be opened."""
    _state.use(config)


def configuration() -> LoggingConfig:
    """The configuration in use."""
    return _state.config


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


class _State:
    """What `configure` and `reconfigure` set, read at each line."""

    def __init__(self) -> None:
        self.config = LoggingConfig()
        self.people = False
        self._level = ""
        self._outputs: tuple[str, ...] = ()
        self._opened: dict[str, IO[str]] = {}
        self._secrets: tuple[str, ...] = ()
        self.pod = ""
        self._second = 0
        #: How often each line was written in this second, by level and message.
        self._seen: Counter[tuple[str, str]] = Counter()
        self._unwritable: set[str] = set()

    def start(self, level: str, outputs: tuple[str, ...], terminal: bool | None) -> None:
        self.people = sys.stdout.isatty() if terminal is None else terminal
        self._level, self._outputs = level, outputs
        # A short value is no secret worth the name, and would blot out half of what is said.
        self.pod = os.environ.get("POD_NAME", "")
        values = (os.environ.get(name, "") for name in _SECRET_VARIABLES)
        self._secrets = tuple(value for value in values if len(value) >= 8)
        self.use(LoggingConfig())

    def use(self, config: LoggingConfig) -> None:
        if self._level:
            config = replace(config, level=self._level, controller_level="", webhook_level="")
        if self._outputs:
            config = replace(config, output_paths=self._outputs)
        for path in (*config.output_paths, *config.error_output_paths):
            self.stream(path)
        self.config = config
        for path in self._opened.keys() - {*config.output_paths, *config.error_output_paths}:
            # What a full disk did not take is lost: that was told when it happened.
            with contextlib.suppress(OSError):
                self._opened.pop(path).close()

    def admits(self, level: str, message: str) -> bool:
        """Whether a line is written, of which there may be many in this second."""
        if self.config.sampling is None:
            return True
        initial, thereafter = self.config.sampling
        second = int(time.monotonic())
        if second != self._second:
            self._second = second
            self._seen.clear()
        self._seen[level, message] += 1
        beyond = self._seen[level, message] - initial
        return beyond <= 0 or (thereafter > 0 and beyond % thereafter == 0)

    def write(self, line: str) -> None:
        """Write a line wherever it belongs; an output that fails is told of once, and keeps nobody."""
        # JSON can spell half of a character, and no output takes that.
        line = line.encode(errors="backslashreplace").decode()
        for path in self.config.output_paths:
            try:
                stream = self.stream(path)
                stream.write(line + "\n")
                stream.flush()
            except (OSError, ValueError) as error:  # a value: an encoding without the character, or closed
                self._report_invalid(path, error)
            else:
                self._unwritable.discard(path)

    def _report_invalid(self, path: str, error: Exception) -> None:
        if path in self._unwritable:
            return
        self._unwritable.add(path)
        for other in self.config.error_output_paths:
            with contextlib.suppress(OSError, ValueError):
                stream = self.stream(other)
                stream.write(f"cannot write logs to {path}: {getattr(error, 'strerror', None) or error}\n")
                stream.flush()

    def stream(self, path: str) -> IO[str]:
        """Where lines for a path go. Raises OSError when it is a file that cannot be opened."""
        if path in _STANDARD:
            return sys.stdout if path == "stdout" else sys.stderr
        if path not in self._opened:
            self._opened[path] = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115, PTH123 - for good
        return self._opened[path]

    def blot(self, line: str) -> str:
        """The line without secrets."""
        for secret in self._secrets:
            line = line.replace(secret, _BLOTTED)
        return _SECRETS.sub(_blot, line)


_state = _State()


def _blot(found: re.Match[str]) -> str:
    kept = found["keep"] or found["header"] or found["parameter"] or ""
    return kept + _BLOTTED


class _Output:
    """Where structlog writes its lines."""

    def msg(self, line: str) -> None:
        _state.write(line)

    log = debug = info = warn = warning = error = exception = critical = fatal = failure = msg


class _FromLibraries(logging.Handler):
    """Records of the standard library's loggers, as lines like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        values: dict[str, str] = {}
        if record.exc_info and record.exc_info[0] is not None:
            values["exception"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        method = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}.get(
            record.levelname, "info"
        )
        getattr(logger(record.name), method)(record.getMessage(), **values)


def _drop_below_threshold(
    _logger: Any, method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    component = _WEBHOOK if entry.get("logger") == _WEBHOOK else "controller"
    number = LEVELS.get(
        {"warning": "warn", "exception": "error", "critical": "fatal"}.get(method, method), 20
    )
    if number < _state.config.threshold(component):
        raise structlog.DropEvent
    return entry


def _drop_repeated(_logger: Any, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if not _state.admits(method, str(entry.get("event"))):
        raise structlog.DropEvent
    return entry


_callsite = structlog.processors.CallsiteParameterAdder(
    [CallsiteParameter.MODULE, CallsiteParameter.LINENO], additional_ignores=[__name__]
)


def _add_caller(logger: Any, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    config = _state.config
    if config.caller_key and not config.disable_caller:
        _callsite(logger, method, entry)
        entry[config.caller_key] = f"{entry.pop('module')}:{entry.pop('lineno')}"
    return entry


def _render(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> str:
    config = _state.config
    now = datetime.now(UTC)
    level = _level(str(entry.pop("level")), config.level_encoder)
    message = str(entry.pop("event"))
    name = str(entry.pop("logger", ""))
    if not config.encoding and _state.people:
        return _state.blot(_for_people(now, level, name, message, entry))
    if "exception" in entry:
        trace = entry.pop("exception")
        entry.update({config.stacktrace_key: trace} if config.stacktrace_key else {})
    if _state.pod:
        # What an entry is about goes before who wrote it.
        entry.setdefault("pod", _state.pod)
    time = _time(now, config.time_encoder)
    if config.encoding == "console":
        parts = [str(time), level, name, message, *([_json(entry)] if entry else ())]
        return _state.blot("\t".join(part for part in parts if part))
    head = {
        config.level_key: level,
        config.time_key: time,
        config.name_key: name,
        config.message_key: message,
    }
    return _state.blot(_json({**{key: value for key, value in head.items() if key and value != ""}, **entry}))


def _for_people(now: datetime, level: str, name: str, message: str, entry: Mapping[str, Any]) -> str:
    values = dict(entry)
    trace = values.pop("exception", "")
    rest = " ".join(f"{key}={value}" for key, value in values.items())
    line = f"{now:%H:%M:%S} {level:<5} {name:<12} {message}"
    return "\n".join(part for part in (f"{line}  {rest}".rstrip(), trace) if part)


def _level(word: str, encoder: str) -> str:
    short = {"warning": "warn", "critical": "fatal", "exception": "error"}.get(word, word)
    return short if encoder in ("lowercase", "color") else short.upper()


def _time(now: datetime, encoder: str) -> str | float | int:
    match encoder:
        case "epoch":
            return now.timestamp()
        case "millis":
            return int(now.timestamp() * 1000)
        case "rfc3339":
            return now.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "rfc3339nano":
            return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return now.isoformat().replace("+00:00", "Z")


def _json(entry: Mapping[str, Any]) -> str:
    return json.dumps(dict(entry), default=str, ensure_ascii=False)
