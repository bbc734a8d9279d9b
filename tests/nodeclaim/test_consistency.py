"""Given a node that is not what was bought, who is told what?"""

from dataclasses import replace

import pytest

from nodeless.model.instructions import ReportFailedCheck, UpdateClaimStatus
from nodeless.model.labels import REGISTERED
from nodeless.model.nodes import CONSISTENT_STATE_FOUND, LAUNCHED, REGISTERED_CONDITION
from nodeless.model.taints import Taint
from nodeless.nodeclaim import ClaimView, step
from tests.factories import GIB, NOW, a_launched_claim, a_node, an_initialized_claim, conditions

HOUR = 3600.0
CILIUM = Taint("cilium", "NoExecute")
MEMORY = {"cpu": 2000, "memory": 8 * GIB, "pods": 29}


def failures(claim, node, now, check="FailedInit"):
    instructions = step(ClaimView(claim, node), now).instructions
    reports = [instruction for instruction in instructions if isinstance(instruction, ReportFailedCheck)]
    assert {(report.check, report.node) for report in reports} <= {(check, node.name)}
    return [report.message for report in reports]


def waiting(node, **claim):
    made = a_launched_claim(conditions=conditions(LAUNCHED, REGISTERED_CONDITION), **claim)
    return made, replace(node, labels={REGISTERED: "true"})


@pytest.mark.parametrize(
    ("claim", "node", "named"),
    [
        ({"startup_taints": (CILIUM,)}, {"taints": (CILIUM,)}, "startup taint cilium"),
        ({"requests": {"nvidia.com/gpu": 1}, "allocatable": {"nvidia.com/gpu": 1}}, {}, "nvidia.com/gpu"),
        ({}, {"ready": False}, "not Ready"),
    ],
)
def test_mc_17_a_node_that_is_not_initialized_after_an_hour_is_told_with_what_it_lacks(claim, node, named):
    pair = waiting(a_node(**node), **claim)
    assert failures(*pair, NOW + HOUR) == []
    (message,) = failures(*pair, NOW + HOUR + 1)
    assert named in message


def test_what_a_driver_publishes_the_devices_of_is_not_lacking():
    gpu = {"nvidia.com/gpu": 1}
    for claim, node in (
        (an_initialized_claim(requests=gpu, capacity=gpu), a_node(capacity={})),
        waiting(a_node(), requests=gpu, allocatable=gpu),
    ):
        view = ClaimView(claim, node, served_by_devices=frozenset(gpu))
        said = step(view, NOW + HOUR + 1).instructions
        assert not any("nvidia" in each.message for each in said if isinstance(each, ReportFailedCheck))


def test_mc_17_it_is_looked_at_when_the_hour_is_over():
    claim, node = waiting(a_node(taints=(CILIUM,)), startup_taints=(CILIUM,))
    outcome = step(ClaimView(claim, node), NOW + HOUR - 5)
    assert outcome.again_at <= NOW + HOUR + 1


def test_mc_18_a_node_with_three_fifths_of_the_memory_that_its_type_has_is_told():
    claim = an_initialized_claim(capacity=MEMORY)
    short = a_node(capacity={**MEMORY, "memory": 8 * GIB * 6 // 10})
    (message,) = failures(claim, short, NOW, "NodeShape")
    assert "memory" in message
    assert "60%" in message
    assert failures(claim, a_node(capacity={**MEMORY, "memory": 8 * GIB * 95 // 100}), NOW) == []


def test_mc_18_it_stands_on_the_claim_until_it_is_over():
    claim = an_initialized_claim(capacity=MEMORY)
    short = a_node(capacity={**MEMORY, "memory": 4 * GIB})

    def consistent(claim, node):
        return [
            (condition.status, condition.message)
            for instruction in step(ClaimView(claim, node), NOW).instructions
            if isinstance(instruction, UpdateClaimStatus)
            for condition in instruction.conditions
            if condition.type == CONSISTENT_STATE_FOUND
        ]

    ((status, message),) = consistent(claim, short)
    assert status == "False"
    kept = tuple(condition for condition in claim.conditions if condition.type != CONSISTENT_STATE_FOUND)
    (failed,) = conditions(CONSISTENT_STATE_FOUND)
    messages = replace(
        claim,
        conditions=(*kept, replace(failed, status="False", reason="FailedConsistencyCheck", message=message)),
    )
    assert consistent(messages, short) == []
    assert [status for status, _ in consistent(messages, a_node(capacity=MEMORY))] == ["True"]


@pytest.mark.parametrize("device", ["vpc.amazonaws.com/efa", "nvidia.com/gpu", "aws.amazon.com/neuron"])
@pytest.mark.parametrize(
    ("asked", "reported", "messages"),
    [(0, 0, False), (1, 0, True), (0, 1, True), (1, 8, False), (0, 8, False)],
)
def test_a_device_that_nobody_asked_for_may_be_missing_but_not_in_part(device, asked, reported, messages):
    claim = an_initialized_claim(capacity={**MEMORY, device: 8}, requests={device: asked} if asked else {})
    node = a_node(capacity={**MEMORY, **({device: reported} if reported else {})})
    assert [device in message for message in failures(claim, node, NOW, "NodeShape")] == [True] * messages
