"""What a launch is made from, and the request that it becomes: candidates, launch templates, CreateFleet.

Next: `launching`, which sends the request.
"""

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from nodeless.cloudprovider import InsufficientCapacity, LaunchFailed
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.launch_failures import USER_DATA_TOO_LARGE, launch_failed
from nodeless.cloudprovider.aws.launch_templates import LaunchTemplates
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.cloudprovider.aws.subnets import Subnets
from nodeless.launch.candidates import Candidate, Candidates, candidates_for
from nodeless.launch.fleet import (
    client_token,
    fleet_request,
    overrides,
    predicted_addresses,
    price_ranks,
    subnet_by_zone,
)
from nodeless.launch.kubelet_arguments import Cluster
from nodeless.launch.placement import placement_labels
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.launch.tags import claim_tags, pool_tags
from nodeless.launch.templates import LaunchTemplate, launch_template
from nodeless.launch.user_data import (
    MAX_BYTES,
    NEARLY_MAX_BYTES,
    UserDataError,
    UserDataTooLongError,
    decoded_size,
)
from nodeless.launch.variants import Variant, needs_efa, reserved_by, variant_of
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import MIN_VALUES_RELAXED, PRICE_OVERLAY_APPLIED
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass, Pool
from nodeless.model.resources import fits
from nodeless.model.subnets import named_zones

#: The member of Bottlerocket's settings and that of a KubeletConfiguration, with what nodeadm computes it by.
_MAX_PODS = re.compile(r"max-pods|maxPods")


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """All that a launch is made from. Its claims, at least one, are of one group and sorted by name."""

    claims: tuple[NodeClaim, ...]
    pool: Pool
    node_class: NodeClass
    resolved: ResolvedNodeClass
    instance_types: tuple[InstanceType, ...]
    cluster: Cluster
    best_effort: bool = False
    """Fewer types than `minValues` asks for will do, as the settings say."""

    @property
    def claim(self) -> NodeClaim:
        """One for all: they differ in their names and requests alone."""
        return self.claims[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(claim.name for claim in self.claims)

    @property
    def identities(self) -> tuple[str, ...]:
        """What tells its claims from others that bore their names before them."""
        return tuple(f"{claim.name}-{claim.uid}" for claim in self.claims)

    @property
    def title(self) -> str:
        """Whom an error is about."""
        others = len(self.claims) - 1
        return f"{self.claim.name} and {others} like it" if others else self.claim.name

    @property
    def zone_ids(self) -> dict[str, str]:
        """Ids of the zones of its subnets, as far as EC2 tells them."""
        return {subnet.zone: subnet.zone_id for subnet in self.resolved.subnets if subnet.zone_id}

    @property
    def group(self) -> str:
        """The claims' group; empty for a claim that is launched by itself."""
        return self.claim.launch_group

    def excluding(self, names: Collection[str]) -> "LaunchRequest":
        """For the other claims; for none at all, an order that must not be launched."""
        return replace(self, claims=tuple(claim for claim in self.claims if claim.name not in names))

    @property
    def min_values_relaxed(self) -> bool:
        """Whether the plan lowered `minValues` because too few types were available."""
        return self.claim.annotations.get(MIN_VALUES_RELAXED) == "true"

    def candidates(self, *, lowers_min_values: bool = False) -> Candidates | None:
        """What would do for each of the claims at this moment."""
        requests = {tuple(sorted(claim.requests.items())): claim.requests for claim in self.claims[1:]}
        roomy = (
            instance_type
            for instance_type in self.instance_types
            if all(fits(r, instance_type.allocatable) for r in requests.values())
        )
        return candidates_for(
            named_zones(self.claim.requirements, {id_: zone for zone, id_ in self.zone_ids.items()}),
            self.claim.requests,
            roomy,
            lowers_min_values=lowers_min_values or self.best_effort or self.min_values_relaxed,
        )


class LatestCandidates:
    """The candidates of the request that was asked about last, found again only where it is another one.

    To look through a catalog of every instance type takes as long as all the rest of a launch, so it is not
    done again for a request of equal claims from the same catalog. What else a launch template is made of
    changes no candidates.
    """

    def __init__(self) -> None:
        self._found: tuple[tuple[NodeClaim, ...], tuple[InstanceType, ...], Candidates | None] | None = None

    def of(self, launch_request: LaunchRequest) -> Candidates | None:
        """What would do for each of the request's claims at this moment."""
        claims, instance_types = launch_request.claims, launch_request.instance_types
        if self._found is not None:
            known_claims, known_types, candidates = self._found
            # `Catalogs` returns the same tuple until something changes: no need to compare every offering.
            if known_types is instance_types and known_claims == claims:
                return candidates
        candidates = launch_request.candidates()
        self._found = claims, instance_types, candidates
        return candidates


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request to send, with what its answer is read by."""

    candidates: Candidates
    request: Mapping[str, Any]
    tags: Mapping[str, str]
    templates: Mapping[str, Mapping[str, Any]]
    """What the launch templates hold, by name; nothing is known of one that is the user's own."""
    image_ids: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of every instance that is made so."""
    zone_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the zones, by name."""
    addresses: Mapping[str, int] = field(default_factory=dict)
    """How many addresses the request may take, by the id of each subnet that it names."""


class LaunchRequestBuilder:
    """Makes requests of orders; the launch templates that they name exist afterwards."""

    def __init__(
        self,
        settings: AwsSettings,
        templates: LaunchTemplates,
        subnets: Subnets,
        log: Any = None,
        region: str = "",
    ) -> None:
        self.settings = settings
        self._region = region
        self._templates = templates
        self._subnets = subnets
        self._log = log if log is not None else structlog.get_logger("aws")
        #: The user data of node classes that was found to be nearly too long.
        self._warned: dict[str, str | None] = {}

    async def prepare_template(self, launch_request: LaunchRequest, latest: LatestCandidates) -> None:
        """Have the launch templates exist that the claim would use at this moment.

        `latest` are the candidates of the same claim's last request, where there was one.
        """
        if launch_request.node_class.launch_template is not None:
            return
        candidates = latest.of(launch_request)
        if candidates is not None:
            await self._ensure(launch_request, candidates)

    async def prepare(self, launch_request: LaunchRequest, attempt: int) -> Prepared:
        """The request for the order; `attempt` counts the client tokens that its claims have used up.

        Raises:
            InsufficientCapacity: Nothing that would do can be had.
            LaunchFailed: A launch template cannot be made.
        """
        candidates = launch_request.candidates()
        if candidates is None:
            some = launch_request.candidates(lowers_min_values=True) is not None
            what = (
                "too few instance types for minValues are"
                if some
                else "no instance type that the NodeClaim allows is"
            )
            raise InsufficientCapacity(
                launch_request.title,
                f"{what} available now",
                hint="nodeless tries sold-out offerings again after three minutes; "
                "allow more instance types, zones or capacity types",
            )
        types_by_template, image_ids, templates = await self._ensure(launch_request, candidates)
        # Other launches may have been promised addresses since the order was made.
        subnets = subnet_by_zone(self._subnets.current(launch_request.resolved.subnets))
        tags = claim_tags(self._pool_tags(launch_request), launch_request.claim)
        # Prices of NodeOverlays are not EC2's: what the plan found cheapest has to be asked for by priority.
        prioritized = PRICE_OVERLAY_APPLIED in launch_request.claim.annotations
        ranks = price_ranks(candidates) if prioritized else None
        request = fleet_request(
            candidates,
            {name: overrides(types, subnets, ranks) for name, types in types_by_template.items()},
            tags,
            token=client_token(self.settings.cluster_name, launch_request.identities, attempt),
            count=len(launch_request.claims),
            # A context asks EC2 for more of its choice than few types leave (Karpenter).
            context=None if launch_request.min_values_relaxed else launch_request.node_class.context,
            prioritized=prioritized,
        )
        if request is None:
            raise InsufficientCapacity(
                launch_request.title,
                "no zone with an offering has a subnet",
                hint="select subnets in more zones",
            )
        labels = placement_labels(launch_request.claim.requirements, launch_request.resolved.placement_group)
        addresses = predicted_addresses(
            candidates.types,
            subnets,
            len(launch_request.claims),
            of_pods=launch_request.resolved.pods_take_addresses,
        )
        return Prepared(
            candidates, request, tags, templates, image_ids, labels, launch_request.zone_ids, addresses
        )

    def invalidate(self, prepared: Prepared) -> None:
        """EC2 says that a launch template of the request is not there: make all of them anew."""
        for name in prepared.templates:
            self._templates.invalidate(name)

    async def _ensure(
        self, launch_request: LaunchRequest, candidates: Candidates
    ) -> tuple[dict[str, list[Candidate]], dict[str, str], dict[str, Mapping[str, Any]]]:
        """Types by launch template, each type's image, the templates' content; all exist afterwards."""
        own = launch_request.node_class.launch_template
        if own is not None:
            return {own: list(candidates.types)}, {}, {own: {}}
        by_template: dict[str, list[Candidate]] = {}
        templates: dict[Variant, LaunchTemplate] = {}
        image_ids: dict[str, str] = {}
        for candidate in candidates.types:
            variant = variant_of(
                candidate.instance_type,
                launch_request.resolved.images,
                limits_pods=self._limits_pods(launch_request),
                efa=any(map(needs_efa, launch_request.claims)),
                cpu_options=launch_request.node_class.cpu_options,
            )
            if variant is None:
                continue
            image_ids[candidate.instance_type.name] = variant.image.id
            for own_variant, part in _by_variant(candidate, variant):
                if own_variant not in templates:
                    templates[own_variant] = self._template(
                        launch_request, candidates.capacity_type, own_variant
                    )
                by_template.setdefault(templates[own_variant].name, []).append(part)
        try:
            await asyncio.gather(*(self._templates.ensure(template) for template in templates.values()))
        except AwsCallRefused as error:
            raise launch_failed(launch_request.title, error.code, error.message, error.evidence) from error
        contents = {template.name: template.request["LaunchTemplateData"] for template in templates.values()}
        return by_template, image_ids, contents

    def _limits_pods(self, launch_request: LaunchRequest) -> bool:
        """Whether the limit of pods is other than a node computes itself, or user data of v1 sets another."""
        node_class = launch_request.node_class
        return (
            self.settings.prefix_delegation
            or self.settings.reserved_interfaces > 0
            or bool(node_class.network_interfaces)
            or (
                node_class.reference.kind == EC2_NODE_CLASS
                and _MAX_PODS.search(node_class.user_data or "") is not None
            )
        )

    def _template(
        self, launch_request: LaunchRequest, capacity_type: str, variant: Variant
    ) -> LaunchTemplate:
        try:
            template = launch_template(
                launch_request.claim,
                launch_request.pool,
                replace(launch_request.node_class, cpu_options=variant.cpu_options),
                launch_request.resolved,
                variant.image,
                capacity_type=capacity_type,
                cluster=launch_request.cluster,
                tags=self._pool_tags(launch_request),
                eni_limited_pod_density=self.settings.eni_limited_pod_density,
                pods=variant.pods,
                efa=variant.efa,
                reservation=variant.reservation,
                region=self._region,
            )
        except UserDataError as error:
            too_long = isinstance(error, UserDataTooLongError)
            reason = USER_DATA_TOO_LARGE if too_long else "UserDataInvalid"
            raise LaunchFailed(launch_request.title, reason, str(error)) from error
        self._warn_of_long_user_data(launch_request.node_class, template)
        return template

    def _warn_of_long_user_data(self, node_class: NodeClass, template: LaunchTemplate) -> None:
        """Say once of a node class that a few labels or taints more may be too many."""
        size = decoded_size(template.request["LaunchTemplateData"].get("UserData", ""))
        if size < NEARLY_MAX_BYTES or self._warned.get(node_class.key) == node_class.user_data:
            return
        self._warned[node_class.key] = node_class.user_data
        self._log.warning(
            f"user data of {node_class.reference} has {size} bytes, EC2 accepts {MAX_BYTES}; "
            "hint: shorten spec.userData, or keep the long part elsewhere and fetch it from there"
        )

    def _pool_tags(self, launch_request: LaunchRequest) -> dict[str, str]:
        return pool_tags(
            self.settings.cluster_name, launch_request.pool, launch_request.node_class, self.settings.tags
        )


def _by_variant(candidate: Candidate, variant: Variant) -> list[tuple[Variant, Candidate]]:
    """The candidate's offerings by the launch template that they need."""
    parts: dict[Variant, list[Offering]] = {}
    for offering in candidate.offerings:
        parts.setdefault(reserved_by(variant, offering), []).append(offering)
    return [(each, Candidate(candidate.instance_type, tuple(own))) for each, own in parts.items()]
