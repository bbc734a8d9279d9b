"""A watch whose connection dies without a word is noticed, and goes on over another one."""

import asyncio
import os
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from nodeless.kube import ApiClient, ConfigMapSeen, Reflector, client, watched_config_map

pytestmark = pytest.mark.cluster


class Line:
    """A way to the API server that can fall silent: what is open then stays open, and carries nothing."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._open = []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error):
        self._server.close()
        for task, _ in self._open:
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._open), return_exceptions=True)

    def fall_silent(self):
        for _, flowing in self._open:
            flowing.clear()

    async def _accept(self, reader, writer):
        flowing = asyncio.Event()
        flowing.set()
        self._open.append((asyncio.current_task(), flowing))
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, far_writer, flowing))
                group.create_task(self._carry(far_reader, writer, flowing))
        finally:
            for each in (writer, far_writer):
                each.close()

    async def _carry(self, reader, writer, flowing):
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                await flowing.wait()
                writer.write(data)
                await writer.drain()
            writer.close()


def test_a_connection_that_is_cut_in_silence_is_replaced_and_nothing_is_missed(
    control_plane, api, namespace, monkeypatch
):
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))
    target = urlsplit(control_plane.endpoint)
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "watched", "namespace": namespace},
        "data": {"step": "before"},
    }
    api.create(document)
    seen = []

    async def until(step):
        async with asyncio.timeout(200):
            while not any(isinstance(e, ConfigMapSeen) and e.data["step"] == step for e in seen):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def scenario():
        connected = await ApiClient.connect(silence=1.0)
        async with Line(target.hostname, target.port) as line:
            connected._configuration.host = f"https://127.0.0.1:{line.port}"
            watched = watched_config_map(namespace, "watched")
            watch = Reflector(connected, watched, seen.append, period=(2, 3))
            task = asyncio.create_task(watch.run())
            try:
                await until("before")
                line.fall_silent()
                path = f"/api/v1/namespaces/{namespace}/configmaps/watched"
                await asyncio.to_thread(api.patch, path, {"data": {"step": "after"}})
                await until("after")
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await connected.close()

    asyncio.run(scenario())


def test_the_kernel_gives_up_a_peer_that_is_gone_within_seconds():
    made = client._watched_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("", 0)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, interval, count = (
            made.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}"))
            for name in ("IDLE", "INTVL", "CNT")
        )
        assert idle + interval * count <= 15
