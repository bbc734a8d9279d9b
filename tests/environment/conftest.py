"""One running environment a session, and a user of it for each test."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from localenv.environment import CONTROLLER, Environment, Options
from localenv.labs import SETTINGS
from tests.environment.heard import Heard
from tests.environment.user import User
from tests.rights import nothing_refused


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The whole environment; what it reports is kept in `environment.report`, a `Heard`."""
    directory = tmp_path_factory.mktemp("environment")
    config = {"nodeless:controllerSettings": json.dumps(SETTINGS)}
    options = Options(audited=True, config=config)
    with Environment.start(directory, report=Heard(), options=options) as running:
        yield running


@pytest.fixture
def user(environment: Environment) -> Iterator[User]:
    """Somebody with a namespace of their own; afterwards AWS has no fault and no pool has any capacity.

    Whatever a test does, the controller's rights suffice for it.
    """
    somebody = User(environment)
    with nothing_refused(environment.control_plane, CONTROLLER.user):
        yield somebody
        environment.aws.set_faults()
        somebody.clear()
