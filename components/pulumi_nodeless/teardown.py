"""The teardown guard: one object whose deletion makes the controller give everything back.

Instances that the controller launched are not in the engine's state. The guard is, and its finalizer is
the controller's to remove: when the stack is destroyed the guard goes first, the controller sees its
deletion, stops provisioning, deletes all pools (those that users made as well), waits until no claim and
no launch template is left, and lets go. Only then does the engine delete what the controller needed for
that: itself, its rights, its role, its network.

For this to hold the guard must depend on all of it. Pass those resources as `depends_on`; they are handed
to the object itself, since the engine orders objects, not components.
"""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.ordering import child_after


class TeardownGuardArgs(TypedDict):
    """Where the guard stands."""

    namespace: pulumi.Input[str]
    """Namespace of the controller."""
    timeout_minutes: NotRequired[int]
    """How long destruction waits for the controller. Default 30."""


class TeardownGuard(pulumi.ComponentResource):
    """Holds the stack's destruction until the controller has returned all capacity."""

    guard_name: pulumi.Output[str]
    """Name of the guarding ConfigMap."""

    def __init__(
        self, name: str, args: TeardownGuardArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("nodeless:index:TeardownGuard", name, {}, opts)
        reader = ArgumentReader("TeardownGuard", args, TeardownGuardArgs)
        minutes = reader.integer("timeout_minutes", 30, 1, 24 * 60)
        reader.check()
        guard = k8s.core.v1.ConfigMap(
            f"{name}-guard",
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=names.TEARDOWN_GUARD,
                namespace=args["namespace"],
                labels={names.TEARDOWN_LABEL: "guard"},
                finalizers=[names.TEARDOWN_FINALIZER],
            ),
            opts=child_after(self, opts, delete_timeout=f"{minutes}m"),
        )
        self.guard_name = guard.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"guardName": self.guard_name})
