"""Fixtures of the component tests: the environment, recorded once for all who only look at it."""

import runpy
import warnings
from pathlib import Path

import pytest

from tests.components.recorder import Recorder, ensure_event_loop, run

ROOT = Path(__file__).parents[2]
CONFIG = {"aws:region": "us-east-1", "nodeless:clusterName": "demo"}


def pytest_configure(config: pytest.Config) -> None:
    """The SDKs warn of deprecated resources of their own as soon as they are imported."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:pulumi_(aws|eks)")


def program() -> None:
    """Runs the program of infra/ as the engine would."""
    runpy.run_path(str(ROOT / "infra" / "__main__.py"), run_name="__main__")


@pytest.fixture(autouse=True)
def _event_loop() -> None:
    ensure_event_loop()


@pytest.fixture(scope="session")
def environment() -> Recorder:
    """What the program of infra/ registers with little configured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return run(program, config=CONFIG)
