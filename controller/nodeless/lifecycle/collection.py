"""Claims and instances that lost each other.

Two gaps, closed from both sides: an instance that no claim knows (the claim was removed
by force) is terminated; a claim whose instance vanished (terminated by hand, reclaimed)
is deleted, so that its pods get new capacity.
"""

from collections.abc import Iterable

from nodeless.model.instructions import DeleteClaim, DeleteNode, Instruction, PublishEvent, TerminateInstance
from nodeless.model.labels import LAUNCH_GROUP, NODE_CLAIM
from nodeless.model.nodes import LAUNCHED, Instance
from nodeless.model.snapshot import Snapshot

#: Younger instances may have a claim that we do not see yet (Karpenter's AWS collector).
INSTANCE_GRACE = 30.0
#: Younger claims may have an instance that the listing does not show yet (Karpenter's core collector).
CLAIM_GRACE = 10.0


def collect(
    snapshot: Snapshot, instances: Iterable[Instance], listed_at: float, now: float
) -> tuple[Instruction, ...]:
    """What to end, given a complete listing of this cluster's live instances that began at `listed_at`."""
    listing = tuple(instances)
    return (
        *_unclaimed_instances(snapshot, listing, now),
        *_claims_without_instance(snapshot, listing, listed_at),
    )


def _unclaimed_instances(
    snapshot: Snapshot, instances: tuple[Instance, ...], now: float
) -> tuple[Instruction, ...]:
    instructions: list[Instruction] = []
    waiting = {claim.launch_group for claim in snapshot.claims.values() if not claim.provider_id} - {""}
    for instance in sorted(instances, key=lambda instance: instance.id):
        claimed = instance.provider_id in snapshot.claim_names or (
            instance.tags.get(NODE_CLAIM, "") in snapshot.claims
            and not snapshot.claims[instance.tags[NODE_CLAIM]].provider_id
        )
        # Launched for several claims at once: it is the next one's that has none.
        claimed = claimed or instance.tags.get(LAUNCH_GROUP) in waiting
        if claimed or now - instance.launched_at <= INSTANCE_GRACE:
            continue
        cause = f"instance:{instance.id}"
        # Without the claim's name: it may be a second instance of a claim whose own one lives.
        instructions.append(TerminateInstance(cause, "", instance.id))
        node = snapshot.node_names.get(instance.provider_id)
        if node is not None:
            instructions.append(DeleteNode(cause, node, "its instance belongs to no claim"))
    return tuple(instructions)


def _claims_without_instance(
    snapshot: Snapshot, instances: tuple[Instance, ...], listed_at: float
) -> tuple[Instruction, ...]:
    live = {instance.provider_id for instance in instances}
    instructions: list[Instruction] = []
    for name, claim in sorted(snapshot.claims.items()):
        launched = claim.condition(LAUNCHED)
        if (
            claim.deletion_timestamp is not None
            or claim.invalid
            or launched is None
            or launched.status != "True"
            or claim.provider_id in live
            or listed_at - launched.last_transition_time <= CLAIM_GRACE
        ):
            continue
        node = snapshot.node_of(claim)
        if node is not None and node.ready:
            # A Ready node proves that its instance lives, whatever one listing says.
            continue
        cause = f"claim:{name}"
        message = f"instance {claim.instance_id} does not exist any more"
        instructions.append(
            PublishEvent(cause, "NodeClaim", name, "Warning", "InstanceGone", message, uid=claim.uid)
        )
        instructions.append(DeleteClaim(cause, name, "garbage_collected"))
    return tuple(instructions)
