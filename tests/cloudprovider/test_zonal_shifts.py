"""While AWS shifts a cluster away from a zone, nothing is launched or terminated there."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError, CloudUnavailable
from nodeless.cloudprovider.aws import AwsProvider
from tests.cloudprovider.conftest import SETTINGS, World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, launched, made_by, the_pool

SHIFTED = replace(SETTINGS, zonal_shift=True)
POOL = the_pool("m5.large", capacity_types=("on-demand",))


@pytest.fixture
def arn(aws: LocalAws, world: World) -> str:
    """The cluster, on which zonal shift is enabled."""
    aws.set_cluster(endpoint="https://demo.example", certificate_authority_data="Q0E=", issuer="https://i")
    made = aws.client("eks").create_cluster(
        name="demo",
        roleArn=aws.client("iam").get_role(RoleName="nodes")["Role"]["Arn"],
        resourcesVpcConfig={"subnetIds": world.subnets},
        zonalShiftConfig={"enabled": True},
    )
    return str(made["cluster"]["arn"])


def shift(aws: LocalAws, arn: str, zone: str, lasts: str = "1h") -> dict[str, Any]:
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    (zone_id,) = [each["ZoneId"] for each in zones if each["ZoneName"] == zone]
    started: dict[str, Any] = aws.client("arc-zonal-shift").start_zonal_shift(
        resourceIdentifier=arn, awayFrom=zone_id, expiresIn=lasts, comment="the zone is ill"
    )
    return started


async def zones(provider: AwsProvider) -> set[str]:
    """Where something can be had."""
    types = await provider.catalog(POOL, NODE_CLASS)
    return {offering.zone for type_ in types for offering in type_.offerings if offering.available}


async def test_a_zone_is_left_alone_from_the_start_of_its_shift_until_it_is_cancelled(
    aws: LocalAws, arn: str
) -> None:
    async with a_provider(settings=SHIFTED) as provider:
        await provider.start()
        instance = await launched(provider, "default-aaaaa", POOL)
        assert await zones(provider) == {"us-east-1a", "us-east-1b", "us-east-1c"}
        started = shift(aws, arn, instance.zone)
        with capture_logs() as logs:
            await provider._shifts.ask()
        assert [line["zone_id"] for line in logs] == [started["awayFrom"]]
        assert len(await zones(provider)) == 2
        assert (await launched(provider, "default-bbbbb", POOL)).zone != instance.zone
        with pytest.raises(CloudUnavailable, match=f"shifts away from its zone {instance.zone}"):
            await provider.terminate(instance.id)
        assert made_by(aws, "TerminateInstances") == []

        aws.client("arc-zonal-shift").cancel_zonal_shift(zonalShiftId=started["zonalShiftId"])
        await provider._shifts.ask()
        assert instance.zone in await zones(provider)
        assert await provider.terminate(instance.id)


async def test_a_shift_ends_at_its_time_though_aws_cannot_be_asked_and_others_are_ended_meanwhile(
    aws: LocalAws, arn: str
) -> None:
    started = shift(aws, arn, "us-east-1a", "30m")
    now = [started["startTime"].timestamp()]
    async with a_provider(settings=SHIFTED, clock=lambda: now[0]) as provider:
        await provider.start()
        assert await zones(provider) == {"us-east-1b", "us-east-1c"}
        assert await provider.terminate((await launched(provider, "default-aaaaa", POOL)).id)
        aws.set_faults(errors={"GetManagedResource": {"code": "InternalServerException", "status": 500}})
        with pytest.raises(CloudUnavailable):
            await provider._shifts.ask()
        assert await zones(provider) == {"us-east-1b", "us-east-1c"}
        now[0] += timedelta(minutes=30).total_seconds() + 1
        assert "us-east-1a" in await zones(provider)


async def test_a_cluster_without_zonal_shift_is_told_how_to_enable_it_where_the_setting_asks_for_it(
    aws: LocalAws, arn: str
) -> None:
    aws.client("eks").update_cluster_config(name="demo", zonalShiftConfig={"enabled": False})
    async with a_provider(settings=SHIFTED) as provider:
        with pytest.raises(
            CloudError, match=r"not enabled on arn:.*hint: run: aws eks update-cluster-config"
        ):
            await provider.start()
    async with a_provider() as provider:
        await provider.start()
        assert len(await zones(provider)) == 3
