"""What the controller keeps for itself, garbled by somebody who may write it: settings, guard, lease."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from localenv.kubernetes import KubernetesApi
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.kube.leader_election import LEASE_NAME
from nodeless.model.labels import TEARDOWN_DRAIN
from nodeless.operator.setting_values import text
from nodeless.operator.settings import SETTINGS, SETTINGS_NAME
from tests.fuzz.drawing import DURATIONS, NUMBERS, TIMES, Drawing

Object = dict[str, Any]
_LOGGING = "config-logging"
_ZAP = ("level", "encoding", "sampling", "disableCaller", "encoderConfig", "outputPaths", "errorOutputPaths")
_ENCODERS = ("timeKey", "levelKey", "nameKey", "messageKey", "stacktraceKey", "timeEncoder", "levelEncoder")


class Garbling:
    """Draws patches of these objects in the controller's namespace; `mend` puts all of them right again.

    Nothing takes the lead away, and nothing deletes the guard: both would rightly end something.
    """

    def __init__(self, api: KubernetesApi, random: Random, namespace: str) -> None:
        self._api, self._random, self._drawing = api, random, Drawing(random)
        self._lease_path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE_NAME}"
        self._before = {
            path: found
            for name in (SETTINGS_NAME, _LOGGING, GUARD_NAME)
            if (found := api.find(path := f"/api/v1/namespaces/{namespace}/configmaps/{name}")) is not None
        }

    def draw(self) -> tuple[str, str, Object]:
        """What is garbled, its path, and a merge patch."""
        path = self._random.choice((self._lease_path, *self._before))
        if path == self._lease_path:
            return "Lease (own)", path, {"spec": dict(self._lease()), "metadata": self._annotations()}
        name = path.rpartition("/")[2]
        if name == GUARD_NAME:
            drain = self._random.choice((*DURATIONS, self._drawing.text()))
            data, annotations = {"drainTimeout": self._drawing.text()}, {TEARDOWN_DRAIN: drain}
            return "ConfigMap (guard)", path, {"data": data, "metadata": {"annotations": annotations}}
        if name == _LOGGING:
            return "ConfigMap (logging)", path, {"data": dict(self._logging())}
        return "ConfigMap (settings)", path, {"data": dict(self._settings())}

    def mend(self) -> None:
        """Put everything right: what a garbled member was before, and none that was not there."""
        for path, before in self._before.items():
            now = self._api.get(path)
            data = dict.fromkeys(now.get("data") or {}) | (before.get("data") or {})
            annotations = {TEARDOWN_DRAIN: None} | (before["metadata"].get("annotations") or {})
            self._api.patch(path, {"data": data, "metadata": {"annotations": annotations}})

    def _lease(self) -> Iterator[tuple[str, Any]]:
        for name in ("renewTime", "acquireTime"):
            if self._random.random() < 0.5:
                yield name, self._random.choice((*TIMES, None))
        for name in ("leaseTransitions", "leaseDurationSeconds"):
            if self._random.random() < 0.5:
                yield name, self._random.choice((*NUMBERS, None))

    def _annotations(self) -> Object:
        return {"annotations": self._drawing.labels() | {"garbled": self._drawing.text()}}

    def _settings(self) -> Iterator[tuple[str, str]]:
        for _ in range(self._random.choice((1, 3))):
            # Any text is a good value of the others: a profile that does not exist rightly launches nothing.
            setting = self._random.choice([each for each in SETTINGS.values() if each.read is not text])
            yield setting.key, self._drawing.text()
        yield f"unknown-{self._random.randrange(9)}", self._drawing.text()

    def _logging(self) -> Iterator[tuple[str, str]]:
        yield f"loglevel.{self._random.choice(('controller', 'webhook', 'x'))}", self._drawing.text()
        config = {name: self._zap(name) for name in _ZAP if self._random.random() < 0.4}
        whole = json.dumps(config)
        yield "zap-logger-config", self._random.choice((whole, whole, whole[:-2], self._drawing.text()))

    def _zap(self, name: str) -> Any:
        value: Any = self._random.choice((self._drawing.text(), "\ud800", None, [], {}, *NUMBERS))
        if name == "encoderConfig":
            return {each: value for each in _ENCODERS if self._random.random() < 0.3}
        # Of files only those that nobody can open: they would be written where the test runs.
        if name.endswith("Paths"):
            return self._random.choice(
                (["a\0"], ["/nowhere/\udfff"], [f"/nowhere/{value}"], None, [], {}, [None], "/nowhere/a")
            )
        return {"initial": value, "thereafter": 1} if name == "sampling" else value
