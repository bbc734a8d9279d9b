"""What a machine has of an environment while it runs and must not have afterwards.

Others may run environments on this machine too: what is theirs is not looked at.
"""

from __future__ import annotations

import re
from pathlib import Path

import psutil

_DIRECTORY = re.compile(r"(/dev/shm/[^/,]+)/")


def descendants(pid: int | None = None) -> set[psutil.Process]:
    """The processes that a process (this one by default) has started, and those that they have."""
    return set(psutil.Process(pid).children(recursive=True))


def alive(processes: set[psutil.Process]) -> list[str]:
    """Command lines of those that still run; a number that another process got meanwhile is told apart."""
    found = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return found


def shared_memory(processes: set[psutil.Process]) -> set[Path]:
    """The directories in shared memory that the processes were told to use."""
    words = [word for process in processes for word in process.cmdline()]
    return {Path(found) for word in words for found in _DIRECTORY.findall(word)}
