"""Whether the nodes that a pool launches join the cluster: what became of its last four launches.

    False     two of them failed: no instance, or no node, in time
    True      otherwise
    Unknown   nothing has been launched since the pool or its node class changed

Condition `NodeRegistrationHealthy` of a NodePool says so (Karpenter v1). It holds nothing back: an operator,
or whoever rolls out a node class, sees that machines start and do not join. A new leader knows of earlier
launches what the condition says.
"""

from dataclasses import dataclass, replace

from nodeless.model.conditions import Condition
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION, NodeClaim
from nodeless.model.pools import NodeClass, Pool
from nodeless.nodeclaim.deadlines import DEADLINES, Deadlines

NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy"
#: So many launches are looked at.
LAUNCHES = 4
#: So many failures among them are too many.
TOO_MANY = 2


def launch_outcome(
    before: NodeClaim | None, after: NodeClaim, deadlines: Deadlines = DEADLINES
) -> bool | None:
    """What a claim's change says of its launch: it joined, it was given up, or nothing (None).

    Args:
        before: The claim as it was known; None: it was not, and its launch may be long over.
        after: The claim as it is now.
        deadlines: Who deletes it earlier gives up no launch.
    """
    if before is None or before.uid != after.uid or before.is_true(REGISTERED_CONDITION):
        return None
    if after.is_true(REGISTERED_CONDITION):
        return True
    if before.deletion_timestamp is not None or after.deletion_timestamp is None:
        return None
    launched = after.condition(LAUNCHED)
    if launched is not None and launched.status == "True":
        deadline = launched.last_transition_time + deadlines.registration
    else:
        deadline = after.created_at + deadlines.launch
    # Whoever deletes a claim in time gives up no launch: there was no capacity, or it is not wanted any more.
    return False if after.deletion_timestamp >= int(deadline) else None


@dataclass(frozen=True, slots=True)
class RegistrationHealth:
    """The last launches of a pool, as a generation of it and of its node class made them."""

    generation: int
    class_generation: int
    joined: tuple[bool, ...] = ()
    """For each launch whether its node joined, the oldest first."""

    @classmethod
    def of(cls, pool: Pool, node_class: NodeClass | None) -> "RegistrationHealth":
        """What the pool's condition says of launches that nobody remembers."""
        class_generation = node_class.generation if node_class is not None else 0
        known = next(
            (condition for condition in pool.conditions if condition.type == NODE_REGISTRATION_HEALTHY), None
        )
        same = known is not None and known.observed_generation == pool.generation
        if known is None or not same or class_generation != pool.status_node_class_generation:
            return cls(pool.generation, class_generation)
        joined = {"True": (True,), "False": (False,) * TOO_MANY}.get(known.status, ())
        return cls(pool.generation, class_generation, joined)

    def after(self, joined: bool) -> "RegistrationHealth":
        """With one more launch."""
        return replace(self, joined=(*self.joined, joined)[-LAUNCHES:])

    def condition(self, pool: Pool, now: float) -> Condition:
        """As it stands on the pool; the time since when it holds is kept."""
        failed = self.joined.count(False)
        if not self.joined:
            status, reason, message = (
                "Unknown",
                "NothingLaunched",
                "no node was launched since the last change",
            )
        elif failed >= TOO_MANY:
            status, reason = "False", "RegistrationFailed"
            message = (
                f"of the last {len(self.joined)} launches {failed} ended without a node that joined in time"
                "; hint: look at the events of its claims, at console outputs and security groups"
            )
        else:
            status, reason, message = "True", NODE_REGISTRATION_HEALTHY, ""
        former = next(
            (condition for condition in pool.conditions if condition.type == NODE_REGISTRATION_HEALTHY), None
        )
        since = former.last_transition_time if former and former.status == status else now
        return Condition(NODE_REGISTRATION_HEALTHY, status, reason, message, since, pool.generation)
