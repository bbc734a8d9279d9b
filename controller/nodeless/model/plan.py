"""What the solver proposes: new nodes, pods on existing ones, refusals; each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.instance_types import Offering
from nodeless.model.pools import Reference
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources


@dataclass(frozen=True, slots=True)
class Alternative:
    """An instance type that holds all pods of a planned node, at its cheapest allowed offering."""

    instance_type: str
    offering: Offering


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node to launch.

    `alternatives` holds every type that would do, cheapest first, the intended one at the front.
    """

    pool: Reference
    node_class: Reference
    requirements: Requirements
    requests: Resources = field(hash=False)
    """Pods and daemons together."""
    pods: tuple[str, ...]
    """Keys (`namespace/name`) of the pods meant for it, sorted."""
    alternatives: tuple[Alternative, ...]

    min_values_relaxed: bool = False
    """The pool's minValues were lowered to what the types offer."""

    @property
    def instance_type(self) -> str:
        return self.alternatives[0].instance_type

    @property
    def price(self) -> float:
        """US dollars an hour of the intended offering."""
        return self.alternatives[0].offering.price


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """Why one pool cannot make a node for a pod. `code` is stable; `message` names the one failing thing."""

    pool: Reference
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod gets no capacity."""

    pod: str
    code: str
    reasons: tuple[PoolRefusal, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        if self.message:
            return self.message
        return "; ".join(f"{reason.pool}: {reason.message}" for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A wish that pods gave up for their place; `code` is stable, `message` names wish and obstacle."""

    code: str
    message: str
    pods: tuple[str, ...]
    """Keys of the pods, sorted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to one solve."""

    new_nodes: tuple[PlannedNode, ...] = ()
    placements: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Pod key to the name of the existing node or of the in-flight claim where there is room."""
    refusals: tuple[Refusal, ...] = ()
    lower_bound: float | None = None
    """US dollars an hour that no plan for the same pods can go below; None: not computed."""
    relaxations: tuple[Relaxation, ...] = ()
    """What the placed pods wished and do not get."""
    unusable_pools: tuple[PoolRefusal, ...] = ()
    """Pools of which no pod whatever could get a node: they have no types, or too few for their minValues."""
    spill: tuple[str, ...] = ()
    """Keys of pods that kube-scheduler will find no room for, as it puts others where these were meant to be;
    it is looked for only where nobody nominates pods to their nodes."""
    work: Mapping[str, float] = field(default_factory=dict, hash=False, compare=False)
    """Seconds of counted work on the pods of each namespace."""
    faults: tuple[str, ...] = ()
    """What nobody foresaw and the plan was made without: the search for a cheaper one, say."""

    def relaxed_preferences(self) -> dict[str, tuple[str, ...]]:
        """Messages of what each pod gave up, by its key; pods that gave up nothing are left out."""
        lost: dict[str, list[str]] = {}
        for relaxation in self.relaxations:
            for pod in relaxation.pods:
                lost.setdefault(pod, []).append(relaxation.message)
        return {pod: tuple(messages) for pod, messages in lost.items()}

    @property
    def gap(self) -> float | None:
        """By how much of its cost the plan may be above the cheapest one, 0 to 1; None: not known."""
        if self.lower_bound is None:
            return None
        return max(0.0, 1 - self.lower_bound / self.cost_per_hour) if self.cost_per_hour > 0 else 0.0

    @property
    def cost_per_hour(self) -> float:
        """US dollars an hour of all new nodes."""
        return sum(node.price for node in self.new_nodes)
