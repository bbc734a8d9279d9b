"""The judge of many passes: what is planned once holds, and is not bought twice, whatever happens in between.

Worlds are drawn at random and run on virtual time (`many_passes`). Every run of the suite sees the same ones,
`make unit` and `make test` the first of them; `make judge WORLDS=20000` (environment variable `MANY_PASSES`)
draws as many others as wanted.
"""

import os
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from nodeless.model.pods import HostPort, NodeSelectorTerm
from nodeless.model.taints import Taint, Toleration
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.conftest import FACTOR
from tests.scheduling.factories import (
    beside,
    daemon,
    instance_type,
    needs,
    pods,
    pool,
    selecting,
    spread,
    term,
)
from tests.scheduling.many_passes import World

RACK = "example.com/rack"
TEAM = Taint("team", "NoSchedule")
ZONES = ("z1", "z2", "z3")
APPS = ("a", "b", "c")
AGENT = "agent"
TYPES = (
    *(instance_type(f"m{cpu}", cpu, 4 * cpu) for cpu in (1, 2, 4, 8, 16, 64)),
    *(instance_type(f"c{cpu}", cpu, 2 * cpu, price=0.15 * cpu) for cpu in (2, 4, 8, 32, 64)),
    instance_type("few", 8, 32, pods=3, price=0.3),
    instance_type("arm", 4, 16, arch="arm64", offerings=(Offering("z3", ON_DEMAND, 0.5),)),
    instance_type("spot-only", 16, 32, offerings=(Offering("z1", SPOT, 0.4), Offering("z2", SPOT, 0.5))),
)
KEYS = st.sampled_from([HOSTNAME, HOSTNAME, ZONE, ZONE, CAPACITY_TYPE, RACK])
SIZES = st.sampled_from(["50m", "100m", "500m", "1", "1500m", "3", "7", "15", "30", "60"])
SOME_APP = st.sampled_from(APPS)
REQUIRED = st.sampled_from(
    [
        (),
        (),
        (),
        (term(needs(ZONE, "In", "z1", "z2")),),
        (term(needs(ZONE, "NotIn", "z1")),),
        (term(needs(CAPACITY_TYPE, "In", SPOT)), term(needs(ZONE, "In", "z3"))),
        (term(needs(RACK, "Exists")),),
        (term(needs(ARCH, "In", "arm64")),),
    ]
)


@st.composite
def spreads(draw):
    policies = st.sampled_from(["Honor", "Honor", "Ignore"])
    return spread(
        draw(KEYS),
        draw(SOME_APP),
        draw(st.sampled_from([1, 1, 2])),
        soft=draw(st.sampled_from([False, False, True])),
        min_domains=draw(st.sampled_from([None, None, 2])),
        node_affinity_policy=draw(policies),
        node_taints_policy=draw(st.sampled_from(["Ignore", "Ignore", "Honor"])),
    )


@st.composite
def terms(draw):
    return beside(draw(KEYS), draw(SOME_APP), weight=draw(st.sampled_from([None, None, 10])))


#: Affinity and anti-affinity of pods about the pods of DaemonSets, which bear a label of their own.
ABOUT_DAEMONS = st.sampled_from(
    [
        *[{}] * 6,
        {"affinity": (beside(HOSTNAME, AGENT),)},
        {"affinity": (beside(ZONE, AGENT),)},
        {"anti_affinity": (beside(HOSTNAME, AGENT),)},
    ]
)
#: What DaemonSets ask of nodes.
SELECTED = st.sampled_from(
    [
        {},
        {},
        {"selector": {ZONE: "z1"}},
        {"selector": {RACK: "r1"}},
        {"required_terms": (term(needs(RACK, "NotIn", "r1")),)},
        {"required_terms": (term(needs(CAPACITY_TYPE, "In", SPOT)), term(needs(ZONE, "In", "z3")))},
        {"required_terms": (term(needs(ARCH, "In", "arm64")),)},
    ]
)


@st.composite
def workloads(draw):
    """What the pods of one workload have in common."""
    drawn = {
        "number": draw(st.integers(1, 6)),
        "cpu": draw(SIZES),
        "memory": draw(st.sampled_from(["0", "1Gi", "6Gi"])),
        "labels": {"app": draw(SOME_APP)},
        "spread": tuple(draw(st.lists(spreads(), max_size=1))),
        "affinity": tuple(draw(st.one_of(st.just([]), st.lists(terms(), min_size=1, max_size=1)))),
        "anti_affinity": tuple(draw(st.one_of(st.just([]), st.just([]), st.lists(terms(), max_size=1)))),
        "required_terms": draw(REQUIRED),
        "host_ports": draw(st.sampled_from([(), (), (), (), (HostPort("", 80, "TCP"),)])),
        "tolerations": draw(st.sampled_from([(), (), (Toleration("team", "Exists"),)])),
        "volume": draw(st.sampled_from([None, None, None, "z1", "z3"])),
    }
    about_daemons = draw(ABOUT_DAEMONS)
    return {**drawn, **{key: (*drawn[key], *rules) for key, rules in about_daemons.items()}}


@st.composite
def pools_of(draw):
    limits = st.sampled_from([None, None, {"cpu": "24"}, {"cpu": "140"}, {"nodes": "3"}])
    racks = draw(st.sampled_from([[], [needs(RACK, "In", "r1")], [needs(RACK, "In", "r1", "r2")]]))
    zones = draw(
        st.sampled_from([[], [needs(ZONE, "In", "z1", "z2")], [needs(CAPACITY_TYPE, "In", ON_DEMAND)]])
    )
    first = pool("first", *racks, weight=draw(st.sampled_from([0, 0, 5])), limits=draw(limits))
    second = pool("second", *zones, taints=draw(st.sampled_from([(), (TEAM,)])), limits=draw(limits))
    return draw(st.sampled_from([[first], [first, second], [second]]))


class ManyPasses(RuleBasedStateMachine):
    """One world; each rule is something that happens to it."""

    @initialize(
        pools=pools_of(),
        packing=st.sampled_from([FEWEST_NODES, LOWEST_PRICE, LOWEST_PRICE]),
        seed=st.integers(0, 2**32),
        mixed=st.sampled_from([False, False, True]),
        known=st.sampled_from(["by memory", "by memory", "by notes", "by nothing"]),
    )
    def begin(self, pools, packing, seed, mixed, known):
        self.world = World(
            {own.key: own for own in pools},
            TYPES,
            packing,
            Random(seed),
            mixed=mixed,
            noted=known != "by nothing",
            remembered=known == "by memory",
        )
        self.number = 0

    @rule(wanted=workloads())
    def pods_come(self, wanted):
        self.number += 1
        name = f"w{self.number}"
        asked = dict(wanted)
        zone = asked.pop("volume")
        if zone is not None:
            reach = (NodeSelectorTerm((needs(ZONE, "In", zone),)),)
            self.world.volumes.append(Volume(f"pv-{name}", terms=reach))
            self.world.volumes.append(
                PersistentVolumeClaim("default", name, volume_name=f"pv-{name}", bound=True, phase="Bound")
            )
            asked["claims"] = (name,)
        if not self.world.mixed:
            asked = self.speaking_of_workloads(asked)
        self.world.add(pods(asked.pop("number"), asked.pop("cpu"), asked.pop("memory"), name=name, **asked))

    def speaking_of_workloads(self, asked):
        """Spread counts the workload's own pods; affinity is about those or about an earlier workload's."""
        own = f"w{self.number}"
        names = {"a": own, "b": f"w{self.number - 1}", "c": f"w{self.number - 2}", AGENT: AGENT}

        def about(rule, name):
            return replace(rule, selector=selecting(app=name))

        def named(rule):
            return about(rule, names[dict(rule.selector.match_labels)["app"]])

        return {
            **asked,
            "labels": {"app": own},
            "spread": tuple(about(rule, own) for rule in asked["spread"]),
            "affinity": tuple(named(rule) for rule in asked["affinity"]),
            "anti_affinity": tuple(named(rule) for rule in asked["anti_affinity"]),
        }

    @precondition(lambda self: self.world.pods)
    @rule(data=st.data())
    def pods_go(self, data):
        keys = sorted(self.world.pods)
        self.world.remove(data.draw(st.lists(st.sampled_from(keys), min_size=1, max_size=4, unique=True)))

    @precondition(lambda self: len(self.world.daemon_sets) < 2)
    @rule(
        cpu=st.sampled_from(["100m", "500m"]),
        anywhere=st.booleans(),
        selected=SELECTED,
        named=st.booleans(),
        apart=st.sampled_from(["", "", "", *APPS]),
    )
    def a_daemon_set_comes(self, cpu, anywhere, selected, named, apart):
        """`named`: rules of pods may be about its pods; `apart`: its pods want no node with such pods."""
        one = daemon(
            f"agent-{len(self.world.daemon_sets)}",
            cpu,
            labels={"app": AGENT} if named else {},
            tolerations=(Toleration("", "Exists"),) if anywhere else (),
            anti_affinity=(beside(HOSTNAME, apart),) if apart else (),
            **selected,
        )
        self.world.daemon_sets[one.key] = one
        self.world.settled = None

    @rule(written=st.sampled_from([True, True, True, False]))
    def a_pass(self, written):
        self.world.look(written=written)

    @precondition(lambda self: self.world.unlaunched())
    @rule(data=st.data(), which=st.integers(0, 59))
    def an_instance_starts(self, data, which):
        self.world.launch(data.draw(st.sampled_from(self.world.unlaunched())), which)

    @precondition(lambda self: self.world.unregistered())
    @rule(data=st.data())
    def a_node_registers(self, data):
        self.world.register(data.draw(st.sampled_from(self.world.unregistered())))

    @precondition(lambda self: self.world.booting())
    @rule(data=st.data())
    def a_node_is_ready(self, data):
        self.world.ready(data.draw(st.sampled_from(self.world.booting())))

    @precondition(lambda self: self.world.unlaunched())
    @rule(data=st.data())
    def a_launch_fails(self, data):
        self.world.fail(data.draw(st.sampled_from(self.world.unlaunched())))

    @precondition(lambda self: self.world.nodes)
    @rule(data=st.data())
    def a_node_vanishes(self, data):
        self.world.vanish(data.draw(st.sampled_from(sorted(self.world.nodes))))

    @precondition(lambda self: self.world.pending and self.world.nodes)
    @rule(as_planned=st.booleans())
    def the_scheduler_binds(self, as_planned):
        self.world.bind(as_planned=as_planned)

    def teardown(self):
        if hasattr(self, "world"):
            self.world.settle()


ManyPasses.TestCase.settings = settings(
    # The factor of properties does not reach a state machine.
    max_examples=int(os.environ.get("MANY_PASSES", max(1, round(100 * min(FACTOR, 1))))),
    derandomize="MANY_PASSES" not in os.environ,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestManyPasses = ManyPasses.TestCase
