"""One launch: CreateFleet for a claim or a group of equal claims, and what to make of the answer.

A claim gets one instance. EC2 knows the client token of the claims, so a request that was
sent before a crash and is sent again is answered with the same instances; when the second
request differs (prices moved), EC2 refuses it, and the instances are found by their tag.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from nodeless.cloudprovider import LAUNCH_FAILED, CloudError, InsufficientCapacity, LaunchFailed
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.instance_records import (
    launched_instance,
    partition_label,
    provider_id,
    read_instance,
    zone_label,
)
from nodeless.cloudprovider.aws.instances import Instances, Record
from nodeless.cloudprovider.aws.launch_failures import launch_failed, refusal
from nodeless.cloudprovider.aws.launch_requests import LaunchRequest, LaunchRequestBuilder, Prepared
from nodeless.cloudprovider.aws.launch_templates import MISSING_CODES
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.cloudprovider.aws.subnets import Subnets
from nodeless.launch.candidates import Candidates
from nodeless.launch.groups import Found, assign
from nodeless.launch.results import NO_REASON, FleetAnswer, FleetInstance, read_answer
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, PLACEMENT_GROUP_PARTITION, SPOT
from nodeless.model.nodes import Instance

Outcome = Instance | CloudError

_MISMATCH = "IdempotentParameterMismatch"
#: Seconds to wait before each look for instances that EC2 knows already and may not show yet.
_LOOKS = (0.0, 0.5, 1.5)
_TRIES = 4
_REMEMBERED_CLAIMS = 10_000
#: With fewer types than this a claim that may be spot is likely to be on-demand (Karpenter's figure).
_FEW_TYPES = 5


class Launcher:
    """Carries launches out. `sold_out` answers are the caller's to remember."""

    def __init__(
        self,
        session: AwsSession,
        preparer: LaunchRequestBuilder,
        instances: Instances,
        subnets: Subnets,
        clock: Clock,
        log: Any = None,
    ) -> None:
        self._session = session
        self._preparer = preparer
        self._instances = instances
        self._subnets = subnets
        self._clock = clock
        self._log = log if log is not None else structlog.get_logger("aws")
        #: Answers without an instance so far, by claim: each has used up a client token.
        self._attempts: OrderedDict[str, int] = OrderedDict()
        #: Claims by instance id, as this process gave instances of groups out.
        self.given: OrderedDict[str, str] = OrderedDict()

    async def launch(
        self,
        launch_request: LaunchRequest,
        on_answer: Callable[[LaunchRequest, FleetAnswer], None],
        claimed: Container[str] = frozenset(),
    ) -> dict[str, Outcome]:
        """For each claim an instance, or why it has none.

        Args:
            launch_request: What to launch.
            on_answer: Told every answer of EC2 to an order, before anything else is done.
            claimed: Provider ids of instances that claims bear already.

        Raises:
            CloudError: None of them has one.
        """
        outcomes: dict[str, Outcome] = {}
        unexplained = False
        prepared = await self._prepare(launch_request)
        self._warn_of_few_types(launch_request, prepared.candidates)
        for _ in range(_TRIES):
            try:
                with self._subnets.promise_addresses(prepared.addresses):
                    raw = await self._session.call("ec2", "create_fleet", prepared.request)
            except AwsCallRefused as error:
                outcomes.update(await self._recover(launch_request, prepared, error, claimed))
            else:
                candidates = prepared.candidates
                answer = read_answer(
                    raw, candidates.capacity_type, len(launch_request.claims), candidates.reservations()
                )
                on_answer(launch_request, answer)
                outcomes.update(await self._assign_instances(launch_request, prepared, answer))
                left = launch_request.excluding(outcomes)
                if left.claims == launch_request.claims and answer.code == NO_REASON and not unexplained:
                    # A part of the answer may be lost: the same token has EC2 say the same again.
                    unexplained = True
                    continue
                self._count_attempt(left.names)
                if left.claims and not self._is_template_missing(left, prepared, answer.code):
                    return outcomes | {name: _failure(name, answer) for name in left.names}
            launch_request = launch_request.excluding(outcomes)
            if not launch_request.claims:
                return outcomes
            prepared = await self._prepare(launch_request)
        message = "EC2 refused its launch template or client token repeatedly"
        hint = "delete the NodeClaim: nodeless creates a new one"
        return outcomes | {
            name: LaunchFailed(name, "LaunchFailed", message, hint) for name in launch_request.names
        }

    async def find_living(
        self, launch_request: LaunchRequest, claimed: Container[str] = frozenset()
    ) -> dict[str, Instance]:
        """Instances by claim, of launches that went through before: the claim's own, or its group's."""
        if not launch_request.group:
            record = await self._instances.of_claim(launch_request.claim.name)
            return {} if record is None else {launch_request.claim.name: _read(launch_request, record)}
        records = {each["InstanceId"]: each for each in await self._instances.of_group(launch_request.group)}
        found = [
            Found(
                record["InstanceId"],
                provider_id(record["Placement"]["AvailabilityZone"], record["InstanceId"]),
                record["LaunchTime"].timestamp(),
            )
            for record in records.values()
        ]
        ids = assign(launch_request.names, found, given=self.given, claimed=claimed)
        self._give(ids)
        return {name: _read(launch_request, records[instance_id]) for name, instance_id in ids.items()}

    def _warn_of_few_types(self, launch_request: LaunchRequest, candidates: Candidates) -> None:
        allowed = launch_request.claim.requirements.get(CAPACITY_TYPE)
        spot = allowed is None or allowed.allows(SPOT)
        if spot and candidates.capacity_type == ON_DEMAND and len(candidates.types) < _FEW_TYPES:
            self._log.warning(
                f"at least {_FEW_TYPES} instance types are recommended where on-demand replaces spot: "
                f"{len(candidates.types)} are left; "
                f"hint: allow more in the requirements of {launch_request.pool.reference}",
                claim=launch_request.title,
            )

    async def _prepare(self, launch_request: LaunchRequest) -> Prepared:
        attempt = max(self._attempts.get(name, 0) for name in launch_request.names)
        return await self._preparer.prepare(launch_request, attempt)

    def _is_template_missing(self, launch_request: LaunchRequest, prepared: Prepared, code: str) -> bool:
        """Whether a launch template of ours is not there (any more); it is made again then."""
        if code not in MISSING_CODES or launch_request.node_class.launch_template:
            return False
        self._preparer.invalidate(prepared)
        return True

    async def _recover(
        self,
        launch_request: LaunchRequest,
        prepared: Prepared,
        error: AwsCallRefused,
        claimed: Container[str],
    ) -> dict[str, Instance]:
        """What follows from a refused call: instances found after all, none to try again, or an error."""
        if self._is_template_missing(launch_request, prepared, error.code):
            return {}
        if error.code != _MISMATCH:
            raise launch_failed(launch_request.title, error.code, error.message, error.evidence) from error
        for seconds in _LOOKS:
            await asyncio.sleep(seconds)
            found = await self.find_living(launch_request, claimed)
            if found:
                return found
        self._count_attempt(launch_request.names)
        return {}

    async def _assign_instances(
        self, launch_request: LaunchRequest, prepared: Prepared, answer: FleetAnswer
    ) -> dict[str, Outcome]:
        if answer.surplus:
            await asyncio.gather(*(self._instances.terminate(instance) for instance in answer.surplus))
        outcomes: dict[str, Outcome] = {}
        types = {instance_type.name: instance_type for instance_type in launch_request.instance_types}
        for name, made in zip(launch_request.names, answer.instances, strict=False):
            self._attempts.pop(name, None)
            outcome = self._instance(name, made, types.get(made.instance_type), prepared)
            if isinstance(outcome, Instance):
                outcome = replace(outcome, instance_profile=launch_request.resolved.instance_profile)
            outcomes[name] = outcome
        if _in_unknown_partition(launch_request, prepared):
            outcomes.update(await self._in_partitions(outcomes))
        if launch_request.group:
            self._give(
                {name: outcome.id for name, outcome in outcomes.items() if isinstance(outcome, Instance)}
            )
        return outcomes

    async def _in_partitions(self, outcomes: Mapping[str, Outcome]) -> dict[str, Instance]:
        """The instances of which EC2 shows the partition that it chose; its answer to a fleet names none.

        For those that it does not show in time, it is asked again once a minute.
        """
        found: dict[str, Instance] = {}
        for seconds in _LOOKS:
            await asyncio.sleep(seconds)
            left = {
                name: outcome
                for name, outcome in outcomes.items()
                if isinstance(outcome, Instance) and name not in found
            }
            try:
                records = await asyncio.gather(
                    *(self._instances.find(instance.id) for instance in left.values())
                )
            except CloudError as error:
                self._log.warning(f"the partitions of new instances are not known yet: {error}")
                break
            for (name, instance), record in zip(left.items(), records, strict=True):
                if record is not None and (partition := partition_label(record)):
                    found[name] = replace(instance, labels={**instance.labels, **partition})
            if len(found) == len(left):
                break
        return found

    def _instance(
        self, claim: str, made: FleetInstance, instance_type: InstanceType | None, prepared: Prepared
    ) -> Outcome:
        if instance_type is None:
            message = f"EC2 launched {made.instance_type}, which was not requested"
            return LaunchFailed(claim, "UnknownInstanceType", message)
        image_id = prepared.image_ids.get(made.instance_type, "")
        labels = {**prepared.labels, **zone_label(made.zone, prepared.zone_ids)}
        return launched_instance(made, instance_type, image_id, prepared.tags, self._clock(), labels=labels)

    def _give(self, ids: dict[str, str]) -> None:
        for name, instance_id in ids.items():
            self.given[instance_id] = name
        while len(self.given) > _REMEMBERED_CLAIMS:
            self.given.popitem(last=False)

    def _count_attempt(self, claims: Iterable[str]) -> None:
        for claim in claims:
            self._attempts[claim] = self._attempts.get(claim, 0) + 1
        while len(self._attempts) > _REMEMBERED_CLAIMS:
            self._attempts.popitem(last=False)


def _in_unknown_partition(launch_request: LaunchRequest, prepared: Prepared) -> bool:
    group = launch_request.resolved.placement_group
    return group is not None and group.partitions > 0 and PLACEMENT_GROUP_PARTITION not in prepared.labels


def _read(launch_request: LaunchRequest, record: Record) -> Instance:
    named = (
        instance_type
        for instance_type in launch_request.instance_types
        if instance_type.name == record["InstanceType"]
    )
    instance = read_instance(record, next(named, None))
    zone = zone_label(instance.zone, launch_request.zone_ids)
    return replace(instance, labels={**instance.labels, **zone})


def _failure(claim: str, answer: FleetAnswer) -> InsufficientCapacity | LaunchFailed:
    if answer.insufficient:
        return _insufficient(claim, answer)
    return launch_failed(claim, answer.code, answer.message, answer.evidence)


def _insufficient(claim: str, answer: FleetAnswer) -> InsufficientCapacity:
    """Quotas and addresses are lacks that the user can do something about."""
    meaning = refusal(answer.code, answer.message)
    if meaning.reason != LAUNCH_FAILED:
        hint = f"nodeless tries other offerings; {meaning.hint}"
        return InsufficientCapacity(
            claim, answer.message, answer.unavailable, hint, meaning.reason, answer.evidence
        )
    hint = "nodeless tries other offerings; allow more instance types, zones or capacity types"
    return InsufficientCapacity(claim, answer.message, answer.unavailable, hint, evidence=answer.evidence)
