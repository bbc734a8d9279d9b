"""Which values the real provider refuses before it asks AWS: its own checks, as data.

pulumi-aws runs them in `Check`, so that a preview fails where AWS would only at the update. Each stands in
the file of the Terraform provider that the resource's rule names (`replacement`), as `ValidateFunc` of the
attribute, or as `ConflictsWith`, `ExactlyOneOf` and `AtLeastOneOf` between attributes. What is not known yet
is not checked.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localenv.pulumi import wire
from localenv.pulumi.resources import Fault, Inputs

#: What is wrong with a value; empty where nothing is.
Check = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Together:
    """Inputs of which only so many may be given.

    Attributes:
        keys: The inputs.
        least: How many have to be given.
        most: How many may be.
    """

    keys: tuple[str, ...]
    least: int = 0
    most: int = 1

    def fault(self, inputs: Inputs) -> str:
        """What is wrong with the inputs; empty where nothing is."""
        given = [key for key in self.keys if inputs.get(key) is not None]
        if self.least <= len(given) <= self.most:
            return ""
        asked = "exactly one" if self.least == self.most else "at least one" if self.least else "only one"
        return f"{asked} of {', '.join(self.keys)} can be given, and there are: {', '.join(given) or 'none'}"


def _matching(pattern: str, said: str) -> Check:
    compiled = re.compile(pattern, re.ASCII | re.DOTALL)
    return lambda value: "" if compiled.fullmatch(str(value)) else f"{value!r} {said}"


def _name_check(longest: int, letters: str = r"\w+=,.@-") -> Check:
    return _matching(f"[{letters}]{{1,{longest}}}", f"is not 1 to {longest} of the characters {letters}")


def _one_of(*values: str) -> Check:
    return lambda value: "" if value in values else f"{value!r} is not one of {', '.join(values)}"


def _between(least: int, most: int) -> Check:
    return lambda value: "" if least <= value <= most else f"{value} is not between {least} and {most}"


def _at_most(longest: int) -> Check:
    return lambda value: "" if len(value) <= longest else f"is {len(value)} characters long, not {longest}"


def _json(value: Any) -> str:
    try:
        json.loads(value)
    except ValueError as error:
        return f"is not valid JSON: {error}"
    return ""


def _policy(value: Any) -> str:
    return _json(value) or ("" if str(value).startswith("{") else "has to begin with a brace")


def _network(least: int = 0, most: int = 32) -> Check:
    """A range that begins at its own address."""

    def check(value: Any) -> str:
        try:
            prefix = ipaddress.ip_network(value).prefixlen
        except ValueError as error:
            return f"{value!r} is not a range of addresses: {error}"
        return "" if least <= prefix <= most else f"{value!r} is not between /{least} and /{most}"

    return check


def _each(check: Check) -> Check:
    """Every member of a list."""
    return lambda values: next((fault for value in values if (fault := check(value))), "")


def _member(key: str, check: Check) -> Check:
    """One member of a nested input, where that is given."""

    def of(value: Mapping[str, Any]) -> str:
        fault = check(value[key]) if value.get(key) is not None else ""
        return f"{key}: {fault}" if fault else ""

    return of


def _all(*checks: Check) -> Check:
    return lambda value: next((fault for check in checks if (fault := check(value))), "")


_arn = _matching(
    r"|arn:aws(-[a-z]+)*:[^:]*:([a-z]{2}(-[a-z]+)+-\d{1,2})?"
    r":(aws|aws-managed|third-party|aws-marketplace|\d{12}|cw.{10})?:.+",
    "is not an ARN",
)
_cluster = _matching(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}", "is not a name of an EKS cluster")
_given = _matching(r".+", "is empty")
_not_an_arn = _matching(r"(?!arn:).{1,128}", "is not the name of a role")
_private = _matching(r"(10|172\.(1[6-9]|2\d|3[01])|192\.168)\..*", "is not a private range")
_range4 = _network()
_sources = ("cidrBlocks", "ipv6CidrBlocks")
_conflicts = _one_of("NONE", "OVERWRITE")

#: By token and input.
CHECKS: Final[Mapping[str, Mapping[str, Check]]] = {
    "aws:ec2/vpc:Vpc": {
        "cidrBlock": _network(16, 28),
        "instanceTenancy": _one_of("default", "dedicated"),
    },
    "aws:ec2/subnet:Subnet": {"cidrBlock": _range4},
    "aws:ec2/eip:Eip": {"domain": _one_of("standard", "vpc")},
    "aws:ec2/natGateway:NatGateway": {"connectivityType": _one_of("private", "public")},
    "aws:ec2/route:Route": {"destinationCidrBlock": _range4},
    "aws:ec2/securityGroup:SecurityGroup": {
        "description": _at_most(255),
        "name": _all(_at_most(255), _matching(r"(?!sg-).*", "cannot begin with sg-")),
    },
    "aws:ec2/securityGroupRule:SecurityGroupRule": {
        "type": _one_of("ingress", "egress"),
        "cidrBlocks": _each(_range4),
        "ipv6CidrBlocks": _each(_network(0, 128)),
        "prefixListIds": _each(_given),
    },
    "aws:iam/role:Role": {
        "name": _name_check(64),
        "assumeRolePolicy": _json,
        "description": _at_most(1000),
        "maxSessionDuration": _between(3600, 43200),
        "path": _at_most(512),
        "permissionsBoundary": _arn,
    },
    "aws:iam/rolePolicy:RolePolicy": {"name": _name_check(128), "policy": _policy, "role": _not_an_arn},
    "aws:iam/policy:Policy": {"name": _name_check(128), "policy": _policy},
    "aws:iam/instanceProfile:InstanceProfile": {"name": _name_check(128)},
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": {
        "url": _matching(r"https://[^?]+", "is not an https address without a query"),
        "clientIdLists": _each(_all(_given, _at_most(255))),
        "thumbprintLists": _each(_matching(r".{40}", "is not 40 characters long")),
    },
    "aws:sqs/queue:Queue": {
        "name": _name_check(80, r"0-9A-Za-z_-"),
        "delaySeconds": _between(0, 900),
        "maxMessageSize": _between(1024, 1_048_576),
        "messageRetentionSeconds": _between(60, 1_209_600),
        "visibilityTimeoutSeconds": _between(0, 43_200),
    },
    "aws:sqs/queuePolicy:QueuePolicy": {"policy": _json},
    "aws:cloudwatch/eventRule:EventRule": {
        "name": _name_check(64, r"0-9A-Za-z_.-"),
        "description": _at_most(512),
        "eventPattern": _all(_json, _at_most(4096)),
        "scheduleExpression": _at_most(256),
    },
    "aws:cloudwatch/eventTarget:EventTarget": {
        "arn": _arn,
        "rule": _name_check(64, r"0-9A-Za-z_.-"),
        "targetId": _name_check(64, r"0-9A-Za-z_.-"),
    },
    "aws:ecr/repository:Repository": {
        "encryptionConfigurations": _each(_member("encryptionType", _one_of("AES256", "KMS", "KMS_DSSE"))),
    },
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": {"policy": _json},
    "aws:eks/cluster:Cluster": {
        "name": _cluster,
        "roleArn": _arn,
        "accessConfig": _member("authenticationMode", _one_of("API", "API_AND_CONFIG_MAP", "CONFIG_MAP")),
        "enabledClusterLogTypes": _each(
            _one_of("api", "audit", "authenticator", "controllerManager", "scheduler")
        ),
        "encryptionConfig": _member("resources", _each(_one_of("secrets"))),
        "kubernetesNetworkConfig": _all(
            _member("ipFamily", _one_of("ipv4", "ipv6")),
            _member("serviceIpv4Cidr", _all(_network(12, 24), _private)),
        ),
        "vpcConfig": _member("publicAccessCidrs", _each(_network(0, 128))),
    },
    "aws:eks/fargateProfile:FargateProfile": {
        "clusterName": _cluster,
        "fargateProfileName": _given,
        "podExecutionRoleArn": _given,
        "selectors": _each(_member("namespace", _given)),
    },
    "aws:eks/accessEntry:AccessEntry": {
        "clusterName": _cluster,
        "principalArn": _arn,
        "type": _one_of("STANDARD", "EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX"),
    },
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": {"roleArn": _arn},
    "aws:eks/addon:Addon": {
        "addonName": _given,
        "clusterName": _cluster,
        "addonVersion": _matching(
            r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?",
            "is not a semantic version",
        ),
        "resolveConflictsOnCreate": _conflicts,
        "resolveConflictsOnUpdate": _one_of("NONE", "OVERWRITE", "PRESERVE"),
        "serviceAccountRoleArn": _arn,
    },
}

#: By token.
TOGETHER: Final[Mapping[str, tuple[Together, ...]]] = {
    "aws:ec2/route:Route": (
        Together(
            (
                "gatewayId",
                "natGatewayId",
                "networkInterfaceId",
                "transitGatewayId",
                "vpcPeeringConnectionId",
            ),
            least=1,
        ),
    ),
    "aws:ec2/securityGroupRule:SecurityGroupRule": (
        *(Together((source, "sourceSecurityGroupId", "self")) for source in _sources),
        Together((*_sources, "prefixListIds", "self", "sourceSecurityGroupId"), least=1, most=5),
    ),
    "aws:cloudwatch/eventRule:EventRule": (
        Together(("eventPattern", "scheduleExpression"), least=1, most=2),
    ),
}


def find_refusals(token: str, inputs: Inputs) -> tuple[Fault, ...]:
    """What the real provider refuses in inputs that have the right types, with where it stands."""
    return (*_refused_values(CHECKS.get(token, {}), inputs), *_refused_sets(TOGETHER.get(token, ()), inputs))


def _refused_values(checks: Mapping[str, Check], inputs: Inputs) -> Iterator[Fault]:
    for key, check in checks.items():
        value = inputs.get(key)
        if value is not None and not wire.is_unknown(value) and (fault := check(value)):
            yield Fault(key, fault)


def _refused_sets(sets: Iterable[Together], inputs: Inputs) -> Iterator[Fault]:
    for each in sets:
        if fault := each.fault(inputs):
            yield Fault(each.keys[0], fault)
