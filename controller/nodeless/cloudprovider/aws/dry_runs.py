"""Whether AWS lets the controller launch with a node class, found out before a pod waits for it.

One launch template is really made, the one that the class's usual launch needs; then CreateFleet and
RunInstances are asked with `DryRun`, without the retries of the SDK (Karpenter v1's `validation` controller).
A dry run's answer is an error always: `DryRunOperation` says that the call would have succeeded.

Only a lack of permission refuses a class, and user data that is too long. Every other answer depends on
the type and the zone that the rehearsal happens to ask for, or passes: it is raised with what to do about
it, and the class is neither good nor bad.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodeless.cloudprovider import (
    VALIDATION,
    CloudError,
    CredentialsRefused,
    LaunchFailed,
    NodeClassUnresolved,
)
from nodeless.cloudprovider.aws.caching import Clock
from nodeless.cloudprovider.aws.errors import FORBIDDEN, AwsCallRefused
from nodeless.cloudprovider.aws.launch_failures import USER_DATA_TOO_LARGE, denial, refusal
from nodeless.cloudprovider.aws.launch_requests import LaunchRequest, LaunchRequestBuilder, Prepared
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.resolved import ResolvedNodeClass
from nodeless.launch.tags import specifications
from nodeless.model.labels import RESERVED, SPOT
from nodeless.model.pools import NodeClass

#: Seconds for which a success is kept (Karpenter v1), and after which a refused class is asked about again.
PASSED_SECONDS = 1800.0
REFUSED_SECONDS = 60.0
_WOULD_SUCCEED = "DryRunOperation"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found out of a class as it was; `refusal` is None where everything is allowed."""

    content: object
    at: float
    refusal: NodeClassUnresolved | None


class DryRuns:
    """Remembers the last verdict on each node class."""

    def __init__(self, session: AwsSession, preparer: LaunchRequestBuilder, clock: Clock) -> None:
        self._session = session
        self._preparer = preparer
        self._clock = clock
        self._verdicts: dict[str, _Verdict] = {}

    def is_allowed(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> bool:
        """Whether launches with the class as it is are allowed, as far as is known."""
        verdict = self._verdict(node_class, resolved)
        return verdict is not None and verdict.refusal is None

    def assert_not_refused(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> None:
        """Raise NodeClassUnresolved when launches with the class as it is are known to be forbidden."""
        verdict = self._verdict(node_class, resolved)
        if verdict is not None and verdict.refusal is not None:
            raise verdict.refusal

    def due(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> bool:
        """Whether it is time to ask."""
        verdict = self._verdict(node_class, resolved)
        if verdict is None:
            return True
        kept = PASSED_SECONDS if verdict.refusal is None else REFUSED_SECONDS
        return self._clock() - verdict.at >= kept

    def forget(self, node_class: NodeClass) -> None:
        """It is gone."""
        self._verdicts.pop(node_class.key, None)

    async def ask(self, launch_request: LaunchRequest) -> None:
        """Rehearse the order's launch and remember the verdict.

        Raises:
            NodeClassUnresolved: A call that it needs is forbidden.
            CloudError: AWS gave no answer, or another one; nothing is known then.
        """
        node_class = launch_request.node_class
        refusal: NodeClassUnresolved | None = None
        try:
            await self._rehearse(launch_request)
        except NodeClassUnresolved as error:
            refusal = error
        content = _content(node_class, launch_request.resolved)
        self._verdicts[node_class.key] = _Verdict(content, self._clock(), refusal)
        if refusal is not None:
            raise refusal

    def _verdict(self, node_class: NodeClass, resolved: ResolvedNodeClass) -> _Verdict | None:
        verdict = self._verdicts.get(node_class.key)
        known = verdict is not None and verdict.content == _content(node_class, resolved)
        return verdict if known else None

    async def _rehearse(self, launch_request: LaunchRequest) -> None:
        try:
            prepared = await self._preparer.prepare(_of_one_type(launch_request), 0)
        except CredentialsRefused as error:
            raise _refusal_of(launch_request.node_class, "CreateLaunchTemplate", error) from None
        except LaunchFailed as error:
            if error.reason != USER_DATA_TOO_LARGE:
                raise
            raise NodeClassUnresolved(
                launch_request.node_class.reference,
                VALIDATION,
                error.message,
                error.hint,
                error.reason,
                error.evidence,
            ) from None
        # The token of a real launch must not be used up by a rehearsal.
        fleet = {name: value for name, value in prepared.request.items() if name != "ClientToken"}
        problem = await self._dry_run("create_fleet", fleet)
        if problem is not None:
            raise _refusal_of(launch_request.node_class, "CreateFleet", problem)
        for request in _run_requests(launch_request, prepared):
            problem = await self._dry_run("run_instances", request)
            if problem is None:
                return
        if problem is not None:
            raise _refusal_of(launch_request.node_class, "RunInstances", problem)

    async def _dry_run(self, method: str, request: Mapping[str, Any]) -> CloudError | None:
        """Why the call would not succeed. Raises when AWS cannot tell now."""
        try:
            await self._session.call("ec2", method, {**request, "DryRun": True}, retries=False)
        except AwsCallRefused as error:
            return None if error.code == _WOULD_SUCCEED else error
        except CredentialsRefused as error:
            if error.code not in FORBIDDEN:
                raise
            return error
        return None


def _of_one_type(launch_request: LaunchRequest) -> LaunchRequest:
    """The order with the type alone that it would get first, if it can get any."""
    candidates = launch_request.candidates()
    types = () if candidates is None else (candidates.types[0].instance_type,)
    return replace(launch_request, instance_types=types)


def _run_requests(launch_request: LaunchRequest, prepared: Prepared) -> Iterator[Mapping[str, Any]]:
    """RunInstances in one subnet after the other, those that the fleet would use first.

    Each reservation has a launch template of its own, which is of use in its zone alone: the first will do.
    Conditions of policies see what the request says itself: the template's tags and metadata options are
    said again.
    """
    config = prepared.request["LaunchTemplateConfigs"][0]
    name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
    overrides = config["Overrides"]
    others = () if prepared.candidates.capacity_type == RESERVED else launch_request.resolved.subnets
    named = (*(override["SubnetId"] for override in overrides), *(other.id for other in others))
    template, spot = prepared.templates[name], prepared.candidates.capacity_type == SPOT
    interfaces = template.get("NetworkInterfaces", ())
    tagged = ("instance", "volume", "network-interface", *(("spot-instances-request",) if spot else ()))
    for subnet in dict.fromkeys(named):
        request: dict[str, Any] = {
            "LaunchTemplate": {"LaunchTemplateName": name, "Version": "$Latest"},
            "InstanceType": overrides[0]["InstanceType"],
            "MinCount": 1,
            "MaxCount": 1,
            "TagSpecifications": specifications(prepared.tags, *tagged),
            "MetadataOptions": template["MetadataOptions"],
        }
        if spot:
            request["InstanceMarketOptions"] = {"MarketType": "spot"}
        if interfaces:
            # EC2 takes a subnet beside network interfaces only on them.
            request["NetworkInterfaces"] = [{**interface, "SubnetId": subnet} for interface in interfaces]
        else:
            request["SubnetId"] = subnet
        yield request


def _refusal_of(node_class: NodeClass, operation: str, problem: CloudError) -> CloudError:
    """The refusal of the class where permission is lacking, else the problem and what to do about it."""
    if isinstance(problem, AwsCallRefused):
        meaning = refusal(problem.code, problem.message)
        return CloudError(problem.message, meaning.hint, meaning.reason, problem.evidence)
    if not isinstance(problem, CredentialsRefused) or problem.code not in FORBIDDEN:
        return problem
    hint = problem.hint
    if operation != "CreateLaunchTemplate" and denial(problem.message) is None:
        hint += (
            " on the resources that the node class selects (and iam:PassRole), and check the "
            "policies of the organization"
        )
    return NodeClassUnresolved(
        node_class.reference,
        VALIDATION,
        problem.message,
        hint,
        f"{operation}AuthCheckFailed",
        problem.evidence,
    )


def _content(node_class: NodeClass, resolved: ResolvedNodeClass) -> object:
    """All of a class and of what it selects that a launch's permission may depend on."""
    group = resolved.placement_group
    return (
        replace(node_class, conditions=(), finalizers=(), generation=0, deletion_timestamp=None),
        frozenset(subnet.id for subnet in resolved.subnets),
        resolved.security_groups,
        frozenset(image.id for image in resolved.images),
        resolved.instance_profile,
        "" if group is None else group.id,
    )
