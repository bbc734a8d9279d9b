"""A key waits once, is worked on once at a time, and is never lost."""

import asyncio

from nodeless.kube.workqueue import KeyedQueue


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 5))


def test_a_key_added_twice_is_taken_once():
    async def scenario():
        queue = KeyedQueue()
        queue.add("a")
        queue.add("a")
        assert await queue.get() == "a"
        assert queue.length == 0

    run(scenario())


def test_a_key_added_while_it_is_worked_on_is_taken_again_afterwards():
    async def scenario():
        queue = KeyedQueue()
        queue.add("a")
        await queue.get()
        queue.add("a")
        assert queue.length == 0
        queue.done("a")
        assert await queue.get() == "a"

    run(scenario())


def test_keys_come_in_the_order_in_which_they_were_added():
    async def scenario():
        queue = KeyedQueue()
        for key in "cab":
            queue.add(key)
        assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]

    run(scenario())


def test_a_later_key_wakes_a_waiting_worker():
    async def scenario():
        queue = KeyedQueue()
        worker = asyncio.create_task(queue.get())
        queue.add_in("later", 0.02)
        queue.add_in("sooner", 0.0)
        assert await worker == "sooner"
        assert await queue.get() == "later"

    run(scenario())


def test_the_earlier_of_two_appointments_counts():
    async def scenario():
        queue = KeyedQueue()
        queue.add_in("a", 60)
        queue.add_in("a", 0)
        queue.add_in("a", 60)
        assert await queue.get() == "a"
        queue.done("a")
        assert queue.length == 0

    run(scenario())


def test_a_key_that_is_due_in_weeks_is_remembered_once_however_often_it_is_worked_on():
    async def scenario():
        queue, taken = KeyedQueue(), set()
        queue.add_in("soon", 0.2)
        for number in range(20):
            queue.add_in(f"other-{number}", 3600)
        for _ in range(2_000):
            queue.add("claim")
            while (key := await queue.get()) != "claim":
                taken.add(key)
            queue.add_in("claim", 720 * 3600)
            queue.done("claim")
        assert 21 <= queue.appointments < 200
        # What is still due is not lost with what was cleared away.
        while "soon" not in taken:
            taken.add(await queue.get())

    run(scenario())
