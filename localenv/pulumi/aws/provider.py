"""The attached provider of package `aws`: one table from token to resource, boto3 behind it."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from localenv.pulumi.aws import ecr, eks, eks_cluster, iam, messaging, network, routing, security_groups
from localenv.pulumi.aws.clients import AwsClients, AwsEndpoint
from localenv.pulumi.aws.functions import FUNCTIONS
from localenv.pulumi.aws.replacement import FORCE_NEW
from localenv.pulumi.aws.validation import find_refusals
from localenv.pulumi.input_check import check_inputs
from localenv.pulumi.provider import Provider
from localenv.pulumi.resources import (
    UNFINISHED,
    Change,
    Checked,
    Difference,
    Fault,
    Inputs,
    Outputs,
    Proposal,
    Resource,
    ResourceFailed,
)

#: Every type of resource that can be made on the local AWS, by token.
RESOURCES: dict[str, Resource[AwsClients]] = {
    resource.token: resource
    for resource in (
        network.Vpc(),
        network.Subnet(),
        network.InternetGateway(),
        network.Eip(),
        network.NatGateway(),
        routing.RouteTable(),
        routing.Route(),
        routing.RouteTableAssociation(),
        routing.VpcEndpoint(),
        routing.Tag(),
        security_groups.SecurityGroup(),
        security_groups.SecurityGroupRule(),
        iam.Role(),
        iam.RolePolicy(),
        iam.Policy(),
        iam.RolePolicyAttachment(),
        iam.InstanceProfile(),
        iam.OpenIdConnectProvider(),
        messaging.Queue(),
        messaging.QueuePolicy(),
        messaging.EventRule(),
        messaging.EventTarget(),
        ecr.Repository(),
        ecr.LifecyclePolicy(),
        eks_cluster.Cluster(),
        eks.FargateProfile(),
        eks.AccessEntry(),
        eks.AccessPolicyAssociation(),
        eks.PodIdentityAssociation(),
        eks.Addon(),
    )
}
#: Inputs of the provider itself that have a meaning here, or only one about real credentials.
_CONFIGURATION = frozenset(
    {
        "region",
        "version",
        "profile",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
    }
)
#: Inputs that every resource of the package takes; the region of a resource is that of its provider here.
_EVERYWHERE = frozenset({"region"})


class AwsProvider(Provider):
    """Carries out the package `aws` on an AWS endpoint."""

    package = "aws"

    def __init__(self, aws: AwsEndpoint) -> None:
        super().__init__()
        self._aws = aws
        self._region = ""
        self._clients: AwsClients | None = None

    def check_configuration(self, inputs: Inputs) -> Checked:
        faults = [
            Fault(key, "this input of the aws provider is not carried out by the local AWS")
            for key in inputs
            if key not in _CONFIGURATION
        ]
        return Checked(dict(inputs), tuple(faults))

    def compare_configuration(self, old: Inputs, new: Inputs) -> Difference:
        difference = super().compare_configuration(old, new)
        return Difference(difference.changed, tuple(k for k in difference.changed if k == "region"))

    def configure(self, inputs: Inputs) -> None:
        region = str(inputs.get("region") or self._aws.session().region_name or "")
        if not region:
            raise ResourceFailed("the aws provider has no region\nhint: set the configuration key aws:region")
        if self._clients is not None and self._clients.region != region:
            raise ResourceFailed(
                f"two aws providers, of {self._clients.region} and {region}: the local AWS has one region"
            )
        self._clients = self._clients or AwsClients(self._aws, region)

    def check(self, token: str, inputs: Inputs, proposal: Proposal) -> Checked:
        resource = RESOURCES.get(token)
        if resource is None:
            return Checked(dict(inputs), (Fault("", _unknown_type(token)),))
        if problems := check_inputs(token, inputs):
            return Checked(dict(inputs), tuple(Fault("", problem) for problem in problems))
        checked = resource.check({k: v for k, v in inputs.items() if k not in _EVERYWHERE}, proposal)
        return Checked(checked.inputs, (*checked.faults, *find_refusals(token, checked.inputs)))

    def compare(self, token: str, old: Inputs, new: Inputs) -> Difference:
        return compare(token, old, new)

    def foresee(self, token: str, inputs: Inputs) -> Outputs:
        return RESOURCES[token].foresee(inputs)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        resource = RESOURCES[token]
        identity = resource.create(self.clients, inputs)
        return identity, self._finish_creation(resource, identity, inputs)

    def read(self, token: str, identity: str, inputs: Inputs) -> Outputs | None:
        computed = RESOURCES[token].read(self.clients, identity, inputs)
        return None if computed is None else dict(inputs) | computed

    def update(self, token: str, identity: str, change: Change, timeout: float) -> Outputs:
        resource = RESOURCES[token]
        if change.state.get(UNFINISHED):
            self._finish_creation(resource, identity, change.old)
        if change.old != change.new:
            resource.update(self.clients, identity, *FORCE_NEW[token].settle_inputs(change.old, change.new))
        return self._outputs(resource, identity, change.new)

    def delete(self, token: str, identity: str, inputs: Inputs, state: Inputs, timeout: float) -> None:
        RESOURCES[token].delete(self.clients, identity, dict(inputs) | dict(state))

    def invoke(self, token: str, arguments: Inputs) -> Outputs:
        function = FUNCTIONS.get(token)
        return function(self.clients, arguments) if function else super().invoke(token, arguments)

    @property
    def clients(self) -> AwsClients:
        """The clients of the provider's region."""
        if self._clients is None:
            raise ResourceFailed("the aws provider was not configured")
        return self._clients

    def close(self) -> None:
        """Close the connections to AWS."""
        if self._clients is not None:
            self._clients.close()

    def _finish_creation(self, resource: Resource[AwsClients], identity: str, inputs: Inputs) -> Outputs:
        """Finish what `create` began; what fails is recorded with its id and finished next time."""
        try:
            resource.finish(self.clients, identity, inputs)
            return self._outputs(resource, identity, inputs)
        except (ClientError, BotoCoreError, ResourceFailed) as error:
            unfinished = dict(inputs) | {UNFINISHED: True}
            raise ResourceFailed(str(error), identity, inputs, unfinished) from error

    def _outputs(self, resource: Resource[AwsClients], identity: str, inputs: Inputs) -> Outputs:
        computed = resource.read(self.clients, identity, inputs)
        if computed is None:
            raise ResourceFailed(f"{resource.token} {identity} is gone right after it was made or changed")
        return dict(inputs) | computed


def compare(token: str, old: Inputs, new: Inputs) -> Difference:
    """What separates two sets of inputs of one resource, as the real provider sees it."""
    return RESOURCES[token].compare(*FORCE_NEW[token].settle_inputs(old, new))


def _unknown_type(token: str) -> str:
    return (
        f"resource type {token} is not known to the local AWS"
        "\nhint: the table of types stands in localenv/pulumi/aws/provider.py"
    )
