"""The teardown guard: two objects whose deletion makes the controller give everything back.

Instances that the controller launched are not in the engine's state. The guard is, and its finalizer is
the controller's to remove: when the stack is destroyed the guard goes first, the controller sees its
deletion, stops provisioning, deletes all pools (those that users made as well), waits until no claim and
no launch template is left, and lets go. Only then does the engine delete what the controller needed for
that: itself, its rights, its role, its network.

For this to hold the guard must depend on all of it. Pass those resources as `depends_on`; they are handed
to the object itself, since the engine orders objects, not components.

One object would not do: engines also delete what they replace, rename or move. So there is a hold as well, a
Lease that depends on the guard. A destruction deletes it before the guard, and nothing else deletes both in
that order; while it stands, the deletion of the guard ends no node.
"""

from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.names import PATCH_FORCE
from pulumi_nodeless.ordering import child_after, without_dependencies

#: Seconds.
_USUAL_DRAIN: Final = 600


class TeardownGuardArgs(TypedDict):
    """Where the guard stands."""

    namespace: pulumi.Input[str]
    """Namespace of the controller."""
    timeout_minutes: NotRequired[int]
    """How many minutes `destroy` waits for the controller. Default: 30."""
    drain_minutes: NotRequired[int]
    """How many minutes a node may then drain while something blocks its pods (a PodDisruptionBudget, for
    example); after that the pods are deleted. Default: 10, or half of `timeout_minutes` where that is
    less."""


class TeardownGuard(pulumi.ComponentResource):
    """Blocks `destroy` until the controller has terminated all its nodes.

    Set `upsert_existing_objects` on the Kubernetes provider: then `up` adopts a guard that exists already,
    whether the controller recreated it or the stack's state lost it. Without it `up` fails at that object
    and terminates nothing.
    """

    guard_name: pulumi.Output[str]
    """Name of the ConfigMap that blocks the teardown."""

    def __init__(
        self, name: str, args: TeardownGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("TeardownGuard", args, TeardownGuardArgs)
        minutes = reader.integer("timeout_minutes", 30, 1, 24 * 60)
        drain = drain_seconds(reader, "drain_minutes", minutes)
        reader.check()
        super().__init__("nodeless:index:TeardownGuard", name, {}, opts)
        guard = k8s.core.v1.ConfigMap(
            f"{name}-guard",
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=names.TEARDOWN_GUARD,
                namespace=args["namespace"],
                labels={names.TEARDOWN_LABEL: "guard"},
                annotations={names.TEARDOWN_DRAIN: f"{drain}s", PATCH_FORCE: "true"},
                finalizers=[names.TEARDOWN_FINALIZER],
            ),
            opts=pulumi.ResourceOptions.merge(
                child_after(self, opts, delete_timeout=f"{minutes}m", delete_before_replace=True),
                # The provider replaces a ConfigMap whose data change; earlier releases gave it some.
                pulumi.ResourceOptions(ignore_changes=["data"]),
            ),
        )
        k8s.coordination.v1.Lease(
            f"{name}-hold",
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=without_dependencies(self.urn).apply(names.hold),
                namespace=names.HOLD_NAMESPACE,
                labels={names.TEARDOWN_LABEL: "hold"},
                annotations={PATCH_FORCE: "true"},
            ),
            spec=k8s.coordination.v1.LeaseSpecArgs(
                holder_identity=f"{pulumi.get_project()}/{pulumi.get_stack()}"
            ),
            # A forced replacement would make the object anew first, and then delete that very object.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[guard], delete_before_replace=True),
        )
        self.guard_name = guard.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"guardName": self.guard_name})


def drain_seconds(reader: ArgumentReader, argument: str, patience: int) -> int:
    """How long a drain may take; reports one that destruction would not wait for.

    Args:
        reader: of the arguments.
        argument: name of the one with the minutes of a drain.
        patience: minutes that destruction waits.
    """
    if reader.value(argument) is None:
        return min(_USUAL_DRAIN, patience * 30)
    given = reader.integer(argument, 10, 1, 24 * 60)
    if given >= patience:
        reader.report(argument, f"destruction fails after {patience} minutes, before {given} are over")
    return given * 60
