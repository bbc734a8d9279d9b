"""What one step of a claim's lifecycle sees, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeless.model.instructions import Instruction
from nodeless.model.nodes import Condition, Node, NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.nodeclaim.deadlines import DEADLINES, Deadlines


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim and everything that its next step depends on."""

    claim: NodeClaim
    node: Node | None = None
    pods: tuple[Pod, ...] = ()
    """The pods bound to the node and to its twins."""
    pool: Pool | None = None
    nominated_until: float = 0.0
    """Pods are expected on the node until then."""
    buffered: bool = False
    """It keeps room for capacity buffers."""
    attachments: tuple[str, ...] = ()
    """Volumes attached to the node, without those of pods that stay until the end."""
    instance_gone: bool = False
    """The cloud has confirmed that no instance of this claim lives."""
    surge_pending: frozenset[str] = frozenset()
    """Keys of pods that get a successor before they leave (`surging`)."""
    surge_started: frozenset[str] = frozenset()
    """Keys of pods whose successor has been made, though it may not be ready yet."""
    unmarked: frozenset[str] = frozenset()
    """Keys of pods on which it cannot be noted that they were told to save their work (`checkpoints`)."""
    first_bulk: float = 0.0
    """Size of the largest pod that has to leave any draining node before smaller ones."""
    expects_pods: bool = False
    """Pods that wait are to be nominated to the node."""
    awaits_nominations: bool = False
    """Not all of them are yet."""
    device_classes: Mapping[str, str] = field(default_factory=dict)
    """By requested resource that the node does not announce, the DeviceClass whose devices would serve it."""
    served_by_devices: frozenset[str] = frozenset()
    """Those of these resources for which the node has published devices."""
    duplicates: tuple[Node, ...] = ()
    """Other Nodes of the same instance (it joined again under another name)."""
    missed_since: float | None = None
    """When the Node of a registered claim was first found missing; None: it is there, or nobody knows."""
    deadlines: Deadlines = DEADLINES


@dataclass(frozen=True, slots=True)
class Step:
    """Instructions in the order in which they must be carried out, and when to look again at the latest."""

    instructions: tuple[Instruction, ...] = ()
    again_at: float | None = None


def cause_of(claim: NodeClaim) -> str:
    """The cause that every instruction for a claim carries."""
    return f"claim:{claim.name}"


def changed_condition(
    claim: NodeClaim, type_: str, status: str, now: float, *, reason: str = "", message: str = ""
) -> tuple[Condition, ...]:
    """The condition to write, or nothing when it stands already."""
    reason = reason or type_
    present = claim.condition(type_)
    if present is not None and (present.status, present.reason, present.message) == (status, reason, message):
        return ()
    since = present.last_transition_time if present is not None and present.status == status else now
    return (Condition(type_, status, reason, message, since),)
