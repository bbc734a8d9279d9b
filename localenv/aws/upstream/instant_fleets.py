"""ec2.CreateFleet of type `instant`: overrides, strategies, partial fulfilment, `Errors`, client tokens.

moto always launches the first override and applies little of the launch template. EC2 resolves and checks the
pools (`fleet_market`), chooses among them (`fleet_choice`), and launches instances with everything that the
template says (`instance_launch`).

A client token stands for its request for as long as the server lives: the same request is answered with the
same instances again, also when they have ended since; another one is refused. Fleets that maintain their
capacity (`maintain`, `request`) are not served.

Source: EC2 API reference, CreateFleet; user guide, "EC2 Fleet of type instant", "Ensuring idempotency".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.upstream import capacity_reservations, placement_groups
from localenv.aws.upstream.fleet_choice import Pool, Refusal, choose
from localenv.aws.upstream.fleet_market import Market, Template
from localenv.aws.upstream.instance_launch import Launch, launch

_STRATEGIES = {
    "spot": frozenset(
        {
            "lowest-price",
            "diversified",
            "capacity-optimized",
            "capacity-optimized-prioritized",
            "price-capacity-optimized",
        }
    ),
    "on-demand": frozenset({"lowest-price", "prioritized"}),
    "capacity-block": frozenset({"lowest-price", "prioritized"}),
    "reserved-capacity": frozenset({"lowest-price", "prioritized"}),
}


def create_fleet(call: Call) -> dict[str, Any]:
    """ec2.CreateFleet."""
    parameters = call.parameters
    if parameters.get("Type", "maintain") != "instant":
        raise NotImplementedError("CreateFleet of a type other than instant")
    token = parameters.get("ClientToken")
    fingerprint = digest({k: v for k, v in parameters.items() if k != "ClientToken"}, 64)
    with call.state.lock:
        if token in call.state.fleet_tokens:
            known, answer = call.state.fleet_tokens[token]
            if known != fingerprint:
                message = "The request uses the same client token as a previous, but non-identical request."
                raise AwsError("IdempotentParameterMismatch", message)
            return dict(answer)
        answer = _fulfil(call)
        if token:
            call.state.fleet_tokens[token] = (fingerprint, answer)
        return dict(answer)


def _fulfil(call: Call) -> dict[str, Any]:
    parameters = call.parameters
    fleet_id = f"fleet-{digest([call.state.number(), parameters], 8)}-{digest(call.state.number(), 12)}"
    configs = parameters.get("LaunchTemplateConfigs") or []
    if not configs:
        raise AwsError("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
    templates = [Template.fetch(call, config.get("LaunchTemplateSpecification") or {}) for config in configs]
    instances: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    for capacity_type, capacity in _targets(parameters["TargetCapacitySpecification"]):
        strategy, minimum = _strategy(parameters, capacity_type)
        market = Market(call, capacity_type, templates)
        pools = market.pools(configs)
        chosen, refusals = choose(pools, strategy, capacity, market.probe)
        errors += [_error(r, templates, capacity_type) for r in refusals]
        if sum(count * pool.weight for pool, count in chosen) < minimum:
            continue
        for pool, count in chosen:
            market.take(pool, count)
            template = templates[pool.config]
            answer = _launch(call, fleet_id, template, pool=pool, count=count, capacity_type=capacity_type)
            instances.append(answer)
    call.state.fleets[fleet_id] = _record(fleet_id, parameters, instances, errors)
    return {"FleetId": fleet_id, "Instances": instances, "Errors": errors}


def _targets(specification: dict[str, Any]) -> list[tuple[str, float]]:
    """Capacity wanted of each capacity type."""
    total = float(specification.get("TotalTargetCapacity") or 0)
    if total < 1:
        message = "The target capacity must be at least 1"
        raise AwsError("InvalidTargetCapacitySpecification", message)
    default = specification.get("DefaultTargetCapacityType") or "on-demand"
    wanted = {
        "on-demand": float(specification.get("OnDemandTargetCapacity") or 0),
        "spot": float(specification.get("SpotTargetCapacity") or 0),
        "capacity-block": 0.0,
        "reserved-capacity": 0.0,
    }
    if default not in wanted:
        raise AwsError("InvalidParameterValue", f"Invalid value '{default}' for DefaultTargetCapacityType")
    wanted[default] += max(0.0, total - sum(wanted.values()))
    return [(kind, capacity) for kind, capacity in wanted.items() if capacity > 0]


def _strategy(parameters: dict[str, Any], capacity_type: str) -> tuple[str, float]:
    """The allocation strategy and the least capacity worth launching."""
    options = parameters.get("SpotOptions" if capacity_type == "spot" else "OnDemandOptions") or {}
    strategy = options.get("AllocationStrategy") or "lowest-price"
    if strategy not in _STRATEGIES[capacity_type]:
        raise AwsError("InvalidParameterValue", f"Invalid value '{strategy}' for allocationStrategy")
    return strategy, float(options.get("MinTargetCapacity") or 0)


def _launch(
    call: Call, fleet_id: str, template: Template, *, pool: Pool, count: int, capacity_type: str
) -> dict[str, Any]:
    identifiers = launch(
        call,
        Launch(
            data=template.data,
            instance_type=pool.instance_type,
            subnet_id=pool.subnet_id,
            image_id=pool.image_id,
            capacity_type=capacity_type,
            tag_specifications=tuple(call.parameters.get("TagSpecifications") or ()),
            reserved_tags={
                "aws:ec2:fleet-id": fleet_id,
                "aws:ec2launchtemplate:id": template.identifier,
                "aws:ec2launchtemplate:version": template.version,
            },
            client_token=str(call.parameters.get("ClientToken") or ""),
        ),
        count,
    )
    placement_groups.place(call, template.data, identifiers)
    if capacity_type != "spot":
        capacity_reservations.take(call, template.data, pool.instance_type, pool.zone, identifiers)
    return {
        "LaunchTemplateAndOverrides": _source(template, pool),
        "Lifecycle": "spot" if capacity_type == "spot" else "on-demand",
        "InstanceIds": identifiers,
        "InstanceType": pool.instance_type,
    }


def _source(template: Template, pool: Pool) -> dict[str, Any]:
    return {
        "LaunchTemplateSpecification": {
            "LaunchTemplateId": template.identifier,
            "LaunchTemplateName": template.name,
            "Version": template.version,
        },
        "Overrides": dict(pool.override),
    }


def _error(refusal: Refusal, templates: Sequence[Template], capacity_type: str) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": _source(templates[refusal.pool.config], refusal.pool),
        "Lifecycle": capacity_type,
        "ErrorCode": refusal.code,
        "ErrorMessage": refusal.message,
    }


def _record(
    fleet_id: str, parameters: dict[str, Any], instances: list[dict[str, Any]], errors: list[dict[str, Any]]
) -> dict[str, Any]:
    tags = [
        tag
        for specification in parameters.get("TagSpecifications") or []
        if specification.get("ResourceType") == "fleet"
        for tag in specification.get("Tags", [])
    ]
    return {
        "FleetId": fleet_id,
        "FleetState": "active",
        "Type": "instant",
        "ClientToken": parameters.get("ClientToken"),
        "TargetCapacitySpecification": parameters["TargetCapacitySpecification"],
        "LaunchTemplateConfigs": parameters["LaunchTemplateConfigs"],
        "Tags": tags,
        "Instances": instances,
        "Errors": errors,
    }


def describe_fleets(call: Call) -> dict[str, Any]:
    """ec2.DescribeFleets: instant fleets are described only by their ids, as on AWS."""
    records = []
    for fleet_id in call.parameters.get("FleetIds") or []:
        if fleet_id not in call.state.fleets:
            raise AwsError("InvalidFleetId.NotFound", f"The fleet ID '{fleet_id}' does not exist.")
        records.append(call.state.fleets[fleet_id])
    return {"Fleets": records}


HANDLERS: Handlers = {("ec2", "CreateFleet"): create_fleet, ("ec2", "DescribeFleets"): describe_fleets}
