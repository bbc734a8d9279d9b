"""What the solver proposes: new nodes, pods on existing ones, refusals; each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nodeless.model.instance_types import Offering
from nodeless.model.lost_work import LostWork
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
    is_static: bool = False
    """It is one of the replicas of a static pool: launched whatever the pods are that it gets."""

    @property
    def instance_type(self) -> str:
        return self.alternatives[0].instance_type

    @property
    def price(self) -> float:
        """US dollars an hour of the intended offering."""
        return self.alternatives[0].offering.price


class RefusalCode(StrEnum):
    """Why a pod gets no capacity; stable, for events, metrics and JSON."""

    # Of the pools.
    NO_POOLS = "NoPools"
    NO_POOL_FITS = "NoPoolFits"
    POOL_UNAVAILABLE = "PoolUnavailable"
    NO_INSTANCE_TYPES = "NoInstanceTypes"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    REQUIREMENTS_CONFLICT = "RequirementsConflict"
    NO_OFFERING_AVAILABLE = "NoOfferingAvailable"
    HOST_PORT_TAKEN = "HostPortTaken"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    MIN_VALUES_NOT_MET = "MinValuesNotMet"
    LIMITS_EXCEEDED = "LimitsExceeded"
    CAPACITY_EXHAUSTED = "CapacityExhausted"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    TOPOLOGY_SPREAD = "TopologySpread"
    # Of the pod itself, whatever the pools are.
    INVALID_POD = "InvalidPod"
    REQUIREMENTS_CONTRADICT = "RequirementsContradict"
    MATCH_FIELDS_NOT_PLANNED = "MatchFieldsNotPlanned"
    RESOURCE_CLAIMS_NOT_PLANNED = "ResourceClaimsNotPlanned"
    RESOURCE_CLAIM_NOT_FOUND = "ResourceClaimNotFound"
    DEVICE_CLASS_NOT_FOUND = "DeviceClassNotFound"
    NO_DEVICE_FITS = "NoDeviceFits"
    VOLUME_UNREACHABLE = "VolumeUnreachable"
    VOLUME_CLAIM_NOT_FOUND = "VolumeClaimNotFound"
    VOLUME_CLAIM_NOT_USABLE = "VolumeClaimNotUsable"
    VOLUME_CLAIM_IN_USE = "VolumeClaimInUse"
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    VOLUMES_APART = "VolumesApart"
    # Of the pass.
    PLANNING_TOOK_TOO_LONG = "PlanningTookTooLong"
    PLANNING_FAILED = "PlanningFailed"
    SET_ASIDE = "SetAside"
    GROUP_INCOMPLETE = "GroupIncomplete"


class RelaxationCode(StrEnum):
    """Which preference was given up for a place; stable, for JSON and pages."""

    PREFERRED_NODE_AFFINITY = "PreferredNodeAffinity"
    PREFERRED_POD_AFFINITY = "PreferredPodAffinity"
    PREFERRED_POD_ANTI_AFFINITY = "PreferredPodAntiAffinity"
    SCHEDULE_ANYWAY = "ScheduleAnyway"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    MIN_VALUES_LOWERED = "MinValuesLowered"
    ON_DEMAND_FOR_LOST_WORK = "OnDemandForLostWork"


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """Why one pool cannot make a node for a pod. `code` is stable; `message` names the one failing thing."""

    pool: Reference
    code: RefusalCode
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod gets no capacity."""

    pod: str
    code: RefusalCode
    reasons: tuple[PoolRefusal, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        if self.message:
            return self.message
        return "; ".join(f"{reason.pool}: {reason.message}" for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A preference that pods gave up for their place; `message` names it and its obstacle."""

    code: RelaxationCode
    message: str
    pods: tuple[str, ...]
    """Keys of the pods, sorted."""


@dataclass(frozen=True, slots=True)
class ChosenCapacity:
    """The choice between spot and on-demand for pods that say what an interruption loses."""

    lost_work: LostWork
    """With a choice."""
    pods: tuple[str, ...]
    """Keys of the pods that have a place, sorted."""


@dataclass(frozen=True, slots=True)
class FewerNodes:
    """How a plan differs from the cheapest one that the search found, of which nodes were merged."""

    nodes: int
    """How many nodes fewer it has."""
    price: float
    """US dollars an hour that it costs more, at most what a setting allows; below 0: it costs less."""

    def __str__(self) -> str:
        nodes = f"{self.nodes} node{'s' * (self.nodes != 1)}"
        return f"{nodes} fewer than the cheapest plan found, for {self.price:.4f} USD/h more"

    def to_json(self) -> dict[str, Any]:
        """The two figures."""
        return {"nodes": self.nodes, "perHour": round(self.price, 9)}


#: A plan that costs no more than this share of its price above its bound is proved the cheapest: rounding in
#: the programs that find the bound hides less.
PROVED = 1e-6


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to one solve."""

    new_nodes: tuple[PlannedNode, ...] = ()
    placements: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Pod key to the name of the existing node or of the in-flight claim where there is room."""
    refusals: tuple[Refusal, ...] = ()
    lower_bound: float | None = None
    """US dollars an hour that no plan for the same pods can go below; None: not computed."""
    fewer_nodes: FewerNodes | None = None
    """None: no nodes of the plan that the search found were merged."""
    relaxations: tuple[Relaxation, ...] = ()
    """Preferences of placed pods that were relaxed."""
    choices: tuple[ChosenCapacity, ...] = ()
    """Of placed pods that say what an interruption loses."""
    unusable_pools: tuple[PoolRefusal, ...] = ()
    """Pools of which no pod whatever could get a node: they have no types, or too few for their minValues."""
    spill: tuple[str, ...] = ()
    """Keys of pods that kube-scheduler will find no room for, as it puts others where these were meant to be;
    it is looked for only where nobody nominates pods to their nodes."""
    work: Mapping[str, float] = field(default_factory=dict, hash=False, compare=False)
    """Seconds of counted work on the pods of each namespace."""
    faults: tuple[str, ...] = ()
    """What nobody foresaw and the plan was made without: the search for a cheaper one, say."""

    def fault_notes(self) -> tuple[str, ...]:
        """A line for each fault, for those who read the plan; none where nothing failed."""
        return tuple(
            f"a step of planning failed, and the plan was made without it: {fault}; hint: the plan can be "
            "carried out, but may cost more than it has to; please report this line"
            for fault in self.faults
        )

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
        return self._gap_at(self.cost_per_hour)

    @property
    def gap_found(self) -> float | None:
        """The same of the cheapest plan that was found, however many nodes it has."""
        return self._gap_at(self.cheapest_found)

    def _gap_at(self, price: float) -> float | None:
        if self.lower_bound is None:
            return None
        return max(0.0, 1 - self.lower_bound / price) if price > 0 else 0.0

    @property
    def proved_cheapest(self) -> bool:
        """Whether no other plan for the pods that have a place costs less, but for rounding (`PROVED`)."""
        return self.gap is not None and self.gap <= PROVED

    @property
    def cheapest_found(self) -> float:
        """US dollars an hour of the cheapest plan that was found, however many nodes it has."""
        return self.cost_per_hour - (max(0.0, self.fewer_nodes.price) if self.fewer_nodes else 0.0)

    @property
    def cost_per_hour(self) -> float:
        """US dollars an hour of all new nodes."""
        return sum(node.price for node in self.new_nodes)
