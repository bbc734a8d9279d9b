"""Waiting for an event, but not for ever."""

import asyncio


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether an event is set, now or within so many seconds (None: however long it takes).

    Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that comes together with the event. A
    replica that has lost its lease would then wait for ever for the one loop that never heard of it.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
