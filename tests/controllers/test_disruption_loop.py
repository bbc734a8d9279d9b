"""Given a cluster, when does the loop look, when does it act, and when does it leave the cluster alone?

The cluster's state is given by events; what the loop would do to it is noted instead of done.
"""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nodeless.controllers.disruption.controller import DisruptionLoop
from nodeless.kube import ApiError
from nodeless.kube.cluster import Cluster
from nodeless.launch.resolved import ResolvedNodeClass, Subnet
from nodeless.model import events
from nodeless.model.instructions import CreateClaim, DeleteClaim, PublishEvent, UpdateNode
from nodeless.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    ON_DEMAND,
    REPLACES,
    SPOT,
)
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.model.pools import Budget, NodeClass, Reference
from nodeless.model.requirements import Requirements
from nodeless.model.taints import DISRUPTED, Taint, Toleration
from nodeless.operator.event_reasons import undeclared_reason
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import Timing
from tests.disruption.world import a_node_pool, a_provisioner, node_of, on
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
SUBNETS = tuple(Subnet(f"subnet-{zone}", zone, 1000) for zone in ("z1", "z2", "z3"))
WASTEFUL = (node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))
#: A node that its one pod fills: nothing can be better.
TIGHT = (node_of(POOL, "a", "small"), on("a", cpu="800m"))


class World:
    """A loop, its cluster, and what it has done."""

    def __init__(self, *things, steady=time.monotonic, **settings):
        self.now, self.done, self.metrics, self.published = NOW, [], Metrics(), []
        self.cluster = Cluster()
        self.see(NodeClass(POOL.node_class), POOL, *things)
        #: How often the time was asked for.
        self.asked = 0
        timing = Timing(wall_clock=self._now, steady_clock=steady)
        recorder = SimpleNamespace(publish=self.published.append)
        self.settings = GlobalSettings("demo", **settings)
        self.loop = DisruptionLoop(self.cluster, self, self, recorder, self.settings, self.metrics, timing)

    def _now(self):
        self.asked += 1
        return self.now

    def see(self, *things):
        kinds = {
            "NodeClass": events.NodeClassSeen,
            "Pool": events.PoolSeen,
            "NodeClaim": events.ClaimSeen,
            "Node": events.NodeSeen,
            "Pod": events.PodSeen,
        }
        for thing in things:
            if isinstance(thing, list | tuple):
                self.see(*thing)
            else:
                self.cluster.handle(kinds[type(thing).__name__](thing))

    async def catalog(self, _pool, _node_class):
        return FAMILY

    async def billed_catalog(self, _pool, _node_class, _named=frozenset()):
        return FAMILY

    async def resolve(self, _node_class):
        return ResolvedNodeClass(SUBNETS, (), (), "nodes")

    async def carry_out(self, instructions):
        for each in instructions:
            self.done.append(each)
            if isinstance(each, UpdateNode):
                self.see(replace(self.cluster.snapshot.nodes[each.name], taints=each.taints))

    async def carry_out_side_by_side(self, sequences):
        for each in sequences:
            await self.carry_out(each)

    def look(self, seconds=0.0):
        self.now += seconds
        return asyncio.run(self.loop.reconcile_once())

    def events(self):
        """Object, reason and message of each event, all of which the table of events allows."""
        assert [undeclared_reason(event) for event in self.published] == [""] * len(self.published)
        return [(event.name, event.reason, event.message) for event in self.published]

    def looked(self):
        (family,) = self.metrics.disruption.evaluation_seconds.collect()
        return next(sample.value for sample in family.samples if sample.name.endswith("_count"))


def test_co_18_a_node_with_pods_is_touched_after_fifteen_seconds_and_not_before():
    world = World(*WASTEFUL)
    assert world.look()
    world.look(14.9)
    assert world.done == []
    assert world.look(0.2)
    assert any(isinstance(each, CreateClaim) for each in world.done)


def figure(world, name):
    return next(
        float(line.rpartition(" ")[2])
        for line in world.metrics.render().decode().splitlines()
        if line.startswith(name)
    )


def test_metrics_show_how_far_the_whole_is_and_what_budgets_hold():
    pool = replace(POOL, reference=Reference("NodePool", "held"), budgets=(Budget("0"),))
    world = World(pool, node_of(pool, "b", "large"))
    world.look()
    (price,) = {
        offering.price
        for kind in FAMILY
        for offering in kind.offerings
        if kind.name == "large" and offering.capacity_type == ON_DEMAND
    }
    for name in ("target_distance", "waiting_on_budgets"):
        assert figure(world, f"nodeless_disruption_{name}_dollars_per_hour") == pytest.approx(price)


def test_the_search_goes_on_while_a_move_waits():
    dedicated = Taint("dedicated", "NoSchedule", "b")
    other = a_provisioner("other", requirements=POOL.requirements, taints=(dedicated,))
    rule = {"tolerations": (Toleration(key="dedicated", operator="Exists"),)}
    world = World(*WASTEFUL)
    world.look()
    world.see(other, node_of(other, "b", "2xlarge", node={"taints": (dedicated,)}))
    world.see(on("b", cpu="500m", shape=rule))
    world.look(5)
    assert [command.claims for command in world.loop._memory.commands] == [("a",), ("b",)]
    world.look(16)
    replaced = [each.claim.annotations[REPLACES] for each in world.done if isinstance(each, CreateClaim)]
    assert replaced == ["a", "b"]


def test_co_21_a_cluster_with_nothing_to_do_is_not_searched_again_until_something_changes():
    world = World(*TIGHT)
    assert not world.look()
    assert world.loop.consolidated
    assert world.looked() == 1
    world.look(10)
    assert world.looked() == 1
    (pod,) = TIGHT[1]
    world.cluster.handle(events.PodGone(pod.key))
    assert not world.loop.consolidated
    assert world.look(10)
    assert world.looked() == 2


def test_a_still_cluster_is_looked_at_when_consolidate_after_ends_on_a_node():
    pool = replace(POOL, reference=Reference("NodePool", "quiet"), consolidate_after=600)
    node = node_of(pool, "a", "2xlarge", last_pod_event=NOW - 550)
    world = World(pool, node, WASTEFUL[1], steady=lambda: world.now - NOW)
    assert not world.look()
    assert world.loop.consolidated
    assert world.loop._pause() == 10
    assert not world.look(44)
    assert world.loop._pause() == 6
    assert world.looked() == 1
    assert world.look(6)
    assert world.looked() == 2


def test_a_large_cluster_is_still_once_the_looks_of_a_round_have_come_to_every_node(monkeypatch):
    monkeypatch.setattr("nodeless.disruption.consolidation._MOST_SINGLES", 1)
    crowd = [[node_of(POOL, name, "large"), on(name, 3, cpu="1", memory="4Gi")] for name in "abc"]
    world = World(*crowd)
    for _ in range(2):
        assert not world.look(10)
        assert not world.loop.consolidated
    assert not world.look(10)
    assert world.loop.consolidated
    world.look(10)
    assert world.looked() == 3


def test_no_command_is_looked_for_while_nothing_changes_and_none_is_under_way():
    # Each look for steps asks what time it is.
    world = World(*TIGHT)
    for _ in range(100):
        asyncio.run(world.loop.advance_once())
    assert world.asked == 1
    # Marked, and no command speaks of it: the mark goes, and what went is looked at once more.
    node = world.cluster.snapshot.nodes[TIGHT[0][1].name]
    world.see(replace(node, taints=(*node.taints, DISRUPTED)))
    for _ in range(100):
        asyncio.run(world.loop.advance_once())
    assert [each.taints for each in world.done if isinstance(each, UpdateNode)] == [node.taints]
    assert world.asked == 3


def test_a_command_under_way_is_looked_at_again_though_nothing_changes_for_it_may_take_too_long():
    world = World(*WASTEFUL)
    world.look()
    world.look(16)
    (created,) = (each.claim for each in world.done if isinstance(each, CreateClaim))
    world.see(created)
    asyncio.run(world.loop.advance_once())
    world.now += 601
    asyncio.run(world.loop.advance_once())
    assert "DisruptionFailed" in [each.reason for each in world.done if isinstance(each, PublishEvent)]


def test_a_move_that_is_not_right_any_more_is_dropped_and_counted():
    world = World(*WASTEFUL)
    world.look()
    world.see(on("a", cpu="14", app="late"))
    world.look(16)
    assert world.done == []
    assert world.loop._memory.commands == ()
    text = world.metrics.render().decode()
    assert 'karpenter_voluntary_disruption_failed_validations_total{reason="underutilized"} 1.0' in text


def test_a_move_that_was_found_before_the_clock_was_set_back_does_not_wait_for_ever():
    world = World(*WASTEFUL)
    world.look()
    assert world.look(-1800)
    assert world.done


def test_what_is_begun_is_counted_under_the_names_of_both_generations():
    world = World(node_of(POOL, "a"))
    world.look()
    world.look(16)
    assert [each.name for each in world.done if isinstance(each, DeleteClaim)] == ["a"]
    text = world.metrics.render().decode()
    assert 'karpenter_deprovisioning_actions_performed{action="consolidation/delete"} 1.0' in text
    decided = 'karpenter_voluntary_disruption_decisions_total{decision="delete",reason="empty"}'
    assert f"{decided} 1.0" in text


@pytest.mark.parametrize("code", ["NotInitialized"])
def test_the_one_reason_of_every_other_node_is_counted_by_its_code(code):
    world = World(node_of(POOL, "a", node={"labels": {}}, conditions=()))
    world.look()
    assert f'nodeless_undisrupted_nodes{{code="{code}"}} 1.0' in world.metrics.render().decode()


GENERATIONS = pytest.mark.parametrize(
    ("kind", "word"), [("Provisioner", "Deprovisioning"), ("NodePool", "Disruption")], ids=["v0.27", "v1"]
)


def of_kind(kind, **fields):
    return replace(POOL, **{"reference": Reference(kind, "of-this-kind"), **fields})


@GENERATIONS
@pytest.mark.parametrize("protection", ["do-not-evict", "do-not-disrupt"])
def test_co_05_a_node_with_a_protected_pod_is_told_so_in_the_words_of_its_generation(kind, word, protection):
    pool, pod = of_kind(kind), on("a", cpu="500m", annotations={f"karpenter.sh/{protection}": "true"})
    world = World(pool, node_of(pool, "a", "2xlarge"), pod)
    world.look()
    ((name, reason, message),) = world.events()
    assert (name, reason) == ("node-a", f"{word}Blocked")
    assert f"{pod[0].key} has the annotation karpenter.sh/{protection}=true" in message


def forbidden(kind):
    pool = of_kind(kind)
    kept = {"annotations": {DO_NOT_CONSOLIDATE: "true"}}
    return pool, node_of(pool, "a", "2xlarge", node=kept), "karpenter.sh/do-not-consolidate=true"


def spot(kind):
    pool = of_kind(kind, requirements=Requirements([needs(CAPACITY_TYPE, "In", SPOT)]))
    return pool, node_of(pool, "a", "2xlarge", capacity_type=SPOT), "a spot node is not replaced by a spot"


def never(kind):
    pool = of_kind(kind, consolidation_enabled=False, consolidate_after=None)
    return pool, node_of(pool, "a", "2xlarge"), f"{kind}/of-this-kind does not consolidate"


@GENERATIONS
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(forbidden, id="CO-04"),
        pytest.param(spot, id="CO-08"),
        pytest.param(never, id="CO-20"),
    ],
)
def test_a_node_that_may_not_be_consolidated_is_told_unconsolidatable(kind, word, given):
    pool, node, why = given(kind)
    same = {"selector": {CAPACITY_TYPE: node[1].capacity_type}}
    world = World(pool, node, on("a", cpu="500m", shape=same))
    assert not world.look()
    ((name, reason, message),) = world.events()
    assert (name, reason) == ("node-a", "Unconsolidatable")
    assert why in message


def test_dn_12_a_drifted_node_whose_pods_have_no_place_is_told_that_it_is_blocked():
    pool = of_kind("NodePool", consolidation_enabled=False, consolidate_after=None)
    claim, node = node_of(pool, "a", "2xlarge")
    drifted = Condition("Drifted", "True", "AMIDrift", "image ami-1 is not selected", NOW - 100)
    hopeless = on("a", cpu="1", shape={"selector": {"disk": "nvme"}})
    world = World(pool, replace(claim, conditions=(*claim.conditions, drifted)), node, hopeless)
    assert not world.look()
    ((name, reason, message),) = world.events()
    assert (name, reason) == ("node-a", "DisruptionBlocked")
    assert message.startswith(f"drifted, but pod {hopeless[0].key} would have no place")


@GENERATIONS
def test_a_broken_node_that_must_not_be_repaired_is_told_so(kind, word):
    pool = of_kind(kind)
    broken = {
        "conditions": (Condition("Ready", "False", "", "", NOW - 3600),),
        "ready": False,
        "annotations": {DO_NOT_REPAIR: "true"},
    }
    world = World(pool, node_of(pool, "a", node=broken), on("a", cpu="3"), node_repair=True)
    world.look()
    found = [(name, reason) for name, reason, message in world.events() if DO_NOT_REPAIR in message]
    assert found == [("node-a", "NodeRepairBlocked")]


@pytest.mark.parametrize(("kind", "seconds"), [("Provisioner", 120), ("NodePool", 900)])
def test_what_blocks_a_node_is_told_again_after_the_time_of_its_generation(kind, seconds):
    pool, pod = of_kind(kind), on("a", cpu="500m", annotations={"karpenter.sh/do-not-evict": "true"})
    world = World(pool, node_of(pool, "a", "2xlarge"), pod, steady=lambda: world.now - NOW)
    counts = []
    for wait in (0, seconds - 1, 1):
        world.loop.use(world.settings)
        world.look(wait)
        counts.append(len(world.events()))
    assert counts == [1, 1, 2]


@pytest.mark.parametrize("value", ["soon", "0s", "-5m", "10 minutes", "Never", ""])
def test_dn_14_a_pod_whose_protection_cannot_be_read_is_told_that_it_has_none(value):
    pod = on("a", cpu="800m", annotations={DO_NOT_DISRUPT: value})
    world = World(node_of(POOL, "a", "small"), pod)
    world.look()
    found = [(name, message) for name, reason, message in world.events() if reason.startswith("Invalid")]
    ((name, message),) = found
    assert name == pod[0].name
    assert repr(value) in message


@pytest.mark.parametrize("value", ["true", "false", "10m"])
def test_dn_14_a_pod_whose_protection_can_be_read_is_told_nothing(value):
    pod = on("a", cpu="800m", annotations={DO_NOT_DISRUPT: value})
    world = World(node_of(POOL, "a", "small"), pod)
    world.look()
    assert "InvalidDoNotDisruptAnnotation" not in [reason for _, reason, _ in world.events()]


def on_pool(pool):
    return {"shape": {"selector": {pool.reference.pool_label: pool.name}}}


ON_DEMAND_ALONE = Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)])


def test_a_command_is_dropped_once_its_budget_allows_none_for_hours():
    """While it waited, its pods' room was taken, and underutilized nodes of all pools stayed for them."""
    # From 22:14 UTC on, 40 s from now, no underutilized node of the pool is disrupted for eight hours.
    frozen = Budget("0", ("Underutilized",), "14 22 * * *", 8 * 3600)
    pool = a_node_pool("a", requirements=ON_DEMAND_ALONE, budgets=(frozen,))
    other = a_node_pool("b", requirements=ON_DEMAND_ALONE)
    small = [(node_of(pool, name), on(name, cpu="1", **on_pool(pool))) for name in ("a1", "a2")]
    world = World(pool, other, small)
    world.see(NodeClass(pool.node_class))
    assert world.look(28)
    (found,) = world.loop._memory.commands
    stays = {"a1": "a2", "a2": "a1"}[found.claims[0]]
    world.see(
        on(stays, cpu="2", app="filler"), node_of(other, "b1", "2xlarge"), on("b1", cpu="500m", app="x")
    )
    world.look(16)
    assert found not in world.loop._memory.commands
    world.look(60)
    world.look(16)
    assert "node-b1" in [each.name for each in world.done if isinstance(each, UpdateNode)]


def test_a_command_waits_for_a_node_that_drains_and_is_dropped_when_that_takes_long():
    pool = a_node_pool("a", requirements=ON_DEMAND_ALONE, budgets=(Budget("1"),))
    world = World(pool, node_of(pool, "a", "2xlarge"), on("a", cpu="500m"))
    world.see(NodeClass(pool.node_class), node_of(pool, "z", deletion_timestamp=NOW - 30))
    assert world.look()
    world.look(16)
    assert [command.claims for command in world.loop._memory.commands] == [("a",)]
    world.look(30)
    assert world.loop._memory.commands == ()
    assert not any(isinstance(each, CreateClaim) for each in world.done)


@pytest.mark.parametrize("status", [403, 422])
def test_a_command_that_cannot_be_begun_rests_and_others_are_begun(status):
    refused = a_node_pool("a", requirements=ON_DEMAND_ALONE)
    claim, node = node_of(refused, "drifted", "small")
    drifted = Condition(DRIFTED, "True", "NodePoolDrifted", "", NOW - 99)
    claim = replace(claim, conditions=(*claim.conditions, drifted))
    world = World(refused, *WASTEFUL, (claim, node), on("drifted", cpu="800m", **on_pool(refused)))
    world.see(NodeClass(refused.node_class))
    tried, carry_out = [], world.carry_out

    async def refusing(instructions):
        for each in instructions:
            if isinstance(each, CreateClaim) and each.claim.annotations[REPLACES] == "drifted":
                tried.append(world.now)
                raise ApiError(status, "Invalid", "a policy refuses claims of pool a")
            await carry_out([each])

    world.carry_out = refusing
    for _ in range(20):
        world.look(1)
    assert any(isinstance(each, CreateClaim) for each in world.done)
    assert len(tried) < 5


@pytest.mark.parametrize("left", ["leaves", "is gone"])
def test_a_node_that_leaves_before_its_command_begins_gets_no_replacement(left):
    """Its pods are planned already as those of a node that leaves: the replacement stayed empty."""
    made = Condition(DRIFTED, "True", "AMIDrift", "image ami-1 is not selected", NOW - 100)
    things = []
    for name in ("a", "b"):
        pool = replace(a_node_pool(name), requirements=POOL.requirements, node_class=POOL.node_class)
        claim, node = node_of(pool, name, "small")
        claim = replace(claim, conditions=(*claim.conditions, made))
        things += [pool, claim, node, on(name, cpu="800m", **on_pool(pool))]
    world = World(*things)
    carry_out = world.carry_out

    async def interrupted(instructions):
        await carry_out(instructions)
        claim = world.cluster.snapshot.claims.get("b")
        if left == "is gone" and claim is not None:
            world.cluster.handle(events.ClaimGone("b"))
        elif claim is not None:
            world.see(replace(claim, deletion_timestamp=NOW))

    world.carry_out = interrupted
    world.look()
    assert [each.claim.replaces for each in world.done if isinstance(each, CreateClaim)] == [("a",)]


def test_pods_of_commands_that_never_began_were_not_moved():
    world = World(*WASTEFUL)
    carry_out = world.carry_out

    async def refusing(_instructions):
        raise ApiError(403, "Forbidden", "nothing may be created")

    world.look()
    world.carry_out = refusing
    world.look(16)
    world.carry_out = carry_out
    assert world.loop._memory.evicted == ()


def test_after_a_search_that_took_long_only_nodes_without_pods_of_others_go_for_a_while():
    """In a cluster in which pods come and go, one search of ten seconds followed another."""
    seconds = [0.0]
    tight = node_of(POOL, "a", "small"), on("a", cpu="800m", **on_pool(POOL))
    world = World(tight, steady=lambda: seconds[0])
    billed_catalog = world.billed_catalog

    async def slow(*_arguments):
        seconds[0] += 10
        return FAMILY

    world.billed_catalog = slow
    world.look()
    world.billed_catalog = billed_catalog
    other = a_node_pool("b", requirements=ON_DEMAND_ALONE)
    wasteful = node_of(other, "b", "2xlarge"), on("b", cpu="500m", **on_pool(other))
    world.see(NodeClass(other.node_class), other, wasteful, node_of(other, "c"))
    world.look(1)
    assert [command.claims for command in world.loop._memory.commands] == [("c",)]
    seconds[0] += 20
    world.look(20)
    assert world.loop._memory.commands == ()
    seconds[0] += 100
    world.look(100)
    assert [command.claims for command in world.loop._memory.commands] == [("b",)]
