"""Nodes in reserved capacity from pod to end: relabeled or drained when the reservation ends."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from nodeless.api.times import parse_time
from nodeless.controllers.nodeclaim.reservations import ReservationLoop
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_TYPE,
    INSTANCE_ENDS,
    PLACEMENT_GROUP_PARTITION,
)
from nodeless.operator.metrics import Metrics
from tests.api.manifests import ec2_node_class, node_pool, requirement
from tests.controllers.test_generation_one import clean  # noqa: F401 - an autouse fixture
from tests.controllers.world import CLAIMS, NODES, PATIENCE, a_pod

pytestmark = pytest.mark.cluster
TERMS = [{"tags": {"team": "search"}}]


def a_node_pool(*capacity_types, kind="m5.large"):
    entries = [
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement(CAPACITY_TYPE, "In", *capacity_types),
        requirement("node.kubernetes.io/instance-type", "In", kind),
    ]
    return node_pool(template={"requirements": entries})


def a_class(**spec):
    return ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}], **spec)


async def node_of(rig, name, predicate):
    return await rig.until(lambda: rig.api.get(f"{NODES}/{name}"), predicate)


def test_a_reserved_node_becomes_on_demand_when_its_reservation_is_cancelled(scene, aws):
    identifier = aws.reserve("m5.large", "us-east-1a", kind="default", tags={"team": "search"})

    async def scenario(rig, namespace):
        await rig.create(
            a_class(capacityReservationSelectorTerms=TERMS),
            a_node_pool("reserved", "on-demand"),
            a_pod("web", namespace),
        )
        name = await rig.running(namespace, "web")
        node = await node_of(rig, name, lambda found: CAPACITY_TYPE in found["metadata"]["labels"])
        labels = node["metadata"]["labels"]
        assert (labels[CAPACITY_TYPE], labels[CAPACITY_RESERVATION_ID]) == ("reserved", identifier)
        assert labels[CAPACITY_RESERVATION_TYPE] == "default"

        loop = ReservationLoop(rig.cluster, rig.cloud, rig.executor, Metrics())
        await loop.reconcile_once()
        assert (await rig.claim())["metadata"]["labels"][CAPACITY_TYPE] == "reserved"

        rig.network.ec2.cancel_capacity_reservation(CapacityReservationId=identifier)
        await loop.reconcile_once()
        claim = await rig.claim()
        for found in (claim, await asyncio.to_thread(rig.api.get, f"{NODES}/{name}")):
            labels = found["metadata"]["labels"]
            assert labels[CAPACITY_TYPE] == "on-demand"
            assert not {CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_TYPE} & set(labels)

    scene(scenario)


def test_a_node_of_a_capacity_block_is_drained_before_ec2_ends_it(scene, aws):
    block = aws.reserve("p5.48xlarge", "us-east-1a", endsIn=3 * 3600, tags={"team": "search"})

    async def scenario(rig, namespace):
        await rig.create(
            a_class(capacityReservationSelectorTerms=TERMS),
            a_node_pool("reserved", kind="p5.48xlarge"),
            a_pod("web", namespace),
        )
        await rig.running(namespace, "web")
        claim = await rig.claim()
        loop = ReservationLoop(rig.cluster, rig.cloud, rig.executor, Metrics())
        await loop.reconcile_once()
        ends = (await rig.claim())["metadata"]["annotations"][INSTANCE_ENDS]
        assert parse_time(ends) - datetime.now(UTC).timestamp() == pytest.approx(2.5 * 3600, abs=PATIENCE)
        soon = datetime.now(UTC) + timedelta(minutes=39)
        rig.network.ec2.modify_capacity_reservation(CapacityReservationId=block, EndDate=soon)
        (node_class,) = rig.cluster.snapshot.node_classes.values()
        rig.cloud._resolver.expire(node_class, "1.29")

        await loop.reconcile_once()

        await rig.until_gone(f"{CLAIMS}/{claim['metadata']['name']}")

    scene(scenario)


def test_a_node_says_from_the_start_which_partition_ec2_chose(scene, aws):
    aws.client("ec2").create_placement_group(GroupName="apart", Strategy="partition", PartitionCount=3)

    async def scenario(rig, namespace):
        await rig.create(
            a_class(placementGroupSelector={"name": "apart"}),
            a_node_pool("on-demand"),
            a_pod("web", namespace),
        )
        node = await asyncio.to_thread(rig.api.get, f"{NODES}/{await rig.running(namespace, 'web')}")
        for found in (node, await rig.claim()):
            assert found["metadata"]["labels"][PLACEMENT_GROUP_PARTITION] == "1"

    scene(scenario)


def test_a_partition_that_ec2_shows_late_is_told_then(scene, aws):
    aws.client("ec2").create_placement_group(GroupName="apart", Strategy="partition", PartitionCount=3)
    # So long nobody sees a new instance.
    aws.set_faults(consistency=60.0)

    async def scenario(rig, namespace):
        await rig.create(
            a_class(placementGroupSelector={"name": "apart"}),
            a_node_pool("on-demand"),
            a_pod("web", namespace),
        )
        name = await rig.running(namespace, "web")
        aws.set_faults()
        assert PLACEMENT_GROUP_PARTITION not in (await rig.claim())["metadata"]["labels"]

        await ReservationLoop(rig.cluster, rig.cloud, rig.executor, Metrics()).reconcile_once()

        node = await asyncio.to_thread(rig.api.get, f"{NODES}/{name}")
        for found in (node, await rig.claim()):
            assert found["metadata"]["labels"][PLACEMENT_GROUP_PARTITION] == "1"

    scene(scenario)
