"""What a running process is busy with: `/debug/pprof/` on the metrics port, when ENABLE_PROFILING is on.

The paths are those of Go's profiler, the contents are Python's: stacks with the processor time spent in
them, one a line (`thread;caller;callee microseconds`, the form that flame graphs are drawn from), the lines
that hold most memory, and what every task and thread waits for. Only the standard library is needed: a
thread looks at the stacks of all others a hundred times a second, and asks the kernel how long each ran.
"""

import asyncio
import gc
import io
import sys
import threading
import time
import traceback
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType

from aiohttp import web

_HERTZ = 100
_DEFAULT_SECONDS = 30.0
#: Seconds.
LONGEST_PROFILE = 300.0
_LINES_SHOWN = 50
_INDEX = """/debug/pprof/cmdline    command line
/debug/pprof/profile    processor time by stack over ?seconds=30, for flame graphs
/debug/pprof/heap       memory by line since the start
/debug/pprof/goroutine  what every task and every thread is doing
"""


def start_counting_memory() -> None:
    """Have allocations remembered from now on, which makes each dearer."""
    if not tracemalloc.is_tracing():
        tracemalloc.start()


def add_profiles(application: web.Application) -> None:
    """Serve the profiles."""
    profiles = _Profiles()
    for path, handler in (
        ("", profiles.index),
        ("cmdline", profiles.cmdline),
        ("profile", profiles.profile),
        ("heap", profiles.heap),
        ("allocs", profiles.heap),
        ("goroutine", profiles.stacks),
        ("threadcreate", profiles.stacks),
    ):
        application.router.add_get(f"/debug/pprof/{path}", handler)


class _Profiles:
    """The handlers; one processor profile is taken at a time."""

    def __init__(self) -> None:
        self._busy = asyncio.Lock()

    async def index(self, _request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def cmdline(self, _request: web.Request) -> web.Response:
        return web.Response(text="\0".join(sys.argv))

    async def profile(self, request: web.Request) -> web.Response:
        text = request.query.get("seconds", str(_DEFAULT_SECONDS))
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= LONGEST_PROFILE:
            message = f"seconds={text}: is no time; hint: more than 0 and at most {LONGEST_PROFILE:.0f}\n"
            return web.Response(status=400, text=message)
        if self._busy.locked():
            return web.Response(
                status=409, text="a profile is being taken; hint: ask again when it is done\n"
            )
        async with self._busy:
            stacks = await asyncio.to_thread(sample, seconds)
        return web.Response(text="".join(f"{stack} {spent}\n" for stack, spent in stacks.most_common()))

    async def heap(self, _request: web.Request) -> web.Response:
        return web.Response(text=await asyncio.to_thread(_memory))

    async def stacks(self, _request: web.Request) -> web.Response:
        return web.Response(text=_tasks() + _threads())


def sample(seconds: float) -> Counter[str]:
    """Look at all other threads for a while; gives microseconds of processor time by stack. Blocks."""
    spent: Counter[str] = Counter()
    own, before = threading.get_ident(), _processor_times()
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(1 / _HERTZ, left))
        now, frames = _processor_times(), sys._current_frames()
        for thread in threading.enumerate():
            used = now.get(thread, 0) - before.get(thread, now.get(thread, 0))
            if thread.ident != own and used > 0 and thread.ident in frames:
                spent[f"{thread.name};{_fold_stack(frames[thread.ident])}"] += used
        before = now
    return spent


def _processor_times() -> dict[threading.Thread, int]:
    """Microseconds that each thread has run, by the kernel's account."""
    found = {}
    for thread in threading.enumerate():
        file = Path(f"/proc/self/task/{thread.native_id}/schedstat")
        try:
            found[thread] = int(file.read_text().split()[0]) // 1000
        except OSError:
            # The thread has ended meanwhile.
            continue
    return found


def _fold_stack(frame: FrameType) -> str:
    calls = []
    current: FrameType | None = frame
    while current is not None:
        code = current.f_code
        calls.append(f"{current.f_globals.get('__name__', '?')}.{code.co_qualname}")
        current = current.f_back
    return ";".join(reversed(calls))


def _memory() -> str:
    if not tracemalloc.is_tracing():
        return "allocations are not being counted\n"
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    held, peak = tracemalloc.get_traced_memory()
    lines = [f"{held} bytes held, {peak} at most, by {len(statistics)} lines of code"]
    lines += [
        f"{each.size} bytes in {each.count} blocks  {each.traceback[0].filename}:{each.traceback[0].lineno}"
        for each in statistics[:_LINES_SHOWN]
    ]
    kinds = Counter(type(each).__qualname__ for each in gc.get_objects())
    lines += ["", "objects by type"]
    lines += [f"{count} {kind}" for kind, count in kinds.most_common(_LINES_SHOWN)]
    return "\n".join(lines) + "\n"


def _tasks() -> str:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name()):
        text.write(f"task {task.get_name()}\n")
        task.print_stack(file=text)
        text.write("\n")
    return text.getvalue()


def _threads() -> str:
    frames = sys._current_frames()
    parts = []
    for thread in threading.enumerate():
        stack = traceback.format_stack(frames[thread.ident]) if thread.ident in frames else []
        parts.append(f"thread {thread.name}\n{''.join(stack)}\n")
    return "".join(parts)
