"""When pods are nominated, and when they are left to kube-scheduler; the API server is a stand-in here."""

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.provisioning.nominations import PodNominator
from nodeless.kube import ApiError
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.devices import ClaimedDevices, DeviceAlternative, DeviceRequest, ResourceClaimTemplate
from nodeless.model.labels import PLANNED_PODS, UNREGISTERED_TAINT, ZONE
from nodeless.model.pods import DaemonSet, PodResourceClaim, PodShape
from nodeless.model.taints import Taint, Toleration
from nodeless.nodeclaim.startup_taints import without_unregistered
from nodeless.operator.metrics import Metrics
from nodeless.state.expected import uid_digest
from tests.factories import a_launched_claim, a_node, a_pending_pod
from tests.scheduling.factories import spread

CLOSED = (Taint(UNREGISTERED_TAINT, "NoExecute"),)
#: As the controller keeps a node that is ready.
NARROWED = (Taint(UNREGISTERED_TAINT, "NoSchedule"),)


class ApiServer:
    """Takes nominations, and shows each to the cluster as the watch would; or refuses."""

    def __init__(self, cluster, version="v1.36.3", refusal=None):
        self.cluster, self.version, self.refusal = cluster, version, refusal
        self.asked, self.told = [], False
        #: Names of pods of which nothing is heard by the watch yet.
        self.held = set()

    async def get(self, _path):
        self.told = True
        return {"gitVersion": self.version}

    async def patch(self, path, body, **query):
        name = path.split("/")[-2]
        self.asked.append((name, body["status"]["nominatedNodeName"]))
        assert query == {"fieldManager": "nodeless"}
        if self.refusal is not None:
            raise self.refusal
        while name in self.held:  # noqa: ASYNC110 - a test says when
            await asyncio.sleep(0.01)
        pod = self.cluster.snapshot.pods[f"default/{name}"]
        assert body["metadata"] == {"uid": pod.uid}
        seen = replace(pod, expected_node_name=body["status"]["nominatedNodeName"] or "")
        asyncio.get_running_loop().call_soon(self.cluster.handle, events.PodSeen(seen))


async def until(condition):
    """Wait for what must come true."""
    async with asyncio.timeout(200):
        while not condition():  # noqa: ASYNC110 - conditions are plain functions
            await asyncio.sleep(0.01)


async def at_rest(nominator):
    """Wait until every pod has been looked at and nothing is under way."""
    queue = nominator._queue
    await until(lambda: not queue.length and not queue.ages())


@asynccontextmanager
async def nominating(**server):
    cluster = Cluster()
    api = ApiServer(cluster, **server)
    nominator = PodNominator(api, cluster, lambda: None, ErrorBoundary("pod", Metrics()))
    opened_claims = []
    nominator.on_complete(opened_claims.append)
    running = asyncio.create_task(nominator.run())
    await until(lambda: api.told)
    try:
        yield cluster, api, nominator, opened_claims
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def two_nodes(cluster, *, ready=True, cpus=(100, 100), unknown=()):
    """Two claims, their closed nodes (of those in `unknown` no provider is known), and two pods that wait."""
    for name in ("a", "b"):
        cluster.handle(events.ClaimSeen(a_launched_claim(name, provider_id=f"aws:///z/i-{name}")))
        provider = "" if name in unknown else f"aws:///z/i-{name}"
        taints = NARROWED if ready else CLOSED
        node = a_node(name, name=f"node-{name}", provider_id=provider, taints=taints, ready=ready)
        cluster.handle(events.NodeSeen(node))
    pods = [
        a_pending_pod(f"web-{name}", shape=PodShape((("cpu", cpu),)))
        for name, cpu in zip(("a", "b"), cpus, strict=True)
    ]
    for pod in pods:
        cluster.handle(events.PodSeen(pod))
    return pods


PLACES = {"default/web-a": "a", "default/web-b": "b"}
NOMINATED = [("web-a", "node-a"), ("web-b", "node-b")]


def test_pods_are_nominated_to_the_nodes_of_their_claims_and_then_the_claims_are_told():
    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            nominator.expect(two_nodes(cluster), PLACES)
            claim, node = cluster.snapshot.claims["a"], cluster.snapshot.nodes["node-a"]
            assert nominator.expects(claim)
            assert nominator.awaits(claim, node)
            await until(lambda: set(told) == {"a", "b"})
            assert sorted(api.asked) == NOMINATED
            assert not nominator.awaits(claim, node)

    asyncio.run(scenario())


def test_a_pod_whose_room_is_not_free_yet_is_not_nominated_and_the_others_still_are():
    """It might take the room of those on the node that opens, were they not."""

    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            first, second = two_nodes(cluster)
            cluster.handle(events.NodeSeen(replace(cluster.snapshot.nodes["node-b"], taints=())))
            nominator.expect([first, second], PLACES | {second.key: "node-b"}, {second.key})
            await until(lambda: "a" in told)
            await at_rest(nominator)
            assert api.asked == [("web-a", "node-a")]
            nominator.expect([second], {second.key: "node-b"}, {second.key})
            await at_rest(nominator)
            nominator.expect([first, second], PLACES | {second.key: "node-b"})
            await until(lambda: ("web-b", "node-b") in api.asked)
            nominator.expect([first, second], PLACES | {second.key: "node-b"}, {second.key})
            await until(lambda: api.asked[-1] == ("web-b", None))

    asyncio.run(scenario())


@pytest.mark.parametrize("bound", [0, 1])
def test_the_last_node_that_pods_wait_for_is_opened_when_the_others_pods_are_bound(bound):
    """Its own pods are not nominated any more: there is nothing to choose."""

    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            pods = two_nodes(cluster, ready=False)
            nominator.expect(pods, PLACES)
            await at_rest(nominator)
            assert sorted(api.asked) == NOMINATED
            (other,) = (pod for index, pod in enumerate(pods) if index != bound)
            last = "ab"[1 - bound]
            told.clear()
            api.asked.clear()
            cluster.handle(events.PodSeen(replace(pods[bound], node_name="elsewhere")))
            await until(lambda: last in told)
            assert not nominator.expects(cluster.snapshot.claims[last])
            told.clear()
            nominator.expect([other], {other.key: last})
            await until(lambda: last in told)
            assert api.asked == []

    asyncio.run(scenario())


def test_nodes_that_are_ready_open_together():
    """The first that opens makes kube-scheduler try all pods, and take back what the others' pods got."""

    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            api.held = {"web-b"}
            nominator.expect(two_nodes(cluster), PLACES)
            await until(lambda: len(api.asked) == 2)
            claim, node = cluster.snapshot.claims["a"], cluster.snapshot.nodes["node-a"]
            assert nominator._needs_no_write("default/web-a", node)
            assert nominator.awaits(claim, node)
            assert told == []
            api.held.clear()
            await until(lambda: set(told) == {"a", "b"})
            assert not nominator.awaits(claim, node)

    asyncio.run(scenario())


@pytest.mark.parametrize("cpus", [(4000, 50), (50, 4000)])
def test_of_nodes_that_open_together_those_of_small_pods_are_told_first(cpus):
    """What they leave is too little for a large pod whose own node is not open yet; the reverse is not so."""

    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            nominator.expect(two_nodes(cluster, cpus=cpus), PLACES)
            await until(lambda: set(told) == {"a", "b"})
            assert told[:2] == (["b", "a"] if cpus[0] > cpus[1] else ["a", "b"])

    asyncio.run(scenario())


def claiming(cluster, pods, counts):
    """The pods, each with a claim on so many devices."""
    made = []
    for pod, count in zip(pods, counts, strict=True):
        asked = ClaimedDevices((DeviceRequest("gpu", (DeviceAlternative("gpu", "gpu", count=count),)),))
        cluster.handle(events.ResourceClaimTemplateSeen(ResourceClaimTemplate("default", pod.name, asked)))
        claim = PodResourceClaim("gpu", template=pod.name)
        made.append(replace(pod, shape=replace(pod.shape, resource_claims=(claim,))))
        cluster.handle(events.PodSeen(made[-1]))
    return made


@pytest.mark.parametrize("counts", [(1, 4), (4, 1), (1, None)])
@pytest.mark.parametrize("what", ["bound", "gone", "never bound"])
def test_nodes_of_pods_that_claim_more_devices_open_when_the_others_are_bound(counts, what):
    """No nomination keeps devices: a pod of one would take one of those that the other needs all of."""

    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            few, many = ("b", "a") if counts[0] == 4 else ("a", "b")
            pods = claiming(cluster, two_nodes(cluster), counts)
            other = a_pending_pod("other")
            cluster.handle(events.PodSeen(other))
            nominator.expect([*pods, other], {**PLACES, other.key: "another-claim"})
            await until(lambda: told)
            await at_rest(nominator)
            claim, node = cluster.snapshot.claims[many], cluster.snapshot.nodes[f"node-{many}"]
            assert set(told) == {few}
            opened = cluster.snapshot.nodes[f"node-{few}"]
            cluster.handle(events.NodeSeen(replace(opened, taints=())))
            assert nominator.awaits(claim, node)
            if what == "bound":
                pod = cluster.snapshot.pods[f"default/web-{few}"]
                cluster.handle(events.PodSeen(replace(pod, node_name=opened.name)))
            elif what == "gone":
                cluster.handle(events.PodGone(f"default/web-{few}"))
            # Where neither comes it is waited for no longer than pods take to be bound.
            await until(lambda: many in told and not nominator.awaits(claim, node))

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ["gone", "lost", "bound"])
def test_a_ready_node_waits_for_no_node_that_is_gone_or_needed_no_more(what):
    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            api.held = {"web-b"}
            nominator.expect(two_nodes(cluster), PLACES)
            await until(
                lambda: len(api.asked) == 2 and cluster.snapshot.pods["default/web-a"].expected_node_name
            )
            assert told == []
            if what == "gone":
                cluster.handle(events.NodeGone("node-b"))
            elif what == "lost":
                cluster.handle(events.NodeSeen(replace(cluster.snapshot.nodes["node-b"], ready=False)))
            else:
                pod = cluster.snapshot.pods["default/web-b"]
                cluster.handle(events.PodSeen(replace(pod, node_name="elsewhere")))
            await until(lambda: "a" in told)

    asyncio.run(scenario())


def test_nodes_are_opening_from_when_they_are_ready_until_a_moment_after():
    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            pods = two_nodes(cluster, ready=False)
            assert not nominator.is_opening()
            nominator.expect(pods, PLACES)
            for name in ("node-a", "node-b"):
                node = cluster.snapshot.nodes[name]
                cluster.handle(
                    events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9"))
                )
            assert nominator.is_opening()
            await until(lambda: set(told) == {"a", "b"})
            for name in ("node-a", "node-b"):
                node = cluster.snapshot.nodes[name]
                opened = replace(node, taints=without_unregistered(node.taints), resource_version="10")
                cluster.handle(events.NodeSeen(opened))
            assert nominator.is_opening()
            nominator._opened_at -= 10
            assert not nominator.is_opening()

    asyncio.run(scenario())


def test_a_ready_node_waits_for_another_one_a_moment_only():
    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            api.held = {"web-b"}
            nominator.expect(two_nodes(cluster), PLACES)
            await until(lambda: told == ["a"])
            assert nominator._incomplete == {"node-b"}

    asyncio.run(scenario())


async def ready_beside_one_that_is_not(cluster, nominator):
    """Two nodes, of which the first is ready and its pod nominated."""
    nominator.expect(two_nodes(cluster, ready=False), PLACES)
    await at_rest(nominator)
    node = cluster.snapshot.nodes["node-a"]
    cluster.handle(events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9")))
    await until(lambda: cluster.snapshot.pods["default/web-a"].expected_node_name)


def test_a_ready_node_waits_for_one_that_joined_with_it_and_is_not_ready_yet():
    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            await ready_beside_one_that_is_not(cluster, nominator)
            assert told == []
            node = cluster.snapshot.nodes["node-b"]
            cluster.handle(events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9")))
            await until(lambda: set(told) == {"a", "b"})
            assert all(pod.expected_node_name for pod in cluster.snapshot.pods.values())

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ["gone", "never ready"])
def test_a_node_that_does_not_get_ready_is_waited_for_a_moment_only(what):
    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            await ready_beside_one_that_is_not(cluster, nominator)
            if what == "gone":
                cluster.handle(events.NodeGone("node-b"))
            await until(lambda: "a" in told)
            assert ("node-b" in cluster.snapshot.nodes) == (what == "never ready")

    asyncio.run(scenario())


def test_a_node_is_waited_for_also_where_its_provider_id_comes_after_it():
    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            nominator.expect(two_nodes(cluster, ready=False, unknown="b"), PLACES)
            late = cluster.snapshot.nodes["node-b"]
            cluster.handle(events.NodeSeen(replace(late, provider_id="aws:///z/i-b", resource_version="8")))
            node = cluster.snapshot.nodes["node-a"]
            cluster.handle(events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9")))
            await until(lambda: cluster.snapshot.pods["default/web-a"].expected_node_name)
            assert told == []
            assert nominator._comes_with("node-a", "node-b")
            assert "node-b" in nominator._incomplete

    asyncio.run(scenario())


def test_nodes_that_get_free_at_the_same_time_are_told_of_once_each():
    """Hundreds had each told of all others: seconds in which the process did nothing else."""
    number = 100

    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            pods, places = [], {}
            for each in range(number):
                provider = f"aws:///z/i-{each}"
                cluster.handle(events.ClaimSeen(a_launched_claim(f"c{each}", provider_id=provider)))
                node = a_node(
                    f"c{each}", name=f"node-{each}", provider_id=provider, taints=CLOSED, ready=False
                )
                cluster.handle(events.NodeSeen(node))
                pods.append(a_pending_pod(f"web-{each}"))
                cluster.handle(events.PodSeen(pods[-1]))
                places[pods[-1].key] = f"c{each}"
            nominator.expect(pods, places)
            for each in range(number):
                node = cluster.snapshot.nodes[f"node-{each}"]
                cluster.handle(
                    events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9"))
                )
            for each in pods:  # bound, all within one turn of the event loop
                cluster.handle(events.PodSeen(replace(each, node_name="elsewhere")))
            await until(lambda: len(set(told)) == number)
            assert len(told) <= 3 * number

    asyncio.run(scenario())


def test_a_ready_node_does_not_wait_for_one_that_joined_long_before_it():
    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            nominator.expect(two_nodes(cluster, ready=False), PLACES)
            nominator._joined_at["node-b"] -= 60
            await ready_beside_one_that_is_not(cluster, nominator)
            await until(lambda: "a" in told)
            assert not nominator._comes_with("node-a", "node-b")

    asyncio.run(scenario())


@pytest.mark.parametrize(("number", "kept"), [(2, False), (200, True), (1000, True)])
def test_a_node_is_kept_closed_for_longer_where_the_scheduler_has_more_pods_to_report(number, kept):
    """At 50 requests a second; 500 pods had cost a node that no plan needed, since nodes opened meanwhile."""

    async def scenario():
        async with nominating() as (cluster, api, nominator, _told):
            api.held = {f"web-{each}" for each in range(number)}
            two_nodes(cluster)
            pods = [a_pending_pod(f"web-{each}") for each in range(number)]
            for pod in pods:
                cluster.handle(events.PodSeen(pod))
            nominator.expect(pods, {pod.key: "ab"[index % 2] for index, pod in enumerate(pods)})
            claim, node = cluster.snapshot.claims["a"], cluster.snapshot.nodes["node-a"]
            nominator._ready_since["node-a"] -= 6
            assert nominator.awaits(claim, node) is kept
            nominator._ready_since["node-a"] -= 5
            assert not nominator.awaits(claim, node)

    asyncio.run(scenario())


async def all_nominated(cluster):
    """Wait until the pods are seen to be nominated as in `NOMINATED`."""
    await until(
        lambda: (
            [(pod.name, pod.expected_node_name) for _, pod in sorted(cluster.snapshot.pods.items())]
            == NOMINATED
        )
    )


async def nominated_early(cluster, nominator):
    """Have the pods nominated to their nodes, none of which is ready."""
    nominator.expect(two_nodes(cluster, ready=False), PLACES)
    await all_nominated(cluster)
    await at_rest(nominator)


def becomes_ready(cluster, name):
    node = cluster.snapshot.nodes[name]
    cluster.handle(events.NodeSeen(replace(node, ready=True, taints=NARROWED, resource_version="9")))


def test_pods_are_nominated_to_a_node_before_it_is_ready_and_it_opens_when_it_is():
    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            await nominated_early(cluster, nominator)
            claim = cluster.snapshot.claims["a"]
            assert nominator.awaits(claim, cluster.snapshot.nodes["node-a"])
            assert told == []
            for name in ("node-a", "node-b"):
                becomes_ready(cluster, name)
            await until(lambda: set(told) == {"a", "b"})
            assert not nominator.awaits(claim, cluster.snapshot.nodes["node-a"])
            assert sorted(api.asked) == NOMINATED

    asyncio.run(scenario())


@pytest.mark.parametrize("ready", [False, True])
def test_a_node_waits_for_one_that_joined_with_it_and_cannot_be_opened_in_one_write_yet(ready):
    """It is not ready, or was a moment ago and its taint still evicts.

    Opened alone, a node has kube-scheduler try the other's pods in vain, whose nominations are gone then.
    """

    async def scenario():
        async with nominating() as (cluster, _api, nominator, told):
            await nominated_early(cluster, nominator)
            node = cluster.snapshot.nodes["node-b"]
            cluster.handle(events.NodeSeen(replace(node, ready=ready, resource_version="8")))
            becomes_ready(cluster, "node-a")
            claim, node = cluster.snapshot.claims["a"], cluster.snapshot.nodes["node-a"]
            await at_rest(nominator)
            assert nominator.awaits(claim, node)
            assert told == []
            becomes_ready(cluster, "node-b")
            await until(lambda: set(told) == {"a", "b"})

    asyncio.run(scenario())


def test_a_node_is_not_waited_for_once_nobody_is_expected_on_it():
    async def scenario():
        async with nominating() as (cluster, _api, nominator, _told):
            await nominated_early(cluster, nominator)
            assert nominator._incomplete == {"node-a", "node-b"}
            cluster.handle(events.PodGone("default/web-b"))
            await at_rest(nominator)
            assert nominator._incomplete == {"node-a"}

    asyncio.run(scenario())


def test_what_the_scheduler_takes_back_before_the_node_is_ready_is_written_once_more_and_then_when_it_is():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            nominator.expect(two_nodes(cluster, ready=False), PLACES)
            for written in (1, 2):
                await all_nominated(cluster)
                await at_rest(nominator)
                assert api.asked.count(NOMINATED[0]) == written
                back = replace(cluster.snapshot.pods["default/web-a"], expected_node_name="")
                cluster.handle(events.PodSeen(back))
            await at_rest(nominator)
            assert api.asked.count(NOMINATED[0]) == 2
            becomes_ready(cluster, "node-a")
            await until(lambda: api.asked.count(NOMINATED[0]) == 3)

    asyncio.run(scenario())


def test_a_node_that_is_neither_ready_nor_kept_closed_gets_no_nomination():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            pods = two_nodes(cluster, ready=False)
            for name in ("node-a", "node-b"):
                cluster.handle(events.NodeSeen(replace(cluster.snapshot.nodes[name], taints=())))
            nominator.expect(pods, PLACES)
            await at_rest(nominator)
            assert api.asked == []

    asyncio.run(scenario())


def test_a_nomination_that_the_scheduler_takes_back_is_written_again():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            nominator.expect(two_nodes(cluster), PLACES)
            await all_nominated(cluster)
            back = replace(cluster.snapshot.pods["default/web-a"], expected_node_name="")
            cluster.handle(events.PodSeen(back))
            await until(lambda: sorted(api.asked) == [NOMINATED[0], *NOMINATED])

    asyncio.run(scenario())


def test_what_the_next_plan_wants_elsewhere_or_nowhere_is_changed():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            pods = two_nodes(cluster)
            nominator.expect(pods, PLACES)
            await all_nominated(cluster)
            nominator.expect(pods, {"default/web-a": "b"})
            await until(lambda: sorted(api.asked[2:], key=str) == [("web-a", "node-b"), ("web-b", None)])

    asyncio.run(scenario())


def test_a_pod_that_its_open_node_did_not_get_in_a_minute_is_given_back_to_the_scheduler():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            nominator.expect(two_nodes(cluster), PLACES)
            await all_nominated(cluster)
            for node in list(cluster.snapshot.nodes.values()):
                taints = without_unregistered(node.taints)
                cluster.handle(events.NodeSeen(replace(node, taints=taints, resource_version="9")))
            await until(lambda: all(since for _, _, since in nominator._tries.values()))
            long_ago = {key: (node, tries, 0.001) for key, (node, tries, _) in nominator._tries.items()}
            nominator._tries.update(long_ago)
            for pod in list(cluster.snapshot.pods.values()):
                cluster.handle(events.PodSeen(pod))
            await until(lambda: sorted(api.asked[2:]) == [("web-a", None), ("web-b", None)])

    asyncio.run(scenario())


def two_of_a_spread_workload(cluster, places):
    """Two pods of which no more than one more may run in one zone than in another one."""
    rules = (spread(ZONE, app="web"),)
    pods = [
        replace(pod, labels={"app": "web"}, shape=replace(pod.shape, spread=rules))
        for pod in two_nodes(cluster)
    ]
    for pod in pods:
        cluster.handle(events.PodSeen(pod))
    return pods, dict(zip(PLACES, places, strict=True))


def test_pods_that_would_keep_each_other_from_their_node_are_not_nominated_and_the_node_is_opened():
    """kube-scheduler counts those that are nominated to a node as if they ran there."""

    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            pods, places = two_of_a_spread_workload(cluster, "aa")
            other = a_pending_pod("other", shape=PodShape((("cpu", 100),)))
            cluster.handle(events.PodSeen(other))
            nominator.expect([*pods, other], {**places, other.key: "b"})
            await until(lambda: set(told) == {"a", "b"})
            assert api.asked == [("other", "node-b")]

    asyncio.run(scenario())


def test_one_pod_of_a_spread_workload_is_nominated_to_each_node():
    async def scenario():
        async with nominating() as (cluster, api, nominator, told):
            nominator.expect(*two_of_a_spread_workload(cluster, "ab"))
            await until(lambda: set(told) == {"a", "b"})
            assert sorted(api.asked) == NOMINATED

    asyncio.run(scenario())


def test_a_nomination_is_taken_back_where_a_later_plan_puts_more_of_its_workload_there():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            pods, places = two_of_a_spread_workload(cluster, "ab")
            nominator.expect(pods, places)
            await all_nominated(cluster)
            third = replace(
                cluster.snapshot.pods["default/web-b"], name="web-c", uid="c", expected_node_name=""
            )
            cluster.handle(events.PodSeen(third))
            now = [cluster.snapshot.pods[pod.key] for pod in (*pods, third)]
            nominator.expect(now, {**places, third.key: "b"})
            await until(lambda: api.asked[-1] == ("web-b", None))
            await at_rest(nominator)
            assert sorted(api.asked[:-1]) == NOMINATED
            assert cluster.snapshot.pods["default/web-a"].expected_node_name == "node-a"

    asyncio.run(scenario())


def test_pods_of_preemption_are_left_alone():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            pods = [replace(pod, nominated_node_name="node-b") for pod in two_nodes(cluster)]
            for pod in pods:
                cluster.handle(events.PodSeen(pod))
            nominator.expect(pods, PLACES)
            claim, node = cluster.snapshot.claims["a"], cluster.snapshot.nodes["node-a"]
            await until(lambda: not nominator.awaits(claim, node))
            assert api.asked == []

    asyncio.run(scenario())


def test_where_there_is_one_place_alone_nothing_is_written():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            nominator.expect(two_nodes(cluster), dict.fromkeys(PLACES, "a"))
            await at_rest(nominator)
            assert api.asked == []
            assert not nominator.expects(cluster.snapshot.claims["a"])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "server",
    [{"version": "v1.34.9"}, {"refusal": ApiError(403, "Forbidden", "pods/status is forbidden")}],
    ids=["old", "forbidden"],
)
def test_a_cluster_without_the_feature_or_the_right_is_noticed_and_its_nodes_are_opened(server):
    async def scenario():
        async with nominating(**server) as (cluster, api, nominator, _):
            nominator.expect(two_nodes(cluster), PLACES)
            await until(lambda: nominator.refused)
            await at_rest(nominator)
            before = list(api.asked)
            assert len(before) <= 2
            assert not nominator.expects(cluster.snapshot.claims["a"])
            nominator.expect(two_nodes(cluster), PLACES)
            await at_rest(nominator)
            assert api.asked == before

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ((Toleration(operator="Exists"),), True),
        ((Toleration(key="node.kubernetes.io/not-ready", operator="Exists"),), False),
        ((), True),
    ],
)
def test_a_node_is_not_kept_closed_from_a_daemon_that_may_make_it_ready(tolerations, expected):
    async def scenario():
        async with nominating() as (cluster, _, nominator, _):
            nominator.expect(two_nodes(cluster), PLACES)
            shape = PodShape(requests=(), tolerations=tolerations)
            cluster.handle(events.DaemonSetSeen(DaemonSet("u", "kube-system", "network", shape)))
            return nominator.expects(cluster.snapshot.claims["a"])

    assert asyncio.run(scenario()) == expected


def test_a_new_leader_goes_on_from_what_stands_on_the_claims():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            for pod in two_nodes(cluster):
                claim = cluster.snapshot.claims[pod.name[-1]]
                note = {**claim.annotations, PLANNED_PODS: uid_digest(pod.uid)}
                cluster.handle(events.ClaimSeen(replace(claim, annotations=note, resource_version="9")))
            nominator.recover()
            await until(lambda: sorted(api.asked) == NOMINATED)

    asyncio.run(scenario())


def test_a_pod_that_was_bound_while_its_pass_went_on_holds_no_node_closed():
    async def scenario():
        async with nominating() as (cluster, api, nominator, _):
            pods = two_nodes(cluster)
            cluster.handle(events.PodSeen(replace(pods[0], node_name="elsewhere")))
            cluster.handle(events.PodGone(pods[1].key))
            nominator.expect(pods, PLACES)
            await at_rest(nominator)
            assert api.asked == []
            assert not nominator.expects(cluster.snapshot.claims["a"])

    asyncio.run(scenario())
