"""Random clusters for property tests, and an independent check of what a plan promises."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, NODE_POOL, PROVISIONER_NAME, ZONE
from nodeless.model.plan import PlannedNode
from nodeless.model.pods import DaemonSet, HostPort, NodeSelectorTerm, Pod
from nodeless.model.pools import Pool
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import add, fits, total
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint, TaintEffect, Toleration, find_untolerated
from tests.scheduling.factories import daemon, instance_type, needs, node, pods, pool, running, term

TYPES = (
    *(instance_type(f"m{cpu}", cpu, 4 * cpu) for cpu in (1, 2, 4, 8)),
    *(instance_type(f"c{cpu}", cpu, 2 * cpu, arch="arm64") for cpu in (2, 16)),
    instance_type("few", 8, 64, pods=3, price=0.2, offerings=(Offering("z3", "on-demand", 0.2),)),
    instance_type("gone", 32, 64, offerings=(Offering("z1", "spot", 0.1, available=False),)),
)
TEAM = Taint("team", "NoSchedule")
QUIET = Taint("quiet", "PreferNoSchedule")

_EXPRESSIONS = (
    needs(ZONE, "In", "z1"),
    needs(ZONE, "In", "z2", "z3"),
    needs(ZONE, "NotIn", "z1"),
    needs(ARCH, "In", "arm64"),
    needs(CAPACITY_TYPE, "In", "on-demand"),
    needs("tier", "In", "web"),
    needs("tier", "NotIn", "web"),
    needs("tier", "Exists"),
    needs("tier", "DoesNotExist"),
    needs(PROVISIONER_NAME, "In", "heavy"),
)
_TERMS = st.lists(st.sampled_from(_EXPRESSIONS), min_size=1, max_size=2).map(lambda some: term(*some))


@st.composite
def workloads(draw: st.DrawFn) -> list[Pod]:
    result: list[Pod] = []
    for index in range(draw(st.integers(1, 5))):
        result += pods(
            draw(st.integers(1, 9)),
            f"{draw(st.sampled_from([50, 300, 1000, 2500, 7000]))}m",
            f"{draw(st.sampled_from([0, 100, 1500, 9000]))}Mi",
            name=f"w{index}",
            required_terms=tuple(draw(st.lists(_TERMS, max_size=2))),
            preferred_terms=tuple(
                (weight, draw(_TERMS)) for weight in draw(st.lists(st.integers(1, 100), max_size=2))
            ),
            tolerations=tuple(
                draw(st.sets(st.sampled_from([Toleration("team", "Exists"), Toleration("quiet", "Exists")])))
            ),
            host_ports=draw(st.sampled_from([(), (), (HostPort("", 80, "TCP"),)])),
        )
    return result


@st.composite
def pools_of(draw: st.DrawFn) -> list[Pool]:
    heavy = pool(
        "heavy",
        *draw(
            st.lists(
                st.sampled_from([needs(ZONE, "In", "z1", "z2"), needs("tier", "In", "web", "db")]), max_size=2
            )
        ),
        weight=10,
        taints=draw(st.sampled_from([(), (TEAM,), (QUIET,)])),
        limits=draw(st.sampled_from([None, {"cpu": "9"}, {"cpu": "40", "memory": "60Gi"}])),
    )
    plain = pool("plain", limits=draw(st.sampled_from([None, {"cpu": "12"}, {"nodes": "2"}])))
    return draw(st.sampled_from([[heavy], [plain], [heavy, plain]]))


@st.composite
def existing_things(draw: st.DrawFn) -> list[object]:
    result: list[object] = []
    for index in range(draw(st.integers(0, 3))):
        name = f"n{index}"
        state = draw(
            st.sampled_from([{}, {"taints": (TEAM,)}, {"taints": (QUIET,)}, {"unschedulable": True}])
        )
        owner = draw(st.sampled_from(["heavy", "plain"]))
        labels = {PROVISIONER_NAME: owner, "karpenter.sh/initialized": "true", ZONE: "z1", ARCH: "amd64"}
        result.append(node(name, cpu=str(draw(st.sampled_from([1, 4]))), labels=labels, **state))
        result += [
            replace(running(pod, name), name=f"old-{index}") for pod in pods(draw(st.integers(0, 1)), "500m")
        ]
    return result


DAEMONS = st.lists(
    st.sampled_from(
        [
            daemon("agent", "100m", "50Mi", tolerations=(Toleration("", "Exists"),)),
            daemon("arm-only", "200m", selector={ARCH: "arm64"}),
            daemon("exporter", host_ports=(HostPort("", 80, "TCP"),), selector={"tier": "db"}),
        ]
    ),
    unique_by=lambda one: one.name,
    max_size=3,
)


def overhead(seen: Snapshot, planned: PlannedNode, kind: InstanceType) -> list[DaemonSet]:
    """The daemons that may come to a planned node when it becomes a type, found anew."""
    own_pool = seen.pools[str(planned.pool)]
    taints = hard(own_pool.taints)
    known = label_outcomes(own_pool.requirements, kind)
    return [
        one
        for one in seen.daemon_sets.values()
        if find_untolerated(taints, one.shape.tolerations) is None
        and all(
            known[key].allows(value) if key in known and not known[key].complement else key in known
            for key, value in one.shape.node_selector
        )
    ]


def label_outcomes(requirements: Requirements, kind: InstanceType) -> Requirements:
    return requirements.intersect(kind.requirements)


def hard(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.effect != TaintEffect.PREFER_NO_SCHEDULE]


def labels_allowed(expressions: Iterable[Requirement], labels: Requirements) -> bool:
    """Whether labels as required of a node can satisfy expressions, and each value they leave open does."""
    for expression in expressions:
        label = labels.get(expression.key)
        if label is None or label.is_empty():
            if not expression.allows_absence():
                return False
        elif not label.complement:
            if not all(expression.allows(value) for value in label.values):
                return False
        elif label.intersect(expression).values != label.values:
            return False
    return True


def any_term_allowed(pod: Pod, labels: Requirements) -> bool:
    selector = [Requirement.of(key, "In", (value,)) for key, value in pod.shape.node_selector]
    terms = pod.shape.required_terms or (NodeSelectorTerm(()),)
    return any(labels_allowed([*selector, *one.expressions], labels) for one in terms)


def bought_as(offering: Offering) -> Requirements:
    return Requirements(
        [needs(ZONE, "In", offering.zone), needs(CAPACITY_TYPE, "In", offering.capacity_type)]
    )


def labels_when_bought(
    seen: Snapshot, planned: PlannedNode, kind: InstanceType, offering: Offering
) -> Requirements:
    """The labels of a planned node that becomes one of its alternatives."""
    name = needs(PROVISIONER_NAME, "In", seen.pools[str(planned.pool)].name)
    labels = planned.requirements.intersect(kind.requirements).intersect(bought_as(offering))
    return labels.intersect(Requirements([name, needs(NODE_POOL, "DoesNotExist")]))


def broken_promise(
    seen: Snapshot, planned: PlannedNode, kind: InstanceType, offering: Offering
) -> str | None:
    """Why the pods of a planned node would not run on one of its alternatives, or None."""
    placed = [seen.pods[key] for key in planned.pods]
    daemons = overhead(seen, planned, kind)
    wanted = add(total(pod.requests for pod in placed), total(dict(one.shape.requests) for one in daemons))
    if not fits(wanted, kind.allocatable):
        return f"{kind.name} has no room for {wanted}"
    if not offering.available or offering not in kind.offerings:
        return f"{offering} cannot be bought"
    if planned.requirements.conflict(bought_as(offering).intersect(kind.requirements)) is not None:
        return f"{kind.name} in {offering.zone} contradicts {planned.requirements}"
    labels = labels_when_bought(seen, planned, kind, offering)
    own_pool = seen.pools[str(planned.pool)]
    for pod in placed:
        if not any_term_allowed(pod, labels):
            return f"{pod.key} does not accept {labels}"
        if find_untolerated(hard(own_pool.taints), pod.shape.tolerations) is not None:
            return f"{pod.key} does not tolerate {own_pool.taints}"
    ports = [port for pod in placed for port in pod.shape.host_ports]
    ports += [port for one in daemons for port in one.shape.host_ports]
    return "a host port is taken twice" if len(ports) != len(set(ports)) else None
