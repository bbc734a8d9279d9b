"""The folder of a running control plane, in memory where the machine allows.

etcd writes a lot and nothing of it has to survive, so the folder is made below
`/dev/shm`. Its owner holds a lock in it. A folder whose lock is free was left by an
owner that was killed; the next start removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

_MEMORY = Path("/dev/shm")
_LOCK = "owner.lock"
#: Seconds a folder must be old before it is taken for abandoned: its owner may not have locked it yet.
_MINIMUM_AGE = 30.0


class StateDirectory:
    """A folder for this process alone, removed by `remove`."""

    def __init__(self, base: Path | None = None) -> None:
        base = base or default_base()
        prefix = f"nodeless-{os.getuid()}-"
        _sweep(base, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and all in it; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def default_base() -> Path:
    """`/dev/shm` where it can be written, else the folder for temporary files."""
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        return _MEMORY
    return Path(tempfile.gettempdir())


def _sweep(base: Path, prefix: str) -> None:
    """Remove the folders of owners that were killed."""
    for folder in base.glob(f"{prefix}*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                if _is_abandoned(lock):
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # not ours, or being removed by its owner


def _is_abandoned(lock: IO[str]) -> bool:
    if time.time() - os.fstat(lock.fileno()).st_mtime < _MINIMUM_AGE:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
