"""Loops that wait for an event end when they are told to, whatever comes at the same moment."""

import asyncio

import pytest

from nodeless.controllers.provisioning.batcher import Batcher
from nodeless.kube.workqueue import KeyedQueue
from nodeless.operator.wait_event import set_within


async def told_to_end_while(waiting, happen):
    """Cancel what waits in the very moment in which what it waits for happens."""
    task = asyncio.create_task(waiting)
    for _ in range(5):
        await asyncio.sleep(0)
    happen()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_event_that_comes_with_the_end_does_not_hide_it():
    async def scenario():
        event = asyncio.Event()
        await told_to_end_while(set_within(event, 60), event.set)

    asyncio.run(scenario())


def test_a_pod_that_comes_with_the_end_does_not_keep_the_provisioner():
    async def scenario():
        batcher = Batcher(60, 60)
        batcher.trigger("first")
        await told_to_end_while(batcher.wait(), lambda: batcher.trigger("second"))

    asyncio.run(scenario())


def test_a_claim_that_comes_with_the_end_does_not_keep_a_loop():
    async def scenario():
        queue = KeyedQueue()
        queue.add_in("later", 60)
        await told_to_end_while(queue.get(), lambda: queue.add("now"))

    asyncio.run(scenario())


def test_an_event_is_waited_for_no_longer_than_said():
    async def scenario():
        event = asyncio.Event()
        assert not await set_within(event, 0.01)
        event.set()
        assert await set_within(event, 0)

    asyncio.run(scenario())
