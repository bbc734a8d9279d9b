"""What the engine reports while it works: one step per resource, and in the end what went wrong.

`Progress` takes the engine's events. Callers hear about resources only; the diagnostics
are kept for the message of a failure, whose first line names the resource and the cause.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

#: Steps that change nothing, of which nobody needs to hear.
_QUIET = frozenset({"same", "read", "refresh"})
_COLORS = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")
#: What engine and gRPC put around the cause.
_NOISE = (
    re.compile(r"^(?:\d+ errors? occurred:)?\s*\*?\s*"),
    re.compile(r"^rpc error: code = \w+ desc = "),
    re.compile(r"^(?:creating|updating|deleting) urn:\S+: "),
)
#: One frame of a traceback, and files whose frames say nothing about the program.
_FRAME = re.compile(r'^  File "[^"]+", line \d+.*\n(?:    .*\n)*', re.MULTILINE)
_FOREIGN = ("site-packages", "/asyncio/", "<frozen", f"{Path(__file__).parent}/")
#: Said of the stack when some resource failed; the resource says why.
_AFTERMATH = (
    "update failed",
    "preview failed",
    "resource monitor shut down",
    "resource monitor has terminated",
    "resource registration failed",
    "an unhandled error",
)


@dataclass(frozen=True, slots=True)
class ResourceStep:
    """One step of one resource.

    Attributes:
        operation: Pulumi's word: create, update, delete, create-replacement, ...
        type: Type token.
        name: Logical name.
        urn: URN.
        done: Whether it is over.
        seconds: How long it took; 0 while it is not over.
        failed: Whether it went wrong.
    """

    operation: str
    type: str
    name: str
    urn: str
    done: bool = False
    seconds: float = 0.0
    failed: bool = False


OnStep: TypeAlias = Callable[[ResourceStep], None]


@dataclass(slots=True)
class Progress:
    """Collects the events of one operation; events come from a thread of their own."""

    on_step: OnStep | None = None
    #: Every step that is over, in the order of their ends.
    steps: list[ResourceStep] = field(default_factory=list)
    #: URN and message of every error.
    errors: list[tuple[str, str]] = field(default_factory=list)
    #: What the program told by `pulumi.log.info`.
    told: list[str] = field(default_factory=list)
    #: How many resources of each operation, as the engine sums up.
    changes: dict[str, int] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, event: Any) -> None:
        """Take an event of the engine."""
        with self._lock:
            if event.resource_pre_event is not None:
                self._step(event.resource_pre_event.metadata, done=False)
            elif event.res_outputs_event is not None:
                self._step(event.res_outputs_event.metadata, done=True)
            elif event.res_op_failed_event is not None:
                self._step(event.res_op_failed_event.metadata, done=True, failed=True)
            elif event.summary_event is not None:
                counts = event.summary_event.resource_changes or {}
                self.changes = {str(getattr(key, "value", key)): number for key, number in counts.items()}
            elif event.diagnostic_event is not None:
                self._note_diagnostic(event.diagnostic_event)

    def _note_diagnostic(self, diagnostic: Any) -> None:
        message = _COLORS.sub("", diagnostic.message).strip()
        if diagnostic.severity == "error":
            self.errors.append((diagnostic.urn or "", message))
        elif diagnostic.severity == "info":
            self.told.append(message)

    def causes(self) -> list[str]:
        """One text per fault, most telling first: `type 'name': cause`."""
        own = [(urn, text) for urn, text in self.errors if not _is_aftermath(text)]
        own.sort(key=lambda one: not one[0] or _type(one[0]) == "pulumi:pulumi:Stack")
        return list(dict.fromkeys(_cause(urn, text) for urn, text in own))

    def _step(self, metadata: Any, *, done: bool, failed: bool = False) -> None:
        operation = str(getattr(metadata.op, "value", metadata.op))
        if operation in _QUIET:
            return
        now = time.monotonic()
        began = self._began.setdefault(f"{metadata.urn} {operation}", now)
        urn = metadata.urn
        seconds = now - began if done else 0.0
        step = ResourceStep(operation, metadata.type, _name(urn), urn, done, seconds, failed)
        if done:
            self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)


def _cause(urn: str, text: str) -> str:
    for noise in _NOISE:
        text = noise.sub("", text)
    text = text.strip()
    if not urn or _type(urn) == "pulumi:pulumi:Stack":
        return _program_error(text)
    return f"{_type(urn)} '{_name(urn)}': {text}"


def _program_error(text: str) -> str:
    """An exception of the program: what it says first, then the lines of the program it came through."""
    prefix = "python inline source runtime error: "
    if not text.startswith(prefix):
        return text
    message, _, trace = text.removeprefix(prefix).partition("\nTraceback (most recent call last):\n")
    frames = _FRAME.findall(trace)
    own = [frame.rstrip() for frame in frames if not any(part in frame for part in _FOREIGN)]
    return "\n".join([f"the program failed: {message}", *own])


def _is_aftermath(text: str) -> bool:
    return text.lower().startswith(_AFTERMATH)


def _type(urn: str) -> str:
    return urn.split("::")[2].rsplit("$", 1)[-1]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]
