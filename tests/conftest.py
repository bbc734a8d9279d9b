"""What tests of several packages share: one control plane and one AWS a session, made when first needed."""

from __future__ import annotations

import gc
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import botocore.session
import pytest
import structlog
from botocore.loaders import create_loader
from hypothesis import is_hypothesis_test, settings

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from tests import rights
from tests.listing import remember

#: How many times their examples properties draw: less than 1 in `make unit`, more in `make properties`.
FACTOR = float(os.environ.get("NODELESS_PROPERTIES_FACTOR", "1"))


# What a test waits for comes, at last, on a machine that is four times slower, or that busy, too.
KubernetesApi.patience = 4.0


# Importing makes millions of objects and no garbage; see `pytest_collection_finish`.
gc.disable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """With `-n auto`, two workers a core where tests with a cluster are chosen: they mostly wait.

    Each has a control plane and an AWS of its own, 2.5 GiB with what a test starts.
    """
    given = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    if given or config.option.numprocesses != "auto" or not config.option.markexpr.startswith("cluster"):
        return None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(2 * (os.cpu_count() or 1), int(memory / 2.5)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where tests with a cluster, or of the environment, are chosen, files without any are not imported."""
    wanted = str(config.option.markexpr).partition(" ")[0]
    if wanted not in ("cluster", "environment") or not collection_path.match("test_*.py"):
        return None
    return True if f"mark.{wanted}" not in collection_path.read_text(encoding="utf-8") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every property and every test that is `drawn` its factor, and begin with the files that take long.

    Hypothesis' profiles do not reach tests with settings of their own.
    """
    remember(config, items)
    functions = {getattr(item, "function", None) for item in items}
    for function in filter(is_hypothesis_test, functions) if FACTOR != 1 else ():
        own = getattr(function, "_hypothesis_internal_use_settings", None) or settings()
        function._hypothesis_internal_use_settings = settings(
            own, max_examples=max(1, round(own.max_examples * FACTOR)), deadline=None
        )
    if FACTOR < 1:
        _keep_a_part(config, items)
    # In whatever order they are otherwise.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _keep_a_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one case or more of what is marked `drawn`, which ones the seed of the run decides.

    What is drawn from are the cases of a test, or those of all tests whose marks have the same words.
    """
    cases = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("drawn"):
            cases[mark.args[0] if mark.args else item.nodeid.partition("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for name, drawn in sorted(cases.items()):
        drawn.sort(key=lambda item: item.nodeid)
        chance = _chance(config, name)
        left.update(chance.sample(drawn, len(drawn) - max(1, round(len(drawn) * FACTOR))))
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def is_drawn(request: pytest.FixtureRequest) -> Callable[[str], bool]:
    """Whether a test tries a case in this run: as large a part as the factor says, which the seed decides."""
    return lambda case: _chance(request.config, f"{request.node.nodeid} {case}").random() < FACTOR


def _chance(config: pytest.Config, name: str) -> random.Random:
    return random.Random(f"{config.getoption('randomly_seed', 0)} {name}")


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: the garbage collector need not look at them again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def models_of_services_are_read_once() -> Iterator[None]:
    """Botocore reads the models of AWS's services for each session, a quarter of a second for a provider's.

    Clients of one session share what is read; here those of all tests do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(create_loader))
        yield


@pytest.fixture(autouse=True)
def logging_as_at_the_start() -> Iterator[None]:
    """A command of `nodeless` sets up the process's logging; the next test hears all that is logged again."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(
        directory, proxy_socket=directory / "proxy", audited_users=(rights.USER,)
    ) as plane:
        yield plane


@pytest.fixture(scope="session")
def aws_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    """An AWS for all who empty it before each test."""
    with LocalAws.start(tmp_path_factory.mktemp("aws")) as aws:
        yield aws


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    client = control_plane.client()
    yield client
    client.close()


@pytest.fixture
def namespace(api: KubernetesApi) -> Iterator[str]:
    """A namespace of the test's own, with its default service account; deleted afterwards."""
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
    name = made["metadata"]["name"]
    api.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default")
    yield name
    api.delete(f"/api/v1/namespaces/{name}")
    # Nothing is created in it from now on; the next test's controller must not find its pods pending.
    for pod in api.list(f"/api/v1/namespaces/{name}/pods"):
        api.delete(api.path_of(pod), grace_seconds=0, missing_ok=True)
