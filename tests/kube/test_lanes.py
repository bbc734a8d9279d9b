"""Requests of one kind never wait behind those of another: each lane has its connections and its pauses.

The API server is one of our own here, for the real one cannot be told to be slow.
"""

import asyncio
import os
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from nodeless.kube import ApiClient, ApiError
from nodeless.kube.errors import AnswerTooLarge
from nodeless.kube.lanes import Lane, Pauses, lane_of
from nodeless.model.object_names import LEASE_NAME

EVICTION = "/api/v1/namespaces/ns/pods/{}/eviction"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


@asynccontextmanager
async def served(answer, tmp_path, monkeypatch):
    """A client of a server that answers each request with a handler."""
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"""{{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{{"name": "c", "cluster": {{"server": "http://127.0.0.1:{port}"}}}}],
        "users": [{{"name": "u", "user": {{"token": "t"}}}}],
        "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}]}}"""
    )
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(kubeconfig))
    client = await ApiClient.connect()
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


@pytest.mark.parametrize(
    ("method", "path", "lane"),
    [
        ("GET", f"{LEASES}/{LEASE_NAME}", Lane.LEASE),
        ("PUT", f"{LEASES}/{LEASE_NAME}", Lane.LEASE),
        ("POST", EVICTION.format("web"), Lane.EVICTIONS),
        ("DELETE", "/api/v1/namespaces/ns/pods/web", Lane.EVICTIONS),
        ("DELETE", "/api/v1/nodes/a", Lane.CALLS),
        ("PATCH", "/apis/karpenter.sh/v1/nodeclaims/a", Lane.CALLS),
        ("POST", "/api/v1/namespaces/ns/events", Lane.CALLS),
    ],
)
def test_what_goes_where(method, path, lane):
    assert lane_of(method, path) is lane


def test_evictions_that_hang_hold_up_neither_lease_nor_writes_nor_watches(tmp_path, monkeypatch):
    released, full, hanging = asyncio.Event(), asyncio.Event(), []

    async def answer(request):
        if request.path.endswith("/eviction"):
            hanging.append(request.path)
            if len(hanging) == Lane.EVICTIONS.connections:
                full.set()
            await released.wait()
        return web.json_response({"kind": "Status", "metadata": {}})

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            # More than there are connections, so that the lane is full and a queue stands behind it.
            evictions = [
                asyncio.create_task(client.create(EVICTION.format(number), {}))
                for number in range(2 * Lane.EVICTIONS.connections)
            ]
            await full.wait()
            async with asyncio.timeout(20):
                await client.get(f"{LEASES}/{LEASE_NAME}")
                await asyncio.gather(*(client.patch(f"/api/v1/nodes/{n}", {}) for n in range(100)))
                async with client.stream("/api/v1/pods", {"timeoutSeconds": "30"}):
                    pass
            assert len(hanging) == Lane.EVICTIONS.connections
            released.set()
            await asyncio.gather(*evictions)

    asyncio.run(scenario())


def test_a_throttled_lane_pauses_and_asks_again_and_the_others_do_not_wait(tmp_path, monkeypatch):
    """Priority and fairness answers so, as plain text: the request was not looked at."""
    asked, begun = [], asyncio.Event()

    async def answer(request):
        asked.append(request.path)
        begun.set()
        if "/nodes/" in request.path and asked.count(request.path) == 1:
            return web.Response(status=429, headers={"Retry-After": "1"}, text="Too many requests")
        return web.json_response({"asked": request.path})

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            slow = asyncio.create_task(client.patch("/api/v1/nodes/a", {}))
            await begun.wait()
            await client.get(f"{LEASES}/{LEASE_NAME}")
            await client.create(EVICTION.format("web"), {})
            assert not slow.done()
            assert (await slow)["asked"] == "/api/v1/nodes/a"

    asyncio.run(scenario())
    assert asked[-1] == "/api/v1/nodes/a"
    assert asked.count("/api/v1/nodes/a") == 2


def test_a_connection_serves_again_as_long_as_the_server_keeps_it(tmp_path, monkeypatch):
    """Evictions and writes come in bursts, with pauses between them."""
    passed = [0.0]
    # When a connection was last used, as aiohttp counts it.
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: passed[0])
    used = []

    async def answer(request):
        used.append(request.transport.get_extra_info("peername"))
        return web.json_response({})

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            for pause in (0.0, 59.0, 61.0):
                passed[0] += pause
                await client.get("/api/v1/nodes")

    asyncio.run(scenario())
    first, after_a_pause, after_a_longer_one = used
    assert after_a_pause == first
    assert after_a_longer_one != first


def test_a_server_that_throttles_for_ever_is_given_up(tmp_path, monkeypatch):
    async def answer(_request):
        return web.Response(status=429, headers={"Retry-After": "0"}, text="Too many requests")

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            with pytest.raises(ApiError) as refused:
                await client.get("/api/v1/nodes")
            assert refused.value.status == 429

    asyncio.run(scenario())


def test_a_budget_that_refuses_an_eviction_holds_nobody_else_up(tmp_path, monkeypatch):
    """A disruption budget answers 429 as well, with its cause: that is the pod's own matter."""
    causes = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2 healthy pods"}]}
    refusal = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": causes}

    async def answer(request):
        if "/held/" in request.path:
            return web.json_response(refusal, status=429, headers={"Retry-After": "10"})
        return web.json_response({})

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            with pytest.raises(ApiError) as refused:
                await client.create(EVICTION.format("held"), {})
            assert refused.value.details["causes"]
            async with asyncio.timeout(5):
                await client.create(EVICTION.format("web"), {})

    asyncio.run(scenario())


def test_an_answer_without_end_is_cut_and_a_list_of_large_objects_comes_in_small_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("nodeless.kube.client.MOST_ANSWER_BYTES", 1000)
    items = [{"name": f"item-{number}", "text": "x" * 300} for number in range(7)]

    async def answer(request):
        if request.path == "/endless":
            return web.Response(body=b"x" * 1001)
        size, at = int(request.query["limit"]), int(request.query["continue"] or 0)
        then = str(at + size) if at + size < len(items) else ""
        return web.json_response({"items": items[at : at + size], "metadata": {"continue": then}})

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            with pytest.raises(AnswerTooLarge):
                await client.get("/endless")
            assert await client.list("/api/v1/things") == items

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        ("3", 3),
        ("9" * 400, 10),
        ("1234abc", 1),
        ("", 1),
        ("-5", 1),
        ("٣", 1),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 1),
    ],
)
def test_a_lane_pauses_for_a_bounded_time_whatever_the_header_says(reported, seconds):
    async def scenario():
        assert Pauses().pause(Lane.CALLS, reported) == seconds

    asyncio.run(scenario())
