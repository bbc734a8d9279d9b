"""Which nodes may be disrupted at all, what they cost, and how much it would disturb.

A node whose pods are dearer to move is moved later: the order is by price saved for each
unit of disturbance, price / (1 + sum of the pods' positive eviction costs). Of a gang, moving one
pod stops all: the node of one member disturbs as much as those of all members together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nodeless.api.times import parse_time
from nodeless.disruption.blocking import Blocking
from nodeless.disruption.faults import AtWork
from nodeless.disruption.gangs import GangCosts, gangs_on
from nodeless.model.commitments import NOT_COVERED, Coverage
from nodeless.model.disruption import Verdict, VerdictCode
from nodeless.model.instance_types import Catalog
from nodeless.model.labels import (
    DO_NOT_DISRUPT,
    NOT_BEFORE,
    PAUSE,
    SPOT,
)
from nodeless.model.node_offerings import NodeOfferings
from nodeless.model.nodes import INITIALIZED_CONDITION, REBOOTING, Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.nodeclaim.draining import drain_taint
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.state.disruption_cost import disturbance_of, eviction_cost

#: What rounding may leave of an instance that is covered.
_ROUNDING = 1e-6
#: Seconds for which a drain counts as a part of its command (v0.27): one that is stuck must not hold the
#: replacement, and the next nodes of a Provisioner, for ever.
LONGEST_DRAIN_WAIT = 570.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may be disrupted."""

    claim: NodeClaim
    node: Node
    pool: Pool
    pods: tuple[Pod, ...]
    """Those that have to move, by key."""
    price: float | None
    """US dollars an hour, without what commitments cover; None: the catalog does not know its offering."""
    blocked: Verdict | None
    """What keeps its pods from being evicted."""
    others: float = 0.0
    """Eviction costs of pods on other nodes that run together with one of its pods or not at all."""
    committed: str = ""
    """The commitments that pay for its whole instance; empty: they pay for a part of it at most."""
    covered: float = 0.0
    """US dollars an hour that commitments pay of it."""

    @property
    def name(self) -> str:
        return self.claim.name

    @property
    def spot(self) -> bool:
        return self.node.capacity_type == SPOT

    @property
    def disturbance(self) -> float:
        return disturbance_of(self.pods) + self.others

    @property
    def empty(self) -> bool:
        """Whether no pod costs anything to move."""
        return all(eviction_cost(pod) <= 0 for pod in self.pods)

    @property
    def ratio(self) -> float:
        return (self.price or 0.0) / self.disturbance


def candidates(
    snapshot: Snapshot,
    catalog: Catalog,
    now: float,
    at: AtWork | None = None,
    excluded: Mapping[str, Verdict] = MappingProxyType({}),
    coverage: Coverage = NOT_COVERED,
) -> tuple[tuple[Candidate, ...], dict[str, Verdict]]:
    """The candidates by name, and why each other claim is none; those `excluded` have their verdicts."""
    found: list[Candidate] = []
    verdicts: dict[str, Verdict] = {}
    at = at or AtWork()
    make = CandidateBuilder(snapshot, catalog, now, coverage)
    busy = commands_under_way(snapshot, now)
    replaced = replacement_by_claim(busy)
    for name, claim in sorted(snapshot.claims.items()):
        if name in excluded:
            verdicts[name] = excluded[name]
            continue
        at.on(name)
        node = snapshot.node_of(claim)
        pool = snapshot.pools.get(str(claim.pool))
        obstacle = _obstacle(snapshot, claim, node, pool, now)
        if obstacle is None and name in busy:
            obstacle = Verdict(VerdictCode.REPLACING, f"it takes the place of {', '.join(busy[name])}")
        if obstacle is None and name in replaced:
            obstacle = Verdict(VerdictCode.REPLACING, f"{replaced[name]} takes its place")
        if obstacle is not None or node is None or pool is None:
            verdicts[name] = obstacle or Verdict(VerdictCode.NOT_INITIALIZED, "its node is not initialized")
            continue
        found.append(make.candidate(claim, node, pool))
    at.on()
    return tuple(found), verdicts


class CandidateBuilder:
    """Makes candidates of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, catalog: Catalog, now: float, coverage: Coverage = NOT_COVERED
    ) -> None:
        self._snapshot, self._now = snapshot, now
        self._prices, self._blocking = Prices(catalog, coverage), Blocking(snapshot)
        self._gangs = GangCosts(snapshot)

    def candidate(self, claim: NodeClaim, node: Node, pool: Pool, taint: Taint | None = None) -> Candidate:
        """What there is to say about a node, whether it may be disrupted or not.

        `taint` is the mark of its drain; None: that of a node that ends.
        """
        pods = tuple(self._snapshot.pods_on(node.name))
        moving = tuple(pod for pod in pods if pod.reschedulable)
        blocked = self._blocking.first_blocker(pods, self._now, taint or drain_taint(claim.pool))
        price, others = self._prices.of(claim, node, pool), self._gangs.of_others(moving)
        committed, covered = self._prices.paid_by(claim, node, pool), self._prices.covered(claim)
        return Candidate(claim, node, pool, moving, price, blocked, others, committed, covered)


def claims_by_replacement(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """For each replacement, by claim name: the claims that it replaces and that still live."""
    found = (
        (name, tuple(old for old in claim.replaces if old in snapshot.claims))
        for name, claim in snapshot.claims.items()
        if claim.replaces
    )
    return dict(sorted((name, olds) for name, olds in found if olds))


def commands_under_way(snapshot: Snapshot, now: float) -> dict[str, tuple[str, ...]]:
    """The same without replacements of claims that have all drained for long: these are nodes like others."""
    claims = snapshot.claims
    return {
        name: olds
        for name, olds in claims_by_replacement(snapshot).items()
        if any(is_awaited(claims[old], now) for old in olds)
    }


def is_awaited(old: NodeClaim, now: float) -> bool:
    """Whether a claim that ends by a command is not deleted yet, or has not drained for long."""
    return old.deletion_timestamp is None or now - old.deletion_timestamp < LONGEST_DRAIN_WAIT


def replacement_by_claim(replacements: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each claim that a living replacement names, marked yet or not: the first of its replacements."""
    found: dict[str, str] = {}
    for replacement, olds in replacements.items():
        for old in olds:
            found.setdefault(old, replacement)
    return found


def _obstacle(
    snapshot: Snapshot, claim: NodeClaim, node: Node | None, pool: Pool | None, now: float
) -> Verdict | None:
    return next(_obstacles(snapshot, claim, node, pool, now), None)


def _obstacles(
    snapshot: Snapshot, claim: NodeClaim, node: Node | None, pool: Pool | None, now: float
) -> Iterator[Verdict]:
    if claim.invalid:
        yield Verdict(VerdictCode.UNREADABLE, f"the claim cannot be read: {claim.invalid}")
    if leaving(node, claim):
        yield Verdict(VerdictCode.LEAVING, "it is on its way out already")
    if claim.is_true(REBOOTING):
        yield Verdict(VerdictCode.REBOOTING, "it is being rebooted")
    if node is None or not (node.initialized or claim.is_true(INITIALIZED_CONDITION)):
        yield Verdict(VerdictCode.NOT_INITIALIZED, "its node is not initialized")
    if pool is None or pool.invalid or pool.deletion_timestamp is not None:
        yield Verdict(
            VerdictCode.POOL_UNUSABLE, f"{claim.pool} does not exist, cannot be read or is being deleted"
        )
    if paused := paused_by(node, pool):
        yield Verdict(VerdictCode.PAUSED, paused)
    if node is not None and node.annotations.get(DO_NOT_DISRUPT) == "true":
        yield Verdict(VerdictCode.NODE_PROTECTED, f"the node has the annotation {DO_NOT_DISRUPT}=true")
    if snapshot.is_nominated(claim.name, now) or (node is not None and snapshot.is_nominated(node.name, now)):
        yield Verdict(VerdictCode.NOMINATED, "pods are expected on it")
    if gangs := gangs_on(claim):
        text = f"it was launched for gang {', '.join(gangs)}, which is not whole yet"
        yield Verdict(VerdictCode.GANG_INCOMPLETE, text)
    if (resting := cooling_down(claim, now)) is not None:
        yield resting


def paused_by(node: Node | None, pool: Pool | None) -> str:
    """What pauses voluntary disruption of a node; empty: nothing does."""
    for subject, annotations in _annotated_objects(node, pool):
        if annotations.get(PAUSE) == "true":
            return f"{subject} has the annotation {PAUSE}=true"
    return ""


def _annotated_objects(node: Node | None, pool: Pool | None) -> Iterator[tuple[str, Mapping[str, str]]]:
    if node is not None:
        yield "the node", node.annotations
    if pool is not None:
        yield str(pool.reference), pool.own_annotations


def cooling_down(claim: NodeClaim, now: float) -> Verdict | None:
    """Why a claim whose replacement failed is left alone for a while."""
    try:
        again = parse_time(claim.annotations.get(NOT_BEFORE, ""))
    except ValueError:
        return None
    if again <= now:
        return None
    return Verdict(
        VerdictCode.COOLING_DOWN, f"a replacement failed; it is looked at again in {again - now:.0f} s"
    )


class Prices:
    """What a node costs: the price of its offering, to be had now or not, without what is covered."""

    def __init__(self, catalog: Catalog, coverage: Coverage = NOT_COVERED) -> None:
        self._offerings, self._coverage = NodeOfferings(catalog), coverage

    def of(self, claim: NodeClaim, node: Node, pool: Pool) -> float | None:
        """The price of a node; None: its pool does not buy it, or nobody prices it."""
        price = self.at(pool.key, node.instance_type, node.zone, node.capacity_type)
        return None if price is None else max(0.0, price - self.covered(claim))

    def covered(self, claim: NodeClaim) -> float:
        """What commitments pay of a node."""
        return self._coverage.dollars(claim.name)

    def paid_by(self, claim: NodeClaim, node: Node, pool: Pool) -> str:
        """The commitments that pay for the whole instance of a node; empty: they pay for a part at most.

        Its volumes, addresses and fees are never paid by commitments.
        """
        parts = self._coverage.parts.get(claim.name)
        if not parts:
            return ""
        found = self._offerings.find(pool.key, node.instance_type, node.zone, node.capacity_type)
        whole = 0.0 if found is None else found.coverable_price
        covers_it = self.covered(claim) >= whole * (1 - _ROUNDING)
        return ", ".join(part.detail for part in parts) if covers_it else ""

    def at(self, pool: str, instance_type: str, zone: str, capacity_type: str) -> float | None:
        """The price at which a pool, by key, buys such a node; None: it does not, or nobody prices it."""
        found = self._offerings.find(pool, instance_type, zone, capacity_type)
        return None if found is None else found.price
