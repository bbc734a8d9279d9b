"""Given a command, what is done in which order, and what does the next leader do after a crash?"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.disruption import advance, begin, validate
from nodeless.disruption.commands import timeout
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.model import events
from nodeless.model.instructions import (
    AnnotateClaim,
    CreateClaim,
    DeleteClaim,
    PublishEvent,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import CAPACITY_TYPE, DO_NOT_EVICT, ON_DEMAND, PAUSE
from nodeless.model.nodes import DISRUPTION_REASON, Condition
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint
from nodeless.state import apply
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
CLUSTER = cluster(POOL, node_of(POOL, "a", "2xlarge"), on("a", cpu="500m"))


def kinds(instructions):
    return [type(instruction) for instruction in instructions if type(instruction).__name__ != "PublishEvent"]


def of_kind(instructions, kind):
    return [instruction for instruction in instructions if isinstance(instruction, kind)]


def carried_out(snapshot, instructions):
    """The snapshot after the instructions, as the API server would have it."""
    for instruction in instructions:
        match instruction:
            case CreateClaim(_, claim):
                snapshot = apply(snapshot, events.ClaimSeen(replace(claim, uid=f"uid-{claim.name}")))
            case UpdateNode():
                node = snapshot.nodes[instruction.name]
                assert instruction.taints_before == node.taints
                node = replace(node, taints=instruction.taints)
                snapshot = apply(snapshot, events.NodeSeen(node))
            case UpdateClaimStatus(_, name, conditions):
                claim = snapshot.claims[name]
                others = tuple(c for c in claim.conditions if c.type not in {d.type for d in conditions})
                snapshot = apply(
                    snapshot, events.ClaimSeen(replace(claim, conditions=(*others, *conditions)))
                )
            case AnnotateClaim(_, name, annotations):
                claim = snapshot.claims[name]
                merged = {k: v for k, v in {**claim.annotations, **annotations}.items() if v is not None}
                snapshot = apply(snapshot, events.ClaimSeen(replace(claim, annotations=merged)))
            case DeleteClaim(_, name):
                claim = replace(snapshot.claims[name], deletion_timestamp=NOW)
                snapshot = apply(snapshot, events.ClaimSeen(claim))
    return snapshot


def begun(snapshot=CLUSTER):
    instructions = begin(only_command(decide(snapshot)), snapshot, dict(snapshot.pools), NOW)
    return instructions, carried_out(snapshot, instructions)


def replacement_of(snapshot):
    return next(claim for claim in snapshot.claims.values() if "nodeless.dev/replaces" in claim.annotations)


def ready(snapshot):
    """The replacement has become an initialized node."""
    made, node = node_of(POOL, replacement_of(snapshot).name, "small")
    made = replace(made, annotations=replacement_of(snapshot).annotations, created_at=NOW)
    return apply(apply(snapshot, events.ClaimSeen(made)), events.NodeSeen(node))


def test_the_replacement_is_written_before_anything_is_done_to_the_old_node():
    instructions, after = begun()
    assert kinds(instructions) == [CreateClaim, AnnotateClaim, UpdateNode, UpdateClaimStatus]
    assert replacement_of(after).annotations["nodeless.dev/replaces"] == "a"
    assert after.nodes["node-a"].taints == (DISRUPTED,)
    assert after.claims["a"].condition(DISRUPTION_REASON).reason == "Underutilized"


def test_the_replacement_says_whose_place_it_takes_and_why_it_is_what_it_is():
    (create, *_) = begin(
        only_command(decide(CLUSTER)),
        CLUSTER,
        dict(CLUSTER.pools),
        NOW,
        reason=lambda node: node.instance_type,
    )
    because = create.claim.annotations["nodeless.dev/planned-because"]
    assert because.startswith("in place of a: ")
    assert because.endswith("; small")


def test_without_replacement_the_claims_end_at_once():
    seen = cluster(POOL, node_of(POOL, "a"), node_of(POOL, "b"))
    instructions, _ = begun(seen)
    assert [each.name for each in of_kind(instructions, DeleteClaim)] == ["a", "b"]
    assert {each.reason for each in of_kind(instructions, DeleteClaim)} == {"empty"}


def test_the_old_claim_ends_only_once_the_replacement_is_initialized():
    _, after = begun()
    assert not of_kind(advance(after, NOW + 60), DeleteClaim)
    (deletion,) = of_kind(advance(ready(after), NOW + 60), DeleteClaim)
    assert (deletion.name, deletion.reason) == ("a", "underutilized")


def test_dn_19_a_replacement_that_vanishes_leaves_the_old_node_as_it_was():
    _, after = begun()
    lost = apply(after, events.ClaimGone(replacement_of(after).name))
    back = carried_out(lost, advance(lost, NOW + 60))
    assert back.nodes["node-a"].taints == ()
    assert not back.claims["a"].is_true(DISRUPTION_REASON)
    assert advance(back, NOW + 61) == ()


def failures(instructions):
    return [each.name for each in of_kind(instructions, PublishEvent) if each.reason == "DisruptionFailed"]


def test_dn_19_a_node_rests_even_when_its_replacement_is_gone_before_anybody_saw_it_leave():
    """A claim that was never launched ends in well under a second."""
    _, after = begun()
    lost = apply(after, events.ClaimGone(replacement_of(after).name))
    steps = advance(lost, NOW + 60)
    assert failures(steps) == ["node-a"]
    back = carried_out(lost, steps)
    assert decide(back, now=NOW + 120).verdicts["a"].code == "CoolingDown"
    assert decide(back, now=NOW + 400).commands


def test_dn_19_a_replacement_that_leaves_slowly_is_told_once():
    _, after = begun()
    failed = replace(replacement_of(after), deletion_timestamp=NOW)
    leaving = apply(after, events.ClaimSeen(failed))
    steps = advance(leaving, NOW + 60)
    assert failures(steps) == ["node-a"]
    gone = apply(carried_out(leaving, steps), events.ClaimGone(failed.name))
    assert advance(gone, NOW + 61) == ()


def test_dn_18_a_move_without_replacement_that_was_cut_short_makes_no_node_rest():
    """The leader was killed between marks and deletions: the next one may make the command at once."""
    seen = cluster(POOL, node_of(POOL, "a"), node_of(POOL, "b"))
    instructions, _ = begun(seen)
    marked = carried_out(
        seen, [instruction for instruction in instructions if not isinstance(instruction, DeleteClaim)]
    )
    steps = advance(marked, NOW + 1)
    assert not failures(steps)
    assert only_command(decide(carried_out(marked, steps), now=NOW + 2)).claims == ("a", "b")


@pytest.mark.parametrize("where", ["node", "pool"])
@pytest.mark.parametrize("is_ready", [False, True], ids=["before its replacement is ready", "once it is"])
def test_a_pause_stops_a_command_that_has_begun(where, is_ready):
    note = {PAUSE: "true"}
    _, after = begun()
    if is_ready:
        after = ready(after)
    if where == "pool":
        paused = apply(after, events.PoolSeen(replace(POOL, own_annotations=note)))
    else:
        paused = apply(after, events.NodeSeen(replace(after.nodes["node-a"], annotations=note)))
    steps = advance(paused, NOW + 60)
    assert not of_kind(steps, DeleteClaim)
    assert not failures(steps)
    back = carried_out(paused, steps)
    assert back.nodes["node-a"].taints == ()
    assert not back.claims["a"].is_true(DISRUPTION_REASON)
    assert not any("nodeless.dev/replaces" in claim.annotations for claim in back.claims.values())
    assert advance(back, NOW + 61) == ()
    on_again = apply(back, events.PoolSeen(POOL)) if where == "pool" else back
    verdict = decide(on_again, now=NOW + 62).verdicts.get("a")
    assert verdict is None or verdict.code != "CoolingDown"


def test_nobody_rests_when_the_replacement_has_taken_the_place_and_goes_later():
    _, after = begun()
    done = ready(after)
    ended = carried_out(done, advance(done, NOW + 60))
    later = apply(ended, events.ClaimGone(replacement_of(done).name))
    assert advance(later, NOW + 61) == ()


def test_co_26_a_replacement_that_cannot_be_launched_makes_the_node_usable_again_and_is_not_tried_at_once():
    _, after = begun()
    failed = replace(replacement_of(after), deletion_timestamp=NOW)
    given_up = apply(after, events.ClaimSeen(failed))
    back = carried_out(given_up, advance(given_up, NOW + 60))
    assert back.nodes["node-a"].taints == ()
    assert decide(back, now=NOW + 120).verdicts["a"].code == "CoolingDown"
    assert decide(apply(back, events.ClaimGone(failed.name)), now=NOW + 400).commands


def test_ex_05_a_replacement_that_is_never_ready_leaves_the_old_node_and_becomes_a_node_like_any_other():
    _, after = begun()
    assert not of_kind(advance(after, NOW + 599), AnnotateClaim)
    back = carried_out(after, advance(after, NOW + 601))
    assert back.nodes["node-a"].taints == ()
    assert not any("nodeless.dev/replaces" in claim.annotations for claim in back.claims.values())


def test_a_replacement_that_is_ready_takes_its_place_however_late_the_next_leader_sees_it():
    """It was said not to be ready, and another node was launched in the place of the old one."""
    _, after = begun()
    (deletion,) = of_kind(advance(ready(after), NOW + 900), DeleteClaim)
    assert deletion.name == "a"


def test_dn_18_a_mark_that_no_command_speaks_of_is_taken_off():
    """The leader was killed between the mark and the deletion."""
    marked = cluster(POOL, node_of(POOL, "a", node={"taints": (DISRUPTED,)}), on("a"))
    (update,) = of_kind(advance(marked, NOW), UpdateNode)
    assert update.taints == ()
    reported = Condition(DISRUPTION_REASON, "True", "Underutilized", "", NOW - 60)
    claim = marked.claims["a"]
    left = apply(marked, events.ClaimSeen(replace(claim, conditions=(*claim.conditions, reported))))
    after = carried_out(left, advance(left, NOW))
    assert after.nodes["node-a"].taints == ()
    assert not after.claims["a"].is_true(DISRUPTION_REASON)
    assert advance(after, NOW + 1) == ()


@settings(deadline=None)
@given(st.integers(0, 4))
def test_the_next_leader_goes_on_wherever_the_last_one_was_killed(count):
    instructions, _ = begun()
    after = carried_out(CLUSTER, instructions[:count])
    if not count:
        assert advance(after, NOW) == ()
        return
    marked = carried_out(after, advance(after, NOW + 1))
    assert marked.nodes["node-a"].taints == (DISRUPTED,)
    assert [each.name for each in of_kind(advance(ready(marked), NOW + 2), DeleteClaim)] == ["a"]


def test_two_looks_at_the_same_command_do_nothing_twice():
    _, after = begun()
    assert carried_out(after, advance(after, NOW + 1)) == after
    done = ready(after)
    ended = carried_out(done, advance(done, NOW + 2))
    assert not of_kind(advance(ended, NOW + 3), DeleteClaim)


@pytest.mark.parametrize(
    ("candidates", "seconds"),
    [
        pytest.param(4000, 600, id="DN-20-4000"),
        pytest.param(10_000, 800, id="DN-20-10000"),
        pytest.param(80_000, 3600, id="DN-20-80000"),
    ],
)
def test_the_time_for_a_command_grows_with_the_queue_within_bounds(candidates, seconds):
    assert timeout(candidates) == seconds


def validation_pass(command, snapshot, now=NOW + 15):
    catalog = dict.fromkeys(snapshot.pools, FAMILY)
    (validation,) = validate((command,), snapshot, catalog, DisruptionPolicy(), now)
    assert (validation.command is None) == (validation.dropped is not None)
    return validation.command


def test_a_move_that_is_still_right_after_the_wait_is_made():
    command = only_command(decide(CLUSTER))
    assert validation_pass(command, CLUSTER) == command


def test_co_16_of_empty_nodes_only_those_that_are_still_empty_go():
    seen = cluster(POOL, node_of(POOL, "a"), node_of(POOL, "b"))
    command = only_command(decide(seen))
    (pod,) = on("a")
    assert validation_pass(command, apply(seen, events.PodSeen(pod))).claims == ("b",)


def test_co_17_a_protected_pod_that_comes_during_the_wait_holds_the_node():
    (pod,) = on("a", app="late", annotations={DO_NOT_EVICT: "true"})
    assert validation_pass(only_command(decide(CLUSTER)), apply(CLUSTER, events.PodSeen(pod))) is None


def test_a_pod_too_large_for_the_replacement_that_comes_during_the_wait_stops_the_move():
    (pod,) = on("a", cpu="12", app="late")
    assert validation_pass(only_command(decide(CLUSTER)), apply(CLUSTER, events.PodSeen(pod))) is None


def test_a_node_on_which_pods_are_expected_by_now_stays():
    nominated = apply(CLUSTER, events.Nominated("a", NOW + 60))
    assert validation_pass(only_command(decide(CLUSTER)), nominated) is None
