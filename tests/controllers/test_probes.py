"""Probes of the real process, and of a loop that hangs."""

import asyncio
import contextlib
import threading
import urllib.error
import urllib.request

import pytest

from localenv.ports import free_port
from nodeless.manager.health import MOST_CONNECTIONS, health_application, serve
from nodeless.webhook.limits import Patience
from tests.controllers.process import leads


def get(port, path, seconds=400):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=seconds) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode().strip()


@pytest.mark.cluster
def test_a_replica_is_alive_from_the_start_and_ready_once_it_knows_settings_and_cluster(
    replicas, api, namespace
):
    settings = f"/api/v1/namespaces/{namespace}/configmaps/karpenter-global-settings"
    kept = api.get(settings)
    api.delete(settings)
    process = replicas("first")
    port = process.env["HEALTH_PROBE_PORT"]
    api.wait(lambda: "waiting for ConfigMap" in process.log.read_text(), what="the process to wait")
    assert get(port, "/healthz") == get(port, "/healthz/event-loop") == (200, "ok")
    assert get(port, "/healthz/other")[0] == 404
    assert get(port, "/readyz") == (503, "waiting for the settings")
    kept["metadata"] = {"name": kept["metadata"]["name"], "namespace": namespace}
    api.create(kept)
    leads(api, namespace, "first")
    api.wait(lambda: "cluster state is in sync" in process.log.read_text(), what="the watches")
    api.wait(lambda: get(port, "/readyz") == (200, "ok"), what="readiness")
    follower = replicas("second")
    api.wait(lambda: "waiting for leadership" in follower.log.read_text(), what="the follower")
    api.wait(lambda: get(follower.env["HEALTH_PROBE_PORT"], "/readyz") == (200, "ok"), what="its readiness")


@pytest.mark.parametrize("said", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "])
def test_clients_that_do_not_finish_what_they_say_keep_nobody_out_and_are_closed(said):
    async def asked_beside_many():
        port = free_port()
        runner = await serve(
            health_application(lambda: None), "127.0.0.1", port, "probes", Patience(head=0.5, idle=0.5)
        )
        mute = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MOST_CONNECTIONS)]
        try:
            for _, writer in mute:
                writer.write(said)
            assert await asyncio.to_thread(get, port, "/healthz", 10) == (200, "ok")
            async with asyncio.timeout(200):
                # All of them are closed: some to make room, the others for their silence.
                await asyncio.gather(*(_ended(reader) for reader, _ in mute))
            assert await asyncio.to_thread(get, port, "/healthz", 10) == (200, "ok")
        finally:
            for _, writer in mute:
                writer.close()
            await runner.cleanup()

    asyncio.run(asked_beside_many())


async def _ended(reader):
    with contextlib.suppress(ConnectionError):
        await reader.read()


def test_a_loop_that_hangs_answers_no_probe():
    port, started, hanging, released = free_port(), threading.Event(), threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()

    def hang():
        hanging.set()
        released.wait(60)

    async def serving():
        runner = await serve(health_application(lambda: None), "127.0.0.1", port, "probes")
        started.set()
        await asyncio.to_thread(ended.wait)
        await runner.cleanup()

    ended = threading.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serving()))
    thread.start()
    try:
        assert started.wait(30)
        assert get(port, "/healthz") == (200, "ok")
        loop.call_soon_threadsafe(hang)
        assert hanging.wait(30)
        with pytest.raises(TimeoutError):
            get(port, "/healthz", seconds=0.5)
        released.set()
        assert get(port, "/healthz") == (200, "ok")
    finally:
        released.set()
        ended.set()
        thread.join(30)
        loop.close()
