"""What the controller keeps for itself, written by others: it goes on, and follows what is right again."""

from __future__ import annotations

import os
from random import Random, SystemRandom

import pytest

from localenv.kubernetes import ApiError
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.operator.settings import SETTINGS_NAME
from tests.controllers.process import leads, lease_path, says
from tests.fuzz.garbling import Garbling

pytestmark = pytest.mark.cluster

GARBLINGS = int(os.environ.get("GARBLINGS", "150"))
SEED = int(os.environ.get("GARBLINGS_SEED", SystemRandom().randrange(10**6)))


def config_map(namespace, name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_garbled_settings_guard_and_lease_stop_nobody(replicas, api, namespace):
    print(f"GARBLINGS_SEED={SEED} garbles the same")  # noqa: T201
    for name in ("config-logging", GUARD_NAME):
        api.create(config_map(namespace, name))
    leader = replicas("first")
    leads(api, namespace, "first")
    api.wait(lambda: says(leader, "in sync"), what="the watches")
    garbling, accepted = Garbling(api, Random(SEED), namespace), set()
    for _ in range(GARBLINGS):
        what, path, change = garbling.draw()
        try:
            api.patch(path, change)
        except ApiError as error:
            assert error.status in range(400, 500), error
        else:
            accepted.add(what)
    assert len(accepted) == 4, accepted
    garbling.mend()
    path = f"/api/v1/namespaces/{namespace}/configmaps/{SETTINGS_NAME}"
    api.patch(path, {"data": {"batchMaxDuration": "21s"}})
    changed = "setting batchMaxDuration changed from 10.0 to 21.0"
    api.wait(lambda: says(leader, changed), what="the change")
    renewed = api.get(lease_path(namespace))["metadata"]["resourceVersion"]
    lease = api.wait(
        lease_path(namespace),
        lambda lease: lease["metadata"]["resourceVersion"] != renewed,
        what="the lease to be renewed",
    )
    assert lease["spec"]["holderIdentity"] == "first"
    assert leader.poll() is None


@pytest.mark.parametrize(
    "logging",
    [
        {"zap-logger-config": '{"outputPaths": ["a\\u0000b"]}'},
        {"zap-logger-config": '{"outputPaths": ["\\ud800"], "encoderConfig": {"messageKey": "\\udfff"}}'},
        {"zap-logger-config": "[" * 100_000, "loglevel.controller": "\u202e"},
    ],
    ids=["no-path", "half-characters", "nested"],
)
def test_a_replica_starts_whatever_is_said_of_logs(replicas, api, namespace, logging):
    api.create({**config_map(namespace, "config-logging"), "data": logging})
    leader = replicas("first")
    leads(api, namespace, "first")
    assert says(leader, "what held before stays in force")
