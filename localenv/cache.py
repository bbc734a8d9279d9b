"""The folder outside the checkout where built programs are kept, and how something gets into it.

An entry is a folder named after the digest of its sources, so a changed source is
another entry. It appears in one rename, complete or not at all, and a file lock
lets only one process make it: a second one waits and then finds it made.
What is built and how stands in `binaries` and `golang`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localenv.progress import Report

#: Seconds between two looks at a lock that another process holds.
_LOCK_POLL_SECONDS = 0.5


def cache_directory() -> Path:
    """The cache folder, made when missing.

    `$NODELESS_CACHE`, else `$XDG_CACHE_HOME/nodeless`, else `~/.cache/nodeless`.
    """
    own = os.environ.get("NODELESS_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(own) if own else (Path(base) if base else Path.home() / ".cache") / "nodeless"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def source_digest(folder: Path) -> str:
    """Sixteen hexadecimal digits over the names and contents of all files below `folder`."""
    total = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(folder).as_posix()}\0{content}\n".encode())
    return total.hexdigest()[:16]


def get_or_make(name: str, make: Callable[[Path], None], report: Report) -> Path:
    """The cache entry `name`, made by `make(folder)` when it is not there yet.

    Args:
        name: Name of the entry, with the digest of what it is made from.
        make: Fills the empty folder it is given; when it raises, nothing is published.
        report: Hears that another process is being waited for.
    """
    entry = cache_directory() / name
    if entry.is_dir():
        return entry
    with hold_lock(name, report):
        if entry.is_dir():
            return entry
        workshop = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=entry.parent))
        try:
            make(workshop)
            workshop.chmod(0o755)
            workshop.replace(entry)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    return entry


@contextmanager
def hold_lock(name: str, report: Report) -> Iterator[None]:
    """Hold the lock `name` of the cache; the kernel frees it when the holder dies."""
    with (cache_directory() / f"{name}.lock").open("w") as lock:
        since = time.monotonic()
        while not _try_lock(lock.fileno()):
            waited = time.monotonic() - since
            report(f"waiting for another process that builds {name}: {waited:.0f} s", transient=True)
            time.sleep(_LOCK_POLL_SECONDS)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
