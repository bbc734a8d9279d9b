"""DescribeInstanceStatus."""

from __future__ import annotations

import time

from tests.localenv.aws.world import World, instance_ids


def test_instance_status_filters(world: World) -> None:
    config = world.config(world.launch_template(), ["m5.large"])
    well, ill = (instance_ids(world.fleet(config))[0] for _ in range(2))
    world.aws.set_faults(impaired=[ill])

    def found(name: str, value: str) -> list[str]:
        answer = world.ec2.describe_instance_status(Filters=[{"Name": name, "Values": [value]}])
        return [s["InstanceId"] for s in answer["InstanceStatuses"]]

    assert found("instance-status.status", "impaired") == [ill]
    assert found("system-status.status", "ok") == [well]
    assert found("event.code", "instance-retirement") == []
    world.aws.set_faults(impaired={ill: 60}, scheduled={well: "instance-retirement"})
    assert found("event.code", "instance-retirement") == [well]
    (status,) = world.ec2.describe_instance_status(InstanceIds=[ill])["InstanceStatuses"]
    since = status["SystemStatus"]["Details"][0]["ImpairedSince"]
    assert 60 <= time.time() - since.timestamp() < 3600
