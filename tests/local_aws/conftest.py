"""The local AWS for the tests of this folder: one child process a session, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.aws import LocalAws
from tests.local_aws.world import World


@pytest.fixture(scope="session")
def aws_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws.start(tmp_path_factory.mktemp("aws")) as aws:
        yield aws


@pytest.fixture
def aws(aws_process: LocalAws) -> LocalAws:
    aws_process.reset()
    return aws_process


@pytest.fixture
def ec2(aws: LocalAws) -> Any:
    return aws.client("ec2")


@pytest.fixture
def world(aws: LocalAws) -> World:
    """A VPC with private subnets in three zones, a security group and an instance profile."""
    return World.make(aws)
