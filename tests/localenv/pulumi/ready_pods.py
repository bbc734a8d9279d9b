"""Stands where kubelets would: calls every pod ready, without a machine."""

from __future__ import annotations

import threading
from typing import Any

from localenv.kubernetes import KubernetesApi


class ReadyPods:
    """Makes pods ready, and lets deleted ones go, for as long as it is entered."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api, self._stop = api, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for pod in self._api.list("/api/v1/pods"):
                path = self._api.path_of(pod)
                if pod["metadata"].get("deletionTimestamp"):
                    self._api.delete(path, grace_seconds=0, missing_ok=True)
                elif pod["status"].get("phase") == "Pending":
                    self._make_ready(path)

    def _make_ready(self, path: str) -> None:
        now = "2026-01-01T00:00:00Z"
        conditions: list[dict[str, Any]] = [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ]
        status = {"status": {"phase": "Running", "conditions": conditions}}
        self._api.patch(path, status, subresource="status")
