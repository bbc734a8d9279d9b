"""Every way in which an engine comes to delete the teardown guard: only a destruction ends capacity.

The engine and the API server are real. `Ending` stands in for the controller's part, with the controller's
own rule: once the guard is being deleted, does a hold stand? (What the controller does then is in
`tests/controllers/test_endings.py`.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import Stack, StackFailed
from nodeless.controllers.executor.teardown_guard import GUARD_NAME, HOLD_NAMESPACE, guard_manifest
from pulumi_nodeless import TeardownGuard
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import in_cluster

pytestmark = pytest.mark.cluster

HOLDS = f"/apis/coordination.k8s.io/v1/namespaces/{HOLD_NAMESPACE}/leases"
SPARED, TORN_DOWN = "spared", "torn down"
_POLL_SECONDS = 0.02


class Ending:
    """Sees the guard's deletion, decides as the controller does, and lets it go."""

    def __init__(self, api: KubernetesApi) -> None:
        self.decisions: list[str] = []
        self.alive = True
        self._api = api
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def holds(self) -> list[str]:
        found = self._api.list(HOLDS, label_selector="nodeless.dev/teardown=hold")
        return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]

    def guards(self) -> list[dict[str, Any]]:
        found = self._api.list("/api/v1/configmaps", label_selector="nodeless.dev/teardown=guard")
        return [each for each in found if each["metadata"]["name"] == GUARD_NAME]

    def restore(self) -> None:
        """What the controller does when a minute has gone by without a guard."""
        if self.holds() and not self.guards():
            self._api.create(guard_manifest("default", None))

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            for guard in self.guards() if self.alive else ():
                if guard["metadata"].get("deletionTimestamp"):
                    self.decisions.append(SPARED if self.holds() else TORN_DOWN)
                    path = f"/api/v1/namespaces/{guard['metadata']['namespace']}/configmaps/{GUARD_NAME}"
                    self._api.patch(path, {"metadata": {"finalizers": None}})

    @contextmanager
    def watching(self) -> Iterator[Ending]:
        self._watching.start()
        try:
            yield self
        finally:
            self._over.set()
            self._watching.join()


@pytest.fixture(scope="module")
def ending(control_plane: ControlPlane) -> Iterator[Ending]:
    api = control_plane.client()
    with Ending(api).watching() as watching:
        yield watching
    api.close()


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane, aws_process: LocalAws
) -> Shop:
    """One stack for all tests: each may leave it as it likes, as its users do."""
    return Shop(tmp_path_factory.mktemp("guarded"), control_plane, aws_process)


@pytest.fixture
def guarded(shop: Shop, ending: Ending, control_plane: ControlPlane) -> Iterator[Callable[..., Stack]]:
    """Brings the stack up; arguments change its program. In the end it stands again, whatever a test did."""

    def up(**changes: Any) -> Stack:
        shop.program = partial(program, control_plane, **changes)
        shop.stack.up()
        return shop.stack

    ending.decisions.clear()
    yield up
    ending.alive = True
    up()
    ending.restore()
    assert stands(ending)


@pytest.fixture(scope="module", autouse=True)
def the_end(shop: Shop, ending: Ending) -> Iterator[None]:
    """After all that the tests do to it, a destruction is possible, and is the end."""
    yield
    ending.decisions.clear()
    shop.stack.destroy()
    assert ending.decisions == [TORN_DOWN]
    assert ending.holds() == ending.guards() == []


def program(
    control_plane: ControlPlane,
    name: str = "end",
    space: str = "default",
    drain: int = 10,
    protect: bool | None = None,
    parent: str = "",
    guard: Callable[..., object] | None = TeardownGuard,
    upserts: bool = True,
    transforms: list[pulumi.ResourceTransform] | None = None,
) -> None:
    options = in_cluster(control_plane, upserts=upserts)
    if guard is None:
        return
    made = space != "default" and k8s.core.v1.Namespace("space", metadata={"name": space}, opts=options)
    above = pulumi.ComponentResource("shop:index:Group", parent) if parent else None
    guard(
        name,
        {"namespace": made.metadata.name if made else space, "timeout_minutes": 30, "drain_minutes": drain},
        pulumi.ResourceOptions(
            providers=[options.provider], parent=above, protect=protect, transforms=transforms
        ),
    )


class EarlierGuard(pulumi.ComponentResource):
    """The guard as releases up to 0.1 made it: its setting among the data, and no hold."""

    def __init__(self, name: str, args: Any, opts: pulumi.ResourceOptions) -> None:
        super().__init__("nodeless:index:TeardownGuard", name, {}, opts)
        metadata = {
            "name": GUARD_NAME,
            "namespace": args["namespace"],
            "labels": {"nodeless.dev/teardown": "guard"},
            "finalizers": ["nodeless.dev/teardown"],
        }
        child = pulumi.ResourceOptions(parent=self)
        k8s.core.v1.ConfigMap(f"{name}-guard", metadata=metadata, data={"drainTimeout": "600s"}, opts=child)


def stands(ending: Ending) -> bool:
    """Whether there is a guard that nobody is deleting, and a hold."""
    whole = [guard for guard in ending.guards() if "deletionTimestamp" not in guard["metadata"]]
    return bool(whole and ending.holds())


def test_a_changed_setting_is_an_update_in_place(guarded: Callable[..., Stack], ending: Ending) -> None:
    guarded()
    stack = guarded(drain=5)
    (guard,) = ending.guards()
    assert guard["metadata"]["annotations"]["nodeless.dev/teardown-drain"] == "300s"
    assert set(stack.up()) == {"same"}
    assert ending.decisions == []


def test_the_guard_of_an_earlier_release_is_taken_over_whatever_changes_with_it(
    guarded: Callable[..., Stack], ending: Ending
) -> None:
    guarded().destroy()
    ending.decisions.clear()
    guarded(guard=EarlierGuard)
    assert ending.holds() == []
    guarded(drain=7)
    assert ending.decisions == []
    assert stands(ending)


@pytest.mark.parametrize(
    "forced", [["guard"], ["hold"], ["guard", "hold"]], ids=["the guard", "the hold", "both"]
)
def test_a_replacement_ends_nothing(guarded: Callable[..., Stack], ending: Ending, forced: list[str]) -> None:
    stack = guarded()
    urns = stack.urns()
    stack.up(replace=[urns[f"end-{each}"] for each in forced])
    assert ending.decisions == [SPARED] * forced.count("guard")
    assert stands(ending)


@pytest.mark.parametrize(
    "change",
    [{"name": "stop"}, {"parent": "group"}, {"space": "nodeless-elsewhere"}],
    ids=["renamed", "under another parent", "in another namespace"],
)
def test_a_move_without_an_alias_ends_nothing(
    guarded: Callable[..., Stack], ending: Ending, change: dict[str, str]
) -> None:
    guarded()
    guarded(**change)
    assert ending.decisions == [SPARED]
    assert len(ending.holds()) == 1


def test_what_the_state_lost_is_taken_over(guarded: Callable[..., Stack], ending: Ending) -> None:
    stack = guarded()
    urns = stack.urns()
    stack.run("state", "delete", "--yes", urns["end-hold"])
    stack.run("state", "delete", "--yes", urns["end-guard"])
    assert stands(ending)
    guarded(drain=3)
    assert ending.decisions == []
    assert len(ending.holds()) == len(ending.guards()) == 1


@pytest.mark.parametrize(
    "change", [{"name": "stop"}, {"parent": "group"}], ids=["renamed", "under another parent"]
)
def test_a_provider_that_takes_nothing_over_refuses_a_move_and_ends_nothing(
    guarded: Callable[..., Stack], ending: Ending, change: dict[str, str]
) -> None:
    guarded(upserts=False)
    with pytest.raises(StackFailed, match="already exists\nhint: a renamed resource needs an alias"):
        guarded(upserts=False, **change)
    assert ending.decisions == []
    assert stands(ending)


def test_what_the_state_lost_stops_a_provider_that_takes_nothing_over(
    guarded: Callable[..., Stack], ending: Ending
) -> None:
    stack = guarded(upserts=False)
    urns = stack.urns()
    stack.run("state", "delete", "--yes", urns["end-hold"])
    stack.run("state", "delete", "--yes", urns["end-guard"])
    with pytest.raises(StackFailed, match="already exists"):
        guarded(upserts=False)
    assert ending.decisions == []
    assert stands(ending)


def test_what_the_state_lost_is_imported(guarded: Callable[..., Stack], ending: Ending) -> None:
    stack = guarded(upserts=False)
    urns = stack.urns()
    (hold,), (guard,) = ending.holds(), ending.guards()
    ids = {
        "end-guard": f"{guard['metadata']['namespace']}/{GUARD_NAME}",
        "end-hold": f"{HOLD_NAMESPACE}/{hold}",
    }
    for name in ("end-hold", "end-guard"):
        stack.run("state", "delete", "--yes", urns[name])

    def imported(asked: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
        asked.opts.import_ = ids.get(asked.name)
        return pulumi.ResourceTransformResult(asked.props, asked.opts)

    changes = guarded(upserts=False, transforms=[imported]).preview()
    assert set(changes) == {"same"}
    assert stack.urns() == urns
    guarded(upserts=False)
    assert ending.decisions == []
    assert stands(ending)


def test_a_protected_stack_refuses_before_the_guard_goes(
    guarded: Callable[..., Stack], ending: Ending
) -> None:
    stack = guarded(protect=True)
    with pytest.raises(StackFailed, match="protect"):
        stack.destroy()
    assert ending.decisions == []
    assert stands(ending)


def test_the_guard_alone_is_no_target(guarded: Callable[..., Stack], ending: Ending) -> None:
    stack = guarded()
    with pytest.raises(StackFailed, match="depend"):
        stack.destroy(target=[stack.urns()["end-guard"]])
    assert ending.decisions == []
    assert stands(ending)


def test_the_guard_with_its_dependents_is_the_end(guarded: Callable[..., Stack], ending: Ending) -> None:
    stack = guarded()
    stack.destroy(target=[stack.urns()["end-guard"]], target_dependents=True)
    assert ending.decisions == [TORN_DOWN]
    assert ending.holds() == ending.guards() == []


def test_a_program_without_its_guard_is_the_end(guarded: Callable[..., Stack], ending: Ending) -> None:
    guarded()
    guarded(guard=None)
    assert ending.decisions == [TORN_DOWN]
    assert ending.holds() == ending.guards() == []


def test_a_destruction_without_a_preview_is_the_end(guarded: Callable[..., Stack], ending: Ending) -> None:
    guarded().run("destroy", "--yes", "--skip-preview")
    assert ending.decisions == [TORN_DOWN]


def test_a_guard_that_is_deleted_by_hand_and_made_again_is_taken_over(
    guarded: Callable[..., Stack], ending: Ending, api: KubernetesApi
) -> None:
    stack = guarded()
    api.delete(f"/api/v1/namespaces/default/configmaps/{GUARD_NAME}")
    api.wait(lambda: not ending.guards(), what="the guard to be let go")
    assert ending.decisions == [SPARED]
    ending.restore()
    stack.refresh()
    guarded(drain=4)
    assert ending.decisions == [SPARED]
    assert stands(ending)


def test_both_deletions_by_hand_are_the_end(
    guarded: Callable[..., Stack], ending: Ending, api: KubernetesApi
) -> None:
    stack = guarded()
    (hold,) = ending.holds()
    api.delete(f"{HOLDS}/{hold}")
    api.delete(f"/api/v1/namespaces/default/configmaps/{GUARD_NAME}")
    api.wait(lambda: not ending.guards(), what="the guard to be let go")
    assert ending.decisions == [TORN_DOWN]
    stack.refresh()


def test_a_renamed_stack_keeps_guard_and_hold(
    guarded: Callable[..., Stack], ending: Ending, shop: Shop
) -> None:
    stack = guarded()
    before = ending.holds()
    stack.run("stack", "rename", "elsewhere")
    renamed = shop.another(stack="elsewhere")
    assert set(renamed.up()) <= {"same", "update"}
    assert ending.holds() == before
    renamed.run("stack", "rename", "local")
    assert ending.decisions == []
    assert stands(ending)


@pytest.mark.parametrize("goes_on", ["up", "destroy"])
def test_a_destruction_that_stops_between_hold_and_guard_goes_on_either_way(
    guarded: Callable[..., Stack], ending: Ending, goes_on: str
) -> None:
    stack = guarded()
    stack.run("destroy", "--yes", "--skip-preview", "--exclude", stack.urns()["end-guard"])
    assert ending.decisions == []
    assert ending.holds() == []
    if goes_on == "up":
        stack.up()
        assert stands(ending)
        assert ending.decisions == []
    else:
        stack.destroy()
        assert ending.decisions == [TORN_DOWN]


def test_a_destruction_that_is_interrupted_while_the_guard_waits_goes_on(
    guarded: Callable[..., Stack], ending: Ending
) -> None:
    stack = guarded()
    ending.alive = False
    failures: list[StackFailed] = []

    def destroy() -> None:
        try:
            stack.destroy()
        except StackFailed as failure:
            failures.append(failure)

    destroying = threading.Thread(target=destroy)
    destroying.start()
    while not any("deletionTimestamp" in guard["metadata"] for guard in ending.guards()):
        threading.Event().wait(_POLL_SECONDS)
    stack.interrupt()
    destroying.join()
    assert failures
    ending.alive = True
    stack.destroy()
    assert ending.decisions == [TORN_DOWN]
