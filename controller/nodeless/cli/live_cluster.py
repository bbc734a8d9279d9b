"""A situation out of a running cluster, for commands: read once, then let go.

The same code as the controller's reads the cluster and the cloud, so that a plan made of the
situation is the plan that the controller would make.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from nodeless.api.kinds import NODE_POOL, NODE_POOL_V1BETA1
from nodeless.cli.kubeconfig import ClusterUnreadable
from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.billing.terms import BillTerms, terms_of
from nodeless.cloudprovider.pool_catalogs import pool_catalogs, pool_subnets, pools_sold
from nodeless.controllers.disruption.drift import selections
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.controllers.server_version import server_version
from nodeless.disruption import DisruptionPolicy
from nodeless.explain.bill import term_notes
from nodeless.explain.decisions import Situation
from nodeless.explain.drift_preview import CloudObservations
from nodeless.explain.neighbors import namespaces_of
from nodeless.explain.price_terms import PriceTerms
from nodeless.kube import ApiClient, ApiError, ApiUnavailable, Watched, watched_kinds
from nodeless.kube.autoscaler_status import read_groups
from nodeless.kube.cluster import Cluster
from nodeless.kube.gangs import watched_gang_sizes
from nodeless.kube.kinds import watched_guard
from nodeless.kube.overlays import watched_overlays
from nodeless.kube.provisioning_requests import watched_placeholders
from nodeless.kube.vertical_autoscaling import watched_vertical_autoscalers
from nodeless.launch.overlays import evaluate, with_named_zones
from nodeless.manager.aws_settings import aws_settings
from nodeless.model.instance_types import Catalog
from nodeless.model.neighbors import CLUSTER_AUTOSCALER, ScalingGroup
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import zone_names
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.settings import SETTINGS_NAME, GlobalSettings, SettingsError
from nodeless.operator.solver_policy import disruption_policy_of, policy_of, price_terms_of
from nodeless.scheduling import Policy, with_placeholders

#: Seconds for the first list of every kind.
PATIENCE = 60.0
#: Time in which a watch that fails is tried again before its problem is told.
_GRACE = 10.0
_CONTROLLER_NAMESPACE_HINT = "--controller-namespace says where the controller is"

Offline = Callable[[Snapshot, BillTerms], tuple[Catalog, dict[str, str]]]
"""What pools may buy where the cloud cannot be asked, and what counts as part of its price."""


async def live_situation(
    namespace: str,
    region: str,
    remark: Callable[[str], None],
    offline: Offline | None = None,
    offered: Callable[[Catalog], None] | None = None,
) -> Situation:
    """Read cluster and cloud once.

    Args:
        namespace: Where the controller and its settings are.
        region: AWS region; empty: as boto3 finds it.
        remark: Told of what could not be had.
        offline: Used instead of the cloud when that cannot be asked.
        offered: Told what each pool might buy if its requirements allowed it, where the cloud can be asked.

    Raises:
        ApiUnavailable, ApiError: The API server cannot be reached, or refuses.
        ClusterUnreadable: A kind cannot be listed.
        CloudError: The cloud cannot be asked, and there is no `offline`.
    """
    client = await ApiClient.connect()
    try:
        settings = await _settings(client, namespace, remark)
        cluster_facts = _NO_CLUSTER_FACTS if settings is None else await _cluster_facts(client, settings)
        more = _more(settings) if settings is not None else ()
        snapshot = with_placeholders(await _snapshot(client, namespace, remark, more))
    finally:
        await client.close()
    now = time.time()
    for line in term_notes(settings.commitments if settings is not None else (), now):
        remark(line)
    try:
        if settings is None:
            raise CloudError(f"ConfigMap {namespace}/{SETTINGS_NAME} lacks the cluster's name")
        async with _provider(settings, region, cluster_facts) as cloud:
            situation = await _situation(cloud, snapshot, settings, now)
            if offered is not None:
                offered(await _unrestricted_catalog(cloud, snapshot))
            return situation
    except CloudError as error:
        if offline is None:
            raise
        remark(f"AWS cannot be asked, so the bundled catalog is used: {error}")
    policy = policy_of(settings).at(now) if settings is not None else Policy()
    prices = PriceTerms() if settings is None else price_terms_of(settings)
    disruption = DisruptionPolicy() if settings is None else disruption_policy_of(settings)
    catalog, problems = offline(snapshot, terms_of(prices))
    return Situation(snapshot, catalog, replace(policy, pool_problems=problems), now, prices, disruption)


_NO_CLUSTER_FACTS = ("", "")


def _more(settings: GlobalSettings) -> tuple[Watched, ...]:
    """What the controller watches besides, by its settings."""
    placeholders = watched_placeholders(settings.capacity_buffers, settings.provisioning_requests)
    overlays = watched_overlays() if settings.node_overlays else ()
    autoscalers = watched_vertical_autoscalers() if settings.vertical_autoscalers else ()
    return (*placeholders, *overlays, *autoscalers)


@dataclass(frozen=True, slots=True)
class Change:
    """A running cluster as it is, and as if something had been applied."""

    before: Situation
    after: Situation
    observations: CloudObservations
    provisioners_drift: bool


async def live_change(
    namespace: str, region: str, remark: Callable[[str], None], applied: Callable[[Snapshot], Snapshot]
) -> Change:
    """Read cluster and cloud once, for the cluster as it is and for what `applied` makes of it.

    Args:
        namespace: Where the controller and its settings are.
        region: AWS region; empty: as boto3 finds it.
        remark: Told of what could not be had.
        applied: The snapshot after the change.

    Raises:
        ApiUnavailable, ApiError: The API server cannot be reached, or refuses.
        ClusterUnreadable: A kind cannot be listed.
        CloudError: The cloud cannot be asked.
    """
    client = await ApiClient.connect()
    try:
        try:
            settings = await read_settings(client, namespace)
        except SettingsError as error:
            raise ClusterUnreadable(f"ConfigMap {namespace}/{SETTINGS_NAME}: {error}") from None
        cluster_facts = await _cluster_facts(client, settings)
        overlays = watched_overlays() if settings.node_overlays else ()
        seen = await _snapshot(client, namespace, remark, overlays)
    finally:
        await client.close()
    now, changed = time.time(), applied(seen)
    async with _provider(settings, region, cluster_facts) as cloud:
        before, after = [await _situation(cloud, snapshot, settings, now) for snapshot in (seen, changed)]
        observations = CloudObservations(
            await selections(cloud, seen),
            await selections(cloud, changed),
            {instance.provider_id: instance for instance in await cloud.instances()},
        )
    return Change(before, after, observations, settings.drift_enabled)


@contextlib.asynccontextmanager
async def _provider(
    settings: GlobalSettings, region: str, cluster_facts: tuple[str, str]
) -> AsyncIterator[AwsProvider]:
    """The cloud, started, of which nothing is changed; closed at the end."""
    log = structlog.get_logger().bind(logger="aws")
    authority, version = cluster_facts
    given = replace(aws_settings(settings, region, "", authority), kubernetes_version=version)
    cloud = AwsProvider(given, log=log, reads_only=True)
    try:
        await cloud.start()
        yield cloud
    finally:
        await cloud.close()


async def _situation(
    cloud: AwsProvider, snapshot: Snapshot, settings: GlobalSettings, now: float
) -> Situation:
    if snapshot.node_overlays:
        sold, _ = await pools_sold(cloud, snapshot)
        zones = zone_names(await pool_subnets(cloud, snapshot, [pool.key for pool, _ in sold]))
        overlays = with_named_zones(snapshot.node_overlays.values(), zones)
        cloud.use_overlays(evaluate(overlays, sold).accepted)
    else:
        cloud.use_overlays(())
    catalog, problems = await pool_catalogs(cloud, snapshot)
    subnets = await pool_subnets(cloud, snapshot, catalog)
    policy = replace(policy_of(settings).at(now), pool_problems=problems, subnets=subnets)
    return Situation(snapshot, catalog, policy, now, price_terms_of(settings), disruption_policy_of(settings))


async def _unrestricted_catalog(cloud: AwsProvider, snapshot: Snapshot) -> Catalog:
    """The types that pools might buy if they asked for nothing."""
    pools = snapshot.pools
    for key, pool in sorted(snapshot.pools.items()):
        pools = pools.set(key, replace(pool, requirements=Requirements()))
    catalog, _ = await pool_catalogs(cloud, replace(snapshot, pools=pools))
    return catalog


async def _snapshot(
    client: ApiClient, namespace: str, remark: Callable[[str], None], more: tuple[Watched, ...]
) -> Snapshot:
    cluster = Cluster()

    def invalid(manifest: dict[str, Any], error: Exception) -> None:
        remark(f"{manifest.get('kind')}/{manifest['metadata']['name']} cannot be used: {error}")

    sized = any(watched.name == "verticalpodautoscalers" for watched in more)
    pods_and_more = (*watched_kinds(invalid, container_requests=sized), *watched_gang_sizes(), *more)
    kinds = (*pods_and_more, watched_guard(namespace, GUARD_NAME))
    watches = asyncio.create_task(cluster.run(client, kinds))
    listed = asyncio.ensure_future(cluster.wait_for_sync())
    try:
        for patience in (_GRACE, PATIENCE - _GRACE):
            await asyncio.wait({watches, listed}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if listed.done():
                if older := await older_pools(client):
                    remark(older)
                return await _with_scaling_groups(client, cluster.snapshot, remark)
            if problems := cluster.sync_problems():
                raise ClusterUnreadable(_in_short(problems))
        raise ClusterUnreadable(f"not every kind was listed within {PATIENCE:.0f} s")
    finally:
        for task in (watches, listed):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def older_pools(client: ApiClient) -> str:
    """What to say of a cluster whose pools are of a version that is read from files alone; empty: nothing."""
    try:
        group = await client.get(f"/apis/{NODE_POOL.group}")
    except (ApiError, ApiUnavailable):
        return ""
    versions = {each["version"] for each in group["versions"]}
    if NODE_POOL_V1BETA1.version not in versions or NODE_POOL.version in versions:
        return ""
    older, kinds = NODE_POOL_V1BETA1.api_version, "nodepools,ec2nodeclasses,nodeclaims,nodes,pods,daemonsets"
    return (
        f"pools are left out: the cluster serves {older}, which is read from files only;"
        f" hint: kubectl get {kinds} -A -o yaml > cluster.yaml, then give cluster.yaml as an argument"
    )


async def _with_scaling_groups(
    client: ApiClient, snapshot: Snapshot, remark: Callable[[str], None]
) -> Snapshot:
    """The snapshot with what a Cluster Autoscaler that runs there says of its groups."""
    groups: set[ScalingGroup] = set()
    for namespace in namespaces_of(snapshot, CLUSTER_AUTOSCALER):
        try:
            groups |= set(await read_groups(client, namespace))
        except (ApiError, ApiUnavailable) as error:
            remark(f"the node groups of Cluster Autoscaler are not known: {error}")
    return replace(snapshot, autoscaler_groups=tuple(sorted(groups)))


def _in_short(problems: Sequence[str]) -> str:
    """Every watch fails of the same cause as a rule: the first one is told."""
    others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    hint = "check the kubeconfig's context, and the network route to its API server"
    return f"{problems[0]}{others}; hint: {hint}"


async def _settings(
    client: ApiClient, namespace: str, remark: Callable[[str], None]
) -> GlobalSettings | None:
    try:
        return await read_settings(client, namespace)
    except ClusterUnreadable as error:
        remark(f"settings not known: {error}")
    except (ApiError, ApiUnavailable, SettingsError) as error:
        remark(f"settings not known: {error}; hint: {_CONTROLLER_NAMESPACE_HINT}")
    return None


async def _cluster_facts(client: ApiClient, settings: GlobalSettings) -> tuple[str, str]:
    """What the cluster itself tells where EKS is not asked: certificate authority and version."""
    if settings.eks_control_plane:
        return _NO_CLUSTER_FACTS
    return client.certificate_authority, await server_version(client)


async def read_settings(client: ApiClient, namespace: str) -> GlobalSettings:
    """The settings of the ConfigMap and the environment; Karpenter v1 has only the environment.

    Raises:
        ApiUnavailable, ApiError: The API server cannot be reached, or refuses.
        ClusterUnreadable: There is no ConfigMap, and the environment does not name the cluster.
        SettingsError: A setting cannot be used.
    """
    sources = ConfigSources(dict(os.environ), {})
    try:
        document = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{SETTINGS_NAME}")
    except ApiError as error:
        if error.status != 404:
            raise
        if os.environ.get("CLUSTER_NAME"):
            return GlobalSettings.from_config_map({}, sources)
        hint = f"{_CONTROLLER_NAMESPACE_HINT}; without the ConfigMap, set CLUSTER_NAME"
        raise ClusterUnreadable(f"no ConfigMap {namespace}/{SETTINGS_NAME}; hint: {hint}") from None
    return GlobalSettings.from_config_map(document.get("data") or {}, sources)
