"""A machine that says that it is broken is mended where it stands, in the whole environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localenv.environment import NAMESPACE
from tests.environment.user import NODES, User

pytestmark = pytest.mark.environment

SETTINGS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/karpenter-global-settings"
#: What EKS's node monitoring agent reports of a GPU whose driver a reboot brings back.
BROKEN = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "NvidiaXID95Error"}
MENDED = {"type": "AcceleratedHardwareReady", "status": "True", "reason": "NvidiaReady"}


@pytest.fixture
def repairing(user: User) -> Iterator[User]:
    """Nodes are repaired, and what is broken is tolerated for two seconds."""
    data = {"nodeless.nodeRepair": "true", "nodeless.repairToleration": "2s"}
    user.api.patch(SETTINGS, {"data": data})
    yield user
    user.api.patch(SETTINGS, {"data": dict.fromkeys(data)})


def test_a_machine_that_a_reboot_mends_is_rebooted_and_runs_its_pods_again_under_the_same_claim(
    repairing: User,
) -> None:
    user, api = repairing, repairing.api
    user.pool()
    user.deploy("web", 2, cpu="500m")
    (name,) = user.runs("web", 2)
    (claim,) = user.claims()
    (instance,) = user.launched()
    path = f"{NODES}/{name}"
    first = api.get(path)["status"]["nodeInfo"]["bootID"]
    evicted = {pod["metadata"]["uid"] for pod in user.pods("web")}

    _report(user, name, BROKEN)
    user.told(api.get(path), "RebootRequested", "NvidiaXID95Error")
    api.wait(
        lambda: api.get(path)["status"]["nodeInfo"]["bootID"],
        lambda seen: seen != first,
        timeout=120,
        what=f"another boot id of {name}",
    )
    assert user.environment.aws.reboots()[instance] == 1
    _report(user, name, MENDED)
    user.told(api.get(path), "RebootObserved", instance)

    assert user.runs("web", 2, timeout=120) == {name}
    assert not evicted & {pod["metadata"]["uid"] for pod in user.pods("web")}
    (same,) = user.claims()
    assert same["metadata"]["uid"] == claim["metadata"]["uid"]
    assert user.launched() == [instance]
    api.wait(lambda: api.get(path)["spec"].get("taints", []), lambda left: not left, what="the fence to go")


def _report(user: User, node: str, condition: dict[str, str]) -> None:
    body = {"status": {"conditions": [condition]}}
    user.api.patch(f"{NODES}/{node}", body, kind="strategic", subresource="status")
