"""Requests to pods to save their work: what is written, and what becomes of a refusal."""

import asyncio

import pytest

from nodeless.controllers.executor.checkpoints import Checkpoints
from nodeless.kube import ApiError
from nodeless.model.instructions import RequestCheckpoint
from tests.factories import NOW

REQUEST = RequestCheckpoint("claim:a", "shop", "train", "uid-train", "node-a", NOW, NOW + 1, NOW + 601)


class Server:
    """An API server that answers patches with a status; 200: it takes them."""

    def __init__(self, *statuses):
        self.statuses, self.patches = [*statuses], []

    async def patch(self, path, body, *, content_type, **_query):
        self.patches.append((path, body, content_type))
        status = self.statuses.pop(0) if self.statuses else 200
        if status != 200:
            raise ApiError(status, "Refused", f"status {status}")
        return {}


class Events:
    def __init__(self):
        self.published = []

    def publish(self, event):
        self.published.append(event)


def carried_out(server, *requests):
    events = Events()
    checkpoints = Checkpoints(server, events)

    async def all_of_them():
        for request in requests:
            await checkpoints.carry_out(request)

    asyncio.run(all_of_them())
    return checkpoints, events.published


def test_the_moment_is_kept_on_the_pod_beside_what_others_say_of_it():
    server = Server()
    _, (event,) = carried_out(server, REQUEST)
    ((path, body, content_type),) = server.patches
    assert path == "/api/v1/namespaces/shop/pods/train/status"
    assert content_type == "application/strategic-merge-patch+json"
    assert body["metadata"] == {"uid": "uid-train"}
    (condition,) = body["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2023-11-14T22:13:21Z"
    assert condition["message"] == event.message
    assert "the pod is evicted at 2023-11-14T22:23:21Z" in event.message


def test_a_request_that_the_watch_has_not_shown_yet_is_not_written_again():
    server = Server()
    carried_out(server, REQUEST, REQUEST)
    assert len(server.patches) == 1


def test_another_drain_is_another_request():
    server = Server()
    later = RequestCheckpoint(
        "claim:b", "shop", "train", "uid-train", "node-a", NOW + 900, NOW + 901, NOW + 1501
    )
    carried_out(server, REQUEST, later)
    assert len(server.patches) == 2


def test_without_the_right_to_write_it_the_pod_is_told_by_the_event_alone():
    checkpoints, (event,) = carried_out(Server(403), REQUEST)
    assert event.reason == "CheckpointRequested"
    assert checkpoints.refused == {"uid-train"}


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_needs_nothing(status):
    checkpoints, published = carried_out(Server(status), REQUEST)
    assert published == []
    assert checkpoints.refused == set()


def test_other_failures_are_for_the_next_step():
    server = Server(500)
    with pytest.raises(ApiError):
        carried_out(server, REQUEST)
