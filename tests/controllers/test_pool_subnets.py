"""The addresses of subnets on their way from EC2 into plans."""

import pytest

from nodeless.cloudprovider.pool_catalogs import pool_subnets
from tests.controllers.world import a_provisioner, a_template

pytestmark = pytest.mark.cluster
POOL = "Provisioner/default"


def test_plans_know_how_many_addresses_each_subnet_has_left(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner())
        await rig.until(lambda: POOL in rig.cluster.snapshot.pools and rig.cluster.snapshot.node_classes)
        found = await pool_subnets(rig.cloud, rig.cluster.snapshot, (POOL,))
        assert [room.zone for room in found[POOL]] == ["us-east-1a", "us-east-1b"]
        assert {room.free_addresses for room in found[POOL]} == {4091}
        full = found[POOL][0].id
        rig.cloud._subnets.mark_full((full,))
        again = await pool_subnets(rig.cloud, rig.cluster.snapshot, (POOL,))
        assert {room.id: room.free_addresses for room in again[POOL]}[full] == 0

    scene(scenario)
