"""From a claim to a working node: launch, registration, initialization, and when to give up.

Deadlines are Karpenter's (core v1, `nodeclaim/lifecycle`): an instance within five
minutes, a registered node within fifteen.
"""

from nodeless.model.instructions import (
    DeleteClaim,
    Instruction,
    LaunchInstance,
    PublishEvent,
    UpdateClaimStatus,
    UpdateNode,
)
from nodeless.model.labels import (
    CLUSTER_NAME_TAGGED,
    DISRUPTION_REASON_ANNOTATION,
    DO_NOT_SYNC_TAINTS,
    INITIALIZED,
    INSTANCE_TAGGED,
    LAUNCH_GROUP,
    LAUNCH_GROUP_SIZE,
    LAUNCHED_FOR_GANG,
    LAUNCHED_FOR_REQUEST,
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    PLANNED_PODS,
    REGISTERED,
    REPLACEMENTS,
    REPLACES,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from nodeless.model.nodes import (
    INITIALIZED_CONDITION,
    LAUNCHED,
    READY,
    REGISTERED_CONDITION,
    Condition,
    Node,
    NodeClaim,
)
from nodeless.model.taints import Taint
from nodeless.nodeclaim.startup_taints import closed_until, next_taints
from nodeless.nodeclaim.view import ClaimView, Step, cause_of, changed_condition

#: Reason and message of the condition `Registered` from the launch to the node.
NOT_JOINED = ("NodeNotFound", "the node has not joined yet")
#: How soon a claim is looked at again when nothing that we watch would wake it.
LOOK_AGAIN = 30.0

#: Annotations that a claim does not hand on to its node.
_OF_THE_CLAIM = frozenset(
    (
        REPLACES,
        REPLACEMENTS,
        LAUNCHED_FOR_GANG,
        LAUNCHED_FOR_REQUEST,
        PLANNED_PODS,
        DISRUPTION_REASON_ANNOTATION,
        LAUNCH_GROUP,
        LAUNCH_GROUP_SIZE,
        NODE_POOL_HASH,
        NODE_POOL_HASH_VERSION,
        NODE_CLASS_HASH,
        NODE_CLASS_HASH_VERSION,
        INSTANCE_TAGGED,
        CLUSTER_NAME_TAGGED,
    )
)
#: Taints that Kubernetes itself puts on a node that is still coming up.
_EPHEMERAL_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        UNREGISTERED_TAINT,
    }
)
#: Prefix of the taints that a readiness gate keeps on a node until it is ready.
_READINESS_PREFIX = "readiness.k8s.io/"


def step_launch(view: ClaimView, now: float) -> Step:
    """Ask for the instance until there is one; after the deadline give the pods back to the planner."""
    claim = view.claim
    patience = view.deadlines.launch
    if now - claim.created_at > patience:
        return _give_up(claim, f"no instance within {patience:.0f} s of the claim's creation", "Launch")
    return Step((LaunchInstance(cause_of(claim), claim),), now + LOOK_AGAIN)


def step_registration(view: ClaimView, now: float) -> Step:
    """Adopt the node that joined with the claim's provider id: labels, taints, owner, finalizer, once."""
    claim, node = view.claim, view.node
    if node is None:
        launched = claim.condition(LAUNCHED)
        patience = view.deadlines.registration
        deadline = (launched.last_transition_time if launched else claim.created_at) + patience
        if now > deadline:
            return _give_up(
                claim,
                f"instance {claim.instance_id} has not joined the cluster in {patience:.0f} s"
                "; hint: look at its console output, its role's cluster access and security groups",
                "Registration",
            )
        missing = changed_condition(
            claim,
            REGISTERED_CONDITION,
            "Unknown",
            now,
            reason=NOT_JOINED[0],
            message=NOT_JOINED[1],
        )
        return Step(_status(claim, missing), min(deadline, now + LOOK_AGAIN))
    instructions: list[Instruction] = []
    if not node.registered:
        instructions.append(
            UpdateNode(
                cause_of(claim),
                node.name,
                labels={**claim.labels, REGISTERED: "true"},
                annotations=_own_annotations(claim),
                taints=_registered_taints(claim, node, closed=closed_until(view, now) is not None),
                taints_before=node.taints,
                add_finalizer=TERMINATION_FINALIZER,
                owner_claim=claim,
                stage="registered node",
            )
        )
        instructions.append(
            _with_event(claim, node, "Registered", f"joined as the node of claim {claim.name}")
        )
        if not any(taint.key == UNREGISTERED_TAINT for taint in node.taints):
            instructions.append(_without_taint(claim, node))
    conditions = changed_condition(claim, REGISTERED_CONDITION, "True", now)
    instructions.append(UpdateClaimStatus(cause_of(claim), claim.name, conditions, node_name=node.name))
    return Step(tuple(instructions), now + LOOK_AGAIN)


def _registered_taints(claim: NodeClaim, node: Node, *, closed: bool) -> tuple[Taint, ...]:
    """The node's taints, and the claim's that it lacks; `closed` keeps pods off."""
    kept = next_taints(node, closed=closed)
    if node.labels.get(DO_NOT_SYNC_TAINTS) == "true":
        return kept
    wanted = (*claim.taints, *claim.startup_taints)
    return kept + tuple(taint for taint in wanted if not any(taint.matches(other) for other in kept))


def _own_annotations(claim: NodeClaim) -> dict[str, str | None]:
    """The claim's annotations without those that speak of the claim itself."""
    return {key: value for key, value in claim.annotations.items() if key not in _OF_THE_CLAIM}


def _without_taint(claim: NodeClaim, node: Node) -> PublishEvent:
    message = (
        f"joined without the taint {UNREGISTERED_TAINT}: pods may have come before its labels were known"
        "; hint: give the kubelet --register-with-taints in the user data"
    )
    return PublishEvent(
        cause_of(claim), "Node", node.name, "Warning", "UnregisteredTaintMissing", message, uid=node.uid
    )


def step_vanished_node(view: ClaimView, now: float) -> Step:
    """A Node that was removed by force: kubelets register once, so its instance is lost to the cluster."""
    claim = view.claim
    since = now if view.missed_since is None else view.missed_since
    certain_at = since + view.deadlines.vanished_grace
    if now < certain_at:
        return Step(again_at=certain_at)
    message = f"node {claim.node_name} was removed from the cluster while its instance runs"
    cause = cause_of(claim)
    return Step(
        (
            PublishEvent(cause, "NodeClaim", claim.name, "Warning", "NodeGone", message, uid=claim.uid),
            DeleteClaim(cause, claim.name, "node_deleted"),
        )
    )


def step_initialization(view: ClaimView, now: float) -> Step:
    """A node counts as capacity like any other once it is ready, untainted and complete."""
    claim, node = view.claim, view.node
    cause = cause_of(claim)
    if node is None:
        return Step((), now + LOOK_AGAIN)
    obstacle = _obstacle(view, node)
    if obstacle is not None:
        reason, message = obstacle
        waiting = changed_condition(
            claim, INITIALIZED_CONDITION, "Unknown", now, reason=reason, message=message
        )
        return Step(_status(claim, waiting), now + LOOK_AGAIN)
    instructions: list[Instruction] = []
    if not node.initialized:
        instructions.append(
            UpdateNode(cause, node.name, labels={INITIALIZED: "true"}, stage="initialized node")
        )
        instructions.append(
            _with_event(claim, node, "Initialized", "ready for pods: no startup taint is left")
        )
    conditions = (
        *changed_condition(claim, INITIALIZED_CONDITION, "True", now),
        *changed_condition(claim, READY, "True", now),
    )
    instructions.append(UpdateClaimStatus(cause, claim.name, conditions))
    return Step(tuple(instructions), now + LOOK_AGAIN)


def _obstacle(view: ClaimView, node: Node) -> tuple[str, str] | None:
    """Reason and message of what keeps a node from being initialized (Karpenter's reasons), or None."""
    claim = view.claim
    if not node.ready:
        return "NodeNotReady", f"node {node.name} is not Ready"
    for startup in claim.startup_taints:
        if any(taint.matches(startup) for taint in node.taints):
            return "StartupTaintsExist", f"startup taint {startup} is still on node {node.name}"
    for taint in node.taints:
        if taint.key in _EPHEMERAL_TAINTS or taint.key.startswith(_READINESS_PREFIX):
            return "KnownEphemeralTaintsExist", f"taint {taint} is still on node {node.name}"
    for name, amount in sorted(claim.requests.items()):
        if name in view.served_by_devices:
            continue
        if amount and claim.allocatable.get(name, 0) and not node.allocatable.get(name, 0):
            message = f"node {node.name} does not report any {name} yet"
            device_class = view.device_classes.get(name)
            also = (
                f", nor does a driver publish a device of DeviceClass {device_class}" if device_class else ""
            )
            return "ResourceNotRegistered", message + also
    return None


def _with_event(claim: NodeClaim, node: Node, reason: str, message: str) -> PublishEvent:
    return PublishEvent(cause_of(claim), "Node", node.name, "Normal", reason, message, uid=node.uid)


def _give_up(claim: NodeClaim, message: str, stage: str) -> Step:
    cause = cause_of(claim)
    return Step(
        (
            PublishEvent(cause, "NodeClaim", claim.name, "Warning", f"{stage}Failed", message, uid=claim.uid),
            DeleteClaim(cause, claim.name, f"{stage.lower()}_timeout"),
        )
    )


def _status(claim: NodeClaim, conditions: tuple[Condition, ...]) -> tuple[Instruction, ...]:
    return (UpdateClaimStatus(cause_of(claim), claim.name, conditions),) if conditions else ()
