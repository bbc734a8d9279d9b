"""What the operator may choose about disruption."""

from dataclasses import dataclass, field

from nodeless.disruption.repair_policy import RepairPolicy, usual_policies
from nodeless.model.disruption import DisruptionReason
from nodeless.scheduling import Policy


@dataclass(frozen=True, slots=True)
class DisruptionPolicy:
    """How voluntary commands are judged."""

    solving: Policy = field(default_factory=lambda: Policy(time_box=0.0))
    """How the pods of nodes that end are placed."""
    spot_to_spot: bool = False
    """Whether a spot node may be replaced by a cheaper spot node (gate SpotToSpotConsolidation)."""
    terminate_first: frozenset[DisruptionReason] = frozenset()
    """For which reasons a node may end before its replacement where only its reserved slot can hold that
    (gates TerminateFirstDrift and TerminateFirstRepair)."""
    drift_of_provisioners: bool = False
    """Whether drifted nodes of a Provisioner are replaced (gate driftEnabled of v0.27, off by default)."""
    least_saving: float = 0.03
    """Part of the price that a replacement must save; below it, moving pods is not worth it."""
    as_bound: bool = True
    """Whether a command must leave room for its pods wherever kube-scheduler's scores put them."""
    eviction_price: float = 0.0
    """US dollars that an ordinary eviction counts as, against what a command saves in an hour."""
    overlap: float = 90.0
    """Seconds for which a node runs beside its replacement, which must repay that (`balance`)."""
    node_repair: bool = False
    """Whether nodes that stay broken are rebooted or replaced (gate NodeRepair)."""
    repair_policies: tuple[RepairPolicy, ...] = ()
    """What is broken, for how long that is tolerated, and what mends it; none: as Karpenter has it."""
    legacy_repair: bool = False
    """Whether broken nodes are ended without a replacement or a drain (Karpenter's LEGACY_NODE_REPAIR)."""
    most_nodes: int = 100
    """Nodes that end in one command at most (Karpenter's limit)."""

    @property
    def repairs_by(self) -> tuple[RepairPolicy, ...]:
        """The policies in force; the legacy rules know no reasons, and so no reboots."""
        policies = self.repair_policies or usual_policies(legacy=self.legacy_repair)
        return tuple(policy for policy in policies if not (self.legacy_repair and policy.reason))
