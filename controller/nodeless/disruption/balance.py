"""Whether a saving is worth the disturbance: policy `Balanced`, and the price of an eviction.

    score = (saving / price of the pool's nodes) / (disturbance of the command / disturbance of the pool)

where the disturbance of a node is 1 + the positive eviction costs of its pods, and the pool's totals
count every node of the pool, also those that cannot be disrupted now. A command is made when its score is
at least 1/2: a fifth of the money for a twentieth of the disturbance scores 4, a twentieth of the money
for half of it 0.1. Every pool whose policy is Balanced must approve, each with its own share of the
saving, which is divided by the price of the nodes that end.

Whatever the policy, a replacement must save 3 % of what ends; and more the more pods a node has that
ends, for hundreds of evictions are not worth a few percent:

    least saving = 3 % * (1 + disturbance for each node that ends / 50), at most 15 %

and 1 % more for each node that is launched beyond the number of those that end, since larger nodes are
fewer to look after. Of several commands that could be made the one goes first that saves most once its
evictions are taken off, each at 5 % of what an hour of an average pod costs.

A replacement costs money, too: for about a minute and a half it runs beside what it replaces. It must have
saved that again in as long as the youngest of its nodes has run, since nobody knows better how long it will
be of use: what has stood for long is likely to stand for long.

    saving * age of the youngest node >= price of the replacement * 90 s

So half of the price is saved after a minute and a half, a twentieth after half an hour, and a cluster that
has just grown is not moved about for a few percent.

Each eviction may also be given a price in dollars (`eviction_price`); a command must save more than
that in an hour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nodeless.disruption.candidates import Candidate, Prices
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model.commitments import Commitment
from nodeless.model.disruption import Command, Verdict, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.capacity.coverage import running_coverage
from nodeless.state.disruption_cost import disturbance_of

LEAST_SCORE = 0.5
#: Disturbance of a node for which a replacement must save as much again as for one without, and how often.
ONCE_MORE, MOST_TIMES = 50.0, 5.0
#: Part of the price of what ends that each node beyond their number must save.
EACH_NODE_MORE = 0.01
#: Part of an average pod's price that an eviction counts as where commands are compared.
EVICTION_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Totals:
    """Price in US dollars an hour and disturbance of all nodes of a pool."""

    price: float
    disturbance: float


def score(saving: float, disturbance: float, totals: Totals) -> float:
    """The part of the price saved for each part of the disturbance; 0 where nothing is saved."""
    if saving <= 0 or totals.price <= 0:
        return 0.0
    return (saving / totals.price) / (disturbance / totals.disturbance)


def totals_of(
    snapshot: Snapshot, catalog: Catalog, commitments: Sequence[Commitment] = ()
) -> dict[str, Totals]:
    """The totals of each pool, by pool key."""
    prices = Prices(catalog, running_coverage(snapshot, catalog, commitments))
    sums = dict[str, tuple[float, float]]()
    for claim in snapshot.claims.values():
        node, pool = snapshot.node_of(claim), snapshot.pools.get(str(claim.pool))
        if node is None or pool is None:
            continue
        price, disturbance = sums.get(pool.key, (0.0, 0.0))
        pods = (pod for pod in snapshot.pods_on(node.name) if pod.occupies)
        sums[pool.key] = (price + (prices.of(claim, node, pool) or 0.0), disturbance + disturbance_of(pods))
    return {key: Totals(*total) for key, total in sums.items()}


def least_saving(ending: Sequence[Candidate], least: float, launched: int = 0) -> float:
    """The part of their price that a replacement of these nodes must save.

    Args:
        ending: The nodes.
        least: The part where nobody is moved.
        launched: How many nodes take their place.
    """
    moved = sum(candidate.disturbance - 1.0 for candidate in ending) / max(len(ending), 1)
    more = max(launched - len(ending), 0)
    return least * min(1.0 + moved / ONCE_MORE, MOST_TIMES) + EACH_NODE_MORE * more


@dataclass(frozen=True, slots=True)
class Exchange:
    """What an eviction is worth in US dollars an hour where commands are compared."""

    eviction: float

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> "Exchange":
        """By what the pods of these nodes cost on average."""
        pods = sum(len(candidate.pods) for candidate in candidates)
        price = sum(candidate.price or 0.0 for candidate in candidates)
        return cls(EVICTION_SHARE * price / pods if pods else 0.0)

    def value(self, command: Command) -> float:
        """What a command is worth in US dollars an hour: of two the one that is worth more goes first."""
        return command.saving - self.eviction * command.evictions

    def worth(self, ending: Sequence[Candidate], bought: float) -> float:
        """The same of a command that ends these nodes and launches for so many US dollars an hour."""
        price = sum(candidate.price or 0.0 for candidate in ending)
        return price - bought - self.eviction * sum(len(candidate.pods) for candidate in ending)


class BalancedScore:
    """Judges the commands of one pass."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, policy: DisruptionPolicy, now: float) -> None:
        self._eviction_price = policy.eviction_price
        self._overlap = policy.overlap
        self._now = now
        #: When the first of the commands is worth it that are refused for the age of their nodes alone.
        self.again_at = math.inf
        balanced = any(pool.balanced for pool in snapshot.pools.values())
        self._totals = totals_of(snapshot, catalog, policy.solving.commitments) if balanced else {}

    def refusal(self, ending: Sequence[Candidate], saving: float, bought: float = 0.0) -> Verdict | None:
        """Why candidates should not end for a saving (US dollars an hour); None: they may.

        Args:
            ending: The candidates.
            saving: US dollars an hour.
            bought: What the nodes that take their place cost, in US dollars an hour.
        """
        evictions = sum(candidate.disturbance - 1.0 for candidate in ending)
        if self._eviction_price and saving < self._eviction_price * evictions:
            text = (
                f"it would save {saving:.4f} USD/h, less than its evictions count for "
                f"({evictions:.1f} at {self._eviction_price:g} USD)"
            )
            return Verdict(VerdictCode.EVICTIONS_TOO_DEAR, text)
        price = sum(candidate.price or 0.0 for candidate in ending)
        for key in sorted({candidate.pool.key for candidate in ending if candidate.pool.balanced}):
            mine = [candidate for candidate in ending if candidate.pool.key == key]
            share = sum(candidate.price or 0.0 for candidate in mine) / price if price else 0.0
            verdict = self._find_imbalance(key, mine, saving * share)
            if verdict is not None:
                return verdict
        return self._not_repaid(ending, saving, bought)

    def repaid_at(self, ending: Sequence[Candidate], saving: float, bought: float) -> float:
        """From when a replacement that saves something is worth it for the age of its nodes.

        Args:
            ending: The candidates.
            saving: US dollars an hour.
            bought: What the nodes that take their place cost, in US dollars an hour.

        Returns:
            Seconds since the epoch.
        """
        youngest = max(candidate.claim.created_at for candidate in ending)
        return youngest + self._overlap * bought / saving

    def _not_repaid(self, ending: Sequence[Candidate], saving: float, bought: float) -> Verdict | None:
        if not bought or saving <= 0:
            return None
        repaid_at = self.repaid_at(ending, saving, bought)
        if self._now >= repaid_at:
            return None
        self.again_at = min(self.again_at, repaid_at)
        youngest = max(ending, key=lambda candidate: candidate.claim.created_at)
        text = (
            f"a replacement saves {saving:.4f} USD/h at most and repays the {self._overlap:.0f} s for which "
            f"both run in {repaid_at - youngest.claim.created_at:.0f} s: node {youngest.node.name} has not "
            "run for so long"
        )
        return Verdict(VerdictCode.NOT_REPAID, text)

    def _find_imbalance(self, key: str, mine: Sequence[Candidate], saving: float) -> Verdict | None:
        totals, moved = self._totals[key], sum(candidate.disturbance for candidate in mine)
        reached = score(saving, moved, totals)
        if reached >= LEAST_SCORE:
            return None
        saved = saving / totals.price if totals.price else 0.0
        text = (
            f"{key} is Balanced: {saved:.1%} of its price for {moved / totals.disturbance:.1%} of its "
            f"disturbance scores {reached:.2f}, below {LEAST_SCORE}"
        )
        return Verdict(VerdictCode.UNBALANCED, text)
