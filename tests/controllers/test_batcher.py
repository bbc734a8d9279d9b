"""The batch window closes after silence, or at its longest."""

import asyncio
import time

from nodeless.controllers.provisioning.batcher import Batcher


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 10))


def test_pods_that_come_together_make_one_batch():
    async def scenario():
        batcher = Batcher(idle_seconds=0.05, max_seconds=5)
        for number in range(10):
            batcher.trigger(f"pod-{number}")
        return await batcher.wait()

    assert run(scenario()) == 10


def test_a_pod_seen_again_does_not_hold_the_window_open():
    async def scenario():
        batcher = Batcher(idle_seconds=0.1, max_seconds=60)

        async def repeat():
            while True:
                batcher.trigger("the-same")
                await asyncio.sleep(0)

        noise = asyncio.create_task(repeat())
        count = await batcher.wait()
        noise.cancel()
        return count

    assert run(scenario()) == 1


def test_a_stream_of_new_pods_closes_the_window_at_its_longest():
    async def scenario():
        batcher = Batcher(idle_seconds=60, max_seconds=0.1)

        async def stream():
            number = 0
            while True:
                batcher.trigger(str(number))
                number += 1
                await asyncio.sleep(0)

        noise = asyncio.create_task(stream())
        started = time.monotonic()
        await batcher.wait()
        noise.cancel()
        return time.monotonic() - started

    assert run(scenario()) >= 0.1
