"""Given the instructions of a command, which of them may be carried out at the same time?"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.disruption import batch_instructions, begin
from nodeless.model.disruption import Command, DisruptionReason
from nodeless.model.instructions import (
    AnnotateClaim,
    CreateClaim,
    DeleteClaim,
    PublishEvent,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND
from nodeless.model.requirements import Requirements
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
NAMES = ("a", "b", "c")
CLUSTER = cluster(POOL, *(node_of(POOL, name, "small") for name in NAMES))
KINDS = (AnnotateClaim, CreateClaim, DeleteClaim)


def parts(instructions):
    return [[list(map(type, each)) for each in part] for part in batch_instructions(instructions, CLUSTER)]


def test_nodes_of_a_move_are_marked_at_the_same_time_and_all_marks_stand_before_the_first_node_ends():
    command = Command(DisruptionReason.EMPTY, NAMES, (), 3.0, 0.0, 0, "three empty nodes")
    instructions = begin(command, CLUSTER, dict(CLUSTER.pools), NOW)
    assert parts(instructions) == [
        [[UpdateNode, PublishEvent, UpdateClaimStatus]] * 3,
        [[DeleteClaim]] * 3,
    ]


def test_replacements_are_written_at_the_same_time_and_stand_before_the_first_mark():
    wasteful = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))
    planned = only_command(decide(wasteful)).replacements
    command = Command(DisruptionReason.UNDERUTILIZED, NAMES, planned * 2, 3.0, 2.0, 0, "", drain_grace=30)
    instructions = begin(command, CLUSTER, dict(CLUSTER.pools), NOW)
    found = [{kind for each in part for kind in each} for part in parts(instructions)]
    marks = {UpdateNode, PublishEvent, UpdateClaimStatus}
    assert found == [{AnnotateClaim}, {CreateClaim}, {AnnotateClaim}, marks]


def test_an_event_waits_for_nobody_and_keeps_nobody_waiting():
    reported = PublishEvent("", "Node", "a", "Normal", "Terminating", "")
    ends = [
        each for name in NAMES for each in (replace(reported, name=name), DeleteClaim("", name, "drifted"))
    ]
    assert parts(ends) == [[[PublishEvent, DeleteClaim]] * 3]


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from((*KINDS, UpdateNode, UpdateClaimStatus))),
        max_size=12,
    )
)
def test_nothing_is_lost_and_what_is_about_one_claim_keeps_its_order(drawn):
    claims = CLUSTER.claims
    made = {
        AnnotateClaim: lambda name: AnnotateClaim("", name, {}),
        CreateClaim: lambda name: CreateClaim("", claims[name]),
        DeleteClaim: lambda name: DeleteClaim("", name, ""),
        UpdateNode: lambda name: UpdateNode("", claims[name].node_name),
        UpdateClaimStatus: lambda name: UpdateClaimStatus("", name),
    }
    instructions = [made[kind](name) for name, kind in drawn]
    found = list(batch_instructions(instructions, CLUSTER))
    flat = [each for part in found for sequence in part for each in sequence]
    for name in NAMES:
        mine = [
            instruction for instruction, (whose, _) in zip(instructions, drawn, strict=True) if whose == name
        ]
        assert [each for each in flat if any(each is one for one in mine)] == mine
    assert sorted(map(id, flat)) == sorted(map(id, instructions))
    for part in found:
        assert len({type(each) if isinstance(each, KINDS) else None for seq in part for each in seq}) == 1
