"""Tags by the resource that has them."""

from __future__ import annotations

from tests.localenv.aws.world import World


def test_tags_are_found_by_resource_and_by_pattern(world: World) -> None:
    first, second = list(world.subnets.values())[:2]
    world.ec2.create_tags(Resources=[first, second], Tags=[{"Key": "pool", "Value": "a"}])

    def found(*values: str) -> set[tuple[str, str]]:
        filters = [{"Name": "resource-id", "Values": [*values]}]
        tags = world.ec2.describe_tags(Filters=filters)["Tags"]
        return {(each["ResourceId"], each["ResourceType"]) for each in tags if each["Key"] == "pool"}

    assert found(first) == {(first, "subnet")}
    assert found(first, second, "subnet-none") == {(first, "subnet"), (second, "subnet")}
    assert found("subnet-*") == {(first, "subnet"), (second, "subnet")}
