"""One launch: candidates, launch templates, CreateFleet, and what to make of the answer.

The same claim gets one instance. EC2 knows the claim's client token, so a request that
was sent before a crash and is sent again is answered with the same instance; when the
second request differs (prices moved), EC2 refuses it, and the instance is found by its tag.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.cloud import InsufficientCapacity, LaunchFailed, ResolvedNodeClass
from nodeless.cloud.aws.caching import Clock
from nodeless.cloud.aws.errors import AwsCallRefused
from nodeless.cloud.aws.instance_records import launched_instance, read_instance
from nodeless.cloud.aws.instances import Instances
from nodeless.cloud.aws.launch_failures import launch_failed
from nodeless.cloud.aws.launch_templates import MISSING_CODES, LaunchTemplates
from nodeless.cloud.aws.session import AwsSession
from nodeless.cloud.aws.settings import AwsSettings
from nodeless.launch.candidates import Candidates, candidates_for
from nodeless.launch.fleet import client_token, fleet_request, overrides, subnet_by_zone
from nodeless.launch.images import image_for
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.results import FleetAnswer, read_answer
from nodeless.launch.tags import claim_tags, pool_tags
from nodeless.launch.templates import LaunchTemplate, launch_template
from nodeless.launch.user_data import UserDataError
from nodeless.model.instance_types import InstanceType
from nodeless.model.nodes import Claim, Instance
from nodeless.model.pools import NodeClass, Pool

_MISMATCH = "IdempotentParameterMismatch"
#: Seconds to wait before each look for the instance of a token that EC2 knows already.
_LOOKS = (0.0, 0.5, 1.5)
_TRIES = 4
_REMEMBERED_CLAIMS = 1000


@dataclass(frozen=True, slots=True)
class Order:
    """All that a launch is made from."""

    claim: Claim
    pool: Pool
    node_class: NodeClass
    resolved: ResolvedNodeClass
    instance_types: tuple[InstanceType, ...]
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class _Prepared:
    candidates: Candidates
    request: Mapping[str, Any]
    tags: Mapping[str, str]
    templates: tuple[str, ...]
    image_ids: Mapping[str, str]


class Launcher:
    """Carries launches out. `sold_out` answers are the caller's to remember."""

    def __init__(
        self,
        session: AwsSession,
        settings: AwsSettings,
        templates: LaunchTemplates,
        instances: Instances,
        clock: Clock,
    ) -> None:
        self._session = session
        self.settings = settings
        self._templates = templates
        self._instances = instances
        self._clock = clock
        #: Answers without an instance so far, by claim: each has used up a client token.
        self._attempts: OrderedDict[str, int] = OrderedDict()

    async def launch(self, order: Order, learn: Callable[[FleetAnswer], None]) -> Instance:
        """An instance for the claim; `learn` is told every answer of EC2, before anything else is done.

        Raises:
            InsufficientCapacity: Nothing that would do can be had; it names the offerings that failed.
            LaunchFailed: The request is refused.
        """
        prepared = await self._prepare(order)
        for _ in range(_TRIES):
            try:
                raw = await self._session.call("ec2", "create_fleet", prepared.request)
            except AwsCallRefused as error:
                living = await self._recover(order, prepared, error)
                if living is not None:
                    return living
                prepared = await self._prepare(order)
                continue
            answer = read_answer(raw, prepared.candidates.capacity_type)
            learn(answer)
            if answer.instance is not None:
                return await self._launched(order, prepared, answer)
            self._count_attempt(order.claim.name)
            if answer.code not in MISSING_CODES or order.node_class.launch_template:
                raise _failure(order.claim.name, answer)
            self._invalidate(prepared)
            prepared = await self._prepare(order)
        message = "its launch template or client token was refused again and again"
        raise LaunchFailed(order.claim.name, "LaunchFailed", message, "delete the claim: a new one is made")

    async def prepare_template(self, order: Order) -> None:
        """Have the launch templates exist that the claim would use at this moment."""
        candidates = candidates_for(order.claim.requirements, order.claim.requests, order.instance_types)
        if candidates is not None and order.node_class.launch_template is None:
            await self._ensure(order, candidates)

    async def _prepare(self, order: Order) -> _Prepared:
        claim = order.claim
        candidates = candidates_for(claim.requirements, claim.requests, order.instance_types)
        if candidates is None:
            raise InsufficientCapacity(
                claim.name,
                "no instance type that the claim allows can be had now",
                hint="sold-out offerings are tried again after three minutes; "
                "allow more instance types, zones or capacity types",
            )
        types_by_template, image_ids = await self._ensure(order, candidates)
        subnets = subnet_by_zone(order.resolved.subnets)
        tags = claim_tags(self._pool_tags(order), claim)
        request = fleet_request(
            claim,
            candidates,
            {name: overrides(candidates, subnets, types) for name, types in types_by_template.items()},
            tags,
            token=client_token(self.settings.cluster_name, claim.name, self._attempts.get(claim.name, 0)),
            context=order.node_class.context,
        )
        if request is None:
            raise InsufficientCapacity(
                claim.name, "no zone with an offering has a subnet", hint="select subnets in more zones"
            )
        return _Prepared(candidates, request, tags, tuple(types_by_template), image_ids)

    async def _ensure(
        self, order: Order, candidates: Candidates
    ) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Type names by launch template, and each type's image; all templates exist afterwards."""
        names = [candidate.instance_type.name for candidate in candidates.types]
        own = order.node_class.launch_template
        if own is not None:
            return {own: names}, {}
        by_template: dict[str, list[str]] = {}
        templates: dict[str, LaunchTemplate] = {}
        image_ids: dict[str, str] = {}
        for candidate in candidates.types:
            image = image_for(candidate.instance_type, order.resolved.images)
            if image is None:
                continue
            if image.id not in templates:
                templates[image.id] = self._template(order, candidates.capacity_type, image)
            image_ids[candidate.instance_type.name] = image.id
            by_template.setdefault(templates[image.id].name, []).append(candidate.instance_type.name)
        try:
            await asyncio.gather(*(self._templates.ensure(each) for each in templates.values()))
        except AwsCallRefused as error:
            raise launch_failed(order.claim.name, error.code, error.message) from error
        return by_template, image_ids

    def _template(self, order: Order, capacity_type: str, image: Any) -> LaunchTemplate:
        try:
            return launch_template(
                order.claim,
                order.pool,
                order.node_class,
                order.resolved,
                image,
                capacity_type=capacity_type,
                cluster=order.cluster,
                tags=self._pool_tags(order),
                eni_limited_pod_density=self.settings.eni_limited_pod_density,
            )
        except UserDataError as error:
            raise LaunchFailed(order.claim.name, "UserDataInvalid", str(error)) from error

    def _pool_tags(self, order: Order) -> dict[str, str]:
        return pool_tags(self.settings.cluster_name, order.pool, order.node_class, self.settings.tags)

    async def _recover(self, order: Order, prepared: _Prepared, error: AwsCallRefused) -> Instance | None:
        """What follows from a refused call: the instance found after all, None to try again, or an error."""
        if error.code in MISSING_CODES and not order.node_class.launch_template:
            self._invalidate(prepared)
            return None
        if error.code != _MISMATCH:
            raise launch_failed(order.claim.name, error.code, error.message) from error
        for seconds in _LOOKS:
            await asyncio.sleep(seconds)
            record = await self._instances.of_claim(order.claim.name)
            if record is not None:
                return read_instance(record, type_named(order.instance_types, record["InstanceType"]))
        self._count_attempt(order.claim.name)
        return None

    async def _launched(self, order: Order, prepared: _Prepared, answer: FleetAnswer) -> Instance:
        made = answer.instance
        if made is None:
            raise ValueError("an answer without an instance launched nothing")
        if answer.surplus:
            await asyncio.gather(*(self._instances.terminate(each) for each in answer.surplus))
        self._attempts.pop(order.claim.name, None)
        instance_type = type_named(order.instance_types, made.instance_type)
        image_id = prepared.image_ids.get(made.instance_type, "")
        if instance_type is None:
            raise LaunchFailed(
                order.claim.name, "UnknownInstanceType", f"EC2 launched {made.instance_type}, never asked for"
            )
        return launched_instance(made, instance_type, image_id, prepared.tags, self._clock())

    def _invalidate(self, prepared: _Prepared) -> None:
        for name in prepared.templates:
            self._templates.invalidate(name)

    def _count_attempt(self, claim: str) -> None:
        self._attempts[claim] = self._attempts.get(claim, 0) + 1
        while len(self._attempts) > _REMEMBERED_CLAIMS:
            self._attempts.popitem(last=False)


def type_named(instance_types: tuple[InstanceType, ...], name: str) -> InstanceType | None:
    """The type of that name, if it is among them."""
    return next((each for each in instance_types if each.name == name), None)


def _failure(claim: str, answer: FleetAnswer) -> InsufficientCapacity | LaunchFailed:
    if answer.insufficient:
        return InsufficientCapacity(
            claim,
            answer.message,
            answer.unavailable,
            "other offerings are tried; allow more instance types, zones or capacity types",
        )
    return launch_failed(claim, answer.code, answer.message)
