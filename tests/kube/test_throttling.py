"""Requests take turns: a burst at once, then so many a second."""

import asyncio
import contextlib
import os

import pytest

from nodeless.kube import ApiClient, TokenBucket
from tests.virtual_time import run_in_virtual_time


def test_a_burst_goes_at_once_and_the_rest_at_the_rate():
    async def scenario():
        bucket, loop = TokenBucket(10, 5), asyncio.get_running_loop()
        went = []

        async def one():
            await bucket.take()
            went.append(loop.time())

        await asyncio.gather(*(one() for _ in range(8)))
        assert went == pytest.approx([0, 0, 0, 0, 0, 0.1, 0.2, 0.3])
        await asyncio.sleep(100)
        assert [await bucket.take() for _ in range(5)] == [0] * 5
        assert await bucket.take() == pytest.approx(0.1)

    run_in_virtual_time(scenario())


def test_who_gives_up_gives_the_turn_back():
    async def scenario():
        bucket = TokenBucket(1, 1)
        await bucket.take()
        waiting = asyncio.create_task(bucket.take())
        await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        assert await bucket.take() == pytest.approx(1.0)

    run_in_virtual_time(scenario())


@pytest.mark.cluster
def test_calls_wait_for_their_turn_and_leases_do_not(control_plane, monkeypatch):
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))
    reported, waits = [], []

    async def scenario():
        client = await ApiClient.connect()
        client.observe(lambda *request: reported.append(request), lambda *wait: waits.append(wait))
        client.limit(TokenBucket(5, 1))
        try:
            await asyncio.gather(*(client.get("/api/v1/namespaces/default") for _ in range(3)))
            await client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
            client.limit(None)
            await client.get("/api/v1/namespaces/default")
            async with client.stream("/api/v1/namespaces", {"watch": "1", "timeoutSeconds": "1"}):
                pass
            with contextlib.suppress(Exception):
                await client.get("/api/v1/namespaces/none-of-this-name")
        finally:
            await client.close()

    asyncio.run(scenario())
    host = control_plane.endpoint.partition("//")[2].rstrip("/")
    assert [wait[:2] for wait in waits] == [("GET", host)] * 3
    assert sorted(wait[2] > 0 for wait in waits) == [False, True, True]
    assert reported == [("GET", "200", host)] * 6 + [("GET", "404", host)]


def test_a_request_without_an_answer_is_counted_as_such(tmp_path, monkeypatch):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(kubeconfig))
    reported = []

    async def scenario():
        client = await ApiClient.connect()
        client.observe(lambda *request: reported.append(request), lambda *_wait: None)
        with contextlib.suppress(Exception):
            await client.get("/version")
        await client.close()

    asyncio.run(scenario())
    assert reported == [("GET", "<error>", "127.0.0.1:1")]
