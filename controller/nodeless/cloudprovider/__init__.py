"""The one door to a cloud: a small Protocol, and the errors that come through it.

The rest of the controller knows this page only. `cloud.aws` implements it with boto3;
the pure packages `launch` and `model` hold everything that needs no network.

Errors::

    CloudError
    ├── CloudUnavailable       the cloud cannot be reached, or answers with a failure of its own
    ├── CredentialsRefused     it was reached, and refuses who we are or what we may do
    ├── NodeClassUnresolved    a node class selects nothing: no subnet, security group, image or profile
    ├── InsufficientCapacity   every offering that was asked for is sold out: plan again without them
    └── LaunchFailed           the request itself is refused; `reason` says why, waiting alone does not help
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Commands of files import this package for what is known of types, and none of the provider's terms.
    from collections.abc import Container, Sequence

    from nodeless.launch.resolved import ResolvedNodeClass
    from nodeless.launch.unavailable import OfferingKey
    from nodeless.model.instance_types import InstanceType
    from nodeless.model.interruptions import Interruption
    from nodeless.model.memory_observations import MemoryObservations
    from nodeless.model.nodes import Instance, NodeClaim
    from nodeless.model.overlays import NodeOverlay
    from nodeless.model.pools import NodeClass, Pool, Reference

#: What a `NodeClassUnresolved` is about where AWS forbids what a launch needs: no field of the class.
VALIDATION = "validation"
#: Reasons of a launch that did not happen: nothing more is known, or AWS refuses who we are.
LAUNCH_FAILED, UNAUTHORIZED = "LaunchFailed", "Unauthorized"
_SOLD_OUT = "InsufficientCapacity"

__all__ = [
    "LAUNCH_FAILED",
    "UNAUTHORIZED",
    "VALIDATION",
    "CloudError",
    "CloudProvider",
    "CloudUnavailable",
    "CredentialsRefused",
    "InsufficientCapacity",
    "LaunchFailed",
    "NodeClassUnresolved",
]


class CloudError(Exception):
    """Something went wrong between us and the cloud. Its text is one line and ends with what to do.

    The same fault has the same text each time, since statuses and events are compared by it. What differs
    from call to call (an id of a request, an encoded message) is `evidence`: for the log.

    `reason` is a CamelCase word fit for the condition of what could not be done.
    """

    def __init__(self, message: str, hint: str = "", reason: str = LAUNCH_FAILED, evidence: str = "") -> None:
        super().__init__(f"{message}; hint: {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.reason = reason
        self.evidence = evidence


class CloudUnavailable(CloudError):
    """The cloud cannot be reached or fails on its side; trying again later is right."""

    def __init__(
        self, service: str, message: str, hint: str = "", reason: str = LAUNCH_FAILED, evidence: str = ""
    ) -> None:
        super().__init__(message, hint, reason, evidence)
        self.service = service


class CredentialsRefused(CloudError):
    """The credentials are missing, wrong, expired, or lack a permission (`code` is the cloud's own)."""

    def __init__(self, service: str, code: str, message: str, hint: str = "", evidence: str = "") -> None:
        super().__init__(message, hint, UNAUTHORIZED, evidence)
        self.service = service
        self.code = code


class NodeClassUnresolved(CloudError):
    """A node class selects nothing where it must select something.

    `what` is the field, `reason` a CamelCase word fit for its condition; both are lists, with `, `, where
    several fields select nothing. `detail` is the message without the name of the class; `faults` holds one
    error for each field.
    """

    def __init__(
        self,
        node_class: Reference,
        what: str,
        message: str,
        hint: str = "",
        reason: str = "NotFound",
        evidence: str = "",
    ) -> None:
        super().__init__(f"{node_class}: {message}", hint, reason, evidence)
        self.node_class = node_class
        self.what = what
        self.detail = message
        self.faults: tuple[NodeClassUnresolved, ...] = (self,)

    @classmethod
    def of(cls, faults: Sequence[NodeClassUnresolved]) -> NodeClassUnresolved:
        """One error that names several faults of one node class; `faults` has at least one."""
        if len(faults) == 1:
            return faults[0]
        together = cls(
            faults[0].node_class,
            ", ".join(fault.what for fault in faults),
            "; ".join(fault.detail for fault in faults),
            "; ".join(fault.hint for fault in faults),
            ", ".join(fault.reason for fault in faults),
            " ".join(fault.evidence for fault in faults if fault.evidence),
        )
        together.faults = tuple(faults)
        return together


class InsufficientCapacity(CloudError):
    """Nothing that the claim allows can be had now.

    `offerings` are the (instance type, zone, capacity type) that failed in this launch; `catalog` shows
    them as not available for the next minutes.
    """

    def __init__(
        self,
        claim: str,
        message: str,
        offerings: tuple[tuple[str, str, str], ...] = (),
        hint: str = "",
        reason: str = _SOLD_OUT,
        evidence: str = "",
    ) -> None:
        super().__init__(f"claim {claim}: {message}", hint, reason, evidence)
        self.claim = claim
        self.offerings = offerings


class LaunchFailed(CloudError):
    """The launch was refused."""

    def __init__(self, claim: str, reason: str, message: str, hint: str = "", evidence: str = "") -> None:
        super().__init__(f"claim {claim}: {message}", hint, reason, evidence)
        self.claim = claim


class CloudProvider(Protocol):
    """What the controller needs of a cloud. Every method may raise CloudUnavailable or CredentialsRefused."""

    async def start(self) -> None:
        """Check endpoint and credentials, and find what is needed once (cluster endpoint, certificate)."""

    async def warm(self, pool: Pool, node_class: NodeClass) -> None:
        """Fetch ahead what a launch for the pool would need: call it at start and when either changes.

        Raises:
            NodeClassUnresolved: The node class selects nothing.
        """

    def forget(self, pool: Reference) -> None:
        """Stop keeping a pool warm: it is gone."""

    async def catalog(self, pool: Pool, node_class: NodeClass) -> tuple[InstanceType, ...]:
        """The types as nodes of the pool, with what their offerings cost and whether they are to be had.

        Raises:
            NodeClassUnresolved: No subnet or image is selected.
        """

    async def billed_catalog(
        self, pool: Pool, node_class: NodeClass, named: frozenset[str] = frozenset()
    ) -> tuple[InstanceType, ...]:
        """The same at the prices of nodes: what is planned and reported by (`cloudprovider.billing`).

        `named`: instance types, families and sizes that pods ask for by name.

        Raises:
            NodeClassUnresolved: No subnet or image is selected.
        """

    async def list_sold_types(self, pool: Pool, node_class: NodeClass) -> tuple[InstanceType, ...]:
        """The types as nodes of the pool, also those that it does not allow; no NodeOverlay is laid over.

        Raises:
            NodeClassUnresolved: No subnet or image is selected.
        """

    def use_overlays(self, overlays: Sequence[NodeOverlay] | None) -> None:
        """Have catalogs and launches follow NodeOverlays, given in the order in which they count.

        None: it is not known yet which ones; catalogs and launches wait, as `CloudUnavailable`.
        """

    async def resolve(self, node_class: NodeClass) -> ResolvedNodeClass:
        """Subnets, security groups, images and instance profile.

        Raises:
            NodeClassUnresolved: One of them is missing.
        """

    async def validate(self, pools: Sequence[Pool], node_class: NodeClass) -> None:
        """Find out whether launches with a node class would be allowed; its pools say what they would be.

        Known for half an hour, it is not asked again. Until something is known of the class as it is, it
        counts as good; a class that was refused is `NodeClassUnresolved` to every other method but `launch`.

        Raises:
            NodeClassUnresolved: They would be forbidden.
            CloudError: Nothing is known; ask again later.
        """

    def is_validated(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> bool:
        """Whether it is known that launches with the class and what it selects are allowed."""

    async def launch(
        self,
        claim: NodeClaim,
        pool: Pool,
        node_class: NodeClass,
        *,
        first: bool = False,
        claimed: Container[str] = frozenset(),
    ) -> Instance:
        """The claim's instance: the living one if a launch of this claim went through before, else a new one.

        Claims of one group (`launch.groups`) that are launched at the same time share one request.

        Args:
            claim: The claim.
            pool: Its pool.
            node_class: Its pool's node class.
            first: The caller has just written the claim and knows that nobody launched it before.
            claimed: Provider ids of the instances that claims bear already.

        Raises:
            InsufficientCapacity: Every offering is sold out.
            LaunchFailed: The request is refused.
            NodeClassUnresolved: The node class selects nothing.
        """

    async def find(self, instance_id: str) -> Instance | None:
        """The instance, or None when it does not exist (any more)."""

    async def state_of(self, instance_id: str) -> str:
        """The state of the instance in the cloud's words, `terminated` among them; empty: not known there.

        Right after a launch the cloud may not know its own instance.
        """

    async def instances(self) -> tuple[Instance, ...]:
        """Every live instance that bears this cluster's tag and a pool's, sorted by id."""

    async def instances_of(self, claim_name: str) -> tuple[Instance, ...]:
        """The live instances of this cluster that bear a claim's name, the oldest first.

        Calls at the same time share requests. Instances of a launch group bear none.
        """

    async def terminate(self, instance_id: str) -> bool:
        """End an instance: True when it is shutting down, terminated or not there."""

    async def reboot(self, instance_id: str) -> None:
        """Start an instance anew in place; it goes on once the cloud has taken the request.

        Raises:
            CloudError: The request is refused.
        """

    async def tag(self, claim: NodeClaim) -> bool:
        """Give the claim's instance the tags that only its node can tell; whether it lacked any.

        Raises:
            CloudError: The request is refused.
        """

    @property
    def has_interruption_queue(self) -> bool:
        """Whether there is a queue of warnings, so that `interruptions` may be called."""

    async def interruptions(self) -> tuple[Interruption, ...]:
        """Wait for warnings about instances, some 20 seconds at most; a warning comes again until forgotten.

        Raises:
            CloudError: There is no such queue.
        """

    async def forget_interruptions(self, handled: Sequence[Interruption]) -> int:
        """Have warnings not come again; the number of those that the cloud has dropped."""

    async def impaired_instances(self) -> tuple[Interruption, ...]:
        """A warning for each instance of the region whose checks have long failed, or that AWS will stop."""

    def mark_unavailable(self, offerings: Sequence[OfferingKey], reservations: Sequence[str] = ()) -> None:
        """Leave offerings and capacity reservations alone for the next minutes.

        As if a launch had found the ones sold out, and nothing left of the others.
        """

    def record_memory_overhead(self, measured: MemoryObservations) -> None:
        """Take what nodes were seen to have for what the next nodes of their kind have."""

    async def delete_launch_templates(self) -> int:
        """Delete all launch templates that were made for this cluster, and say how many."""

    async def clean_up(self, node_class: NodeClass) -> int:
        """Delete what was made for a node class alone, that no instance uses any more; how many profiles.

        Nothing is made for it afterwards.
        """

    async def delete_instance_profiles(self) -> int:
        """Delete all instance profiles that were made for this cluster, and say how many."""

    async def sweep_instance_profiles(self, node_classes: Sequence[NodeClass]) -> int:
        """Delete the instance profiles that for two sweeps no node class and no instance used; how many."""

    async def close(self) -> None:
        """Let go of threads and connections."""
