"""Work that pods lose when spot takes their node, and what speaks for on-demand by that."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

#: Interruptions of a spot instance in a month where nothing else is said. AWS' Spot Instance Advisor
#: (https://aws.amazon.com/ec2/spot/instance-advisor/): the average frequency of interruption across all
#: Regions and instance types has historically been below 5 %.
USUAL_INTERRUPTIONS = 0.05


@dataclass(frozen=True, slots=True)
class InterruptionRate:
    """How often spot takes nodes; an empty selection matches everything.

    Attributes:
        pools: Names of pools.
        instance_types: Names of instance types; `*` and `?` are wildcards, as in `p5.*`.
        per_month: Interruptions of one instance in a month, on average.

    Raises:
        ValueError: a negative or infinite rate.
    """

    pools: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    per_month: float = USUAL_INTERRUPTIONS

    def __post_init__(self) -> None:
        if not 0 <= self.per_month < float("inf"):
            raise ValueError(f"perMonth is {self.per_month}; hint: interruptions of one instance in a month")

    def concerns(self, pool: str, instance_type: str) -> bool:
        """Whether it is about an instance type in a pool."""
        return (not self.pools or pool in self.pools) and (
            not self.instance_types
            or any(fnmatchcase(instance_type, pattern) for pattern in self.instance_types)
        )


def interruptions_a_month(rates: tuple[InterruptionRate, ...], pool: str, instance_type: str) -> float:
    """Interruptions of one instance in a month: what the first rate that concerns it says, else the usual."""
    return next((rate.per_month for rate in rates if rate.concerns(pool, instance_type)), USUAL_INTERRUPTIONS)


@dataclass(frozen=True, slots=True)
class CapacityChoice:
    """What a pod costs more on spot, and what it saves there; US dollars an hour."""

    expected: float
    """What interruptions are expected to lose in an hour, at the price of the hours that are lost."""
    saving: float
    """The pod's share of an on-demand node less its share of a spot node."""
    per_month: float
    """How often the pod's work is interrupted on spot in a month: by its node, or by any of its gang's."""

    @property
    def on_demand(self) -> bool:
        """Whether on-demand is no dearer than spot with what it loses."""
        return self.expected >= self.saving


@dataclass(frozen=True, slots=True)
class LostWork:
    """What an interruption of a pod loses, and what follows for it once it is known."""

    seconds: int
    """Of its work; the same is lost by each of `pods`."""
    pods: int = 1
    """How many lose their work together: the size of its gang, 1 for a pod that is in none."""
    choice: CapacityChoice | None = None
    """None: not looked for yet, or there is nothing to choose."""
    settled: bool = False
    """Whether the choice has been looked for."""
    stays: bool = False
    """Whether the pod runs where spot does not end it."""
