"""Each fault, against one leader that lives on: what should run runs, what should end ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi, is_established
from tests.chaos.conftest import a_world
from tests.chaos.link import Link
from tests.chaos.poison import READER, STEP, WRITER, objects
from tests.chaos.world import Lives, World
from tests.controllers.buffers import DEFINITION, a_definition
from tests.controllers.world import CLAIMS, NODES, an_interruption_queue

pytestmark = [pytest.mark.cluster, pytest.mark.long]

#: More than half of an m5.large, so that each pod needs a node of its own or half of a larger one.
CPU = "1100m"
QUEUE = "interruptions"
TYPES = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}
SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}


class Led(NamedTuple):
    """A world and its one leader, which reaches the API server by a link."""

    world: World
    leader: Lives
    link: Link


@pytest.fixture(scope="module")
def module_led(
    control_plane: ControlPlane,
    api: KubernetesApi,
    aws_process: LocalAws,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Led]:
    directory = tmp_path_factory.mktemp("faults")
    with a_world(control_plane, api, aws_process, directory, request) as world:
        an_interruption_queue(aws_process, QUEUE)
        world.settings["aws.interruptionQueueName"] = QUEUE
        world.settings["nodeless.capacityBuffers"] = "true"
        api.apply(a_definition())
        api.wait(DEFINITION, is_established, what="capacity buffers to be served")
        world.pools(requirements=[TYPES, SPOT])
        link = Link(control_plane, world.namespace, world.directory)
        with world.leaders(KUBECONFIG=str(link.kubeconfig)) as leader:
            # A process that has not begun may end when it is refused: a kubelet would start it again.
            world.until(lambda: "cluster state is in sync" in leader.log.read_text(), "the leader to begin")
            yield Led(world, leader, link)
        link.close()


@pytest.fixture
def led(module_led: Led, request: pytest.FixtureRequest) -> Iterator[Led]:
    """Afterwards no fault is on, the leader is the same, and no invariant was broken."""
    pid = module_led.leader.pid if module_led.leader.log.read_text() else 0
    yield module_led
    world, leader = module_led.world, module_led.leader
    world.story.append(request.node.name.removeprefix("test_").replace("_", " "))
    world.aws.set_faults()
    world.machines.joining = True
    module_led.link.mend()
    leader.check()
    assert pid in (0, leader.pid)
    assert not world.broken


@contextmanager
def deployed(world: World, name: str = "web", replicas: int = 2) -> Iterator[None]:
    """Pods that need nodes; afterwards they run, and then everything ends, even when it went wrong."""
    world.deploy(name, replicas, cpu=CPU)
    try:
        yield
        world.runs(**{name: replicas})
    finally:
        world.remove(name)


def test_an_api_server_that_is_started_again(led: Led) -> None:
    with deployed(led.world):
        led.world.restart_api_server()


def test_a_pause_of_etcd(led: Led) -> None:
    etcd = led.world.plane.processes["etcd"].pid
    with deployed(led.world):
        os.kill(etcd, signal.SIGSTOP)
        try:
            led.world.watcher.pause(6.0)
        finally:
            os.kill(etcd, signal.SIGCONT)


def test_watches_that_break_again_and_again(led: Led) -> None:
    with deployed(led.world):
        for _ in range(10):
            led.link.drop()
            led.world.watcher.pause(0.3)


def test_events_that_come_twice_and_overtake_each_other(led: Led) -> None:
    world = led.world
    with deployed(world, "first", 1):
        world.runs(first=1)
        led.leader.set_disorder(1.0)
        # While the first one's node goes another comes, and news of both are under way together.
        world.deploy("second", 1, cpu=CPU)
        old = world.claims()
        for name in old:
            world.api.delete(f"{CLAIMS}/{name}")
        world.gone(*old)
        world.runs(first=1, second=1)
        led.leader.set_disorder(0.0)
        world.remove_pods("second")


def test_a_watch_that_may_not_be_resumed_since_the_server_forgot_what_happened(led: Led) -> None:
    world = led.world
    with deployed(world, "web", 1):
        known = world.api.request("GET", "/api/v1/pods", query={"limit": 1})["metadata"]["resourceVersion"]
        world.runs(web=1)
        led.link.cut()
        world.deploy("unheard", 1, cpu=CPU)
        world.until(lambda: world.pods("unheard"), "the pod is written while nobody hears of it")
        world.restart_api_server()
        query = {"watch": 1, "resourceVersion": known, "timeoutSeconds": 1}
        assert world.api.request("GET", "/api/v1/pods", query=query)["object"]["code"] == 410
        led.link.mend()
        world.runs(web=1, unheard=1)
        world.remove_pods("unheard")


def test_aws_that_throttles(led: Led) -> None:
    led.world.aws.set_faults(throttle=25)
    with deployed(led.world):
        pass


def test_answers_that_are_lost_after_what_was_asked_for_was_done(led: Led) -> None:
    # A node that a launch tried again brought up after the test before it would have room for the pod.
    left = led.world.claims()
    for name in left:
        led.world.api.delete(f"{CLAIMS}/{name}", missing_ok=True)
    led.world.gone(*left)
    before = _instances(led)
    led.world.aws.set_faults(lost={"CreateFleet": 1, "CreateLaunchTemplate": 1, "TerminateInstances": 1})
    with deployed(led.world, replicas=1):
        led.world.runs(web=1)
        assert len(_instances(led) - before) == 1


def _instances(led: Led) -> set[str]:
    """All by id, also those that ended a while ago, which EC2 forgets one by one."""
    return {each["InstanceId"] for each in led.world.aws.instances()}


def test_instances_that_ec2_does_not_show_at_first(led: Led) -> None:
    """Longer than a collector looks before it judges: nobody is launched twice, and nobody ended."""
    before = len(led.world.aws.instances())
    led.world.aws.set_faults(consistency=25.0)
    with deployed(led.world, replicas=1):
        (claim,) = led.world.until(led.world.claims, "a claim")
        led.world.runs(web=1)
        assert set(led.world.claims()) == {claim}
        assert len(led.world.aws.instances()) == before + 1
        led.world.aws.set_faults()


def test_warnings_that_come_twice_and_late(led: Led) -> None:
    world = led.world
    with deployed(world, replicas=1):
        world.runs(web=1)
        name, node = world.node_of("web")
        instance = node["spec"]["providerID"].rpartition("/")[2]
        before = len(world.aws.instances())
        for _ in range(3):
            world.aws.interrupt(instance, after=120.0)
        world.aws.interrupt(instance, kind="rebalance")
        world.gone(name)
        world.runs(web=1)
        # Once more, of an instance that is no more.
        world.aws.interrupt(instance, kind="state-change", state="terminated")
        world.aws.interrupt(instance, kind="rebalance")
        assert len(world.aws.instances()) == before + 1


def test_a_machine_that_never_joins_is_given_up_after_its_time(led: Led) -> None:
    world = led.world
    silent = set(world.machines.silent)
    world.machines.joining = False
    with deployed(world, replicas=1):
        (deaf,) = world.until(world.claims, "a claim")
        world.until(lambda: world.machines.silent - silent, "a machine that boots and does not join")
        world.until(lambda: "status" in world.claims()[deaf], "the launch on record")
        # The machine that comes instead joins.
        world.machines.joining = True
        led.leader.set_patience(15.0)
        world.gone(deaf)
        led.leader.set_patience()
        world.runs(web=1)


def test_a_clock_that_jumps_ends_no_node_and_keeps_none_from_coming(led: Led) -> None:
    world = led.world
    with deployed(world, "first", 1):
        world.runs(first=1)
        nodes = set(world.claims())
        for name, wrong_by in (("ahead", 7200.0), ("behind", -7200.0)):
            led.leader.set_clock(wrong_by)
            world.deploy(name, 1, cpu=CPU)
            world.runs(**{name: 1})
            assert nodes <= set(world.claims())
        led.leader.set_clock(0)
        assert not [each for each in world.claims().values() if "deletionTimestamp" in each["metadata"]]
        for name in ("ahead", "behind"):
            world.remove_pods(name)


def test_a_machine_that_dies_without_a_word(led: Led) -> None:
    world = led.world
    with deployed(world, replicas=1):
        world.runs(web=1)
        name, node = world.node_of("web")
        instance = node["spec"]["providerID"].rpartition("/")[2]
        world.machines.silent.add(instance)
        world.aws.client("ec2").terminate_instances(InstanceIds=[instance])
        # Nobody says so: Kubernetes misses the kubelet's heartbeats, and then nodeless misses the instance.
        world.gone(name)


def test_a_budget_that_never_yields_holds_its_node_and_no_other(led: Led) -> None:
    world = led.world
    with deployed(world, "held", 1):
        world.guard("held")
        world.runs(held=1)
        world.deploy("free", 1, cpu=CPU)
        world.runs(free=1)
        (pod,) = world.running("held")
        held, node = world.node_of("held")
        world.api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"unschedulable": True}})
        free, other = world.node_of("free")
        for each in (node, other):
            world.api.delete(f"{NODES}/{each['metadata']['name']}", missing_ok=True)
        if free != held:
            world.gone(free)
        world.runs(free=1)
        (still,) = world.running("held")
        assert still["metadata"]["uid"] == pod["metadata"]["uid"]
        world.remove_pods("free")
        budget = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/held"
        world.api.delete(budget)
        world.gone(held)


def test_one_poisoned_object_of_every_kind_concerns_nobody_but_itself(led: Led) -> None:
    world, made = led.world, []
    with deployed(world, "before", 1):
        world.runs(before=1)
        led.leader.set_poison("on")
        try:
            for body in objects(world.namespace):
                made.append(world.api.path_of(world.api.create(body)))
            _settings(world, **{STEP: "yes"})
            _settings(world, **{STEP: None, READER: "yes"})
            # Others' pods get their nodes, and nodes that are deleted end.
            world.deploy("web", 2, cpu=CPU)
            world.runs(before=1, web=2)
            (old, *_) = set(world.claims()) - {READER, STEP, WRITER}
            world.api.delete(f"{CLAIMS}/{old}")
            world.gone(old)
            world.runs(before=1, web=2)
            told = world.until(lambda: _quarantined(world), "what is wrong stands on the objects")
            assert {f"Pod/{READER}", f"NodeClaim/{STEP}", f"NodePool/{STEP}"} <= told
            # Whoever corrects a defect finds everything as it was left.
        finally:
            led.leader.set_poison("off")
            _settings(world, **{READER: None, "batchMaxDuration": "9s"})
            for path in reversed(made):
                world.api.delete(path, missing_ok=True)
        world.remove_pods("web")
        for path in made:
            world.until(lambda path=path: world.api.find(path) is None, f"{path} is gone")  # type: ignore[misc]
        world.until(
            lambda: "batchMaxDuration changed from 10.0 to 9.0" in led.leader.log.read_text(),
            "the settings are read again",
        )


def _settings(world: World, **data: str | None) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps/karpenter-global-settings"
    world.api.patch(path, {"data": data})


def _quarantined(world: World) -> set[str]:
    """Kind and name of the objects that are said to be set aside, once those of all parts are."""
    events = [*world.api.list("/api/v1/events", field_selector="reason=Quarantined")]
    found = {f"{each['involvedObject']['kind']}/{each['involvedObject']['name']}" for each in events}
    expected = {f"Pod/{READER}", f"NodeClaim/{STEP}", f"NodePool/{STEP}"}
    return found if expected <= found else set()


def test_a_webhook_that_is_down_stops_no_node(led: Led) -> None:
    world = led.world
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/chaos"
    kinds = {"apiGroups": ["karpenter.sh", "karpenter.k8s.aws"], "apiVersions": ["*"], "scope": "*"}
    world.api.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "chaos"},
            "webhooks": [
                {
                    "name": "down.chaos.example",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "clientConfig": {"url": "https://127.0.0.1:1/validate"},
                    "rules": [
                        {
                            **kinds,
                            "operations": ["CREATE", "UPDATE"],
                            "resources": [
                                "provisioners",
                                "nodepools",
                                "awsnodetemplates",
                                "ec2nodeclasses",
                            ],
                        }
                    ],
                }
            ],
        }
    )
    try:
        with deployed(world):
            pass
    finally:
        world.api.delete(path)
