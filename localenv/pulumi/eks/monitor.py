"""Registers resources with the engine on behalf of a component, without the Pulumi SDK.

The SDK keeps its settings per process, and the program that asked for the component
runs in this very process; so the few messages a component needs are sent by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import grpc
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc

from localenv.pulumi import wire
from localenv.pulumi.resources import Outputs

_SIZES = [
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),
    ("grpc.max_send_message_length", 400 * 1024 * 1024),
]


@dataclass(frozen=True, slots=True)
class Registered:
    """A resource as the engine has it.

    Attributes:
        urn: Its URN.
        identity: Its id; unknown in a preview that would make it.
        outputs: Its outputs, plain.
    """

    urn: str
    identity: str
    outputs: Outputs

    def __getitem__(self, key: str) -> Any:
        """An output; one that is missing is unknown, which happens in previews only."""
        return self.outputs.get(key, wire.UNKNOWN)

    @property
    def reference(self) -> dict[str, Any]:
        """What makes an object of the resource's class in a program."""
        return wire.reference(self.urn, self.identity)

    @property
    def as_provider(self) -> str:
        """The provider reference of a provider resource."""
        return f"{self.urn}::{self.identity}"


class Monitor:
    """The engine's resource monitor, while a component is being constructed."""

    def __init__(self, endpoint: str) -> None:
        self._channel = grpc.insecure_channel(endpoint, options=_SIZES)
        self._stub = resource_pb2_grpc.ResourceMonitorStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def component(self, token: str, name: str, parent: str, *, providers: Mapping[str, str]) -> Registered:
        """Register a component; its children inherit the providers."""
        return self._register(
            resource_pb2.RegisterResourceRequest(
                type=token, name=name, parent=parent, custom=False, providers=dict(providers)
            ),
            {},
        )

    def resource(
        self,
        token: str,
        name: str,
        inputs: Mapping[str, Any],
        *,
        parent: str,
        provider: str = "",
        dependencies: Iterable[str] = (),
        version: str = "",
    ) -> Registered:
        """Make a resource and wait for it; every dependency counts for every input."""
        urns = sorted(set(dependencies))
        of_each = resource_pb2.RegisterResourceRequest.PropertyDependencies(urns=urns)
        return self._register(
            resource_pb2.RegisterResourceRequest(
                type=token,
                name=name,
                parent=parent,
                custom=True,
                provider=provider,
                version=version,
                dependencies=urns,
                propertyDependencies=dict.fromkeys(inputs, of_each),
            ),
            inputs,
        )

    def invoke(self, token: str, arguments: Mapping[str, Any], *, provider: str = "") -> Outputs:
        """The answer of a function."""
        request = resource_pb2.ResourceInvokeRequest(
            tok=token, args=wire.struct(arguments), provider=provider
        )
        return wire.plain(getattr(self._stub.Invoke(request), "return"))

    def finish(self, component: Registered, outputs: Mapping[str, Any]) -> None:
        """Record the outputs of a component."""
        self._stub.RegisterResourceOutputs(
            resource_pb2.RegisterResourceOutputsRequest(urn=component.urn, outputs=wire.struct(outputs))
        )

    def _register(
        self, request: resource_pb2.RegisterResourceRequest, inputs: Mapping[str, Any]
    ) -> Registered:
        request.object.CopyFrom(wire.struct(inputs))
        request.acceptSecrets = True
        request.acceptResources = True
        request.supportsPartialValues = True
        request.supportsResultReporting = False
        answer = self._stub.RegisterResource(request)
        return Registered(answer.urn, answer.id or wire.UNKNOWN, wire.plain(answer.object))
