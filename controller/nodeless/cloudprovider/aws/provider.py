"""`AwsProvider`: the CloudProvider of AWS, made of the modules beside it.

A launch must not wait for descriptions: types and prices are asked for at `start`, all
else that it needs beside CreateFleet is fetched ahead (`warm`) and kept current by one task
that runs from the first `warm` to `close`. A standby replica calls neither.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from nodeless.cloudprovider import CloudError, CloudUnavailable, LaunchFailed, NodeClassUnresolved
from nodeless.cloudprovider.aws.batching import BatchObserver
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.capacity_reservations import CapacityReservations
from nodeless.cloudprovider.aws.catalogs import Catalogs
from nodeless.cloudprovider.aws.cluster import ClusterFacts, KnownCluster
from nodeless.cloudprovider.aws.dry_runs import DryRuns
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.group_launches import GroupLaunches, LaunchClaim
from nodeless.cloudprovider.aws.images import Images
from nodeless.cloudprovider.aws.instance_profiles import InstanceProfiles
from nodeless.cloudprovider.aws.instance_records import read_instance
from nodeless.cloudprovider.aws.instance_statuses import InstanceStatuses
from nodeless.cloudprovider.aws.instance_types import InstanceTypes
from nodeless.cloudprovider.aws.instances import Instances
from nodeless.cloudprovider.aws.interruption_queue import InterruptionQueue
from nodeless.cloudprovider.aws.launch_requests import (
    LatestCandidates,
    LaunchRequest,
    LaunchRequestBuilder,
)
from nodeless.cloudprovider.aws.launch_templates import LaunchTemplates
from nodeless.cloudprovider.aws.launching import Launcher
from nodeless.cloudprovider.aws.placement_groups import PlacementGroups
from nodeless.cloudprovider.aws.pricing import Pricing
from nodeless.cloudprovider.aws.resolving import Resolver
from nodeless.cloudprovider.aws.security_groups import SecurityGroups
from nodeless.cloudprovider.aws.session import AwsSession, CallObserver
from nodeless.cloudprovider.aws.settings import AwsSettings
from nodeless.cloudprovider.aws.subnets import Subnets
from nodeless.cloudprovider.aws.zonal_shifts import ZonalShifts
from nodeless.cloudprovider.billing.catalogs import BilledCatalogs
from nodeless.cloudprovider.billing.parts import Location
from nodeless.launch.claims import labels_of
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.launch.results import FleetAnswer
from nodeless.launch.tags import node_tags
from nodeless.launch.unavailable import EVERY_SPOT, OfferingKey
from nodeless.model.instance_types import InstanceType
from nodeless.model.interruptions import Interruption
from nodeless.model.labels import NODE_CLAIM
from nodeless.model.memory_observations import MemoryObservations
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.model.overlays import NodeOverlay
from nodeless.model.pools import EC2_NODE_CLASS, NODE_POOL_KIND, NodeClass, Pool, Reference
from nodeless.model.resources import PODS

#: Seconds between two rounds that keep warm what was warmed, and rounds between two sweeps of templates.
_ROUND = 60.0
_SWEEP_ROUNDS = 10
_STALE_REASONS = frozenset(
    {
        "AMINotFound",
        "SubnetNotFound",
        "SecurityGroupNotFound",
        "CapacityReservationNotFound",
        "PlacementGroupNotFound",
    }
)
_PROFILE_MISSING = "InstanceProfileNameInvalid"


#: What a node class that no pool uses is rehearsed with: any type that its images can start.
REHEARSAL = Pool(Reference(NODE_POOL_KIND, "validation"), Reference(EC2_NODE_CLASS, ""))


@dataclass(frozen=True, slots=True)
class _Warmed:
    """A pool that is kept warm, with its node class and what its usual launch would choose from."""

    pool: Pool
    node_class: NodeClass
    latest: LatestCandidates = field(default_factory=LatestCandidates)


class AwsProvider:
    """AWS as a CloudProvider. `log` is a structlog logger; `clock` gives seconds since the epoch.

    With `reads_only` nothing is made in AWS by looking: instance profiles of roles are named, not made.
    `ask_version` tells the cluster's Kubernetes version (`1.29`) where EKS is not to be asked for it.
    `assert_allowed` raises when no request may be sent to AWS any more, as AwsSession has it.
    """

    def __init__(
        self,
        settings: AwsSettings,
        log: Any = None,
        clock: Clock = time.time,
        on_call: CallObserver | None = None,
        on_batch: BatchObserver | None = None,
        *,
        reads_only: bool = False,
        ask_version: Callable[[], Awaitable[str]] | None = None,
        assert_allowed: Callable[[], None] | None = None,
    ) -> None:
        self._log = log if log is not None else structlog.get_logger("aws")
        self._session = AwsSession(settings.region, on_call, assert_allowed)
        self._cluster = ClusterFacts(self._session, settings, clock, ask_version)
        self._shifts = ZonalShifts(self._session, self._cluster, clock, self._log)
        self._subnets = Subnets(self._session, clock, self._shifts.is_closed)
        self._profiles = InstanceProfiles(self._session, clock, settings, reads_only=reads_only)
        self._reservations = CapacityReservations(self._session, clock)
        self._images = Images(self._session, clock, self._log)
        self._resolver = Resolver(
            self._subnets,
            SecurityGroups(self._session, clock),
            self._images,
            self._profiles,
            self._reservations,
            PlacementGroups(self._session, clock),
        )
        self._types = InstanceTypes(self._session, clock)
        self._pricing = Pricing(self._session, clock, self._log, isolated=settings.isolated_vpc)
        self._catalogs = Catalogs(settings, self._types, self._pricing, clock)
        self._billed = BilledCatalogs(clock)
        self._faults: tuple[str, ...] = ()
        self._templates = LaunchTemplates(self._session, clock, settings.cluster_name)
        self._instances = Instances(self._session, settings.cluster_name, on_batch)
        self._preparer = LaunchRequestBuilder(
            settings, self._templates, self._subnets, self._log, self._session.region
        )
        self._dry_runs = DryRuns(self._session, self._preparer, clock)
        self._launcher = Launcher(
            self._session, self._preparer, self._instances, self._subnets, clock, self._log
        )
        self._launches = GroupLaunches(self._launcher, self._launch_request, self._on_answer, on_batch)
        self._statuses = InstanceStatuses(self._session, clock)
        name = settings.interruption_queue
        self._queue = InterruptionQueue(self._session, name) if name else None
        self._warmed: dict[str, _Warmed] = {}
        self._refresh_task: asyncio.Task[None] | None = None
        self._ahead: asyncio.Task[None] | None = None
        self.use(settings)

    def use(self, settings: AwsSettings) -> None:
        """Have other settings from the next call on; the cluster, its region and its prices stay."""
        self._profiles.settings = settings
        self._resolver.tags = settings.tags
        self._resolver.pods_in_subnets = settings.pods_in_subnets
        self._tell_faults(settings.bill.book.faults)
        self._catalogs.settings = settings
        self._preparer.settings = settings
        self._images.keep(settings.image_refresh_seconds)
        self._subnets.keep(settings.subnet_refresh_seconds)

    def _tell_faults(self, faults: tuple[str, ...]) -> None:
        """Log what the price book says in vain, once for as long as it does."""
        for fault in faults:
            if fault not in self._faults:
                self._log.warning(f"price book: {fault}")
        self._faults = faults

    @property
    def region(self) -> str:
        """The region in use; empty when none is known."""
        return self._session.region

    async def start(self) -> None:
        """Check endpoint and credentials with a dry run, then learn of the cluster."""
        if not self._session.region:
            raise CloudError("no AWS region is known", "set AWS_REGION")
        if self._preparer.settings.dry_runs:
            await self._check_access()
        await self._cluster.get()
        if self._preparer.settings.zonal_shift:
            await self._shifts.start()
        if self._ahead is None:
            self._ahead = asyncio.create_task(self._fetch_ahead())

    async def _check_access(self) -> None:
        try:
            await self._session.call("ec2", "describe_instance_types", {"DryRun": True})
        except AwsCallRefused as error:
            if error.code != "DryRunOperation":
                raise

    async def _fetch_ahead(self) -> None:
        """Types and prices are the same for every pool, and the slowest to come."""
        try:
            await asyncio.gather(self._types.get_facts(), self._pricing.current(spot=True))
        except CloudError as error:
            self._log.warning(
                "instance types and prices are not known yet; nodeless asks again when it needs them",
                error=str(error),
            )

    async def warm(self, pool: Pool, node_class: NodeClass) -> None:
        """Fetch ahead and keep current what a launch needs, and make the pool's usual launch template."""
        known = self._warmed.get(pool.key)
        latest = LatestCandidates() if known is None else known.latest
        warmed = self._warmed[pool.key] = _Warmed(pool, node_class, latest)
        if self._refresh_task is None:
            self._refresh_task = asyncio.create_task(self._keep_warm())
        await self._warm(warmed)

    def forget(self, pool: Reference) -> None:
        """Stop keeping a pool warm: it is gone."""
        self._warmed.pop(str(pool), None)

    async def catalog(self, pool: Pool, node_class: NodeClass) -> tuple[InstanceType, ...]:
        """See the Protocol. The same tuple is returned until something changes."""
        return await self._catalogs.get(pool, node_class, await self.resolve(node_class))

    async def billed_catalog(
        self, pool: Pool, node_class: NodeClass, named: frozenset[str] = frozenset()
    ) -> tuple[InstanceType, ...]:
        """See the Protocol. The same tuple is returned until something changes."""
        resolved = await self.resolve(node_class)
        found = await self._catalogs.find(pool, node_class, resolved)
        location = Location(self._session.region, resolved.public_addresses, resolved.platform)
        terms = self._catalogs.settings.bill
        return self._billed.get(
            found.chosen, pool, node_class, location, terms, named, sold_out=found.unavailable
        )

    async def list_sold_types(self, pool: Pool, node_class: NodeClass) -> tuple[InstanceType, ...]:
        """See the Protocol."""
        return await self._catalogs.list_sold_types(pool, node_class, await self.resolve(node_class))

    def use_overlays(self, overlays: Sequence[NodeOverlay] | None) -> None:
        """See the Protocol."""
        self._catalogs.use_overlays(overlays)

    async def resolve(self, node_class: NodeClass) -> ResolvedNodeClass:
        """See the Protocol."""
        resolved = await self._resolve(node_class)
        if self._is_rehearsed(node_class):
            self._dry_runs.assert_not_refused(node_class, resolved)
        return resolved

    async def _resolve(self, node_class: NodeClass) -> ResolvedNodeClass:
        known = await self._known_cluster(node_class)
        return await self._resolver.resolve(node_class, known.version, known.cluster)

    async def validate(self, pools: Sequence[Pool], node_class: NodeClass) -> None:
        """See the Protocol."""
        if not self._is_rehearsed(node_class):
            return
        resolved = await self._resolve(node_class)
        if not self._dry_runs.due(node_class, resolved):
            self._dry_runs.assert_not_refused(node_class, resolved)
            return
        launch_request = await self._usual_order(REHEARSAL, node_class)
        for pool in pools:
            with contextlib.suppress(NodeClassUnresolved):
                of_pool = await self._usual_order(pool, node_class)
                if of_pool.candidates() is not None:
                    launch_request = of_pool
                    break
        await self._dry_runs.ask(launch_request)

    def is_validated(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> bool:
        """See the Protocol."""
        return not self._is_rehearsed(node_class) or self._dry_runs.is_allowed(node_class, resolved)

    def _is_rehearsed(self, node_class: NodeClass) -> bool:
        """Karpenter v0.27 launches with its templates unasked."""
        return self._preparer.settings.dry_runs and node_class.reference.kind == EC2_NODE_CLASS

    async def launch(
        self,
        claim: NodeClaim,
        pool: Pool,
        node_class: NodeClass,
        *,
        first: bool = False,
        claimed: Container[str] = frozenset(),
    ) -> Instance:
        """See the Protocol."""
        try:
            return await self._launches.launch(LaunchClaim(claim, pool, node_class, first, claimed))
        except LaunchFailed as error:
            await self._expire(node_class, error.reason)
            raise

    async def _expire(self, node_class: NodeClass, reason: str) -> None:
        """Have AWS asked again for what a launch found missing; what other classes select is left alone."""
        if reason == _PROFILE_MISSING:
            self._resolver.expire_profile(node_class)
        elif reason in _STALE_REASONS:
            with contextlib.suppress(CloudError):
                self._resolver.expire(node_class, (await self._known_cluster(node_class)).version)

    def _on_answer(self, launch_request: LaunchRequest, answer: FleetAnswer) -> None:
        """Remember what an answer says of offerings and subnets, whether or not it made an instance."""
        self._catalogs.mark_sold_out(launch_request.pool, launch_request.resolved, answer.unavailable)
        self._catalogs.mark((EVERY_SPOT,) if answer.no_spot else ())
        self._subnets.mark_full(answer.full_subnets)
        self._reservations.exhaust(answer.exhausted)
        pods = {
            instance_type.name: instance_type.capacity.get(PODS, 0)
            for instance_type in launch_request.instance_types
        }
        for claim, made in zip(launch_request.claims, answer.instances, strict=False):
            holds, most = 1, 1
            if launch_request.resolved.pods_take_addresses:
                holds, most = 1 + claim.requests.get(PODS, 0), pods.get(made.instance_type, 0)
            self._subnets.record_launch(made.subnet_id, holds, most)
            if made.reservation is not None:
                self._reservations.take(made.reservation.reservation)

    async def find(self, instance_id: str) -> Instance | None:
        """See the Protocol."""
        record = await self._instances.find(instance_id)
        return None if record is None else self._read(record)

    async def state_of(self, instance_id: str) -> str:
        """See the Protocol."""
        return await self._instances.state_of(instance_id)

    async def instances(self) -> tuple[Instance, ...]:
        """See the Protocol."""
        records = await self._instances.list_owned()
        return tuple(sorted((self._read(record) for record in records), key=lambda each: each.id))

    async def instances_of(self, claim_name: str) -> tuple[Instance, ...]:
        """See the Protocol."""
        return tuple(map(self._read, await self._instances.living_of_claim(claim_name)))

    async def terminate(self, instance_id: str) -> bool:
        """See the Protocol. In a zone that AWS shifts away from, nothing is (Karpenter v1)."""
        if self._preparer.settings.zonal_shift:
            await self._assert_open(instance_id)
        return await self._instances.terminate(instance_id)

    async def _assert_open(self, instance_id: str) -> None:
        if not any(map(self._shifts.is_closed, self._subnets.zone_ids.values())):
            return
        instance = await self.find(instance_id)
        zone_id = "" if instance is None else self._subnets.zone_ids.get(instance.zone, "")
        if instance is not None and self._shifts.is_closed(zone_id):
            raise CloudUnavailable(
                "ec2",
                f"{instance_id} is not terminated: AWS shifts away from its zone {instance.zone} ({zone_id})",
                "nodeless tries again until the shift has ended; arc-zonal-shift:CancelZonalShift ends "
                "it now",
            )

    async def reboot(self, instance_id: str) -> None:
        """See the Protocol."""
        await self._instances.reboot(instance_id)

    async def tag(self, claim: NodeClaim) -> bool:
        """See the Protocol. An instance that is not there lacks nothing."""
        record = await self._instances.find(claim.instance_id)
        if record is None:
            return False
        present = {tag["Key"]: tag["Value"] for tag in record.get("Tags", ())}
        lacking = node_tags(self._preparer.settings.cluster_name, claim, present)
        if lacking:
            await self._instances.tag(claim.instance_id, lacking)
        return bool(lacking)

    @property
    def has_interruption_queue(self) -> bool:
        """See the Protocol."""
        return self._queue is not None

    async def interruptions(self) -> tuple[Interruption, ...]:
        """See the Protocol."""
        return () if self._queue is None else await self._queue.receive()

    async def forget_interruptions(self, handled: Sequence[Interruption]) -> int:
        """See the Protocol."""
        return 0 if self._queue is None else await self._queue.delete(handled)

    async def impaired_instances(self) -> tuple[Interruption, ...]:
        """See the Protocol."""
        return await self._statuses.impaired_instances()

    def mark_unavailable(self, offerings: Sequence[OfferingKey], reservations: Sequence[str] = ()) -> None:
        """See the Protocol."""
        self._catalogs.mark(tuple(offerings))
        self._reservations.exhaust(reservations)

    def record_memory_overhead(self, measured: MemoryObservations) -> None:
        """See the Protocol."""
        self._catalogs.measured = measured

    async def delete_launch_templates(self) -> int:
        """See the Protocol."""
        return await self._templates.delete_all()

    async def clean_up(self, node_class: NodeClass) -> int:
        """See the Protocol."""
        for key, warmed in list(self._warmed.items()):
            if warmed.node_class.key == node_class.key:
                del self._warmed[key]
        self._dry_runs.forget(node_class)
        await self._templates.delete_of(node_class.reference.name)
        return await self._profiles.delete_of(node_class)

    async def delete_instance_profiles(self) -> int:
        """See the Protocol. Nothing is asked for where IAM cannot be reached."""
        return 0 if self._is_isolated else await self._profiles.delete_all()

    async def sweep_instance_profiles(self, node_classes: Sequence[NodeClass]) -> int:
        """See the Protocol. Nothing is asked for where IAM cannot be reached."""
        if self._is_isolated:
            return 0
        in_use = {instance.instance_profile for instance in await self.instances()}
        return await self._profiles.sweep(node_classes, in_use)

    @property
    def _is_isolated(self) -> bool:
        return self._profiles.settings.isolated_vpc

    async def close(self) -> None:
        """See the Protocol."""
        for task in (self._refresh_task, self._ahead):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._refresh_task = self._ahead = None
        await self._shifts.close()
        await self._session.close()

    async def _known_cluster(self, node_class: NodeClass) -> KnownCluster:
        return await self._cluster.get(with_service_cidr=node_class.ami_family == "AL2023")

    async def _launch_request(
        self, claims: tuple[NodeClaim, ...], pool: Pool, node_class: NodeClass
    ) -> LaunchRequest:
        known = await self._known_cluster(node_class)
        resolved = await self._resolver.resolve(node_class, known.version, known.cluster)
        types = await self._catalogs.get(pool, node_class, resolved)
        best_effort = self._catalogs.settings.best_effort_min_values
        return LaunchRequest(claims, pool, node_class, resolved, types, known.cluster, best_effort)

    def _read(self, record: Any) -> Instance:
        instance = read_instance(record, facts=self._types.facts(record["InstanceType"]))
        claim = self._launcher.given.get(instance.id)
        if claim is None:
            return instance
        # Launched for a group: that it is this claim's is known here alone until the claim bears its id.
        return replace(instance, tags={**instance.tags, NODE_CLAIM: claim})

    async def _warm(self, warmed: _Warmed) -> None:
        launch_request = await self._usual_order(warmed.pool, warmed.node_class)
        if self._is_rehearsed(warmed.node_class):
            self._dry_runs.assert_not_refused(warmed.node_class, launch_request.resolved)
        await self._preparer.prepare_template(launch_request, warmed.latest)

    async def _usual_order(self, pool: Pool, node_class: NodeClass) -> LaunchRequest:
        """What a pod that asks for nothing special would have launched."""
        usual = NodeClaim(
            name=f"{pool.name}-usual",
            pool=pool.reference,
            node_class=node_class.reference,
            requirements=pool.requirements,
            labels=labels_of(pool.requirements, pool),
            taints=pool.taints,
            startup_taints=pool.startup_taints,
        )
        return await self._launch_request((usual,), pool, node_class)

    async def _keep_warm(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(_ROUND)
            rounds += 1
            for warmed in list(self._warmed.values()):
                key = warmed.pool.key
                try:
                    await self._warm(warmed)
                except CloudError as error:
                    self._log.warning("cannot prepare for launches", pool=key, error=str(error))
                except Exception as error:  # of one pool: the others stay warm
                    self._log.error("cannot prepare for launches", pool=key, error=type(error).__name__)
            if rounds % _SWEEP_ROUNDS == 0:
                await self._sweep()

    async def _sweep(self) -> None:
        try:
            deleted = await self._templates.delete_unused()
        except CloudError as error:
            self._log.warning("cannot delete unused launch templates", error=str(error))
            return
        if deleted:
            self._log.info("deleted unused launch templates", count=deleted)
