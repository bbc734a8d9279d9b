"""A cluster that lives on virtual time under the disruption loop: machines boot, pods move, time passes.

What the loop asks for is carried out as a cluster would: a claim becomes a node after a while, a deleted
claim's node is drained and goes, evicted pods come back and are bound by a scheduler of the test's choice,
and pods without room get nodes of their own as provisioning would buy them.
"""

import asyncio
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.disruption.controller import DisruptionLoop
from nodeless.disruption.candidates import claims_by_replacement
from nodeless.kube.cluster import Cluster
from nodeless.launch.claims import claims_for
from nodeless.launch.resolved import ResolvedNodeClass, Subnet
from nodeless.model import events
from nodeless.model.instructions import AnnotateClaim, CreateClaim, DeleteClaim, UpdateClaimStatus, UpdateNode
from nodeless.model.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, REGISTERED, ZONE
from nodeless.model.nodes import (
    INITIALIZED_CONDITION,
    INSTANCE_TERMINATING,
    LAUNCHED,
    REGISTERED_CONDITION,
    Condition,
    Node,
)
from nodeless.model.pools import NodeClass
from nodeless.model.taints import DISRUPTED
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import NOW
from tests.virtual_time import run_in_virtual_time

BOOT_SECONDS = 30.0
DRAIN_SECONDS = 3.0
#: From the request to end an instance to its being gone.
ENDING_SECONDS = 20.0
SUBNETS = tuple(Subnet(f"subnet-{zone}", zone, 1000) for zone in ("z1", "z2", "z3"))


def emptiest_first(free, _name):
    """kube-scheduler's LeastAllocated."""
    return -free["cpu"], -free["memory"]


def fullest_first(free, _name):
    """kube-scheduler's MostAllocated."""
    return free["cpu"], free["memory"]


class Living:
    """A cluster, its controller's disruption loop, and what happened."""

    def __init__(self, snapshot, types, *, score=emptiest_first, patch, **settings):
        self._types, self._score = {kind.name: kind for kind in types}, score
        self._catalog = tuple(types)
        self.at = NOW
        self.cluster, self.metrics = Cluster(), Metrics()
        self.evictions, self.dropped, self.ended, self._boarding = 0, [], [], 0
        for reference in sorted({pool.node_class for pool in snapshot.pools.values()}, key=str):
            self._see(events.NodeClassSeen(NodeClass(reference)))
        for part, seen in (
            ("pools", events.PoolSeen),
            ("claims", events.ClaimSeen),
            ("nodes", events.NodeSeen),
            ("pods", events.PodSeen),
            ("disruption_budgets", events.PodDisruptionBudgetSeen),
        ):
            for _, each in sorted(getattr(snapshot, part).items()):
                self._see(seen(each))
        timing = Timing(wall_clock=self.now, steady_clock=self.seconds)
        patch.setattr("nodeless.controllers.disruption.controller.asyncio.to_thread", _at_once)
        recorder = SimpleNamespace(publish=lambda event: None)
        self.loop = DisruptionLoop(
            self.cluster, self, self, recorder, GlobalSettings("demo", **settings), self.metrics, timing
        )
        self.loop._log = SimpleNamespace(info=self._note, warning=self._warned)

    @property
    def snapshot(self):
        return self.cluster.snapshot

    @staticmethod
    def seconds():
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    def now(self):
        return NOW + self.seconds()

    def _see(self, event):
        self.cluster.handle(event)

    def _note(self, text, **figures):
        if text.startswith("no longer valid"):
            self.dropped.append((text, figures))

    @staticmethod
    def _warned(text, **_figures):
        raise AssertionError(text)

    async def catalog(self, _pool, _node_class):
        return self._catalog

    async def billed_catalog(self, _pool, _node_class, _named=frozenset()):
        return self._catalog

    async def resolve(self, _node_class):
        return ResolvedNodeClass(SUBNETS, (), (), "nodes")

    async def carry_out(self, instructions):
        for each in instructions:
            self._carry_out(each)

    async def carry_out_side_by_side(self, sequences):
        for each in sequences:
            await self.carry_out(each)

    def _carry_out(self, each):
        match each:
            case CreateClaim(_, claim):
                self._launch(claim)
            case UpdateNode():
                node = self.snapshot.nodes[each.name]
                self._see(events.NodeSeen(replace(node, taints=each.taints)))
            case UpdateClaimStatus(_, name, conditions):
                self._conditions(name, conditions)
            case AnnotateClaim(_, name, annotations):
                claim = self.snapshot.claims[name]
                merged = {k: v for k, v in {**claim.annotations, **annotations}.items() if v is not None}
                self._see(events.ClaimSeen(replace(claim, annotations=merged)))
            case DeleteClaim(_, name):
                self._end(name)

    def _conditions(self, name, conditions):
        claim = self.snapshot.claims[name]
        kept = tuple(one for one in claim.conditions if one.type not in {new.type for new in conditions})
        self._see(events.ClaimSeen(replace(claim, conditions=(*kept, *conditions))))

    def _launch(self, claim):
        self._boarding += 1
        self._see(events.ClaimSeen(replace(claim, uid=f"uid-{claim.name}")))
        asyncio.get_running_loop().call_later(BOOT_SECONDS, self._joined, claim.name)

    def _joined(self, name):
        claim = self.snapshot.claims[name]
        kind, offering = min(
            (
                (self._types[kind], offering)
                for kind in claim.requirements[INSTANCE_TYPE].values
                for offering in self._types[kind].offerings
                if offering.available and offering.allowed_by(claim.requirements)
            ),
            key=lambda found: (found[1].price, found[0].name, found[1].zone),
        )
        labels = {
            **claim.labels,
            **kind.requirements.single_values(),
            INSTANCE_TYPE: kind.name,
            ZONE: offering.zone,
            CAPACITY_TYPE: offering.capacity_type,
        }
        shared = {
            "labels": labels,
            "provider_id": f"aws:///{offering.zone}/i-{name}",
            "capacity": kind.capacity,
            "allocatable": kind.allocatable,
        }
        conditions = tuple(
            Condition(each, "True", each, "", self.now())
            for each in (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
        )
        self._see(events.ClaimSeen(replace(claim, **shared, node_name=f"node-{name}", conditions=conditions)))
        labels = {**labels, INITIALIZED: "true", REGISTERED: "true"}
        node = Node(
            f"node-{name}",
            uid=f"uid-node-{name}",
            ready=True,
            created_at=self.now(),
            **shared | {"labels": labels},
        )
        self._see(events.NodeSeen(node))
        self._boarding -= 1
        self._schedule()

    def _end(self, name):
        claim = self.snapshot.claims[name]
        if claim.deletion_timestamp is not None:
            return
        self._boarding += 1
        self.ended.append((self.seconds(), name))
        self._see(events.ClaimSeen(replace(claim, deletion_timestamp=self.now())))
        node = self.snapshot.node_of(claim)
        if DISRUPTED not in node.taints:
            self._see(events.NodeSeen(replace(node, taints=(*node.taints, DISRUPTED))))
        self._check_budgets(claim.pool)
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._drained, name)

    def _check_budgets(self, reference):
        """No more nodes of a pool leave than its budgets without a schedule allow."""
        mine = [
            claim
            for claim in self.snapshot.claims.values()
            if claim.pool == reference and claim.node_name and not claim.is_true(INSTANCE_TERMINATING)
        ]
        leaving = sum(claim.deletion_timestamp is not None for claim in mine)
        for budget in self.snapshot.pools[str(reference)].budgets:
            number = int(budget.nodes.removesuffix("%"))
            most = math.ceil(len(mine) * number / 100) if budget.nodes.endswith("%") else number
            assert leaving <= most, f"{leaving} nodes of {reference} leave, {most} may"

    def _drained(self, name):
        node = self.snapshot.node_of(self.snapshot.claims[name])
        for pod in self.snapshot.pods_on(node.name):
            self.evictions += 1
            back = replace(
                pod, node_name="", phase="Pending", unschedulable=True, ready=False, created_at=self.now()
            )
            self._see(events.PodSeen(back))
        self._conditions(name, (Condition(INSTANCE_TERMINATING, "True", "", "", self.now()),))
        asyncio.get_running_loop().call_later(ENDING_SECONDS, self._gone, name, node.name)
        self._schedule()

    def _gone(self, name, node_name):
        self._see(events.NodeGone(node_name))
        self._see(events.ClaimGone(name))
        self._boarding -= 1

    def _schedule(self):
        """Bind what waits, largest first; what finds no room is bought nodes."""
        waiting = sorted(
            (pod for pod in self.snapshot.pods.values() if not pod.node_name),
            key=lambda pod: (-pod.requests["cpu"], pod.key),
        )
        for pod in waiting:
            name = self._place(pod)
            if name:
                bound = replace(pod, node_name=name, phase="Running", unschedulable=False, ready=True)
                self._see(events.PodSeen(replace(bound, started_at=self.now())))
        catalog = dict.fromkeys(self.snapshot.pools, self._catalog)
        plan = solve(self.snapshot, catalog, Policy(time_box=0.0))
        if plan.new_nodes and any(not pod.node_name for pod in self.snapshot.pods.values()):
            pools, taken = dict(self.snapshot.pools), frozenset(self.snapshot.claims)
            for create in claims_for(plan, pools, self.now(), cause="pass", taken=taken):
                self._launch(create.claim)

    def _place(self, pod):
        asked = pod.requests
        rooms = {}
        for name, node in self.snapshot.nodes.items():
            claim = self.snapshot.claim_of(node)
            if node.taints or claim is None or claim.deletion_timestamp is not None:
                continue
            free = dict(node.allocatable)
            for other in self.snapshot.pods_on(name):
                for key, amount in other.requests.items():
                    free[key] = free.get(key, 0) - amount
            if all(free.get(key, 0) >= amount for key, amount in asked.items()):
                rooms[name] = free
        return min(rooms, key=lambda name: (*self._score(rooms[name], name), name), default="")

    def at_rest(self):
        """Whether nothing is under way, and nothing to do, now or once nodes have run for longer."""
        still = self.loop._still
        if still is None or still[0].awaited < math.inf:
            return False
        quiet = self.loop.consolidated and not self.loop._memory.commands and not self._boarding
        quiet = quiet and not claims_by_replacement(self.snapshot)
        return quiet and all(pod.node_name for pod in self.snapshot.pods.values())

    async def live(self, most_seconds=4 * 3600.0):
        """Until nothing moves any more; seconds that it took. Fails when that does not come to pass."""
        running = asyncio.create_task(self.loop.run())
        started = self.seconds()
        try:
            while not self.at_rest():
                assert self.seconds() - started < most_seconds, "the cluster never comes to rest"
                assert not running.done(), running.exception()
                await asyncio.sleep(1.0)
            return self.seconds() - started
        finally:
            running.cancel()
            await asyncio.wait({running})


async def _at_once(work, *arguments, **options):
    return work(*arguments, **options)


def lived(snapshot, types, **how):
    """The cluster at its fixed point, and the seconds it took to come there."""
    with pytest.MonkeyPatch.context() as patch:
        living = Living(snapshot, types, patch=patch, **how)
        seconds = run_in_virtual_time(living.live())
        living.at = NOW + seconds
        return living, seconds
