"""What the operator may choose about a solve."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodeless.model.commitments import Commitment
from nodeless.model.lost_work import InterruptionRate
from nodeless.model.packing import FEWEST_NODES, LOWEST_PRICE, packing_defect
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling.capacity.pricing import PriceAdjustment

__all__ = ["BEST_EFFORT", "DEFAULT_TIME_BOX", "FEWEST_NODES", "LOWEST_PRICE", "STRICT", "Policy"]

STRICT = "Strict"
BEST_EFFORT = "BestEffort"
#: Seconds that the search for a cheaper plan may take on top of the first-fit plan.
DEFAULT_TIME_BOX = 1.0
#: By how much of its price a plan may become dearer for fewer nodes.
DEFAULT_TOLERANCE = 0.01
#: Seconds that pods wait for the room of others. A new node is there no sooner: on EKS it is Ready after 24
#: to 30 (AWS, in the README of awslabs/node-latency-for-k8s), and the default grace period is 30.
DEFAULT_TERMINATION_WAIT = 30.0
#: Seconds of work after which a pass ends with what it has.
DEFAULT_DEADLINE = 8.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How to pack, what things cost, and what is known to be wrong with pools.

    Raises:
        ValueError: an unknown packing, a negative amount, or no room for an alternative.
    """

    packing: str = LOWEST_PRICE
    """`lowest-price` or `fewest-nodes` (`model.packing`); a pool's annotation goes before."""
    max_alternatives: int = 60
    """How many instance types a planned node keeps (AWS's limit of overrides that Karpenter sends)."""
    pool_problems: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Pool key to why the pool cannot be used now, for example a node class without subnets."""
    subnets: Mapping[str, tuple[SubnetRoom, ...]] = field(default_factory=dict, hash=False)
    """Pool key to the subnets that its nodes may be launched in; a pool that is missing never runs short."""
    node_fee: float = 0.0
    """US dollars an hour that every node costs besides its instance: agents and volumes billed by node."""
    price_adjustments: tuple[PriceAdjustment, ...] = ()
    """Discounts and surcharges, applied to list prices in their order."""
    commitments: tuple[Commitment, ...] = ()
    """What is paid for whether it runs or not; `at` says which count."""
    commitments_left: Mapping[str, float] | None = field(default=None, hash=False)
    """What is left of each, by its name, for new nodes; None: what the nodes of the snapshot leave, as far as
    the catalog knows them."""
    time_box: float = DEFAULT_TIME_BOX
    """Seconds that the search for a cheaper plan may take (`budget` says how); 0: the first-fit plan only."""
    fewer_nodes_tolerance: float = DEFAULT_TOLERANCE
    """By how much of its price a plan that the search found may become dearer for fewer nodes, 0 to 1."""
    most_new_nodes: int | None = None
    """New nodes that the search for a cheaper plan may end with; None: any number. A first-fit plan that has
    more stays where none of so few is found."""
    domains_by_program: bool = True
    """Whether the integer program for a few pods that are left over decides zones and other domains, too."""
    deadline: float = DEFAULT_DEADLINE
    """Seconds of work that a pass may take with all pods together, as counted (`meter`)."""
    late: frozenset[str] = frozenset()
    """Keys of pods that come after all others, for they used more than their share of a pass before."""
    places: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Pod key to the claim or node where the pass before put a pod: it stays there as long as it fits."""
    ignore_preferences: bool = False
    """Whether preferences are ignored: preferred node and pod (anti-)affinity, ScheduleAnyway."""

    as_bound: bool = False
    """Whether kube-scheduler follows its scores instead of the plan: then the plan is chosen that is cheapest
    as it will be bound (`as_bound`). Where pods can be nominated to their nodes it follows the plan."""
    nominates: bool = False
    """Whether pods are nominated to their nodes, but for those that cannot be (`pods.nominated_spread`): then
    the plan is chosen that is cheapest as those will be bound. Of no effect beside `as_bound`."""

    spot_interruptions: tuple[InterruptionRate, ...] = ()
    """How often spot takes nodes; of several rates that concern a type, the first counts."""
    keeps_off_spot: bool = False
    """Whether the plan is of a command that saves money (`capacity_choices`): pods that run off spot, and are
    better off so, get no place on spot; of others it does not matter."""

    termination_wait: float = DEFAULT_TERMINATION_WAIT
    """Seconds that a pod waits for the room of pods that terminate (`capacity.terminating`); 0: no
    pod does."""

    min_values: str = STRICT
    """`Strict`: no node falls short of its pool's minValues; `BestEffort`: they are lowered where need be."""

    now: float = field(default=0.0, compare=False)
    """When it is planned, in seconds since the epoch: what is still held on leaving nodes depends on it
    (`pods.eligibility`). `at` sets it. Policies that differ in nothing else are equal."""

    def at(self, now: float) -> "Policy":
        """The policy of a time, in seconds since the epoch, with the commitments that count then."""
        counting = tuple(commitment for commitment in self.commitments if commitment.is_in_term(now))
        return replace(self, commitments=counting, now=now)

    def __post_init__(self) -> None:
        defect = packing_defect(self.packing)
        if defect:
            raise ValueError(f"packing {self.packing!r} {defect}")
        if self.min_values not in (STRICT, BEST_EFFORT):
            raise ValueError(f"min_values is {self.min_values!r}; hint: use {STRICT} or {BEST_EFFORT}")
        if self.max_alternatives < 1:
            raise ValueError(f"max_alternatives is {self.max_alternatives}; hint: use 1 or more")
        for name in ("node_fee", "time_box", "deadline", "fewer_nodes_tolerance", "termination_wait"):
            amount = getattr(self, name)
            if not 0 <= amount < float("inf"):
                raise ValueError(f"{name} is {amount}; hint: use 0 or more")
