"""A lease behind an API server that is slow or hangs, on virtual time and with the real periods."""

import asyncio

import pytest

from nodeless.kube import ApiError
from nodeless.kube.leader_election import Leadership
from nodeless.operator.timing import TIMING, Timing
from tests.virtual_time import run_in_virtual_time


class Server:
    """Keeps one Lease, whose version guards it.

    `read` and `write` are the seconds that each takes; `hangs` is the number of the write that is never
    answered, though it is carried out.
    """

    def __init__(self, read=0.0, write=0.0, hangs=0):
        self.read, self.write, self.hangs = read, write, hangs
        self.lease, self.version, self.writes = None, 0, 0

    async def get(self, _path):
        await asyncio.sleep(self.read)
        if self.lease is None:
            raise ApiError(404, "NotFound", "")
        return self.lease

    async def create(self, _path, body):
        return await self.replace("", {**body, "metadata": {**body["metadata"], "resourceVersion": "0"}})

    async def replace(self, _path, body):
        await asyncio.sleep(self.write)
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(409, "Conflict", "somebody else wrote first")
        self.version += 1
        self.writes += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if self.writes == self.hangs:
            await asyncio.Event().wait()
        return self.lease


#: The clock of the event loop, which the tests move.
VIRTUAL = Timing(steady_clock=lambda: asyncio.get_running_loop().time())


async def kept_for(leader, seconds):
    """Acquire the lease and hold it; how long it was held, the given time at most."""
    await asyncio.wait_for(leader.acquire(), 60)
    holding = asyncio.create_task(leader.hold())
    began = asyncio.get_running_loop().time()
    await asyncio.wait({holding}, timeout=seconds)
    lasted = asyncio.get_running_loop().time() - began
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    return lasted


@pytest.mark.parametrize("read", [0.0, 3.5])
@pytest.mark.parametrize("write", [0.0, 2.5, 4.5, 4.9])
def test_a_lease_is_kept_while_a_write_takes_less_than_half_of_the_deadline(read, write):
    server = Server(read, write)
    assert run_in_virtual_time(kept_for(Leadership(server, "ns", "first", VIRTUAL), 600)) == 600
    assert server.writes >= 600 // max(write, 2.5) - 2


@pytest.mark.parametrize("number", [2, 3, 7])
@pytest.mark.parametrize("write", [0.0, 1.0])
def test_a_renewal_that_is_never_answered_is_joined_by_another(number, write):
    server = Server(write=write, hangs=number)
    assert run_in_virtual_time(kept_for(Leadership(server, "ns", "first", VIRTUAL), 120)) == 120


@pytest.mark.parametrize("first", [True, False], ids=["made", "renewed"])
def test_the_lease_counts_from_before_the_write_that_gave_it(first):
    """The API server's answer may be as old as the write is slow: another may lead from then on."""
    server = Server(write=4.0)

    async def scenario():
        leader = Leadership(server, "ns", "first", VIRTUAL)
        if not first:
            await Leadership(server, "ns", "another", VIRTUAL).acquire()
            server.lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        began = asyncio.get_running_loop().time()
        await leader.acquire()
        taken = asyncio.get_running_loop().time() - began
        assert taken >= server.write
        await asyncio.sleep(TIMING.lease_renewal - server.write - 0.01)
        assert leader.leading
        await asyncio.sleep(0.02)
        assert not leader.leading

    run_in_virtual_time(scenario())


def test_a_leader_whose_writes_take_longer_stops_before_anybody_else_may_lead():
    server = Server()
    leader = Leadership(server, "ns", "first", VIRTUAL)

    async def scenario():
        await leader.acquire()
        holding = asyncio.create_task(leader.hold())
        await asyncio.sleep(5)
        server.write = 60.0
        last = asyncio.get_running_loop().time()
        await holding
        assert asyncio.get_running_loop().time() - last <= TIMING.lease_renewal
        assert not leader.leading

    run_in_virtual_time(scenario())


def test_of_two_replicas_behind_a_slow_server_one_leads_at_a_time_and_always_one():
    server = Server(read=0.5, write=4.5)
    leaders = [Leadership(server, "ns", name, VIRTUAL) for name in ("first", "second")]

    async def scenario():
        tasks = [asyncio.create_task(leader.acquire()) for leader in leaders]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ahead = next(leader for leader in leaders if leader.leading)
        holding = asyncio.create_task(ahead.hold())
        for _ in range(1200):
            await asyncio.sleep(0.1)
            assert [leader.leading for leader in leaders].count(True) == 1
        for task in (*tasks, holding):
            task.cancel()
        await asyncio.gather(*tasks, holding, return_exceptions=True)

    run_in_virtual_time(scenario())


def test_the_log_says_why_a_lease_cannot_be_reached(capsys):
    async def scenario():
        assert not await Leadership(Server(read=60.0), "ns", "first", VIRTUAL)._attempt()

    run_in_virtual_time(scenario())
    assert "cannot reach the lease: no answer in time" in capsys.readouterr().out


@pytest.mark.parametrize(
    "written",
    [
        {"leaseTransitions": 2**31 - 1},
        {"leaseDurationSeconds": 2**31 - 1},
        {"renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "0001-01-01T00:00:00.000000Z"},
        {"holderIdentity": "<" * 1_400_000},
        {"leaseDurationSeconds": None, "leaseTransitions": None, "renewTime": None, "acquireTime": None},
    ],
    ids=",".join,
)
def test_whatever_somebody_writes_into_the_lease_a_replica_leads_again(written):
    server = Server()
    replace = server.replace

    async def as_strict_as_the_real_one(path, body):
        assert 0 <= body["spec"]["leaseTransitions"] < 2**31
        return await replace(path, body)

    server.replace = as_strict_as_the_real_one

    async def scenario():
        first = Leadership(server, "kube-system", "first", VIRTUAL)
        await first.acquire()
        holding = asyncio.create_task(first.hold())
        # Nobody renews for the stranger.
        spec = {**server.lease["spec"], "holderIdentity": "stranger", **written}
        server.version += 1
        server.lease = {"metadata": {"resourceVersion": str(server.version)}, "spec": spec}
        await asyncio.wait_for(holding, 15)
        assert not first.leading
        heir = Leadership(server, "kube-system", "heir", VIRTUAL)
        await asyncio.wait_for(heir.acquire(), 90)
        assert heir.leading

    run_in_virtual_time(scenario())
