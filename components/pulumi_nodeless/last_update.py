"""What the stack's last update left, asked of the engine during its own next preview or update.

A program sees what it declares, not what it declared before. The engine has that in its state, and its own
functions tell: `pulumi:pulumi:readStackOutputs` and `readStackResourceOutputs`, the latter for every resource
with the object as the cluster gave it back. They are asked without the SDK's reading of answers, which would
bring every resource that an output refers to to life, those that this program does not have included.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

_CAPACITY: Final = "nodeless:index:Capacity"
_POOLS: Final = ("kubernetes:karpenter.sh/v1alpha5:Provisioner", "kubernetes:karpenter.sh/v1:NodePool")


@dataclass(frozen=True, slots=True)
class RecordedPool:
    """A pool in the state."""

    urn: str
    uid: str
    """Of the object in its cluster, which no other cluster has."""

    def may_be_of(self, component_urn: str, component_name: str) -> bool:
        """Whether it is a child of this component: the URN tells the parents' types, its name the name."""
        mine, parents = types_of(component_urn), types_of(self.urn)[:-1]
        name = self.urn.rpartition("::")[2]
        kinds = ("provisioner", "node-pool")
        return mine == parents and name.startswith(tuple(f"{component_name}-{kind}-" for kind in kinds))


async def recorded_resources() -> dict[str, dict[str, Any]] | None:
    """Every resource of this stack by URN, with `type` and `outputs`; None where the engine does not tell.

    A stack that puts nothing out is not asked about its resources: there may have been no update yet, and
    then the engine's answer would be its end.
    """
    try:
        stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
        if not await _ask_engine("readStackOutputs", name=stack):
            return None
        return await _ask_engine("readStackResourceOutputs", stackName=stack)
    except Exception as error:  # nothing that is in the way of a report may end a preview
        pulumi.log.debug(f"the state of the stack cannot be read: {error}")
        return None


async def recorded_pools() -> tuple[RecordedPool, ...] | None:
    """The pools of every `Capacity` of this stack; None where the engine does not tell."""
    resources = await recorded_resources()
    if resources is None:
        return None
    return tuple(
        RecordedPool(urn, uid)
        for urn, resource in sorted(resources.items())
        if types_of(urn)[-2:-1] == [_CAPACITY] and resource["type"] in _POOLS
        if (uid := _uid(resource["outputs"]))
    )


async def _ask_engine(function: str, **arguments: str) -> dict[str, Any]:
    """The outputs in the answer of one of the engine's functions."""
    given = struct_pb2.Struct()
    given.update(arguments)
    request = resource_pb2.ResourceInvokeRequest(tok=f"pulumi:pulumi:{function}", args=given)
    monitor = get_monitor()
    if monitor is None:
        return {}
    answer = await asyncio.to_thread(monitor.Invoke, request)
    document: dict[str, Any] = json_format.MessageToDict(getattr(answer, "return"))
    return dict(document.get("outputs") or {})


def types_of(urn: str) -> list[str]:
    """The types of a resource's parents and, at the end, its own."""
    return urn.split("::", 3)[2].split("$")


def _uid(outputs: dict[str, Any]) -> str:
    metadata = outputs.get("metadata") or {}
    return str(metadata.get("uid") or "")
