"""The attached provider of package `eks`: components only."""

from __future__ import annotations

from typing import Any

from pulumi.runtime.proto import provider_pb2

from localenv.pulumi import wire
from localenv.pulumi.eks.cluster import TOKEN, Cluster
from localenv.pulumi.eks.monitor import Monitor
from localenv.pulumi.input_check import check_inputs
from localenv.pulumi.provider import Provider
from localenv.pulumi.resources import Checked, Fault, Inputs, Proposal, ResourceFailed


class EksProvider(Provider):
    """Carries out `eks:index:Cluster`."""

    package = "eks"
    accepts_marks = True

    def check(self, token: str, inputs: Inputs, proposal: Proposal) -> Checked:
        return Checked(dict(inputs), (Fault("", f"resource type {token} is not known to the local EKS"),))

    def construct(self, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        if request.type != TOKEN:
            return super().construct(request)
        inputs = wire.plain(request.inputs)
        if problems := check_inputs(TOKEN, inputs):
            raise ResourceFailed("; ".join(problems))
        dependencies: dict[str, Any] = {
            key: list(value.urns) for key, value in request.inputDependencies.items()
        }
        with Monitor(request.monitorEndpoint) as monitor:
            cluster = Cluster(
                monitor,
                request.name,
                inputs,
                parent=request.parent,
                providers=dict(request.providers),
                dependencies=dependencies,
            )
            outputs = cluster.make()
        of_each = provider_pb2.ConstructResponse.PropertyDependencies(urns=[cluster.component.urn])
        return provider_pb2.ConstructResponse(
            urn=cluster.component.urn,
            state=wire.struct(outputs),
            stateDependencies=dict.fromkeys(outputs, of_each),
        )
