"""Faults on demand: what a stack does when the cloud fails it in the middle."""

from __future__ import annotations

import threading
from collections.abc import Callable

from localenv.pulumi.resources import ResourceFailed


class FirstAttempts:
    """Fails the first attempt to make each resource, so that an operation has to be resumed at every one.

    Args:
        fails: By URN, whether a resource's does; by default all do.

    Attributes:
        failed: URNs whose first attempt has been made, and has failed.
    """

    def __init__(self, fails: Callable[[str], bool] = lambda _urn: True) -> None:
        self._fails = fails
        self.failed: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, urn: str) -> None:
        """Raise ResourceFailed unless it has been raised for this resource before, or is not to be."""
        with self._lock:
            if urn in self.failed or not self._fails(urn):
                return
            self.failed.add(urn)
        raise ResourceFailed("the cloud does not answer")
