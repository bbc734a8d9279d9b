"""What it costs to keep pods together: the plan beside the one without a workload's required pod affinity."""

from dataclasses import dataclass, replace

from nodeless.explain.decisions import Situation
from nodeless.explain.words import price
from nodeless.model.identity import Identity
from nodeless.model.plan import Plan
from nodeless.model.pods import Pod, PodAffinityTerm, PodShape
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

#: Workloads that are looked at; each costs one solve.
_MOST = 8
#: Dollars an hour that are not worth telling.
_NOTHING = 5e-5


@dataclass(frozen=True, slots=True)
class Together:
    """Pods of a workload that are placed beside others because they must be."""

    workload: Workload
    pods: int
    keys: tuple[str, ...]
    """The topology keys of their terms."""
    extra: float
    """US dollars an hour more than the plan that may part them."""

    def __str__(self) -> str:
        costs = f"{price(self.extra)} more than apart" if self.extra > _NOTHING else "no more than apart"
        return f"{self.pods} x {self.workload}, by {', '.join(self.keys)}: {costs}"


def kept_together(situation: Situation, plan: Plan) -> tuple[Together, ...]:
    """The workloads on new nodes that required pod affinity keeps beside others, the dearest first.

    Each is planned once more without its terms. Where that gives another number of pods a place, prices
    say nothing about the terms, and the workload is left out.
    """
    groups: dict[Workload, list[Pod]] = {}
    for key in sorted(key for node in plan.new_nodes for key in node.pods):
        pod = situation.snapshot.pods.get(key)
        if pod is not None and _keys(pod.shape):
            groups.setdefault(workload_of(pod), []).append(pod)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0])))
    found = (_cost(situation, plan, workload, pods) for workload, pods in ordered[:_MOST])
    return tuple(
        sorted(
            (cost for cost in found if cost is not None),
            key=lambda each: (-each.extra, str(each.workload)),
        )
    )


def _cost(situation: Situation, plan: Plan, workload: Workload, placed: list[Pod]) -> Together | None:
    apart = replace(situation, snapshot=_without_terms(situation, workload)).plan()
    if len(apart.refusals) != len(plan.refusals):
        return None
    keys = tuple(sorted({key for pod in placed for key in _keys(pod.shape)}))
    return Together(workload, len(placed), keys, max(0.0, plan.cheapest_found - apart.cheapest_found))


def _without_terms(situation: Situation, workload: Workload) -> Snapshot:
    snapshot = situation.snapshot
    shapes: dict[Identity, PodShape] = {}
    changed = {}
    for key, pod in snapshot.pods.items():
        if not pod.node_name and _keys(pod.shape) and workload_of(pod) == workload:
            shape = shapes.setdefault(
                Identity(pod.shape), replace(pod.shape, affinity=_required_affinity(pod.shape))
            )
            changed[key] = replace(pod, shape=shape)
    return replace(snapshot, pods=snapshot.pods.update(changed))


def _keys(shape: PodShape) -> tuple[str, ...]:
    return tuple(term.topology_key for term in shape.affinity if term.weight is None)


def _required_affinity(shape: PodShape) -> tuple[PodAffinityTerm, ...]:
    return tuple(term for term in shape.affinity if term.weight is not None)
