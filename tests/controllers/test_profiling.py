"""Profiles of a process that is busy, and of one that hides them."""

import asyncio
import threading
import urllib.request

import pytest
from aiohttp.test_utils import TestClient, TestServer

from localenv.ports import free_port
from nodeless.manager.health import metrics_application, serve
from nodeless.manager.profiling import sample
from nodeless.operator.metrics import Metrics
from nodeless.webhook.limits import Patience
from tests.controllers.process import leads


def serving(scenario, *, profiling=True):
    async def run():
        application = metrics_application(Metrics(), profiling=profiling)
        async with TestClient(TestServer(application)) as client:
            return await scenario(client)

    return asyncio.run(run())


def test_processor_time_is_found_where_it_is_spent_and_not_where_somebody_waits():
    ended = threading.Event()

    def toil():
        while not ended.is_set():
            sum(range(1000))

    def rest():
        ended.wait()

    threads = [threading.Thread(target=toil, name="busy"), threading.Thread(target=rest, name="idle")]
    for thread in threads:
        thread.start()
    try:
        found = sample(1.0)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    busy = sum(spent for stack, spent in found.items() if stack.startswith("busy;") and ".toil" in stack)
    idle = sum(spent for stack, spent in found.items() if stack.startswith("idle;"))
    assert busy > 10_000
    assert idle < busy / 10


def test_a_profile_is_taken_for_the_seconds_asked_for_and_one_at_a_time():
    async def scenario(client):
        answers = await asyncio.gather(*(client.get("/debug/pprof/profile?seconds=2") for _ in range(3)))
        for answer in answers:
            for line in (await answer.text()).splitlines():
                stack, _, spent = line.rpartition(" ")
                assert answer.status == 409 or (";" in stack and int(spent) > 0)
        return sorted(answer.status for answer in answers)

    assert serving(scenario) == [200, 409, 409]


def test_a_profile_may_take_longer_than_other_answers():
    async def scenario():
        port = free_port()
        patience = Patience(request=0.2)
        application = metrics_application(Metrics(), profiling=True)
        served = await serve(application, "127.0.0.1", port, "metrics", patience)
        url = f"http://127.0.0.1:{port}/debug/pprof/profile?seconds=0.6"
        try:
            answer = await asyncio.to_thread(urllib.request.urlopen, url, None, 30)
            assert answer.status == 200
        finally:
            await served.cleanup()

    asyncio.run(scenario())


@pytest.mark.parametrize("seconds", ["0", "-1", "1e9", "nan", "long"])
def test_a_time_that_is_none_is_refused_with_a_hint(seconds):
    async def scenario(client):
        answer = await client.get(f"/debug/pprof/profile?seconds={seconds}")
        assert f"seconds={seconds}" in await answer.text()
        return answer.status

    assert serving(scenario) == 400


@pytest.mark.parametrize("path", ["", "cmdline", "profile", "heap", "goroutine"])
def test_without_the_setting_nothing_is_served(path):
    async def scenario(client):
        return (await client.get(f"/debug/pprof/{path}")).status

    assert serving(scenario, profiling=False) == 404


@pytest.mark.cluster
def test_a_process_with_profiling_shows_stacks_and_memory(replicas, api, namespace):
    process = replicas("first", ENABLE_PROFILING="true")
    leads(api, namespace, "first")

    def shown(path):
        url = f"http://127.0.0.1:{process.env['METRICS_PORT']}/debug/pprof/{path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()

    assert "/debug/pprof/profile" in shown("")
    assert "run" in shown("cmdline").split("\0")
    assert "task lease\n" in shown("goroutine")
    assert "thread MainThread\n" in shown("goroutine")
    assert "bytes held" in shown("heap").splitlines()[0]
    # What holds most at first is what was imported; the tables of types come within seconds.
    api.wait(lambda: "nodeless/" in shown("heap"), what="lines of the controller among those that hold most")
    assert "MainThread;" in shown("profile?seconds=2")
    assert process.poll() is None
