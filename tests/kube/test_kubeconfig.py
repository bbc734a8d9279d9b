"""The cluster that a command reads is the one that kubectl reads, and it is reached the same way."""

import asyncio
import base64
import os
import ssl
import time
from contextlib import asynccontextmanager

import pytest
import yaml
from aiohttp import web

from nodeless.kube import ApiClient, ApiUnavailable
from nodeless.kube.kubeconfig import proxy_of
from nodeless.webhook import pki


def kubeconfig(folder, name, *, current=True, user=None, **cluster):
    """A file with a cluster, a user and a context of one name."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.invalid", **cluster}}],
        "users": [{"name": name, "user": user or {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(document | ({"current-context": name} if current else {})))
    return path


@pytest.fixture
def connect(monkeypatch):
    """A client by the files of a KUBECONFIG."""

    async def connected(*files):
        monkeypatch.setitem(os.environ, "KUBECONFIG", os.pathsep.join(map(str, files)))
        return await ApiClient.connect()

    return connected


@asynccontextmanager
async def listening(answer, context=None):
    """The port of a server that answers each request with a handler."""

    async def handle(request):
        return answer(request)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield site._server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("first_is_current", "expected"), [(True, "first"), (False, "second")], ids=["both", "the second"]
)
def test_of_several_files_the_first_that_names_a_current_context_counts(
    connect, tmp_path, first_is_current, expected
):
    files = kubeconfig(tmp_path, "first", current=first_is_current), kubeconfig(tmp_path, "second")
    client = asyncio.run(connect(*files))
    assert client.host == f"http://{expected}.invalid"


def test_empty_names_empty_files_and_files_that_are_not_there_are_passed_over(connect, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    client = asyncio.run(connect("", tmp_path / "missing", empty, kubeconfig(tmp_path, "good")))
    assert client.host == "http://good.invalid"


def test_where_no_file_is_there_all_names_are_told(connect, tmp_path):
    with pytest.raises(
        ApiUnavailable, match=f"KUBECONFIG names {tmp_path}/a, {tmp_path}/b, which is no file"
    ):
        asyncio.run(connect(tmp_path / "a", tmp_path / "b"))


def test_the_file_of_a_token_is_found_beside_its_kubeconfig_and_read_anew(connect, tmp_path):
    async def scenario():
        def answer(request):
            return web.json_response({"said": request.headers["Authorization"]})

        async with listening(answer) as port:
            server = f"http://127.0.0.1:{port}"
            file = kubeconfig(tmp_path, "rotates", user={"tokenFile": "token"}, server=server)
            said = []
            (tmp_path / "token").write_text("first\n")
            client = await connect(kubeconfig(tmp_path, "other", current=False), file)
            for token in ("first", "second"):
                (tmp_path / "token").write_text(token)
                said.append((await client.get("/version"))["said"])
            await client.close()
            assert said == ["Bearer first", "Bearer second"]

    asyncio.run(scenario())


def test_a_command_that_gives_no_credentials_ends_the_attempt_instead_of_asking_as_nobody(connect, tmp_path):
    for command in ("false", str(tmp_path / "missing")):
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}}
        with pytest.raises(ApiUnavailable, match=f"the kubeconfig's command {command} gave no credentials"):
            asyncio.run(connect(kubeconfig(tmp_path, "expired", user=user)))


@pytest.mark.parametrize("told_by", ["kubeconfig", "environment"])
def test_requests_and_watches_go_by_the_proxy(connect, tmp_path, monkeypatch, told_by):
    async def scenario():
        asked = []

        def answer(request):
            asked.append(str(request.url))
            return web.json_response({})

        async with listening(answer) as port:
            proxy = f"http://127.0.0.1:{port}"
            if told_by == "environment":
                monkeypatch.setitem(os.environ, "HTTP_PROXY", proxy)
            own = {"proxy-url": proxy} if told_by == "kubeconfig" else {}
            client = await connect(kubeconfig(tmp_path, "far", **own))
            await client.get("/version")
            async with client.stream("/api/v1/pods", {"timeoutSeconds": "1"}):
                pass
            await client.close()
        assert asked == ["http://far.invalid/version", "http://far.invalid/api/v1/pods?timeoutSeconds=1"]

    asyncio.run(scenario())


def test_a_proxy_gets_its_credentials_and_no_error_shows_them(connect, tmp_path):
    async def scenario():
        said = []

        async def refuse(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            said.extend(line for line in head.splitlines() if line.startswith("Proxy-Authorization"))
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        proxy = f"http://me:s%40cret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = await connect(
            kubeconfig(tmp_path, "far", server="https://far.invalid", **{"proxy-url": proxy})
        )
        with pytest.raises(ApiUnavailable, match="407") as told:
            await client.get("/version")
        await client.close()
        server.close()
        assert "cret" not in str(told.value)
        assert said == [f"Proxy-Authorization: Basic {base64.b64encode(b'me:s@cret').decode()}"]

    asyncio.run(scenario())


def test_a_proxy_that_is_none_for_http_is_told(connect, tmp_path):
    file = kubeconfig(tmp_path, "far", **{"proxy-url": "socks5://me:secret@localhost:1080"})
    with pytest.raises(ApiUnavailable, match="one for socks5, and none but HTTP proxies can be used") as told:
        asyncio.run(connect(file))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("server", "exceptions", "proxied"),
    [
        ("https://a.eks.example", "", True),
        ("https://a.eks.example", "eks.example", False),
        ("https://a.eks.example", ".eks.example,10.0.0.0/8", False),
        ("https://eks.example", ".eks.example", True),
        ("https://a.eks.example", "*.eks.example", False),
        ("https://a.eks.example", "a.eks.example:443", False),
        ("https://a.eks.example", "a.eks.example:8443", True),
        ("https://neks.example", "eks.example", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://[fd00::1]", "fd00::/8", False),
        ("https://a.eks.example", "*", False),
        ("https://localhost:8443", "", False),
        ("https://127.0.0.1:8443", "", False),
        ("http://a.eks.example", "", False),
    ],
)
def test_the_environment_names_a_proxy_and_its_exceptions_as_for_kubectl(server, exceptions, proxied):
    environment = {"https_proxy": "proxy.example:3128", "NO_PROXY": exceptions}
    assert proxy_of(server, environment) == ("http://proxy.example:3128" if proxied else None)


def test_a_server_behind_a_tunnel_is_checked_by_the_name_that_the_kubeconfig_has_for_it(connect, tmp_path):
    material = pki.make(["api.example"], time.time())
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    key.write_bytes(material.key)
    certificate.write_bytes(material.certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    authority = base64.b64encode(material.bundle).decode()

    async def scenario():
        async with listening(lambda _request: web.json_response({"major": "1"}), context) as port:
            cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
            for name, reached in (("other.example", False), ("api.example", True)):
                client = await connect(kubeconfig(tmp_path, "tunnel", **cluster, **{"tls-server-name": name}))
                try:
                    assert (await client.get("/version")) == {"major": "1"}
                    assert reached
                except ApiUnavailable:
                    assert not reached
                await client.close()

    asyncio.run(scenario())
