"""The catalogues of the acceptance rows, and clusters that go from pass to pass.

Catalogue F: price 0.1 per CPU, 0.1 per 10^9 bytes of memory, 1 where there is a GPU; overhead 100m CPU and
10Mi. I(n): n types that grow by a step of 1 CPU, 2 GiB and 10 pods. A: every combination of size, zone,
capacity type, system and architecture as a type of its own with one offering.
"""

from collections.abc import Iterable
from itertools import product

from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE
from nodeless.model.plan import Plan
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import parse_resources
from nodeless.model.snapshot import Snapshot
from nodeless.solve import Policy, solve
from tests.solve.factories import NOW, carried_out, domains, flatten, needs, pool, snapshot

#: (zone, capacity type) of every offering, unless a type says otherwise.
OFFERED = (("z1", SPOT), ("z2", SPOT), ("z1", ON_DEMAND), ("z2", ON_DEMAND), ("z3", ON_DEMAND))
_SYSTEMS = ("linux", "windows", "darwin")


def fixture_type(
    name: str,
    cpu: int = 4,
    gib: int = 4,
    *,
    pods: int = 5,
    arch: str = "amd64",
    systems: Iterable[str] = _SYSTEMS,
    offered: Iterable[tuple[str, str]] = OFFERED,
    **resources: str,
) -> InstanceType:
    """A type of the acceptance rows; its labels `size`, `special` and `integer` follow from its size."""
    sold = tuple(offered)
    capacity = parse_resources({"cpu": cpu, "memory": f"{gib}Gi", "pods": pods, **resources})
    price = 0.1 * cpu + 0.1 * gib * 2**30 / 1e9 + bool(resources)
    large = cpu > 4 and gib > 8
    labels = [
        needs(INSTANCE_TYPE, "In", name),
        needs(ARCH, "In", arch),
        needs(OS, "In", *systems),
        needs(ZONE, "In", *{zone for zone, _ in sold}),
        needs(CAPACITY_TYPE, "In", *{capacity_type for _, capacity_type in sold}),
        needs("size", "In", "large" if large else "small"),
        needs("special", "In", "optional") if large else needs("special", "DoesNotExist"),
        needs("integer", "In", str(cpu)),
    ]
    return InstanceType(
        name=name,
        requirements=Requirements(labels),
        capacity=capacity,
        overhead=parse_resources({"cpu": "100m", "memory": "10Mi"}),
        offerings=tuple(Offering(zone, capacity_type, price) for zone, capacity_type in sold),
    )


#: Catalogue F.
FIXTURE = (
    fixture_type("default"),
    fixture_type("small", 2, 2),
    fixture_type("gpu-a", **{"vendor-a.com/gpu": "2"}),
    fixture_type("gpu-b", **{"vendor-b.com/gpu": "2"}),
    fixture_type("arm", 16, 128, arch="arm64", systems=(*_SYSTEMS, "ios")),
    fixture_type("single-pod", pods=1),
)


def incrementing(number: int) -> tuple[InstanceType, ...]:
    """Catalogue I(n)."""
    return tuple(fixture_type(f"type-{i}", i + 1, 2 * (i + 1), pods=10 * (i + 1)) for i in range(number))


def assorted() -> tuple[InstanceType, ...]:
    """Catalogue A."""
    sizes = [2**power for power in range(8)]
    return tuple(
        fixture_type(
            f"{cpu}-{gib}-{zone}-{kind}-{system}-{arch}",
            cpu,
            gib,
            arch=arch,
            systems=(system,),
            offered=((zone, kind),),
        )
        for cpu, gib, zone, kind, system, arch in product(
            sizes[:7], sizes, ("z1", "z2", "z3"), (SPOT, ON_DEMAND), ("linux", "windows"), ("amd64", "arm64")
        )
    )


def template(name: str = "default", *requirements: Requirement, **fields: object) -> Pool:
    """A pool that takes spot and on-demand, unless its requirements say otherwise."""
    own = (
        []
        if any(one.key == CAPACITY_TYPE for one in requirements)
        else [needs(CAPACITY_TYPE, "In", SPOT, ON_DEMAND)]
    )
    return pool(name, *own, *requirements, **fields)


def with_more(seen: Snapshot, *things: object) -> Snapshot:
    """The cluster with more things; what has the name of something that is there replaces it."""
    maps = (seen.pods, seen.nodes, seen.claims, seen.pools, seen.daemon_sets)
    return snapshot([list(known.values()) for known in maps], flatten(things))


def without(seen: Snapshot, *keys: str) -> Snapshot:
    """The cluster without some pods."""
    maps = (seen.nodes, seen.claims, seen.pools, seen.daemon_sets)
    pods = [pod for key, pod in seen.pods.items() if key not in keys]
    return snapshot([list(known.values()) for known in maps], pods)


def planned(seen: Snapshot, types: tuple[InstanceType, ...] = FIXTURE, policy: Policy | None = None) -> Plan:
    catalog: Catalog = dict.fromkeys(seen.pools, types)
    return solve(seen, catalog, policy or Policy(), NOW)


def after_pass(
    seen: Snapshot, *things: object, types: tuple[InstanceType, ...] = FIXTURE, policy: Policy | None = None
) -> Snapshot:
    """The cluster after one pass with more things in it: nodes are up, pods run where they were planned."""
    before = with_more(seen, *things)
    if not before.pools:
        before = with_more(before, template())
    return carried_out(before, planned(before, types, policy), types)


def skew(seen: Snapshot, key: str, app: str = "web") -> tuple[int, ...]:
    """Running pods labelled `app` in each domain that has any, fewest first."""
    return tuple(sorted(domains(seen, key, app).values()))


def waiting(seen: Snapshot) -> list[str]:
    """The pods that do not run, by name."""
    return sorted(pod.name for pod in seen.pods.values() if not pod.node_name)
