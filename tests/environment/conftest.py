"""One running environment a session, and a user of it for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local.environment import Environment
from tests.environment.heard import Heard
from tests.environment.user import User


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The whole environment; what it reports is kept in `environment.report`, a `Heard`."""
    with Environment.start(tmp_path_factory.mktemp("environment"), report=Heard()) as running:
        yield running


@pytest.fixture
def user(environment: Environment) -> Iterator[User]:
    """Somebody with a namespace of their own; afterwards AWS has no fault and no pool has any capacity."""
    somebody = User(environment)
    yield somebody
    environment.aws.set_faults()
    somebody.clear()
