"""Clusters that go from pass to pass, with catalog F of the acceptance rows."""

from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from nodeless.model.plan import Plan
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, solve
from tests.scheduling.acceptance.catalogs import F
from tests.scheduling.factories import carried_out, domains, flatten, needs, pool, snapshot


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
    maps = (seen.pods, seen.nodes, seen.claims, seen.pools, seen.daemon_sets, seen.namespaces)
    return snapshot([list(known.values()) for known in maps], flatten(things))


def without(seen: Snapshot, *keys: str) -> Snapshot:
    """The cluster without some pods."""
    maps = (seen.nodes, seen.claims, seen.pools, seen.daemon_sets, seen.namespaces)
    pods = [pod for key, pod in seen.pods.items() if key not in keys]
    return snapshot([list(known.values()) for known in maps], pods)


def planned(seen: Snapshot, types: tuple[InstanceType, ...] = F, policy: Policy | None = None) -> Plan:
    catalog: Catalog = dict.fromkeys(seen.pools, types)
    return solve(seen, catalog, policy or Policy())


def after_pass(
    seen: Snapshot, *things: object, types: tuple[InstanceType, ...] = F, policy: Policy | None = None
) -> Snapshot:
    """The cluster after one pass with more things in it: nodes are up, pods run where they were planned."""
    before = with_more(seen, *things)
    if not before.pools:
        before = with_more(before, template())
    return carried_out(before, planned(before, types, policy), types)


def skew(seen: Snapshot, key: str, app: str = "web") -> tuple[int, ...]:
    """Running pods labeled `app` in each domain that has any, fewest first."""
    return tuple(sorted(domains(seen, key, app).values()))


def waiting(seen: Snapshot) -> list[str]:
    """The pods that do not run, by name."""
    return sorted(pod.name for pod in seen.pods.values() if not pod.node_name)
