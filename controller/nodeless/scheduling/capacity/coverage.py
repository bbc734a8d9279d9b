"""Commitments in a plan: what running nodes use of them, and what can be had at no further cost.

Nodes that run use commitments first, as AWS counts: those that are not ours, then ours, those with the
dearest pods to move first, for they will run the longest. Nodes that leave use nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from nodeless.model.bill import LINUX, WINDOWS
from nodeless.model.commitments import NOT_COVERED, Commitment, Coverage, Usage, cover, part_off
from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, ZONE
from nodeless.model.min_values import least_values
from nodeless.model.node_offerings import NodePrices
from nodeless.model.nodes import Node, NodeClaim
from nodeless.model.plan import PlannedNode
from nodeless.model.pools import Pool, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.eligibility import leaving
from nodeless.state.disruption_cost import disturbance_of

#: The part of its price at which covered capacity is planned: so little that it decides nothing but which of
#: it is used.
NOMINAL = 1e-3
#: What a coverage calls planned nodes: no name of an object.
_NEW = "new/{}"
#: Below this part of a commitment nothing is left.
_NOTHING = 1e-9


def running_coverage(
    snapshot: Snapshot,
    catalog: Catalog,
    commitments: Sequence[Commitment],
    planned: Iterable[PlannedNode] = (),
) -> Coverage:
    """What commitments cover of the nodes and claims of a cluster, and of nodes that are planned for it.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, at the prices of nodes without a fee for each.
        commitments: Those that count now.
        planned: New nodes.

    Returns:
        The coverage, by the name of the claim, or of the node where it has no claim.
    """
    if not commitments:
        return NOT_COVERED
    new = [
        usage_of(_NEW.format(number), node.instance_type, offering)
        for number, node in enumerate(planned)
        if (offering := node.alternatives[0].offering).capacity_type == ON_DEMAND
    ]
    return cover(commitments, [*usages_of(snapshot, catalog), *new])


def usages_of(snapshot: Snapshot, catalog: Catalog) -> list[Usage]:
    """The instances on demand that run and will go on, in the order in which they use commitments.

    One whose price is not known uses Reserved Instances, and no Savings Plan.
    """
    prices = NodePrices(catalog)
    found: list[tuple[bool, float, Usage]] = []
    seen = set()
    for node in snapshot.nodes.values():
        claim = snapshot.claim_of(node)
        if claim is not None:
            seen.add(claim.name)
        if leaving(node, claim) or node.capacity_type not in (ON_DEMAND, ""):
            continue
        pool = claim.pool if claim is not None else node.pool
        system = node.labels.get(OS, "")
        offering = prices.find(str(pool), node.instance_type, node.zone, ON_DEMAND, system)
        name = node.name if claim is None else claim.name
        disturbance = disturbance_of(pod for pod in snapshot.pods_on(node.name) if pod.occupies)
        unpriced = Usage(name, node.instance_type, node.zone, dollars=0.0, list_price=0.0)
        usage = unpriced if offering is None else usage_of(name, node.instance_type, offering)
        usage = replace(usage, zone=node.zone, platform=_platform(node, pool, offering))
        found.append((pool is not None, -disturbance, usage))
    for claim in snapshot.claims.values():
        starts = claim.name not in seen and claim.deletion_timestamp is None
        expected = _expected(claim, catalog, prices) if starts else None
        if expected is not None:
            found.append((True, 0.0, expected))
    return [usage for *_, usage in sorted(found, key=lambda each: (each[0], each[1], each[2].name))]


def _platform(node: Node, pool: Reference | None, offering: Offering | None) -> str:
    """What the instance of a node is billed as; of nodes that are not ours, their label says all we know."""
    known = offering.platform if offering is not None and pool is not None else LINUX
    system = node.labels.get(OS, "")
    if not system or (system == "windows") == known.startswith(WINDOWS):
        return known
    return WINDOWS if system == "windows" else LINUX


def _expected(claim: NodeClaim, catalog: Catalog, prices: NodePrices) -> Usage | None:
    """The instance on demand that a claim without a node has, or will most likely get."""
    if claim.provider_id:
        zone = claim.labels.get(ZONE, "")
        if claim.labels.get(CAPACITY_TYPE, ON_DEMAND) != ON_DEMAND:
            return None
        offering = prices.find(str(claim.pool), claim.instance_type, zone, ON_DEMAND)
        return usage_of(claim.name, claim.instance_type, offering) if offering is not None else None
    named = claim.requirements.get(INSTANCE_TYPE)
    options = [
        (offering.price, kind.name, offering)
        for kind in catalog.get(str(claim.pool), ())
        if (named is None or named.allows(kind.name))
        and (offering := kind.cheapest(claim.requirements)) is not None
    ]
    if not options:
        return None
    _, kind, offering = min(options, key=lambda option: option[:2])
    return usage_of(claim.name, kind, offering) if offering.capacity_type == ON_DEMAND else None


def usage_of(name: str, instance_type: str, offering: Offering) -> Usage:
    """An instance of an offering."""
    return Usage(
        name,
        instance_type,
        offering.zone,
        dollars=offering.coverable_price,
        list_price=offering.coverable_list_price,
        license_price=offering.license_price,
        platform=offering.platform,
    )


def unused(commitments: Iterable[Commitment], left: Mapping[str, float]) -> tuple[Commitment, ...]:
    """The commitments of which something is left."""
    return tuple(
        commitment
        for commitment in commitments
        if left.get(commitment.name, 0.0) > _NOTHING * commitment.amount
    )


def covered_catalog(
    catalog: Catalog, pools: Iterable[Pool], commitments: Sequence[Commitment], left: Mapping[str, float]
) -> Catalog:
    """The catalog at the least that each offering may cost: as if all that is left were for it alone.

    What is covered as a whole has a nominal price. Pools with minValues stay as they are: EC2 chooses among
    all of their types, and so may launch one that is not covered.

    Args:
        catalog: At the prices of nodes.
        pools: The pools.
        commitments: Those of which something is left.
        left: What is left of each, by its name.
    """
    flexible = {pool.key for pool in pools if not least_values(pool.requirements)}
    return {
        key: tuple(_covered_type(kind, commitments, left) for kind in kinds) if key in flexible else kinds
        for key, kinds in catalog.items()
    }


def _covered_type(
    kind: InstanceType, commitments: Sequence[Commitment], left: Mapping[str, float]
) -> InstanceType:
    def covered(offering: Offering) -> Offering:
        uses = uses_of(kind.name, offering, commitments)
        part = sum(left[each.name] / use for each, use in zip(commitments, uses, strict=True) if use)
        return _at_part(offering, max(1 - part, NOMINAL)) if part > _NOTHING else offering

    return _with_offerings(kind, covered)


def at_worth(kind: InstanceType, commitments: Sequence[Commitment], worth: Sequence[float]) -> InstanceType:
    """A type whose instances cost what they use of commitments, and no more than their price.

    Args:
        kind: The type.
        commitments: The commitments.
        worth: US dollars an hour that a unit of each is worth.
    """

    def at(offering: Offering) -> Offering:
        price, uses = offering.coverable_price, uses_of(kind.name, offering, commitments)
        paid = min(
            (use * dollars for use, dollars in zip(uses, worth, strict=True) if use is not None),
            default=price,
        )
        return _at_part(offering, paid / price) if paid < price else offering

    return _with_offerings(kind, at)


def uses_of(
    instance_type: str, offering: Offering, commitments: Iterable[Commitment]
) -> tuple[float | None, ...]:
    """Units that an instance uses of each commitment; None: it is not covered by it."""
    if offering.capacity_type != ON_DEMAND or not offering.price_known:
        return tuple(None for _ in commitments)
    return tuple(
        each.use(instance_type, offering.coverable_list_price, offering.license_price)
        if each.concerns(instance_type, offering.zone, offering.platform)
        else None
        for each in commitments
    )


def _with_offerings(kind: InstanceType, change: Callable[[Offering], Offering]) -> InstanceType:
    """The type with its offerings changed; the very same where none is."""
    offerings = tuple(map(change, kind.offerings))
    changed = any(new is not old for new, old in zip(offerings, kind.offerings, strict=True))
    return replace(kind, offerings=offerings) if changed else kind


def _at_part(offering: Offering, part: float) -> Offering:
    """The offering at a part of the price of its instance."""
    return offering.less([part_off(offering.coverable_price * (1 - part), "")])


def most_worth(catalog: Catalog, commitments: Iterable[Commitment]) -> tuple[float, ...]:
    """US dollars an hour that a unit of each commitment covers at most, whatever is launched."""
    return tuple(max(_worth(catalog, each), default=0.0) for each in commitments)


def _worth(catalog: Catalog, commitment: Commitment) -> Iterator[float]:
    """US dollars that a unit of a commitment covers, for each offering that it concerns."""
    for kinds in catalog.values():
        for kind in kinds:
            for offering in kind.offerings:
                (use,) = uses_of(kind.name, offering, [commitment])
                if use:
                    yield offering.coverable_price / use
