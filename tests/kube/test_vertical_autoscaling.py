"""Given a VerticalPodAutoscaler's JSON, is what it recommends read as its pods will have it?"""

import json

import pytest
from immutables import Map

from nodeless.kube.decoding import decode_pod
from nodeless.kube.vertical_autoscaling import decode_vertical_autoscaler, watched_vertical_autoscalers
from nodeless.model import events
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.controllers.vertical_autoscalers import a_vertical_autoscaler

MIB = 2**20


def read(**fields):
    return decode_vertical_autoscaler(json.dumps({**a_vertical_autoscaler("shop", "db"), **fields}).encode())


def test_target_and_recommendation_are_read_by_container():
    document = a_vertical_autoscaler(
        "shop", "db", "StatefulSet", c={"cpu": "1500m", "memory": "64Mi"}, log={}
    )
    found = decode_vertical_autoscaler(json.dumps(document).encode())
    assert (found.key, found.kind, found.target, found.applies) == ("shop/db", "StatefulSet", "db", True)
    assert dict(found.recommended) == {"c": (("cpu", 1500), ("memory", 64 * MIB)), "log": ()}


@pytest.mark.parametrize(
    "status",
    [None, {}, {"recommendation": None}, {"recommendation": {"containerRecommendations": None}}],
    ids=str,
)
def test_one_that_recommends_nothing_yet_is_read(status):
    assert read(status=status).recommended == ()


@pytest.mark.parametrize(
    ("mode", "applies"),
    [(None, True), ("Auto", True), ("Initial", True), ("InPlaceOrRecreate", True), ("Off", False)],
)
def test_only_what_is_never_applied_does_not_count(mode, applies):
    document = a_vertical_autoscaler("shop", "db", mode=mode, c={"cpu": "1"})
    assert decode_vertical_autoscaler(json.dumps(document).encode()).applies == applies


def test_a_status_that_is_written_again_changes_nothing():
    (watched,) = watched_vertical_autoscalers()
    raw = json.dumps(a_vertical_autoscaler("shop", "db", c={"cpu": "1"})).encode()
    key, (event,) = watched.decode(raw)
    seen = apply(Snapshot(), event)
    assert apply(seen, watched.decode(raw)[1][0]) is seen
    assert apply(seen, events.VerticalPodAutoscalerGone(key)).vertical_autoscalers == Map()


def test_what_containers_and_sidecars_request_is_read_on_demand():
    sized = {"resources": {"requests": {"cpu": "1"}}}
    sidecar = {"name": "mesh", "restartPolicy": "Always", **sized}
    spec = {"containers": [{"name": "c", **sized}], "initContainers": [sidecar, {"name": "setup", **sized}]}
    raw = json.dumps({"metadata": {"name": "db", "namespace": "shop"}, "spec": spec}).encode()
    assert decode_pod(raw).container_requests == ()
    found = decode_pod(raw, container_requests=True).container_requests
    assert dict(found) == {"mesh": (("cpu", 1000),), "c": (("cpu", 1000),)}
