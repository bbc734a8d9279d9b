"""Rules, volumes and limits together: every pod gets its place in one pass, and the next one buys nothing."""

from random import Random

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.pools import Pool
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.factories import FAMILY, beside, flatten, instance_type, needs, pods, pool, spread, term
from tests.scheduling.many_passes import World

#: Each family is cheap in another zone.
CPU_IN_Z1 = instance_type(
    "c", 8, 16, offerings=tuple(Offering(f"z{n}", ON_DEMAND, 0.5 if n == 1 else 1.0) for n in (1, 2, 3))
)
MEMORY_IN_Z2 = instance_type(
    "m", 8, 64, offerings=tuple(Offering(f"z{n}", ON_DEMAND, 0.9 if n == 2 else 1.6) for n in (1, 2, 3))
)


def in_zone(zone):
    return (term(needs(ZONE, "In", zone)),)


def stateful(name, cpu, *zones, **rules):
    """A pod for each zone, with a volume there, all labeled as one workload."""
    made = []
    for number, zone in enumerate(zones):
        own = f"{name}{number}"
        made += pods(1, cpu, name=own, labels={"app": name}, claims=(own,), **rules)
        made.append(Volume(f"pv-{own}", terms=(NodeSelectorTerm(in_zone(zone)[0].expressions),)))
        made.append(PersistentVolumeClaim("default", own, volume_name=f"pv-{own}", bound=True, phase="Bound"))
    return made


CASES = {
    "followers on the hosts of volumes, spread over their zones": [
        stateful("db", "1", "z1", "z2", "z3"),
        pods(3, name="side", affinity=(beside(HOSTNAME, "db"),), spread=(spread(ZONE, "side"),)),
    ],
    "targets without rules are spread for their followers": [
        pods(3, name="target"),
        pods(3, name="side", affinity=(beside(HOSTNAME, "target"),), spread=(spread(ZONE, "side"),)),
    ],
    "two sizes of a workload share a zone, though it is dear, so that two others have theirs": [
        pods(1, "7", name="cpu", labels={"app": "a"}),
        pods(1, "4", "50Gi", name="memory", labels={"app": "a"}),
        pods(1, name="b", anti_affinity=(beside(ZONE, "a"),)),
        pods(1, name="c", anti_affinity=(beside(ZONE, "a"), beside(ZONE, "b"))),
    ],
    "volumes leave two zones to two workloads that avoid them": [
        stateful("a", "1", "z1", "z1", anti_affinity=(beside(ZONE, "b"),)),
        pods(2, name="b"),
        pods(1, name="c", anti_affinity=(beside(ZONE, "a"), beside(ZONE, "b"))),
    ],
    "the heavier pool is left to those whose volumes are in its zone": [
        pool("near", needs(ZONE, "In", "z1"), weight=10, limits={"cpu": "4"}),
        pool("far", needs(ZONE, "In", "z2", "z3")),
        pods(3, name="anywhere"),
        stateful("db", "1", "z1", "z1", "z1"),
    ],
    "alternatives go where a limit leaves room": [
        pool("one", needs(ZONE, "In", "z1"), limits={"cpu": "2"}),
        pool("two", needs(ZONE, "In", "z2"), limits={"cpu": "4"}),
        pods(
            2,
            "1500m",
            required_terms=(
                *in_zone("z1"),
                term(needs(ZONE, "In", "z2"), needs(CAPACITY_TYPE, "In", ON_DEMAND)),
            ),
        ),
    ],
    "a limit for one size of each": [
        pool(limits={"cpu": "10"}),
        pods(1, "7"),
        pods(1, "1500m", name="small", anti_affinity=(beside(HOSTNAME),)),
    ],
    "zones, capacity types and hosts": [
        pods(6, "3", spread=(spread(ZONE), spread(CAPACITY_TYPE), spread(HOSTNAME)))
    ],
}


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("lost", [False, True], ids=["all-launched", "one-lost"])
@pytest.mark.parametrize("case", CASES)
def test_every_pod_gets_its_place_and_is_bought_it_once(case, packing, lost):
    things = flatten(CASES[case])
    own = [thing for thing in things if isinstance(thing, Pool)] or [pool()]
    types = (CPU_IN_Z1, MEMORY_IN_Z2) if "dear" in case else FAMILY
    made = World({each.key: each for each in own}, types, packing, Random(11))
    made.volumes = [thing for thing in things if isinstance(thing, Volume | PersistentVolumeClaim)]
    made.add([thing for thing in things if thing not in own and thing not in made.volumes])
    assert not made.look().refusals
    if lost:
        made.fail(made.unlaunched()[0])
        assert len(made.look().new_nodes) <= 1
    for name in made.unlaunched():
        made.launch(name, made.chance.randrange(60))
        assert not made.look().new_nodes
    made.settle(as_planned=True)
    assert not made.pending
