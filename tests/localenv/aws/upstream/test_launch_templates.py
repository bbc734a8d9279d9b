"""Launch templates: pages and missing ones."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localenv.aws.world import World


def test_all_launch_templates_are_found_without_asking_for_a_page_size(world: World) -> None:
    for number in range(22):
        world.launch_template(f"karpenter.k8s.aws/{number}")
    pages = list(world.ec2.get_paginator("describe_launch_templates").paginate())
    assert sum(len(page["LaunchTemplates"]) for page in pages) == 22
    sizes = world.ec2.get_paginator("describe_launch_templates").paginate(PaginationConfig={"PageSize": 10})
    assert [len(page["LaunchTemplates"]) for page in sizes] == [10, 10, 2]


def test_a_missing_launch_template_has_ec2s_code(ec2: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateId\.NotFound"):
        ec2.delete_launch_template(LaunchTemplateId="lt-00000000000000000")
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        ec2.delete_launch_template(LaunchTemplateName="nobody")
