"""The plan is what happens: pods that wait are nominated to the nodes that were planned for them.

kube-scheduler spreads pods over the nodes by its scores; the tighter a plan, the more of its pods then
have no room. Since Kubernetes 1.35 others than the scheduler may say where they expect a pod
(`status.nominatedNodeName`, KEP-5278): it tries that node first, and keeps the room there from pods of
the same or a lower priority.

Every pass hands over where the pods that wait are expected (`expect`). A pod is nominated once its node
is there, which on EKS is four to eleven seconds before it is Ready (AWS's own figures, in the README of
awslabs/node-latency-for-k8s): hundreds of writes cost no time then. Until the node is Ready and all its pods
are nominated it keeps the taint `karpenter.sh/unregistered` (`nodeclaim.startup_taints`). kube-scheduler
takes a nomination back whenever it tries a pod in vain, and it tries all that wait as each node comes up. So
nominations for a closed node are written in a calm moment, in which no pod that waits has changed for a
while, and the node is opened in the next; what is taken back nevertheless is written again, once it is Ready
as often as it takes. Each node that is opened makes kube-scheduler try all that wait, also those that are
nominated to nodes which are still closed, or are about to be. So nodes that joined or got ready at about the
same time wait for each other, and open together, those of small pods first (`_tell`).

A nomination keeps no devices: kube-scheduler counts what nominated pods request, but allocates claims on
devices only as it binds. So where pods claim devices the nodes of those that claim fewer open first, and the
others' when these are bound: what claims a whole node finds it free.

kube-scheduler counts the pods that are nominated to a node as if they ran there. So pods that hard topology
spread would keep from their node while others are nominated to it are not nominated (`nominated_spread`).
Nor are pods whose room terminating ones still use (`scheduling.capacity.terminating`): they fit nowhere yet.

A nomination is ours when the API server says that we wrote it last (`Pod.expected_node_name`); those of
others, preemption's above all, are left alone. Nothing is kept but on the objects: a new leader finds its
predecessors' nominations on the pods and their plans on the claims (`state.expected`).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf

from nodeless.cloudprovider import CloudError
from nodeless.controllers.error_boundary import ErrorBoundary, ProcessMustEnd
from nodeless.controllers.server_version import server_version
from nodeless.kube import ApiClient, ApiError, ApiUnavailable
from nodeless.kube.cluster import Cluster
from nodeless.kube.workqueue import KeyedQueue
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.labels import FIELD_MANAGER, UNREGISTERED_TAINT
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, find_untolerated
from nodeless.nodeclaim.startup_taints import evicts, is_closed
from nodeless.operator.clock import wall_clock
from nodeless.operator.logs import logger
from nodeless.operator.semaphore import Slots
from nodeless.scheduling import pods_to_place
from nodeless.scheduling.devices import devices_asked
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.scheduling.pods.nominated_spread import kept_from_their_node
from nodeless.scheduling.pods.selecting import Namespaces
from nodeless.state.expected import expected_places, place_of

#: The first version whose API server and scheduler take nominations from others by default.
FIRST_VERSION = (1, 35)
#: Nominations that are written at a time.
WORKERS = 16
#: Seconds within which our own write comes back by the watch.
_ECHO_SECONDS = 2.0
#: Seconds without a sign of kube-scheduler trying pods after which it has tried all that it will for now,
#: and seconds from a closed node's readiness after which nothing is written, or waited for, any more.
_CALM_SECONDS = 0.15
_LONGEST_UNREST, _LONGEST_CLOSED = 2.0, 5.0
#: To both comes what kube-scheduler takes to report all pods that it tried in vain, at 50 requests a second
#: (its default: k8s.io/kubernetes/pkg/scheduler/apis/config/v1/defaults.go), but not more than so many.
_REPORTED_A_SECOND, _LONGEST_REPORT = 50, 5.0
#: Seconds from a closed node's readiness for which it waits for others: those that are ready, too, and those
#: that joined within so many seconds before or after it, which are likely to be ready in a moment.
_LONGEST_TOGETHER = 2.0
#: Seconds from the opening of a node within which kube-scheduler binds its pods.
_BOUND_WITHIN = 3.0
#: Seconds after which a pod that kube-scheduler does not bind to an open node is nominated there no more.
_DEADLINE = 60.0
#: How often a nomination that was taken back is written again; from the fourth time on, each second.
_MOST_TRIES, _TRIES_AT_ONCE = 20, 4
#: How often a pod is nominated to a node that is not ready yet.
_EARLY_TRIES = 2
_RETRY_SECONDS = 1.0
_VERSION_RETRY_SECONDS = 10.0
_FORBIDDEN = 403
#: Refusals that say that the pod is bound, gone or another one: there is nothing left to nominate.
_TOO_LATE = (404, 409, 422)
_NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")
_UNREGISTERED = Taint(UNREGISTERED_TAINT, "NoExecute")


class PodNominator:
    """Keeps the nominations of pods that wait as the last plan wants them."""

    def __init__(
        self,
        client: ApiClient,
        cluster: Cluster,
        assert_leading: Callable[[], None],
        boundary: ErrorBoundary,
    ) -> None:
        self._boundary = boundary
        self._client = client
        self._cluster = cluster
        self._assert_leading = assert_leading
        self._queue = KeyedQueue()
        self._slots = Slots(WORKERS)
        #: Why nothing is nominated; empty while it is.
        self.refused = ""
        #: By pod key: uid, and the claim or node where the last pass expects it ("": nowhere).
        self._places: dict[str, tuple[str, str]] = {}
        #: The pods of `_places` by their place.
        self._pods: dict[str, set[str]] = {}
        #: The pods that are not nominated: they wait, or would keep each other from their node.
        self._kept_off: set[str] = set()
        #: The pods whose room is not free yet.
        self._waiting: set[str] = set()
        #: By pod key: the node that we wrote and have not seen yet, and when.
        self._written: dict[str, tuple[str, float]] = {}
        #: By pod key: node, how often it was written, and since when the pod could have been bound to it.
        self._tries: dict[str, tuple[str, int, float]] = {}
        #: When a pod that waits changed last, other than by our own writes.
        self._active_at = 0.0
        #: By name of a closed node: when it joined, and since when it is ready.
        self._joined_at: dict[str, float] = {}
        self._ready_since: dict[str, float] = {}
        #: When the last node that had been ready and closed was opened, or lost.
        self._opened_at = -inf
        #: When nodes were opened, or lost, of which some pods may not be bound yet.
        self._binding_since: dict[str, float] = {}
        #: By pod key: how many devices it asks for, of those that ask for any and have a place.
        self._devices: dict[str, float] = {}
        #: What `_last_by_devices` found since the last event.
        self._bound_by: dict[float, float] | None = None
        #: Of those that joined, the nodes that could not be opened in one write yet (`_is_incomplete`).
        self._incomplete: set[str] = set()
        #: Places that are looked at again in a calm moment, and when.
        self._to_complete: dict[str, float] = {}
        #: Names of claims that are told about in the next turn of the event loop; None: no turn is due.
        self._to_tell: set[str] | None = None
        self._on_complete: Callable[[str], None] = _ignore
        self._log = logger("nominations")
        cluster.listen(self._on_event)

    def on_complete(self, tell: Callable[[str], None]) -> None:
        """Have the name of each claim told whose pods are all nominated."""
        self._on_complete = tell

    def expect(
        self, considered: Iterable[Pod], places: Mapping[str, str], waiting: Collection[str] = ()
    ) -> None:
        """Take over where a pass expects the pods that wait.

        Args:
            considered: The pods of the pass; what runs already is left out.
            places: Pod key to the name of a node or a claim. A pod that is not here has no place.
            waiting: Keys of pods whose place is not free yet: nominated, kube-scheduler would find no room.
        """
        snapshot = self._cluster.snapshot
        for pod in considered:
            now = snapshot.pods.get(pod.key)
            # Bound or gone while the pass went on: nothing would ever be heard of it again.
            if now is not None and now.uid == pod.uid and _waits(now):
                self._forget(pod.key)
                self._places[pod.key] = (pod.uid, places.get(pod.key, ""))
                self._pods.setdefault(places.get(pod.key, ""), set()).add(pod.key)
                if pod.key in waiting:
                    self._waiting.add(pod.key)
                if devices := devices_asked(snapshot, now):
                    self._devices[pod.key] = devices
                self._queue.add(pod.key)
        self._bound_by = None
        self._kept_off = self._find_kept_off(snapshot)
        for name in self._joined_at:
            self._begin(name)
        self._open_the_last()

    def _find_kept_off(self, snapshot: Snapshot) -> set[str]:
        namespaces, found = Namespaces(snapshot), set(self._waiting)
        for place, keys in self._pods.items():
            if place:
                pods = filter(None, map(snapshot.pods.get, keys - self._waiting))
                found |= kept_from_their_node(pods, namespaces)
        return found

    def is_opening(self) -> bool:
        """Whether nodes that are ready are still closed, or were a moment ago: their pods are being bound."""
        now = time.monotonic()
        longest = _LONGEST_CLOSED + self._report_seconds()
        return now - self._opened_at < _BOUND_WITHIN or any(
            now - since <= longest for since in self._ready_since.values()
        )

    def expects(self, claim: NodeClaim) -> bool:
        """Whether pods that wait are to be nominated to a claim's node."""
        return bool(self._of(claim)) and self._has_choice() and not self._must_not_nominate()

    def awaits(self, claim: NodeClaim, node: Node) -> bool:
        """Whether a pod that is expected on a claim's node is not nominated there yet."""
        if self._closed_for(node) > _LONGEST_CLOSED + self._report_seconds():
            return False
        return self._awaits_nomination(claim, node) or (bool(self._of(claim)) and self._rest_in(node) > 0)

    def _awaits_nomination(self, claim: NodeClaim, node: Node) -> bool:
        """Whether a pod is still to be nominated to a claim's node."""
        return any(not self._needs_no_write(key, node) for key in self._of(claim))

    def _is_incomplete(self, claim: NodeClaim, node: Node) -> bool:
        """Whether pods are expected on a node that could not be opened in one write yet."""
        return self._awaits_nomination(claim, node) or (evicts(node) and bool(self._of(claim)))

    def _closed_for(self, node: Node) -> float:
        """For how many seconds a node has been ready and closed."""
        since = self._ready_since.get(node.name)
        return 0.0 if since is None else time.monotonic() - since

    def _unrest(self, node: Node) -> float:
        """Seconds until there may be a calm moment for a closed node; 0 when there is, or none is needed."""
        if not is_closed(node) or self._closed_for(node) > _LONGEST_UNREST + self._report_seconds():
            return 0.0
        return max(self._active_at + _CALM_SECONDS - time.monotonic(), 0.0)

    def _report_seconds(self) -> float:
        """How long kube-scheduler takes to report all pods that wait for their node."""
        waiting = len(self._places) - len(self._pods.get("", ()))
        return min(waiting / _REPORTED_A_SECOND, _LONGEST_REPORT)

    def _rest_in(self, node: Node) -> float:
        """Seconds until a node whose pods are all nominated may be opened, unless somebody tells before."""
        together = 0.0
        if node.name in self._ready_since and any(
            self._comes_with(node.name, other) for other in self._incomplete
        ):
            together = max(_LONGEST_TOGETHER - self._closed_for(node), 0.0)
        return max(together, self._unrest(node), self._until_devices_are_allocated(node))

    def _until_devices_are_allocated(self, node: Node) -> float:
        """Seconds for which a node stays closed for pods on others that claim fewer devices than its own."""
        own = self._most_devices(node.name)
        if not own:
            return 0.0
        if self._bound_by is None:
            self._bound_by = self._last_by_devices()
        last = max((until for devices, until in self._bound_by.items() if devices < own), default=-inf)
        return min(max(last - time.monotonic(), 0.0), _BOUND_WITHIN)

    def _last_by_devices(self) -> dict[float, float]:
        """By the most devices that a pod of a node claims: until when those pods are bound; inf: closed."""
        found: dict[float, float] = {}
        opened = {name: at + _BOUND_WITHIN for name, at in self._binding_since.items()}
        for name, until in (opened | dict.fromkeys(self._ready_since, inf)).items():
            if devices := self._most_devices(name):
                found[devices] = max(until, found.get(devices, -inf))
        return found

    def _comes_with(self, name: str, other: str) -> bool:
        """Whether a node that is ready waits for another one."""
        return (
            other in self._ready_since
            or abs(self._joined_at[other] - self._joined_at[name]) <= _LONGEST_TOGETHER
        )

    def _begin(self, name: str) -> None:
        """Have a node that joined be waited for by the others, if pods are to be nominated to it."""
        snapshot = self._cluster.snapshot
        node = snapshot.nodes.get(name)
        claim = snapshot.claim_of(node) if node is not None else None
        if (
            node is not None
            and claim is not None
            and self.expects(claim)
            and self._is_incomplete(claim, node)
        ):
            self._incomplete.add(name)

    def _stop_waiting_for(self, name: str) -> None:
        """A node is not waited for any more: once there is none, those that have waited are looked at."""
        if name in self._incomplete:
            self._incomplete.discard(name)
            if self._ready_since and self._incomplete.isdisjoint(self._ready_since):
                self._tell()

    def _tell(self, *claims: str) -> None:
        """Tell soon that the nodes of claims may be opened, and with them, in their order, all that may be.

        However close together nodes are opened, kube-scheduler hears of one after the other, and a pod whose
        own node is not open yet may take room that is free on another one. So the small pods' nodes go first:
        no large pod fits into what they leave, and small ones no longer look for room where large ones go.
        All that happens in one turn of the event loop is told once: hundreds of nodes may get free together.
        """
        if self._to_tell is None:
            self._to_tell = set()
            asyncio.get_running_loop().call_soon(self._tell_all)
        self._to_tell.update(claims)

    def _tell_all(self) -> None:
        snapshot = self._cluster.snapshot
        free = {name: snapshot.claims[name] for name in self._to_tell or () if name in snapshot.claims}
        self._to_tell = None
        for name in self._ready_since:
            node = snapshot.nodes.get(name)
            claim = snapshot.claim_of(node) if node is not None else None
            if node is None or claim is None:
                continue
            if not self.expects(claim) or not self.awaits(claim, node):
                free[claim.name] = claim
            else:
                self._look_later(name, node)
        for each in sorted(free.values(), key=self._largest):
            self._on_complete(each.name)

    def _look_later(self, place: str, node: Node) -> None:
        """Look at a place again once its node may be opened, should nobody tell before."""
        rest = self._rest_in(node)
        due = time.monotonic() + rest
        if rest and due + _CALM_SECONDS < self._to_complete.get(place, inf):
            self._to_complete[place] = due
            asyncio.get_running_loop().call_later(rest, self._complete, place)

    def _largest(self, claim: NodeClaim) -> float:
        """The size of the largest pod that is to come to a claim's node, in milli-CPU."""
        pods = map(self._cluster.snapshot.pods.get, self._of(claim))
        return max((_size(pod) for pod in pods if pod is not None), default=0.0)

    def _most_devices(self, name: str) -> float:
        """The most devices that one of the pods that are to come to a node asks for."""
        if not self._devices:
            return 0.0
        snapshot = self._cluster.snapshot
        node = snapshot.nodes.get(name)
        claim = snapshot.claim_of(node) if node is not None else None
        keys = self._of(claim) if claim is not None else ()
        return max((self._devices.get(key, 0.0) for key in keys), default=0.0)

    def _of(self, claim: NodeClaim) -> set[str]:
        node = self._cluster.snapshot.node_of(claim)
        return self._pods.get(claim.name, set()) | (self._pods.get(node.name, set()) if node else set())

    def _has_choice(self) -> bool:
        """Whether there is anything to choose: on the only node of a plan all of its pods have room."""
        return sum(bool(place) for place in self._pods) > 1

    def _must_not_nominate(self) -> bool:
        """Whether nothing is nominated, or a DaemonSet runs before a node is ready but not before it is ours.

        Such a one may be what makes the node ready: the taint must not wait for that.
        """
        return bool(self.refused) or any(
            find_untolerated((_NOT_READY,), daemon_set.shape.tolerations) is None
            and find_untolerated((_UNREGISTERED,), daemon_set.shape.tolerations) is not None
            for daemon_set in self._cluster.snapshot.daemon_sets.values()
        )

    def _needs_no_write(self, key: str, node: Node) -> bool:
        """Whether nothing is to be written any more for a pod that is expected on a node.

        Until the node is ready, a nomination to it may be taken back. Where its pods are kept off, others are
        to wait for it, too: kube-scheduler spreads such pods over the nodes that are open.
        """
        pod = self._cluster.snapshot.pods.get(key)
        if pod is None or not _waits(pod) or pod.nominated_node_name:
            return True
        is_settled = pod.expected_node_name == node.name or key in self._kept_off
        return (is_settled and node.ready) or self._is_past_tries(key, node.name)

    def _is_past_tries(self, key: str, node_name: str) -> bool:
        node, tries, since = self._tries.get(key, ("", 0, 0.0))
        return node == node_name and (tries >= _MOST_TRIES or 0 < since <= time.monotonic() - _DEADLINE)

    def _may_be_early(self, key: str, node_name: str) -> bool:
        """Whether a pod is nominated to a node that is not ready yet."""
        node, tries, _ = self._tries.get(key, ("", 0, 0.0))
        return node != node_name or tries < _EARLY_TRIES

    def _forget(self, key: str) -> None:
        """Expect a pod nowhere any more, without a word to the API server."""
        known = self._places.pop(key, None)
        self._devices.pop(key, None)
        self._kept_off.discard(key)
        self._waiting.discard(key)
        if known is not None:
            pods = self._pods.get(known[1], set())
            pods.discard(key)
            if not pods:
                self._pods.pop(known[1], None)

    def _on_event(self, event: Event, before: Snapshot, after: Snapshot) -> None:
        self._bound_by = None
        match event:
            case events.PodSeen(pod):
                known = before.pods.get(pod.key)
                if self._is_echo(pod):
                    del self._written[pod.key]
                elif known is not None and not known.node_name:
                    self._active_at = time.monotonic()
                if not _waits(pod):
                    self._drop(pod.key)
                elif pod.key in self._places or pod.expected_node_name:
                    self._queue.add(pod.key)
            case events.PodGone(key):
                self._drop(key)
            case events.NodeSeen(node) if _opens_or_closes(before.nodes.get(node.name), node):
                if not is_closed(node) or (node.name in self._ready_since and not node.ready):
                    self._forget_node(node.name)
                elif node.ready or node.name not in before.nodes or node.name in self._joined_at:
                    self._joined_at.setdefault(node.name, time.monotonic())
                    if node.ready:
                        self._ready_since.setdefault(node.name, time.monotonic())
                    # Its claim may be known only now: kubelets tell who provides their node later.
                    self._begin(node.name)
                self._look_at(after, node)
            case events.NodeGone(name) if name in before.nodes:
                self._forget_node(name)
                self._look_at(before, before.nodes[name])

    def _forget_node(self, name: str) -> None:
        if self._ready_since.pop(name, None) is not None:
            self._opened_at = now = time.monotonic()
            recent = {other: at for other, at in self._binding_since.items() if now - at < _BOUND_WITHIN}
            self._binding_since = {**recent, name: now}
        self._stop_waiting_for(name)
        self._joined_at.pop(name, None)

    def _is_echo(self, pod: Pod) -> bool:
        """Whether a pod comes back as we wrote it."""
        return self._written.get(pod.key, ("", 0.0))[0] == pod.expected_node_name != ""

    def _drop(self, key: str) -> None:
        place = self._places.get(key, ("", ""))[1]
        if key in self._devices and self._ready_since:
            self._tell()
        self._forget(key)
        self._written.pop(key, None)
        self._tries.pop(key, None)
        self._complete(place)
        self._open_the_last()

    def _open_the_last(self) -> None:
        """The pods of the last place that pods wait for are nominated no more: its node is to be opened."""
        # One place, and beside it perhaps the pods that have none.
        if len(self._pods) <= 2 and not self._has_choice():
            for place in tuple(self._pods):
                self._complete(place)

    def _look_at(self, snapshot: Snapshot, node: Node) -> None:
        claim = snapshot.claim_of(node)
        for place in (node.name, claim.name if claim is not None else node.name):
            for key in self._pods.get(place, ()):
                self._queue.add(key)
        for pod in snapshot.pods.values():
            if pod.expected_node_name == node.name and not pod.node_name:
                self._queue.add(pod.key)

    async def run(self) -> None:
        """Nominate until cancelled."""
        self.recover()
        await self._check_version()
        async with asyncio.TaskGroup() as group:
            while True:
                key = await self._slots.take_for(self._queue.get)
                group.create_task(self._work(key))

    def recover(self) -> None:
        """Go on from what earlier leaders left on claims and pods."""
        snapshot = self._cluster.snapshot
        waiting = [pod for pod in pods_to_place(snapshot, wall_clock()) if not pod.node_name]
        places = expected_places(snapshot, (waiting,))
        self.expect((pod for pod in waiting if pod.key in places), places)

    async def _check_version(self) -> None:
        """Wait until the API server has told its version."""
        while True:
            try:
                reported = await server_version(self._client)
                break
            except CloudError as error:
                self._refuse(str(error))
            await asyncio.sleep(_VERSION_RETRY_SECONDS)
        self.refused = ""
        major, minor = map(int, reported.split("."))
        self._cluster.handle(events.ServerVersionSeen((major, minor)))
        if (major, minor) < FIRST_VERSION:
            self._refuse(
                f"the API server is {reported}, nominations need {FIRST_VERSION[0]}.{FIRST_VERSION[1]}"
            )

    def _refuse(self, why: str) -> None:
        """Say once that plans are left to kube-scheduler's scores."""
        if not self.refused:
            self._log.info(f"pods are not nominated to their planned nodes: {why}")
        self.refused = why

    async def _work(self, key: str) -> None:
        try:
            await self._reconcile(key)
        except ApiUnavailable:
            self._queue.add_in(key, _RETRY_SECONDS)
        except ApiError as error:
            if error.status == _FORBIDDEN:
                self._refuse(f"{error}; hint: the controller's ClusterRole needs patch on pods/status")
                for place in list(self._pods):
                    self._complete(place)
            elif error.status not in _TOO_LATE:
                self._queue.add_in(key, self._boundary.record_failure(key, error))
        except ProcessMustEnd:
            raise
        except Exception as error:
            self._queue.add_in(key, self._boundary.record_failure(key, error))
        else:
            self._boundary.record_success(key)
        finally:
            self._queue.done(key)
            self._slots.give_back()

    async def _reconcile(self, key: str) -> None:
        """Make one pod's nomination what it should be."""
        snapshot = self._cluster.snapshot
        pod = snapshot.pods.get(key)
        if pod is None or not _waits(pod) or pod.nominated_node_name or self.refused:
            return
        written, at = self._written.get(key, (pod.expected_node_name, 0.0))
        if pod.expected_node_name != written:
            left = at + _ECHO_SECONDS - time.monotonic()
            if left > 0:
                self._queue.add_in(key, left)
                return
        self._written.pop(key, None)
        wanted = self._target_node(snapshot, pod)
        if pod.expected_node_name == wanted:
            if wanted:
                self._follow(snapshot, key, wanted)
            if wanted or key in self._kept_off:
                self._complete(self._places[key][1])
        elif wanted:
            unrest = self._unrest(snapshot.nodes[wanted])
            if unrest:
                self._queue.add_in(key, unrest)
            else:
                await self._nominate(pod, wanted)
        elif not self._holds(snapshot, pod):
            await self._write(pod, "")

    def _target_node(self, snapshot: Snapshot, pod: Pod) -> str:
        """The node to which a pod should be nominated now; empty: none."""
        uid, place = self._places.get(pod.key, ("", ""))
        node = snapshot.nodes.get(place_of(snapshot, place)) if uid == pod.uid and place else None
        if node is None or leaving(node, snapshot.claim_of(node)) or pod.key in self._kept_off:
            return ""
        if not node.ready and not (is_closed(node) and self._may_be_early(pod.key, node.name)):
            return ""
        if self._is_past_tries(pod.key, node.name) or not (pod.expected_node_name or self._has_choice()):
            return ""
        return node.name

    def _holds(self, snapshot: Snapshot, pod: Pod) -> bool:
        """Whether a nomination that no pass of ours has confirmed may stay: its node is there and stays."""
        node = snapshot.nodes.get(pod.expected_node_name)
        if node is None or leaving(node, snapshot.claim_of(node)) or pod.key in self._kept_off:
            return False
        if self._is_past_tries(pod.key, node.name):
            return False
        uid, place = self._places.get(pod.key, (pod.uid, node.name))
        return uid == pod.uid and place_of(snapshot, place) == node.name

    def _follow(self, snapshot: Snapshot, key: str, name: str) -> None:
        """Look again when a pod should have been bound to its open node."""
        node, tries, since = self._tries.get(key, (name, 1, 0.0))
        if is_closed(snapshot.nodes[name]):
            return
        if node != name or not since:
            tries, since = (tries if node == name else 1), time.monotonic()
            self._tries[key] = (name, tries, since)
        self._queue.add_in(key, since + _DEADLINE - time.monotonic())

    async def _nominate(self, pod: Pod, name: str) -> None:
        node, tries, since = self._tries.get(pod.key, (name, 0, 0.0))
        if node != name:
            tries, since = 0, 0.0
        self._tries[pod.key] = (name, tries + 1, since)
        if tries >= _TRIES_AT_ONCE:
            await asyncio.sleep(_RETRY_SECONDS)
        await self._write(pod, name)

    async def _write(self, pod: Pod, name: str) -> None:
        """Say where a pod is expected; its uid makes sure that it is still the same pod."""
        self._assert_leading()
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": name or None}}
        await self._client.patch(path, body, fieldManager=FIELD_MANAGER)
        self._written[pod.key] = (name, time.monotonic())
        self._queue.add_in(pod.key, _ECHO_SECONDS)

    def _complete(self, place: str) -> None:
        """Tell about a place whose pods are all nominated, or wait no more, or are not to be nominated."""
        self._to_complete.pop(place, None)
        snapshot = self._cluster.snapshot
        node = snapshot.nodes.get(place_of(snapshot, place)) if place else None
        claim = snapshot.claim_of(node) if node is not None else None
        if node is None or claim is None or not is_closed(node):
            return
        if not self._is_incomplete(claim, node):
            self._stop_waiting_for(node.name)
        if not self.expects(claim) or not self.awaits(claim, node):
            self._tell(claim.name)
        else:
            self._look_later(place, node)


def _size(pod: Pod) -> float:
    """Processors and memory as one, 4 GiB as much as a processor, as on most machines."""
    return pod.requests.get(CPU, 0) + 1000 * pod.requests.get(MEMORY, 0) / (4 << 30)


def _waits(pod: Pod) -> bool:
    return not pod.node_name and pod.deletion_timestamp is None and not pod.terminal


def _opens_or_closes(before: Node | None, node: Node) -> bool:
    """Whether a node came, or may take pods now and could not before, or the other way round."""
    return before is None or (before.ready, before.taints, before.deletion_timestamp, before.provider_id) != (
        node.ready,
        node.taints,
        node.deletion_timestamp,
        node.provider_id,
    )


def _ignore(_claim: str) -> None:
    """Nobody listens."""
