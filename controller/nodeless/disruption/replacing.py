"""Replacements that are surely cheaper, whatever the cloud gives of what they ask for.

The worst launch price of a type is the dearest of its available offerings in the allowed
zones: of spot offerings where spot is allowed and to be had (the replacement is then bound
to spot, so that a lack of spot capacity fails the launch instead of buying a dearer node),
else of on-demand ones. With m_i the least worst price of replacement i and P the price of
the nodes that end, a type of replacement i is kept when

    worst price < m_i * P (1 - least saving) / sum_j m_j

so that the sum stays below what is paid now, whichever kept types are launched; for one
replacement this is Karpenter's rule. Of on-demand types those alone are kept from which no
later command could save enough,

    worst price * (1 - least saving) <= m_i

or the pods would be moved again for what could be had at once. Spot types are all kept: a
wide choice is what keeps a spot node, and nothing moves it to spot again; from spot to spot
the fifteen cheapest are.

Where the kept types offer fewer values than the pool's minValues ask for, the next cheapest
ones are added until they do. What falls short even so is no replacement, whatever the policy of
minValues (Karpenter's rule): a command that only saves money gives up none of a launch's choice. A
minimum that `BestEffort` has lowered in the plan counts as it is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodeless.disruption.balance import least_saving
from nodeless.disruption.candidates import Candidate
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model.instance_types import Catalog, InstanceType, Offering
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from nodeless.model.min_values import least_values, too_few
from nodeless.model.plan import Alternative, PlannedNode
from nodeless.model.requirements import IN, Requirement, Requirements

#: A spot node is replaced by spot only if so many types remain: the market stays wide, and commands end.
SPOT_TO_SPOT_TYPES = 15


@dataclass(frozen=True, slots=True)
class Replacement:
    """Nodes to launch, the most they can cost, and what they are expected to cost."""

    nodes: tuple[PlannedNode, ...]
    worst: float
    expected: float


@dataclass(frozen=True, slots=True)
class _Option:
    kind: InstanceType
    offerings: tuple[Offering, ...]
    """Cheapest first."""

    @property
    def worst(self) -> float:
        return self.offerings[-1].price


def cheaper_replacement(
    planned: Sequence[PlannedNode],
    candidates: Sequence[Candidate],
    catalog: Catalog,
    policy: DisruptionPolicy,
) -> Replacement | str:
    """The planned nodes narrowed to what is cheaper than the candidates, or why there is nothing."""
    price = sum(candidate.price or 0.0 for candidate in candidates)
    least_part = least_saving(candidates, policy.least_saving, len(planned))
    limit = price * (1 - least_part)
    types = {key: {kind.name: kind for kind in kinds} for key, kinds in _used_types(planned, catalog).items()}
    options = [_options(node, types[str(node.pool)]) for node in planned]
    if len(candidates) > 1:
        options = [_of_other_types(option, candidates) for option in options]
    if not all(options):
        return "no instance type that is to be had would hold the pods"
    least = [min(option.worst for option in some) for some in options]
    if sum(least) >= limit:
        return (
            f"nothing cheaper holds its pods: at least {sum(least):.4f} USD/h against {price:.4f} USD/h now"
            f" ({_condition(len(planned), len(candidates))} must save {least_part:.0%})"
        )
    # What is paid for already may cost nothing.
    factor = limit / sum(least) if sum(least) else 1.0
    cheap = [
        sorted((option for option in some if _cheap(option, bound, factor)), key=_by_price)
        for some, bound in zip(options, least, strict=True)
    ]
    kept = _options_to_request(planned, candidates, cheap, policy)
    if isinstance(kept, str):
        return kept
    nodes = tuple(_narrow(node, option) for node, option in zip(planned, kept, strict=True))
    worst = sum(max(option.worst for option in some) for some in kept)
    return Replacement(nodes, worst, sum(node.price for node in nodes))


def _condition(launched: int, ended: int) -> str:
    return "a command" if launched <= ended else f"a command with {launched} nodes in place of {ended}"


def _options_to_request(
    planned: Sequence[PlannedNode],
    candidates: Sequence[Candidate],
    cheap: Sequence[Sequence[_Option]],
    policy: DisruptionPolicy,
) -> list[list[_Option]] | str:
    """Of the cheap types of each node, cheapest first, those to ask for; or why there are none."""
    kept = [_lasting_options(option, policy) for option in cheap]
    to_spot = any(option.offerings[0].capacity_type == SPOT for some in kept for option in some)
    if to_spot and all(candidate.spot for candidate in candidates):
        narrowed = _spot_to_spot(kept, candidates, policy)
        if isinstance(narrowed, str):
            return narrowed
        kept = narrowed
    kept = [_widen(node, option, more) for node, option, more in zip(planned, kept, cheap, strict=True)]
    for node, some in zip(planned, kept, strict=True):
        if short := _shortages(node, some):
            key, offered = next(iter(short.items()))
            return f"the cheaper types offer {offered} values of {key}, fewer than the minValues of its pool"
    return kept


def _cheap(option: _Option, least: float, factor: float) -> bool:
    """Whether it costs less than its part of the limit, when `least` is what the cheapest costs."""
    return option.worst <= least or option.worst < least * factor


def _lasting_options(options: Sequence[_Option], policy: DisruptionPolicy) -> list[_Option]:
    """Those on which no later command could save enough."""
    least = min(option.worst for option in options)
    return [
        option
        for option in options
        if option.offerings[0].capacity_type == SPOT or option.worst * (1 - policy.least_saving) <= least
    ]


def _used_types(planned: Sequence[PlannedNode], catalog: Catalog) -> dict[str, tuple[InstanceType, ...]]:
    return {str(node.pool): tuple(catalog.get(str(node.pool), ())) for node in planned}


def _options(node: PlannedNode, types: dict[str, InstanceType]) -> list[_Option]:
    """The node's types with the offerings that a launch asks for: reserved, else spot, else on-demand."""
    if node.alternatives[0].offering.is_committed:
        # What is covered costs nothing more as it was planned, and only so.
        return [
            _Option(types[each.instance_type], (each.offering,))
            for each in node.alternatives
            if each.offering.is_committed and each.instance_type in types
        ]
    possible = []
    for alternative in node.alternatives:
        kind = types.get(alternative.instance_type)
        if kind is not None:
            offerings = sorted(
                offering
                for offering in kind.offerings
                if offering.available and offering.allowed_by(node.requirements)
            )
            possible.append((kind, offerings))
    sold = {offering.capacity_type for _, offerings in possible for offering in offerings}
    wanted = next((each for each in (RESERVED, SPOT) if each in sold), ON_DEMAND)
    return [
        _Option(kind, tuple(sorted(some, key=lambda offering: (offering.price, offering.zone))))
        for kind, offerings in possible
        if (some := [offering for offering in offerings if offering.capacity_type == wanted])
    ]


def _of_other_types(options: list[_Option], candidates: Sequence[Candidate]) -> list[_Option]:
    """Merging nodes into one of a type that ends is the same as keeping that one: only cheaper types help."""
    prices = [
        candidate.price or 0.0
        for candidate in candidates
        if any(option.kind.name == candidate.node.instance_type for option in options)
    ]
    return [option for option in options if option.worst < min(prices)] if prices else options


def _spot_to_spot(
    kept: list[list[_Option]], candidates: Sequence[Candidate], policy: DisruptionPolicy
) -> list[list[_Option]] | str:
    if not policy.spot_to_spot:
        return "a spot node is not replaced by a spot node"
    if len(candidates) > 1:
        return kept
    if min(len(option) for option in kept) < SPOT_TO_SPOT_TYPES:
        return (
            f"a spot node is replaced by spot only if {SPOT_TO_SPOT_TYPES} cheaper types hold its pods;"
            f" {min(len(option) for option in kept)} do"
        )
    return [option[:SPOT_TO_SPOT_TYPES] for option in kept]


def _widen(node: PlannedNode, kept: Sequence[_Option], cheap: Sequence[_Option]) -> list[_Option]:
    """The kept types, and of the other cheap ones the first until the pool's minValues are met."""
    names = {option.kind.name for option in kept}
    wide = list(kept)
    for option in cheap:
        if option.kind.name in names:
            continue
        if not _shortages(node, wide):
            break
        wide.append(option)
    return sorted(wide, key=_by_price)


def _shortages(node: PlannedNode, options: Sequence[_Option]) -> dict[str, int]:
    """Of each label of which the types offer too few values for the pool's minValues, how many they do."""
    requirements = node.requirements
    short: dict[str, int] = {}
    for key, number in least_values(requirements):
        offered = too_few(
            (option.kind.values(key, option.offerings, requirements) for option in options), number
        )
        if offered is not None:
            short[key] = offered
    return short


def _narrow(node: PlannedNode, options: Sequence[_Option]) -> PlannedNode:
    kind = options[0].offerings[0].capacity_type
    bound = Requirement.of(CAPACITY_TYPE, IN, [kind])
    others = [requirement for requirement in node.requirements.values() if requirement.key != CAPACITY_TYPE]
    return replace(
        node,
        requirements=Requirements([*others, bound]),
        alternatives=tuple(Alternative(option.kind.name, option.offerings[0]) for option in options),
    )


def _by_price(option: _Option) -> tuple[float, str]:
    return option.offerings[0].price, option.kind.name
