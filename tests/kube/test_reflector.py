"""What one object's trouble does to the others: nothing."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest

from nodeless.kube.cluster import Cluster
from nodeless.kube.errors import ApiError
from nodeless.kube.gangs import watched_gang_sizes
from nodeless.kube.kinds import watched_kinds
from nodeless.kube.provisioning_requests import (
    REQUESTS,
    REQUESTS_V1BETA1,
    collection_of,
    watched_requests,
)
from nodeless.kube.reflector import Reflector
from nodeless.model.events import NodeClassSeen, NodeGone, NodeSeen, PoolSeen
from tests.controllers.conftest import eventually
from tests.virtual_time import run_in_virtual_time

BOOKMARK = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}},
}


class Streams:
    """An API server that answers each watch with the next of some streams, and then with silence."""

    def __init__(self, *streams):
        self._streams = list(streams)
        self.finished = asyncio.Event()

    @asynccontextmanager
    async def stream(self, _path, _query):
        yield self._lines(self._streams.pop(0) if self._streams else None)

    async def _lines(self, entries):
        if entries is None:
            self.finished.set()
            await asyncio.Event().wait()
        for entry in entries:
            yield json.dumps(entry).encode()


def node(name, **spec):
    return {"kind": "Node", "metadata": {"name": name, "resourceVersion": "5"}, "spec": spec}


def added(document):
    return {"type": "ADDED", "object": document}


def events_of(kind, *streams, reported=None):
    """The events that the streams of one kind lead to."""
    return events_from(kind, Streams(*streams), reported)


def events_from(kind, client, reported=None):
    """The events of one kind that a server leads to until it falls silent."""
    found = []

    async def scenario():
        report = (lambda _manifest, error: reported.append(str(error))) if reported is not None else print
        watched = next(each for each in watched_kinds(report) if each.name == kind)
        task = asyncio.create_task(Reflector(client, watched, found.append).run())
        done = asyncio.create_task(client.finished.wait())
        await asyncio.wait({task, done}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert client.finished.is_set(), task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    return found


def test_an_object_that_cannot_be_read_is_left_out_and_the_others_come_through():
    found = events_of("nodes", [added(node("bad", taints="none")), added(node("good")), BOOKMARK])
    assert [event.node.name for event in found if isinstance(event, NodeSeen)] == ["good"]


def test_what_was_known_of_an_object_stands_while_its_new_state_cannot_be_read():
    known = [added(node("a")), BOOKMARK, {"type": "ERROR", "object": {"code": 410}}]
    unreadable = [added(node("a", taints="none")), BOOKMARK]
    assert not [event for event in events_of("nodes", known, unreadable) if isinstance(event, NodeGone)]
    gone = [*unreadable, {"type": "DELETED", "object": node("a", taints="none")}]
    assert [event for event in events_of("nodes", known, gone) if isinstance(event, NodeGone)]


def test_an_invalid_pool_is_seen_with_its_metadata_and_reported():
    manifest = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default", "uid": "u", "resourceVersion": "5", "finalizers": ["f"]},
        "spec": {"providerRef": {"name": "default"}, "weight": 1000},
    }
    reported = []
    (event,) = events_of("provisioners", [added(manifest), BOOKMARK], reported=reported)
    assert isinstance(event, PoolSeen)
    assert (event.pool.key, event.pool.finalizers) == ("Provisioner/default", ("f",))
    assert "spec.weight" in event.pool.invalid
    assert "spec.weight" in reported[0]


def test_an_invalid_template_is_seen_as_invalid():
    manifest = {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "default", "resourceVersion": "5"},
        "spec": {"subnetSelector": {"a": "b"}, "amiFamily": "Slackware"},
    }
    (event,) = events_of("awsnodetemplates", [added(manifest), BOOKMARK])
    assert isinstance(event, NodeClassSeen)
    assert "spec.amiFamily" in event.node_class.invalid


class Endless(Streams):
    """One whose streams all end alike."""

    def __init__(self, *entries):
        super().__init__()
        self._entries = entries
        self.asked = []

    @asynccontextmanager
    async def stream(self, _path, query):
        self.asked.append(query)
        yield self._lines(self._entries[min(len(self.asked), len(self._entries)) - 1])


GONE = {"type": "ERROR", "object": {"code": 410}}


@pytest.mark.parametrize(
    "streams",
    [([added(node("a"))],), ([added(node("a")), BOOKMARK, GONE],), ([added(node("a")), BOOKMARK], [])],
    ids=["lists that never end", "versions that are gone at once", "watches without a word"],
)
def test_a_server_that_ends_every_stream_at_once_is_asked_ever_less_often(streams):
    async def a_minute_of(server):
        watched = next(each for each in watched_kinds(print) if each.name == "nodes")
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                await Reflector(server, watched, lambda _event: None).run()

    server = Endless(*streams)
    run_in_virtual_time(a_minute_of(server))
    assert 5 < len(server.asked) < 40


class Pages(Streams):
    """One that streams no lists; it has pages instead, by the token that each is asked for with."""

    def __init__(self, pages, *streams):
        super().__init__(*streams)
        self._pages = pages
        self.asked = []

    @asynccontextmanager
    async def stream(self, path, query):
        if "sendInitialEvents" in query:
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden for watch")
        self.asked.append(("watch", query["resourceVersion"]))
        async with super().stream(path, query) as lines:
            yield lines

    async def ask(self, method, _path, *, query):
        token = query.get("continue", "")
        self.asked.append((method, token))
        return json.dumps(self._pages[token].pop(0)).encode()


def page(version, *items, then=""):
    return {"metadata": {"resourceVersion": version, "continue": then}, "items": [*items]}


def test_a_server_that_streams_no_lists_is_asked_for_pages_and_then_for_a_watch_from_there_on():
    first = page("7", node("a"), node("bad", taints="none"), then="more")
    pages = {"": [first], "more": [page("7", node("b"))]}
    server = Pages(pages, [{"type": "DELETED", "object": node("a")}])
    found = events_from("nodes", server)
    assert [each.node.name for each in found if isinstance(each, NodeSeen)] == ["a", "b"]
    assert [each.name for each in found if isinstance(each, NodeGone)] == ["a"]
    assert server.asked[:3] == [("GET", ""), ("GET", "more"), ("watch", "7")]


def test_what_is_in_no_page_of_a_new_list_is_gone():
    pages = {"": [page("7", node("a"), node("b")), page("9", node("b"))]}
    server = Pages(pages, [{"type": "ERROR", "object": {"code": 410}}])
    found = events_from("nodes", server)
    assert [each.name for each in found if isinstance(each, NodeGone)] == ["a"]
    assert server.asked == [("GET", ""), ("watch", "7"), ("GET", ""), ("watch", "9")]


class Refusing:
    """An API server that answers every watch with an error."""

    def __init__(self, status):
        self._error = ApiError(status, "Refused", "it is refused")
        self.queries = []

    @asynccontextmanager
    async def stream(self, _path, query):
        self.queries.append(query)
        raise self._error
        yield


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("name", ["podgroups", "jobsets"])
def test_a_kind_of_others_that_cannot_be_watched_is_done_without_and_not_warned_of(name, status, capsys):
    server = Refusing(status)

    async def scenario():
        watched = next(each for each in watched_gang_sizes() if each.name == name)
        reflector = Reflector(server, watched, print)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 30)
        task.cancel()

    asyncio.run(scenario())
    assert "warning" not in capsys.readouterr().out


def test_of_jobs_only_those_that_ask_to_be_gangs_are_watched(capsys):
    server = Refusing(403)

    async def scenario():
        watched = next(each for each in watched_gang_sizes() if each.name == "jobs")
        reflector = Reflector(server, watched, print)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 30)
        task.cancel()

    asyncio.run(scenario())
    assert {query["labelSelector"] for query in server.queries} == {"nodeless.dev/gang=true"}
    # Every cluster serves Jobs: who may not watch them lacks a right.
    assert "not allowed to watch jobs" in capsys.readouterr().out


def test_a_kind_of_others_that_is_not_served_is_no_problem_of_the_cluster():
    async def scenario():
        cluster = Cluster()
        kinds = [each for each in watched_gang_sizes() if each.optional]
        task = asyncio.create_task(cluster.run(Refusing(404), kinds))
        await asyncio.wait_for(cluster.wait_for_sync(), 30)
        task.cancel()
        return cluster.problems()

    assert asyncio.run(scenario()) == ()


class Slow:
    """An API server that has no Provisioners, and takes long to list anything else."""

    @asynccontextmanager
    async def stream(self, path, _query):
        if path.endswith("/provisioners"):
            raise ApiError(404, "NotFound", "404 page not found")
        await asyncio.sleep(3600)
        yield


def test_a_kind_that_is_done_without_is_not_why_others_are_not_listed_yet():
    async def scenario():
        cluster = Cluster()
        kinds = [each for each in watched_kinds(print) if each.name in ("pods", "provisioners")]
        task = asyncio.create_task(cluster.run(Slow(), kinds))
        await eventually(cluster.problems)
        assert cluster.sync_problems() == cluster.problems()
        await eventually(lambda: not cluster.sync_problems())
        task.cancel()
        return cluster.problems()

    assert ["provisioners" in problem for problem in asyncio.run(scenario())] == [True]


class Serving(Streams):
    """An API server that serves one path, and says of every other that there is none."""

    def __init__(self, path, *streams):
        super().__init__(*streams)
        self.path = path
        self.asked = []

    @asynccontextmanager
    async def stream(self, path, query):
        self.asked.append(path)
        if path != self.path:
            raise ApiError(404, "NotFound", "404 page not found")
        async with super().stream(path, query) as lines:
            yield lines


def a_request(version):
    return {
        "apiVersion": f"autoscaling.x-k8s.io/{version}",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "job", "namespace": "default", "resourceVersion": "5"},
        "spec": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"},
    }


def requests_told_by(server):
    """The requests that a server's watch leads to."""
    found = []

    async def scenario():
        reflector = Reflector(server, watched_requests(), found.append)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(server.finished.wait(), 30)
        task.cancel()
        return reflector.problem

    assert asyncio.run(scenario()) is None
    return [event.request for event in found]


@pytest.mark.parametrize(("path", "version"), [(REQUESTS, "v1"), (REQUESTS_V1BETA1, "v1beta1")])
def test_requests_are_read_and_answered_by_the_version_that_the_cluster_serves(path, version):
    server = Serving(path, [added(a_request(version)), BOOKMARK])
    (request,) = requests_told_by(server)
    assert request.key == "default/job"
    assert collection_of(request) == path


def test_a_cluster_that_moves_to_the_newer_version_is_followed_there():
    server = Serving(
        REQUESTS_V1BETA1, [added(a_request("v1beta1")), BOOKMARK], [added(a_request("v1")), BOOKMARK]
    )

    async def stream(path, query):
        async with Serving.stream(server, path, query) as lines:
            yield lines
        server.path = REQUESTS

    server.stream = asynccontextmanager(stream)
    assert [request.api_version.rpartition("/")[2] for request in requests_told_by(server)] == [
        "v1beta1",
        "v1",
    ]


def test_a_cluster_without_requests_is_said_once_to_lack_both_versions_and_whose_definition_it_needs(capsys):
    server = Serving("/apis/none")

    async def scenario():
        reflector = Reflector(server, watched_requests(), print)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 30)
        task.cancel()
        return reflector.problem

    problem = asyncio.run(scenario())
    assert problem == (
        f"the cluster does not serve {REQUESTS} or {REQUESTS_V1BETA1}; hint: install Cluster Autoscaler's "
        "definition of ProvisioningRequest, as for Kueue"
    )
    assert capsys.readouterr().out.count("does not serve /apis") == 1
    assert {REQUESTS, REQUESTS_V1BETA1} == {*server.asked}
