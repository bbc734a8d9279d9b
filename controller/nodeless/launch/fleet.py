"""The CreateFleet request of a claim, or of a group of equal ones.

Its type is `instant`, with one override per instance type and zone.

The client token is derived from the claims' names, so the same claims never get more
instances than they are, whatever happens between the request and its answer. Next: `results`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodeless.launch.candidates import Candidate, Candidates
from nodeless.launch.resolved import Subnet
from nodeless.launch.tags import specifications
from nodeless.model.labels import ON_DEMAND, SPOT
from nodeless.model.placement import CAPACITY_BLOCK
from nodeless.model.resources import PODS

#: EC2's limits: characters of a client token, launch templates of one request.
MAX_TOKEN_LENGTH = 64
MAX_CONFIGS = 50


def subnet_by_zone(subnets: Iterable[Subnet]) -> dict[str, Subnet]:
    """In each zone the subnet with the most unpromised addresses, full ones last; ties go to the first id."""
    chosen: dict[str, Subnet] = {}
    for subnet in sorted(subnets, key=lambda subnet: (subnet.full, -subnet.unpromised, subnet.id)):
        chosen.setdefault(subnet.zone, subnet)
    return chosen


def price_ranks(candidates: Candidates) -> dict[float, int]:
    """The place of each price among those of all offerings, from 0: EC2's priorities are whole numbers."""
    prices = {offering.price for candidate in candidates.types for offering in candidate.offerings}
    return {price: rank for rank, price in enumerate(sorted(prices))}


def overrides(
    types: Iterable[Candidate], subnets: Mapping[str, Subnet], ranks: Mapping[float, int] | None = None
) -> list[dict[str, Any]]:
    """The overrides of one template: each type in each zone where it can be had and a subnet is.

    `ranks` are the priorities by price, where EC2 is to go by those and not by its own prices.
    """
    return [
        {
            "InstanceType": candidate.instance_type.name,
            "SubnetId": subnets[offering.zone].id,
            "AvailabilityZone": offering.zone,
            **({} if ranks is None else {"Priority": ranks[offering.price]}),
        }
        for candidate in types
        for offering in candidate.offerings
        if offering.zone in subnets
    ]


def predicted_addresses(
    types: Iterable[Candidate], subnets: Mapping[str, Subnet], count: int = 1, *, of_pods: bool = True
) -> dict[str, int]:
    """How many addresses so many nodes may take in each zone, by subnet id: one for each pod that has room.

    Where pods take none, one for each node. They are thought to become the smallest of the types that the
    zone sells (Karpenter's prediction).
    """
    least: dict[str, int] = {}
    for candidate in types:
        pods = candidate.instance_type.capacity.get(PODS, 0) if of_pods else 1
        for offering in candidate.offerings:
            if offering.zone in subnets:
                chosen = subnets[offering.zone].id
                least[chosen] = min(pods, least.get(chosen, pods))
    return {subnet: count * pods for subnet, pods in least.items()}


def fleet_request(
    candidates: Candidates,
    overrides_by_template: Mapping[str, list[dict[str, Any]]],
    tags: Mapping[str, str],
    *,
    token: str,
    count: int = 1,
    context: str | None = None,
    prioritized: bool = False,
) -> dict[str, Any] | None:
    """The request, or None when no template has an override left.

    Args:
        candidates: The types; their capacity type decides the allocation strategy.
        overrides_by_template: By launch template name.
        tags: Of instance, volumes and fleet.
        token: The client token (`client_token`).
        count: How many instances.
        context: EC2's reserved `Context`.
        prioritized: Whether EC2 is to go by the priorities of the overrides, and not by its own prices.
    """
    configs = [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
            "Overrides": listed,
        }
        for name, listed in overrides_by_template.items()
        if listed
    ]
    if not configs:
        return None
    return {
        "Type": "instant",
        "ClientToken": token,
        **({"Context": context} if context else {}),
        "LaunchTemplateConfigs": configs[:MAX_CONFIGS],
        "TargetCapacitySpecification": {
            "DefaultTargetCapacityType": _target(candidates),
            "TotalTargetCapacity": count,
        },
        **_strategy(candidates, prioritized=prioritized),
        "TagSpecifications": specifications(tags, "instance", "volume", "fleet"),
    }


def _target(candidates: Candidates) -> str:
    """EC2's word for what is bought: an on-demand reservation is on-demand capacity that is paid for."""
    if candidates.capacity_type == SPOT:
        return SPOT
    reserved = next(iter(candidates.reservations().values()), None)
    if reserved is None:
        return ON_DEMAND
    if reserved.interruptible:
        return "reserved-capacity"
    return CAPACITY_BLOCK if reserved.reservation_type == CAPACITY_BLOCK else ON_DEMAND


def _strategy(candidates: Candidates, *, prioritized: bool) -> dict[str, Any]:
    match _target(candidates):
        case "spot":
            spot = "capacity-optimized-prioritized" if prioritized else "price-capacity-optimized"
            return {"SpotOptions": {"AllocationStrategy": spot}}
        case "on-demand":
            on_demand = "prioritized" if prioritized else "lowest-price"
            return {"OnDemandOptions": {"AllocationStrategy": on_demand}}
        case "reserved-capacity":
            return {"ReservedCapacityOptions": {"ReservationTypes": ["interruptible-capacity-reservation"]}}
    return {}


def client_token(cluster: str, claims: Sequence[str], attempt: int = 0) -> str:
    """A token of at most 64 ASCII characters, one per cluster, set of claims and attempt.

    EC2 repeats its answer to a token that it knows, for a day after the end of what it launched.

    Args:
        cluster: Name of the cluster.
        claims: Name and uid of each: another claim may come under the name of one that has ended.
        attempt: Rises only after an answer that made no instance.
    """
    some = sorted(claims)
    plain = f"{cluster}-{some[0]}" + (f"-{attempt}" if attempt else "")
    if len(some) == 1 and len(plain) <= MAX_TOKEN_LENGTH and plain.isascii():
        return plain
    return hashlib.sha256("\n".join((cluster, *some, str(attempt))).encode()).hexdigest()
