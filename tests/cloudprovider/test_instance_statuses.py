"""Which instances EC2 says are in trouble when it is asked, whether or not there is a queue."""

from datetime import UTC, datetime
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CredentialsRefused
from nodeless.cloudprovider.aws.instance_statuses import IMPAIRED_SECONDS, has_scheduled_event, impaired_since
from nodeless.model.interruptions import InterruptionKind
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_batches import ids, launched_together, some_claims
from tests.cloudprovider.test_provider import made_by

NOW = 1_800_000_000.0


def a_status(seconds: float | None, check: str = "SystemStatus", **detail: Any) -> dict[str, Any]:
    since = {} if seconds is None else {"ImpairedSince": datetime.fromtimestamp(NOW - seconds, UTC)}
    failed = {"Name": "reachability", "Status": "failed", **since, **detail}
    return {check: {"Status": "impaired", "Details": [failed]}}


@pytest.mark.parametrize("check", ["InstanceStatus", "SystemStatus"])
def test_either_check_counts_from_the_moment_that_it_failed(check: str) -> None:
    assert impaired_since(a_status(300, check), NOW) == NOW - 300
    assert impaired_since(a_status(None, check), NOW) == NOW
    assert impaired_since(a_status(300, check, Status="passed"), NOW) is None
    assert impaired_since({check: {"Status": "ok"}}, NOW) is None


@pytest.mark.parametrize(
    ("code", "description", "counts"),
    [
        ("instance-stop", "The instance is running on degraded hardware", True),
        ("instance-reboot", "", True),
        ("system-reboot", "", True),
        ("system-maintenance", "", True),
        ("instance-retirement", "[Completed] The instance is running on degraded hardware", False),
        ("instance-stop", "[Canceled] The instance is running on degraded hardware", False),
        ("free-lunch", "", False),
    ],
)
def test_events_that_will_interrupt_an_instance(code: str, description: str, counts: bool) -> None:
    assert has_scheduled_event([{"Code": code, "Description": description}]) is counts


async def test_a_check_that_has_failed_for_two_minutes_is_trouble_and_so_is_a_scheduled_event(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        ill, dying, young, well = ids(await launched_together(provider, some_claims(4)))
        assert await provider.impaired_instances() == ()
        aws.set_faults(
            impaired={ill: IMPAIRED_SECONDS + 1, young: 5}, scheduled={dying: "instance-retirement"}
        )
        found = {trouble.instance_ids: trouble.kind for trouble in await provider.impaired_instances()}
        assert found == {(ill,): InterruptionKind.IMPAIRED, (dying,): InterruptionKind.SCHEDULED_CHANGE}
        assert well not in {name for names in found for name in names}
    assert len(made_by(aws, "DescribeInstanceStatus")) == 6


async def test_a_check_that_does_not_say_since_when_counts_from_the_first_look(
    aws: LocalAws, world: World
) -> None:
    now = [NOW]
    async with a_provider(clock=lambda: now[0]) as provider:
        (ill,) = ids(await launched_together(provider, some_claims(1)))
        aws.set_faults(impaired=[ill])
        assert await provider.impaired_instances() == ()
        now[0] += IMPAIRED_SECONDS
        assert [trouble.kind for trouble in await provider.impaired_instances()] == [
            InterruptionKind.IMPAIRED
        ]
        aws.set_faults()
        assert await provider.impaired_instances() == ()
        aws.set_faults(impaired=[ill])
        assert await provider.impaired_instances() == ()


async def test_a_policy_without_the_right_to_look_is_told(aws: LocalAws, world: World) -> None:
    aws.set_faults(errors={"DescribeInstanceStatus": {"code": "UnauthorizedOperation", "status": 403}})
    async with a_provider() as provider:
        with pytest.raises(CredentialsRefused, match="allow ec2:DescribeInstanceStatus"):
            await provider.impaired_instances()
