"""Random small clusters whose pods have rules about each other, and plans as clusters of `scheduler`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, PROVISIONER_NAME, SPOT, ZONE
from nodeless.model.plan import Plan
from nodeless.model.pods import LabelSelector, Pod, PodAffinityTerm, PodShape, TopologySpreadConstraint
from nodeless.model.pools import Pool
from nodeless.model.resources import Resources
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, Toleration
from tests.scheduling.factories import (
    instance_type,
    needs,
    node,
    planned_labels,
    pods,
    pool,
    running,
    selecting,
    snapshot,
    term,
)
from tests.scheduling.scheduler import Cluster, Host

RACK = "example.com/rack"
TEAM = Taint("team", "NoSchedule")
TYPES = (
    instance_type("two", 2, 8),
    instance_type("four", 4, 16, offerings=(Offering("z1", SPOT, 0.3), Offering("z2", ON_DEMAND, 0.7))),
    instance_type("arm", 3, 12, arch="arm64", offerings=(Offering("z3", ON_DEMAND, 0.2),)),
)
_APPS = ("a", "b", "c")
_KEYS = st.sampled_from([ZONE, ZONE, HOSTNAME, HOSTNAME, CAPACITY_TYPE, RACK, ARCH])
_SELECTORS = st.one_of(
    st.sampled_from(_APPS).map(lambda app: selecting(app=app)),
    st.just(LabelSelector()),
    st.just(LabelSelector(match_expressions=(("app", "NotIn", ("a",)),))),
    st.just(None),
)
_NAMESPACES = st.sampled_from(
    [{}, {}, {}, {"namespaces": ("other",)}, {"namespace_selector": LabelSelector()}]
)


@st.composite
def _spreads(draw: st.DrawFn) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=draw(_KEYS),
        max_skew=draw(st.sampled_from([1, 1, 2])),
        when_unsatisfiable=draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        selector=draw(_SELECTORS),
        min_domains=draw(st.sampled_from([None, None, 2, 3])),
        node_affinity_policy=draw(st.sampled_from(["Honor", "Honor", "Ignore"])),
        node_taints_policy=draw(st.sampled_from(["Ignore", "Ignore", "Honor"])),
        match_label_keys=draw(st.sampled_from([(), (), ("revision",)])),
    )


@st.composite
def _terms(draw: st.DrawFn) -> PodAffinityTerm:
    weight = draw(st.sampled_from([None, None, 10]))
    return PodAffinityTerm(draw(_KEYS), draw(_SELECTORS), weight=weight, **draw(_NAMESPACES))


_SOME_TERMS = st.one_of(st.just([]), st.just([]), st.lists(_terms(), min_size=1, max_size=2))
_REQUIRED = st.sampled_from(
    [
        (),
        (),
        (),
        (term(needs(ZONE, "In", "z1", "z2")),),
        (term(needs(ZONE, "In", "z3")), term(needs(ZONE, "In", "z2"))),
        (term(needs(ZONE, "NotIn", "z1")),),
        (term(needs(RACK, "Exists")),),
    ]
)


@st.composite
def workloads(draw: st.DrawFn, most: int = 4, replicas: int = 4) -> list[Pod]:
    """Pods of a few workloads with rules; their labels are `app` and sometimes `revision`."""
    result: list[Pod] = []
    for index in range(draw(st.integers(1, most))):
        labels = {"app": draw(st.sampled_from(_APPS))}
        if draw(st.booleans()):
            labels["revision"] = draw(st.sampled_from(["1", "2"]))
        result += pods(
            draw(st.integers(1, replicas)),
            draw(st.sampled_from(["100m", "500m", "1", "1900m"])),
            name=f"w{index}",
            labels=labels,
            namespace=draw(st.sampled_from(["default", "default", "default", "other"])),
            spread=tuple(draw(st.lists(_spreads(), max_size=2))),
            affinity=tuple(draw(_SOME_TERMS)),
            anti_affinity=tuple(draw(_SOME_TERMS)),
            required_terms=draw(_REQUIRED),
            tolerations=draw(st.sampled_from([(), (), (Toleration("team", "Exists"),)])),
        )
    return result


@st.composite
def pools_of(draw: st.DrawFn) -> list[Pool]:
    racks = draw(st.sampled_from([[], [], [needs(RACK, "In", "r1")], [needs(RACK, "In", "r1", "r2")]]))
    zones = draw(st.sampled_from([[], [], [needs(ZONE, "In", "z1", "z2")], [needs(ZONE, "In", "z3")]]))
    first = pool("first", *racks, weight=draw(st.sampled_from([0, 5])))
    second = pool(
        "second",
        *zones,
        taints=draw(st.sampled_from([(), (TEAM,)])),
        limits=draw(st.sampled_from([None, {"cpu": "0"}, {"cpu": "5"}, {"nodes": "1"}])),
    )
    return draw(st.sampled_from([[first], [second], [first, second]]))


@st.composite
def existing(draw: st.DrawFn) -> list[object]:
    """Nodes that run pods, which may carry anti-affinity."""
    result: list[object] = []
    for index in range(draw(st.integers(0, 3))):
        name = f"n{index}"
        labels = {PROVISIONER_NAME: "first", "karpenter.sh/initialized": "true", ARCH: "amd64"}
        for key, values in ((ZONE, ("z1", "z2", "z4")), (RACK, ("r1", "r3"))):
            value = draw(st.sampled_from([*values, None]))
            if value is not None:
                labels[key] = value
        cpu = str(draw(st.sampled_from([1, 2])))
        taints = draw(st.sampled_from([(), (), (TEAM,)]))
        result.append(node(name, cpu=cpu, labels=labels, taints=taints))
        for pod in draw(workloads(most=2, replicas=1)):
            small = replace(pod, shape=replace(pod.shape, requests=(("cpu", 100), ("pods", 1))))
            result.append(running(replace(small, name=f"{name}-{pod.name}"), name))
    return result


WORLDS = st.builds(snapshot, workloads(), pools_of(), existing())


def cluster_of(
    seen: Snapshot, plan: Plan, which: int, types: Sequence[InstanceType] = TYPES
) -> tuple[Cluster, dict[str, list[Pod]]]:
    """The cluster when the plan's nodes are up as one of their alternatives, and the pods meant for hosts."""
    named = {kind.name: kind for kind in types}
    hosts = {
        name: Host(name, there.labels, there.allocatable, there.taints, there.unschedulable)
        for name, there in sorted(seen.nodes.items())
    }
    for pod in seen.pods.values():
        if pod.node_name:
            hosts[pod.node_name].pods.append(pod)
    wanted: dict[str, list[Pod]] = {}
    for key, name in plan.placements.items():
        wanted.setdefault(name, []).append(seen.pods[key])
    for index, new in enumerate(plan.new_nodes):
        name = f"new-{index}"
        kind = named[new.alternatives[which].instance_type]
        labels = planned_labels(seen, new, types, which)
        racks = new.requirements.get(RACK)
        if racks is not None and racks.values and not racks.complement:
            labels[RACK] = min(racks.values)
        hosts[name] = Host(name, labels, kind.allocatable, seen.pools[str(new.pool)].taints)
        wanted[name] = [seen.pods[key] for key in new.pods]
    return Cluster(hosts), wanted


def shapes(seen: Snapshot) -> Iterator[tuple[Pool, InstanceType, Host]]:
    """Every node that any pool could make, limits apart; labels with several values once for each."""
    for own, kind in product(seen.pools.values(), TYPES):
        for offering in kind.offerings:
            racks = own.requirements.get(RACK)
            for rack in sorted(racks.values) if racks is not None else [None]:
                labels = {
                    **kind.requirements.single_values(),
                    ZONE: offering.zone,
                    CAPACITY_TYPE: offering.capacity_type,
                    PROVISIONER_NAME: own.name,
                    **({RACK: rack} if rack is not None else {}),
                }
                if offering.available and own.requirements.satisfied_by(labels):
                    name = f"{own.name}-{kind.name}-{offering.zone}-{offering.capacity_type}-{rack}"
                    yield own, kind, Host(name, labels, kind.allocatable, own.taints)


def affordable(seen: Snapshot, plan: Plan, own: Pool, kind: InstanceType) -> bool:
    """Whether a pool's limits allow one more node of a type, the plan's nodes as large as they may get."""
    named = {known.name: known for known in TYPES}
    used: list[Resources] = [
        there.capacity for there in seen.nodes.values() if there.labels.get(PROVISIONER_NAME) == own.name
    ]
    for new in plan.new_nodes:
        if new.pool == own.reference:
            capacities = [named[each.instance_type].capacity for each in new.alternatives]
            used.append({name: max(one[name] for one in capacities) for name in capacities[0]})
    for name, limit in (own.limits or {}).items():
        more = 1 if name == "nodes" else kind.capacity[name]
        before = len(used) if name == "nodes" else sum(one[name] for one in used)
        if before + more > limit:
            return False
    return True


def distinct(seen: Snapshot, keys: Sequence[str]) -> list[Pod]:
    """One pod of each kind."""
    kinds: Mapping[tuple[PodShape, str, str], Pod] = {
        (seen.pods[key].shape, seen.pods[key].namespace, str(sorted(seen.pods[key].labels.items()))): (
            seen.pods[key]
        )
        for key in sorted(keys)
    }
    return list(kinds.values())


def undecided(pod: Pod, plan: Plan) -> bool:
    """Whether a node to come may or may not be one of those among which the pod is spread.

    Such a pod may have to wait until that node is launched.
    """
    honored = any(
        one.when_unsatisfiable == "DoNotSchedule" and one.node_affinity_policy == "Honor"
        for one in pod.shape.spread
    )
    keys = {one.key for each in pod.shape.required_terms for one in each.expressions}
    return honored and any(keys - new.requirements.single_values().keys() for new in plan.new_nodes)
