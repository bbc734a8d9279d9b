"""Claims and instances that lost each other.

Two gaps, closed from both sides: an instance that no claim knows (the claim was removed
by force) is terminated; a claim whose instance vanished (terminated by hand, reclaimed)
is deleted, so that its pods get new capacity.

Lists of the cloud lag behind what was done in it, so that one list is no proof of anything that is missing
from it. A claim is asked about whose instance two lists in a row do not show, and what ends it is the
cloud's word on that one instance: that it has ended, or, of a registered claim and long after the launch,
that nobody knows it. A claim without node is left to its registration deadline otherwise.
"""

from collections.abc import Iterable, Mapping

from nodeless.model.instructions import DeleteClaim, DeleteNode, Instruction, PublishEvent, TerminateInstance
from nodeless.model.labels import LAUNCH_GROUP, NODE_CLAIM
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION, Instance, NodeClaim
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim.deadlines import DEADLINES

#: States of an instance that is not coming back, in the words of EC2.
_ENDED = frozenset({"shutting-down", "terminated"})


def end_unclaimed(
    snapshot: Snapshot, instances: Iterable[Instance], now: float, grace: float = DEADLINES.instance_grace
) -> tuple[Instruction, ...]:
    """What to end of this cluster's live instances: those that no claim knows, and their nodes.

    Instances younger than `grace` are spared.
    """
    instructions: list[Instruction] = []
    waiting = {claim.launch_group for claim in snapshot.claims.values() if not claim.provider_id} - {""}
    for instance in sorted(instances, key=lambda instance: instance.id):
        claimed = instance.provider_id in snapshot.claim_names or (
            instance.tags.get(NODE_CLAIM, "") in snapshot.claims
            and not snapshot.claims[instance.tags[NODE_CLAIM]].provider_id
        )
        # Launched for several claims at once: it is the next one's that has none.
        claimed = claimed or instance.tags.get(LAUNCH_GROUP) in waiting
        if claimed or now - instance.launched_at <= grace:
            continue
        cause = f"instance:{instance.id}"
        # Without the claim's name: it may be a second instance of a claim whose own one lives.
        instructions.append(TerminateInstance(cause, "", instance.id))
        node = snapshot.node_names.get(instance.provider_id)
        if node is not None:
            uid = snapshot.nodes[node].uid if node in snapshot.nodes else ""
            instructions.append(DeleteNode(cause, node, "its instance belongs to no claim", uid))
    return tuple(instructions)


def unlisted_claims(
    snapshot: Snapshot,
    instances: Iterable[Instance],
    listed_at: float,
    grace: float = DEADLINES.claim_grace,
) -> frozenset[str]:
    """Claims (by name) whose instance a complete list, begun at `listed_at`, does not show.

    Claims younger than `grace` are not looked for.
    """
    live = {instance.provider_id for instance in instances}
    return frozenset(
        name
        for name, claim in snapshot.claims.items()
        if claim.provider_id not in live
        and _may_be_judged(snapshot, claim)
        and listed_at - _launched_at(claim) > grace
    )


def end_vanished(snapshot: Snapshot, states: Mapping[str, str], now: float) -> tuple[Instruction, ...]:
    """Which of the claims that two lists in a row did not show are to end.

    Args:
        snapshot: The cluster.
        states: By name of the claim the state of its instance in the cloud's words; empty: not known there.
        now: The time.
    """
    instructions: list[Instruction] = []
    for name, state in sorted(states.items()):
        claim = snapshot.claims.get(name)
        if claim is None or not _may_be_judged(snapshot, claim) or not _is_over(claim, state, now):
            continue
        cause = f"claim:{name}"
        message = f"instance {claim.instance_id} does not exist any more"
        instructions.append(
            PublishEvent(cause, "NodeClaim", name, "Warning", "InstanceGone", message, uid=claim.uid)
        )
        instructions.append(DeleteClaim(cause, name, "garbage_collected"))
    return tuple(instructions)


def _may_be_judged(snapshot: Snapshot, claim: NodeClaim) -> bool:
    """A launched claim whose node, if it has one, does not prove by being Ready that its instance lives."""
    launched = claim.condition(LAUNCHED)
    if claim.deletion_timestamp is not None or claim.invalid or launched is None or launched.status != "True":
        return False
    node = snapshot.node_of(claim)
    return node is None or not node.ready


def _is_over(claim: NodeClaim, state: str, now: float) -> bool:
    if state in _ENDED:
        return True
    registered = claim.condition(REGISTERED_CONDITION)
    joined = registered is not None and registered.status == "True"
    return not state and joined and now - _launched_at(claim) > DEADLINES.unknown_grace


def _launched_at(claim: NodeClaim) -> float:
    launched = claim.condition(LAUNCHED)
    return launched.last_transition_time if launched is not None else claim.created_at
