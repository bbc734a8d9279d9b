"""Two replicas, one leader."""

import asyncio

import pytest

from nodeless.kube import ApiUnavailable
from nodeless.kube.leader_election import LEASE_NAME, LEASE_SECONDS, Leadership
from nodeless.operator.timing import Timing

pytestmark = pytest.mark.cluster


def lease_path(namespace):
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE_NAME}"


def test_the_first_replica_leads_and_the_second_waits(on_cluster, namespace):
    async def scenario(client):
        first, second = (Leadership(client, namespace, name) for name in ("first", "second"))
        await first.acquire()
        assert first.leading
        waiting = asyncio.create_task(second.acquire())
        done, _ = await asyncio.wait({waiting}, timeout=3)
        assert not done
        assert not second.leading
        await first.release()
        await waiting
        assert second.leading
        assert not first.leading
        lease = await client.get(lease_path(namespace))
        assert lease["spec"]["holderIdentity"] == "second"
        assert lease["spec"]["leaseTransitions"] >= 1

    on_cluster(scenario)


def test_the_lease_of_a_dead_leader_runs_out(on_cluster, namespace, api):
    async def scenario(client):
        await Leadership(client, namespace, "dead").acquire()
        # The dead one's lease is shortened, so that the test need not wait its fifteen seconds.
        api.patch(lease_path(namespace), {"spec": {"leaseDurationSeconds": 1}})
        heir = Leadership(client, namespace, "heir")
        await heir.acquire()
        assert heir.leading

    on_cluster(scenario)


def test_a_leader_that_sees_another_holder_stops_at_once(on_cluster, namespace):
    async def scenario(client):
        leader = Leadership(client, namespace, "robbed", Timing(lease_retry=0.1))
        await leader.acquire()
        lease = await client.get(lease_path(namespace))
        lease["spec"]["holderIdentity"] = "thief"
        await client.replace(lease_path(namespace), lease)
        # Long before its own deadline of ten seconds.
        await asyncio.wait_for(leader.hold(), 5)
        assert not leader.leading

    on_cluster(scenario)


def test_a_leader_that_cannot_renew_stops_leading_by_itself(on_cluster, namespace):
    async def scenario(client):
        leader = Leadership(client, namespace, "cut-off", Timing(lease_renewal=1.0, lease_retry=0.2))
        await leader.acquire()

        async def unreachable(*_arguments, **_options):
            raise ApiUnavailable("GET lease: no route to host")

        client.request = unreachable
        await leader.hold()
        assert not leader.leading

    on_cluster(scenario)


def test_a_leader_cut_off_in_silence_has_stopped_before_anyone_may_take_over(on_cluster, namespace):
    async def scenario(client):
        leader = Leadership(client, namespace, "cut-off", Timing(lease_renewal=1.5, lease_retry=0.2))
        await leader.acquire()
        acquired = asyncio.get_running_loop().time()

        async def silent(*_arguments, **_options):
            await asyncio.Event().wait()

        client.request = silent
        await leader.hold()
        # No request is waited for beyond the deadline, though each alone may take four seconds.
        assert not leader.leading
        assert asyncio.get_running_loop().time() - acquired < LEASE_SECONDS

    on_cluster(scenario)
