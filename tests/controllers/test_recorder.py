"""Events as they stand in the cluster: form, how often, and what becomes of them at the end."""

import ast
import asyncio
import itertools
from pathlib import Path

import pytest

import nodeless
from nodeless.cloudprovider.aws.launch_failures import REASONS
from nodeless.disruption.events import reason_of
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent
from nodeless.model.pools import PROVISIONER, Reference
from nodeless.nodeclaim import registration
from nodeless.operator.event_reasons import EVENT_RULES, rule_of, undeclared_reason

pytestmark = pytest.mark.cluster


def an_event(reason="FailedScheduling", message="no room", name="web", **more):
    return PublishEvent("test", "Pod", name, rule_of(reason).type or "Normal", reason, message, **more)


def recorded(on_cluster, *published):
    """Publish, then end: what is queued is written by the flush alone."""

    async def scenario(client):
        recorder = Recorder(client, "test")
        answers = [recorder.publish(event) for event in published]
        await recorder.flush(10)
        return answers

    return on_cluster(scenario)


@pytest.mark.parametrize("rule", [r for r in EVENT_RULES if r.kinds == ("Pod",)], ids=lambda r: r.reason)
def test_an_event_stands_on_its_object_with_type_reason_and_component(on_cluster, api, namespace, rule):
    event = an_event(rule.reason, "because", namespace=namespace, uid="u-1")
    assert recorded(on_cluster, event) == [True]
    (found,) = api.events(namespace, "web")
    assert (found["type"], found["reason"], found["message"]) == (rule.type, rule.reason, "because")
    assert found["source"]["component"] == found["reportingComponent"] == "karpenter"
    assert found["involvedObject"]["uid"] == "u-1"
    assert found["involvedObject"]["namespace"] == namespace


def test_equal_events_are_written_once_and_others_are_not_held_back(on_cluster, api, namespace):
    one = an_event(namespace=namespace, uid="u-1")
    other = an_event(namespace=namespace, uid="u-1", message="still no room")
    assert recorded(on_cluster, one, one, other) == [True, False, True]
    assert len(api.events(namespace, "web")) == 2


def test_nominations_of_a_pod_are_one_event_whatever_the_node(on_cluster, namespace):
    events = [an_event("Nominated", f"on {n}", namespace=namespace, uid="u-1") for n in "ab"]
    assert recorded(on_cluster, *events) == [True, False]


def test_nominations_are_limited_together(on_cluster, namespace):
    events = [an_event("Nominated", "on a", f"web-{n}", namespace=namespace, uid=f"u-{n}") for n in range(40)]
    # Ten at once, and five for each second that passes meanwhile.
    assert recorded(on_cluster, *events)[:10] == [True] * 10
    assert not all(recorded(on_cluster, *events))


def test_an_end_without_an_answer_is_bounded(on_cluster, namespace):
    async def scenario(client):
        recorder = Recorder(client, "test")
        recorder.publish(an_event(namespace=namespace))

        async def silent(*_arguments, **_options):
            await asyncio.Event().wait()

        client.request = silent
        await recorder.flush(0.1)

    on_cluster(scenario)


def test_every_reason_that_the_code_spells_is_in_the_table():
    known = {rule.reason for rule in EVENT_RULES}
    spelled = set()
    for file in Path(nodeless.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            for type_, reason in itertools.pairwise(texts):
                if called in ("PublishEvent", "_tell") and type_ in ("Normal", "Warning"):
                    spelled.add(reason)
    assert spelled
    assert spelled <= known


def test_every_reason_that_is_made_of_parts_is_in_the_table():
    known = {rule.reason for rule in EVENT_RULES}
    stages = {
        each.args[-1].value
        for each in ast.walk(ast.parse(Path(registration.__file__).read_text()))
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "_give_up"
    }
    assert stages
    assert {f"{stage}Failed" for stage in stages} <= known
    assert len(REASONS) > 20
    assert known >= REASONS
    for pool in (PROVISIONER, "NodePool"):
        for what in ("Blocked", "Terminating", "Launching", "WaitingReadiness", "WaitingDeletion"):
            assert reason_of(Reference(pool, "default"), what) in known


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (("Pod", "Normal", "Invented"), "reason Invented is not in the table of events"),
        (("Pod", "Normal", "FailedScheduling"), "FailedScheduling is of type Warning, not Normal"),
        (("Node", "Normal", "Evicted"), "Evicted is for Pod, not for Node"),
        (("Pod", "Normal", "Evicted"), ""),
    ],
)
def test_an_event_that_contradicts_the_table_is_told(event, fault):
    kind, type_, reason = event
    assert undeclared_reason(PublishEvent("test", kind, "web", type_, reason, "why")) == fault
