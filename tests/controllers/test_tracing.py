"""Traces of pods' ways: what a real collector gets, what is bounded, and what a bad collector costs."""

import asyncio
import json
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from nodeless.controllers.tracing.pod_traces import (
    LONGEST,
    MOST_OF_A_WORKLOAD,
    MOST_PODS,
    MOST_STEPS,
    PodTraces,
)
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, ClaimSeen, NodeSeen, PodGone, PodSeen
from nodeless.model.nodes import INITIALIZED_CONDITION, LAUNCHED, REGISTERED_CONDITION
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.model.pods import Owner
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.tracing import start_tracing
from tests import factories
from tests.controllers.collector import Receiver
from tests.controllers.process import leads, lines, says
from tests.controllers.world import CLAIMS, Kubelets, a_pod, a_provisioner, a_template

#: The steps of a pod that gets a node of its own, in their order.
STEPS = ["pending", "batch", "solve", "claim", "launch", "register"]


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def variables(receiver, **more):
    """The environment of a process that sends its traces there, soon."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "50", **more}


@pytest.mark.cluster
def test_the_trace_of_a_pod_tells_its_way_to_a_node(replicas, receiver, api, network, namespace):
    more = {"OTEL_SERVICE_NAME": "autoscaler", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    process = replicas("first", **variables(receiver, **more))
    leads(api, namespace, "first")
    for document in (a_template(), a_provisioner(), a_pod("web", namespace)):
        api.create(document)
    kubelets = Kubelets(api, network)

    def traced():
        kubelets.turn()
        return receiver.traces()

    ((root, steps),) = api.wait(traced, timeout=60, what="a trace")
    steps |= receiver.steps_until(root, steps["claim"].started)
    (claim,), (instance,) = api.list(CLAIMS), network.instances().values()
    pod = api.get(f"/api/v1/namespaces/{namespace}/pods/web")
    assert root.resource["service.name"] == "autoscaler"
    assert root.resource["k8s.cluster.name"] == "demo"
    assert root.resource["service.instance.id"] == "first"
    assert [name for name in steps if name in STEPS] == STEPS
    assert set(steps) == {*STEPS, "bind", "run", "initialize"}
    assert root.attributes == {
        "k8s.namespace.name": namespace,
        "k8s.pod.name": "web",
        "k8s.pod.uid": pod["metadata"]["uid"],
        "k8s.node.name": pod["spec"]["nodeName"],
        "nodeless.outcome": "running",
        "nodeless.passes": root.attributes["nodeless.passes"],
        "nodeless.claim": claim["metadata"]["name"],
        "nodeless.pool": "Provisioner/default",
        "host.id": instance["InstanceId"],
        "host.type": instance["InstanceType"],
        "cloud.availability_zone": instance["Placement"]["AvailabilityZone"],
        "karpenter.sh/capacity-type": "on-demand",
        "nodeless.price": steps["solve"].attributes["nodeless.planned.price"],
    }
    assert root.attributes["nodeless.passes"] >= 1
    assert 0 < root.attributes["nodeless.price"] < 1
    ordered = [steps[name] for name in (*STEPS, "bind", "run")]
    for before, after in pairwise(ordered):
        assert before.started <= before.ended, before.name
        # A claim is launched once a watch shows it, which may be before its write is answered.
        end = before.started if before.name == "claim" else before.ended
        assert end <= after.started + 0.001, (before.name, after.name)
    assert steps["pending"].started == root.started
    assert steps["run"].ended == root.ended
    assert not [step.name for step in (root, *steps.values()) if step.error]
    process.terminate()
    assert process.wait(timeout=120) == 0


@pytest.mark.cluster
def test_a_collector_that_hangs_holds_up_neither_nodes_nor_the_end(
    replicas, receiver, api, network, namespace
):
    receiver.hang()
    process = replicas("first", **variables(receiver, OTEL_EXPORTER_OTLP_TIMEOUT="0.5"))
    leads(api, namespace, "first")
    for document in (a_template(), a_provisioner(), a_pod("web", namespace)):
        api.create(document)
    kubelets = Kubelets(api, network)

    def lost():
        kubelets.turn()
        return says(process, "traces are lost")

    api.wait(lost, timeout=60, what="the loss to be told")
    assert api.get(f"/api/v1/namespaces/{namespace}/pods/web")["status"]["phase"] == "Running"
    api.create(a_pod("api", namespace, cpu="10m"))
    process.terminate()
    assert process.wait(timeout=120) == 0
    told = [line for line in lines(process) if "traces" in line["message"]]
    assert [line["message"].partition(",")[0] for line in told if line["level"] == "ERROR"] == [
        "traces are lost"
    ]
    assert "Traceback" not in process.log.read_text()


def begun(receiver, monkeypatch, **more):
    """Tracing by the environment that a process would have."""
    environment = variables(receiver, **more)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return start_tracing(ConfigSources(environment), "demo", "first")


def one_trace(tracing, name="pod"):
    trace = tracing.begin(name, 100.0, {})
    trace.step("pending", 100.0, 101.0, {})
    trace.end(102.0, {})


async def eventually(condition, capsys, told):
    async with asyncio.timeout(200):
        while not condition():
            await asyncio.sleep(0.02)
            told.append(capsys.readouterr().out)


def test_a_collector_that_answers_errors_is_told_of_once_and_when_it_is_well(receiver, monkeypatch, capsys):
    told = []

    async def scenario():
        receiver.status = 400
        tracing = begun(receiver, monkeypatch)
        for count in (1, 2, 3):
            one_trace(tracing)
            await eventually(lambda count=count: receiver.asked >= count, capsys, told)
        receiver.status = 200
        one_trace(tracing, "last")
        await eventually(lambda: any(span.name == "last" for span in receiver.spans), capsys, told)
        await tracing.stop()

    asyncio.run(scenario())
    text = "".join((*told, capsys.readouterr().out))
    assert text.count("traces are lost") == 1
    assert f"{receiver.endpoint} does not take them" in text
    assert "400" in text
    assert text.count("traces are taken again") == 1


def test_a_collector_that_is_down_costs_one_line_and_the_end_is_bounded(monkeypatch, capsys):
    async def scenario():
        down = Receiver()
        down.close()
        tracing = begun(down, monkeypatch)
        for _ in range(5):
            one_trace(tracing)
        await tracing.stop(0.5)

    asyncio.run(scenario())
    text = capsys.readouterr().out
    assert text.count("could not be sent within") + text.count("traces are lost") >= 1
    assert text.count("traces are lost") <= 1
    assert "Traceback" not in text


def threads_of_traces():
    return [
        each
        for each in threading.enumerate()
        if each.name.startswith("OtelBatch") or each.name == "end of traces"
    ]


def test_nothing_is_sent_or_said_once_traces_were_given_up(monkeypatch, capsys):
    """A thread that went on would write into whatever the process prints afterwards."""
    before = set(threads_of_traces())

    async def scenario():
        down = Receiver()
        down.close()
        tracing = begun(down, monkeypatch)
        one_trace(tracing)
        await tracing.stop(0.2)

    asyncio.run(scenario())
    assert "could not be sent within" in capsys.readouterr().out
    for thread in set(threads_of_traces()) - before:
        thread.join(5)
        assert not thread.is_alive()
    assert capsys.readouterr().out == ""


def test_what_is_queued_is_sent_at_the_end(receiver, monkeypatch):
    async def scenario():
        tracing = begun(receiver, monkeypatch, OTEL_BSP_SCHEDULE_DELAY="60000")
        one_trace(tracing)
        await tracing.stop()

    asyncio.run(scenario())
    ((root, steps),) = receiver.traces()
    assert (root.started, root.ended) == (100.0, 102.0)
    assert (steps["pending"].started, steps["pending"].ended) == (100.0, 101.0)
    assert root.resource["service.name"] == "nodeless"


def test_the_queue_holds_all_spans_of_all_pods_that_are_followed_at_a_time(receiver, monkeypatch):
    async def scenario():
        receiver.hang()
        tracing = begun(receiver, monkeypatch)
        for _ in range(MOST_PODS):
            trace = tracing.begin("pod", 100.0, {})
            for _ in range(MOST_STEPS - 1):
                trace.step("solve", 100.0, 101.0, {"text": "x" * 10_000})
            trace.end(102.0, {})
        receiver.go_on()
        await tracing.stop(60)

    asyncio.run(scenario())
    assert len(receiver.spans) == MOST_PODS * MOST_STEPS
    assert max(len(str(span.attributes.get("text", ""))) for span in receiver.spans) == 512


def test_the_sampler_decides_which_pods_are_followed(receiver, monkeypatch):
    async def scenario():
        tracing = begun(
            receiver, monkeypatch, OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.0"
        )
        assert tracing.begin("pod", 100.0, {}) is None
        await tracing.stop()

    asyncio.run(scenario())
    assert receiver.spans == []


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=["nothing", "empty", "disabled", "no exporter"],
)
def test_traces_are_off_unless_a_collector_is_named(environment):
    assert start_tracing(ConfigSources(environment), "demo", "first") is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "grpc is not spoken; hint: set OTEL_EXPORTER_OTLP_PROTOCOL",
        ),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "no traces: max_queue_size must be a positive integer"),
    ],
)
def test_variables_that_cannot_be_used_keep_no_controller_from_running(
    monkeypatch, capsys, environment, said
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
    assert start_tracing(ConfigSources(environment), "demo", "first") is None
    assert said in capsys.readouterr().out


def test_without_the_extra_the_log_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    sources = ConfigSources({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert start_tracing(sources, "demo", "first") is None
    assert "pip install 'nodeless-provisioner[tracing]'" in capsys.readouterr().out


def test_a_process_that_traces_nothing_loads_nothing_of_it():
    code = (
        "import sys, json, nodeless.manager.manager\n"
        "from nodeless.operator.config_sources import NO_SOURCES\n"
        "assert nodeless.manager.manager.start_tracing(NO_SOURCES, 'demo', 'first') is None\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('opentelemetry')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


class Kept:
    """Traces that are kept instead of sent, by pod; `ended` are outcome and error."""

    def __init__(self):
        self.traces = {}

    def begin(self, _name, started, attributes):
        trace = KeptTrace(started, attributes)
        self.traces[attributes["k8s.pod.name"]] = trace
        return trace


class KeptTrace:
    def __init__(self, started, attributes):
        self.started, self.attributes, self.steps, self.ended = started, dict(attributes), [], None

    def step(self, name, started, ended, attributes, error=""):
        assert self.ended is None
        self.steps.append((name, started, ended, dict(attributes), error))

    def end(self, at, attributes, error=""):
        assert self.ended is None
        self.attributes |= attributes
        self.ended = (at, attributes["nodeless.outcome"], error)

    @property
    def names(self):
        return [step[0] for step in self.steps]


class Following:
    """`PodTraces` on a cluster of its own, with a clock that the test sets."""

    def __init__(self):
        self.kept, self.cluster, self.now = Kept(), Cluster(), 1000.0
        self.traces = PodTraces(self.kept, lambda: self.now)
        self.cluster.listen(self.traces.on_event)

    def see(self, *events, at=None):
        self.now = self.now if at is None else at
        for event in events:
            self.cluster.handle(event)

    def pending(self, name, **more):
        self.see(PodSeen(factories.a_pending_pod(name, **more)))

    def trace(self, name):
        return self.kept.traces[name]


def refusing(*names, message="no type is large enough"):
    return Plan(
        refusals=tuple(
            Refusal(f"default/{name}", RefusalCode.NO_POOL_FITS, message=message) for name in names
        )
    )


def of_workload(name):
    return (Owner("apps/v1", "ReplicaSet", name, controller=True),)


def test_a_surge_is_followed_in_part_and_every_workload_is_seen():
    following = Following()
    for number in range(10_000):
        following.pending(f"web-{number}", owners=of_workload("web"))
    following.pending("lonely", owners=of_workload("lonely"))
    assert len(following.kept.traces) == MOST_OF_A_WORKLOAD + 1
    for number in range(1000):
        following.pending(f"job-{number}", owners=of_workload(f"job-{number}"))
    assert len(following.kept.traces) == MOST_PODS


def test_pods_that_run_make_way_for_others_and_nothing_of_them_is_kept():
    following = Following()
    for number in range(3 * MOST_PODS):
        pod = factories.a_pending_pod(f"web-{number}", owners=of_workload("web"))
        following.see(
            PodSeen(pod), PodSeen(replace(pod, node_name="n", phase="Running", unschedulable=False))
        )
        following.see(PodGone(pod.key))
    assert len(following.kept.traces) == 3 * MOST_PODS
    left = [
        getattr(following.traces, name)
        for name in ("_pods", "_pending", "_left_out", "_claims", "_workloads")
    ]
    assert not any(left)


def test_a_pod_that_the_scheduler_binds_at_once_has_no_trace():
    following = Following()
    following.see(PodSeen(factories.a_pod()), PodSeen(factories.a_pod(node_name="n", phase="Running")))
    assert following.kept.traces == {}


def test_a_pod_without_capacity_says_why_once_and_is_given_up():
    following = Following()
    following.pending("web")
    for number in range(20):
        following.traces.note_plan(refusing("web"), 1001.0 + 10 * number, 1001.5 + 10 * number)
    following.see(PodSeen(factories.a_pending_pod("other")), at=1000.0 + LONGEST)
    trace = following.trace("web")
    assert trace.names == ["pending", "batch", "solve"]
    assert trace.ended == (1000.0 + LONGEST, "waiting", "no type is large enough")
    assert trace.attributes["nodeless.passes"] == 20
    assert trace.steps[2][3] == {"nodeless.decision": "no capacity", "nodeless.refusal": "NoPoolFits"}


def test_a_pod_that_is_deleted_while_it_waits_ends_as_deleted():
    following = Following()
    following.pending("web")
    following.see(PodGone("default/web"), at=1005.0)
    assert following.trace("web").ended == (1005.0, "deleted", "deleted before it ran")


def test_another_pod_of_the_same_name_has_a_trace_of_its_own():
    following = Following()
    following.pending("web")
    first = following.trace("web")
    following.see(PodSeen(replace(factories.a_pending_pod("web"), uid="another")))
    assert first.ended[1] == "deleted"
    assert following.trace("web") is not first


def test_a_failed_launch_is_a_step_and_the_next_pass_goes_on():
    following = Following()
    following.pending("web")
    claim = factories.a_claim("default-1")
    following.see(ClaimSeen(claim))
    following.traces.note_plan(Plan(placements={"default/web": "default-1"}), 1001.0, 1002.0)
    following.traces.note_launch(claim, 1003.0, 1004.0, None, "InsufficientInstanceCapacity")
    following.see(ClaimGone("default-1"), at=1005.0)
    following.traces.note_plan(refusing("web"), 1006.0, 1007.0)
    following.see(PodGone("default/web"))
    steps = following.trace("web").steps
    assert [(name, error) for name, _, _, _, error in steps] == [
        ("pending", ""),
        ("batch", ""),
        ("solve", ""),
        ("launch", "InsufficientInstanceCapacity"),
        ("solve", "no type is large enough"),
    ]


def test_a_node_that_never_registers_is_an_error_of_that_step():
    following = Following()
    following.pending("web")
    claim = factories.a_claim("default-1")
    following.see(ClaimSeen(claim))
    following.traces.note_plan(Plan(placements={"default/web": "default-1"}), 1001.0, 1002.0)
    following.traces.note_launch(claim, 1003.0, 1004.0, factories.an_instance("default-1"))
    following.see(ClaimGone("default-1"), at=1904.0)
    following.see(PodGone("default/web"))
    (step,) = [step for step in following.trace("web").steps if step[0] == "register"]
    assert step[1:3] == (1004.0, 1904.0)
    assert step[4] == "the claim was deleted before its node registered"


def test_a_pod_that_lands_on_another_node_than_planned_tells_of_that_node():
    following = Following()
    following.pending("web")
    made = {name: factories.a_launched_claim(name) for name in ("planned", "other")}
    following.see(*(ClaimSeen(claim) for claim in made.values()))
    following.traces.note_plan(Plan(placements={"default/web": "planned"}), 1001.0, 1002.0)
    for claim in made.values():
        following.traces.note_launch(claim, 1003.0, 1004.0, factories.an_instance(claim.name))
    ready = factories.conditions(LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
    other = replace(made["other"], conditions=ready, resource_version="2")
    node = factories.a_node("other")
    following.see(ClaimSeen(other), NodeSeen(node), at=1010.0)
    pod = factories.a_pod("web", node_name=node.name, phase="Running")
    following.see(PodSeen(pod), at=1012.0)
    trace = following.trace("web")
    assert trace.ended == (1012.0, "running", "")
    assert trace.attributes["nodeless.claim"] == "other"
    assert trace.attributes["k8s.node.name"] == node.name


def test_a_trace_has_no_more_steps_than_it_may():
    following = Following()
    following.pending("web")
    for number in range(100):
        following.traces.note_plan(Plan(placements={"default/web": f"claim-{number}"}), 1001.0, 1002.0)
    following.see(PodGone("default/web"))
    trace = following.trace("web")
    assert len(trace.steps) == MOST_STEPS
    assert trace.attributes["nodeless.steps_left_out"] == 102 - MOST_STEPS


def test_what_waits_when_the_process_ends_is_told():
    following = Following()
    following.pending("web")
    following.traces.end_all()
    assert following.trace("web").ended == (1000.0, "stopped", "")


def test_a_trace_that_fails_ends_neither_a_pass_nor_a_launch(capsys):
    class Broken:
        def begin(self, *_arguments):
            raise ValueError("broken")

    traces, cluster = PodTraces(Broken(), lambda: 1000.0), Cluster()
    cluster.listen(traces.on_event)
    cluster.handle(PodSeen(factories.a_pending_pod("web")))
    assert "a trace is incomplete: broken" in capsys.readouterr().out
