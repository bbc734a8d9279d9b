"""What the engine makes of a provider's answers under the options that programs set."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pytest

from localenv.aws import LocalAws
from localenv.pulumi import ResourceStep, StackFailed
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import on_aws
from tests.localenv.pulumi.test_aws_resources import TRUST

pytestmark = pytest.mark.cluster


def test_options_of_resources_count_with_the_local_providers(shop: Shop, aws: LocalAws) -> None:
    def operations(description: str, **options: Any) -> list[str]:
        def program() -> None:
            opts = pulumi.ResourceOptions.merge(on_aws(), pulumi.ResourceOptions(**options))
            role = aws_sdk.iam.Role("role", assume_role_policy=TRUST, description=description, opts=opts)
            pulumi.export("name", pulumi.Output.secret(role.name))

        steps: list[ResourceStep] = []
        shop.program = program
        shop.stack.up(steps.append)
        return [step.operation for step in steps if step.done and step.type == "aws:iam/role:Role"]

    def description() -> str:
        role: dict[str, Any] = aws.client("iam").get_role(RoleName=shop.stack.outputs()["name"])["Role"]
        return str(role["Description"])

    assert operations("first") == ["create"]
    assert operations("ignored", ignore_changes=["description"]) == []
    assert description() == "first"
    replaced = operations("second", replace_on_changes=["description"])
    assert replaced.index("create-replacement") < replaced.index("delete-replaced")
    assert description() == "second"
    replaced = operations("third", replace_on_changes=["description"], delete_before_replace=True)
    assert replaced.index("delete-replaced") < replaced.index("create-replacement")
    assert operations("third", protect=True) == []
    with pytest.raises(StackFailed, match="protect"):
        shop.stack.destroy()
    assert description() == "third"
    assert operations("third") == []
