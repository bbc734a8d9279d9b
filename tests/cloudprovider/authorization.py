"""IAM as far as the controller's policies need it: what a recorded call must be allowed, and whether it is.

A call of EC2 is authorized several times: for each resource that it makes, uses or ends, with the tags of
the request or of the resource as context. Unknown actions and condition operators raise: nothing passes
because this module does not know it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

ACCOUNT = "123456789012"
REGION = "us-east-1"
EC2 = f"arn:aws:ec2:{REGION}"
#: Actions that read: they are granted on everything, or on nothing more than their region.
_READS = {
    "DescribeCapacityReservations",
    "DescribeImages",
    "DescribeInstanceStatus",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribeLaunchTemplates",
    "DescribePlacementGroups",
    "DescribeSecurityGroups",
    "DescribeSpotPriceHistory",
    "DescribeSubnets",
}
#: Batches are granted by the action of one.
_ALIASES = {"DeleteMessageBatch": "DeleteMessage"}


@dataclass(frozen=True)
class Need:
    """One authorization: an action on a resource in a context of condition keys."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict, hash=False)


class Needs:
    """What calls need, with templates, instances and profiles as the account has them when this is made."""

    def __init__(self, ec2: Any, iam: Any, role_arn: str) -> None:
        self._role_arn = role_arn
        names = [
            instance_profile["InstanceProfileName"]
            for instance_profile in iam.list_instance_profiles()["InstanceProfiles"]
        ]
        self._profiles = {
            name: iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"].get("Tags", [])
            for name in names
        }
        self._templates = {
            launch_template["LaunchTemplateName"]: (
                launch_template,
                ec2.describe_launch_template_versions(
                    LaunchTemplateName=launch_template["LaunchTemplateName"]
                )["LaunchTemplateVersions"][0]["LaunchTemplateData"],
            )
            for launch_template in ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]
        }
        self._tags = {
            instance["InstanceId"]: instance["Tags"]
            for reservation in ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
        }

    def of(self, call: Mapping[str, Any]) -> Iterator[Need]:  # noqa: PLR0912 - a branch a call
        """Every authorization of a recorded call."""
        action, parameters = str(call["action"]), call["parameters"]
        match (call["service"], action):
            case ("ec2", "CreateFleet"):
                yield from self._fleet(parameters)
            case ("ec2", "RunInstances"):
                spot = parameters.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
                name = parameters["LaunchTemplate"]["LaunchTemplateName"]
                yield from self._run(name, [parameters["SubnetId"]], parameters["TagSpecifications"], spot)
                yield Need("iam:PassRole", self._role_arn, {"iam:PassedToService": "ec2.amazonaws.com"})
            case ("ec2", "CreateLaunchTemplate"):
                yield from _making(action, "launch-template", parameters["TagSpecifications"])
            case ("ec2", "DeleteLaunchTemplate"):
                yield self._template(f"ec2:{action}", parameters["LaunchTemplateName"])
            case ("ec2", "RebootInstances" | "TerminateInstances"):
                for instance_id in parameters["InstanceIds"]:
                    resource = f"{EC2}:{ACCOUNT}:instance/{instance_id}"
                    yield Need(f"ec2:{action}", resource, _context("ResourceTag", self._tags[instance_id]))
            case ("ec2", "CreateTags"):
                context = _context("RequestTag", parameters["Tags"])
                for instance_id in parameters["Resources"]:
                    owned = _context("ResourceTag", self._tags[instance_id])
                    yield Need("ec2:CreateTags", f"{EC2}:{ACCOUNT}:instance/{instance_id}", context | owned)
            case ("ec2", _) if action in _READS:
                yield Need(f"ec2:{action}", "*", {"aws:RequestedRegion": REGION})
            case ("ssm", "GetParameter"):
                yield Need("ssm:GetParameter", f"arn:aws:ssm:{REGION}::parameter{parameters['Name']}")
            case ("pricing", "GetProducts"):
                yield Need("pricing:GetProducts", "*")
            case ("eks", "DescribeCluster"):
                yield Need(
                    "eks:DescribeCluster", f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{parameters['name']}"
                )
            case ("arc-zonal-shift", "GetManagedResource"):
                identifier = {"arc-zonal-shift:ResourceIdentifier": str(parameters["resourceIdentifier"])}
                yield Need("arc-zonal-shift:GetManagedResource", "*", identifier)
            case ("iam", "ListInstanceProfiles"):
                yield Need("iam:ListInstanceProfiles", "*")
            case ("iam", _):
                yield from self._profile(action, parameters)
            case ("sqs", _):
                name = parameters.get("QueueName") or parameters["QueueUrl"].rsplit("/", 1)[-1]
                yield Need(f"sqs:{_ALIASES.get(action, action)}", f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
            case _:
                raise NotImplementedError(f"what {call['service']}:{action} needs")

    def _profile(self, action: str, parameters: Mapping[str, Any]) -> Iterator[Need]:
        name = parameters["InstanceProfileName"]
        context = _context("RequestTag", parameters.get("Tags") or [])
        if action != "CreateInstanceProfile":
            context |= _context("ResourceTag", self._profiles.get(name, []))
        yield Need(f"iam:{action}", f"arn:aws:iam::{ACCOUNT}:instance-profile/{name}", context)
        if action == "AddRoleToInstanceProfile":
            yield Need("iam:PassRole", self._role_arn, {"iam:PassedToService": "ec2.amazonaws.com"})

    def _fleet(self, parameters: Mapping[str, Any]) -> Iterator[Need]:
        specifications = list(parameters["TagSpecifications"])
        spot = parameters["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
        yield from _making("CreateFleet", "fleet", specifications)
        for config in parameters["LaunchTemplateConfigs"]:
            name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            subnets = [override["SubnetId"] for override in config["Overrides"]]
            yield from self._used("ec2:CreateFleet", name, subnets)
            # What a fleet launches has the tags of the template, too.
            merged = [*self._templates[name][1].get("TagSpecifications", ()), *specifications]
            yield from self._run(name, subnets, merged, spot)
        yield Need("iam:PassRole", self._role_arn, {"iam:PassedToService": "ec2.amazonaws.com"})

    def _run(
        self, name: str, subnets: list[str], specifications: list[Mapping[str, Any]], spot: bool
    ) -> Iterator[Need]:
        """Instances of a launch template, by a fleet or one by one."""
        kinds = (
            "instance",
            "volume",
            "network-interface",
            *(("spot-instances-request",) if spot else ()),
        )
        for kind in kinds:
            yield from _making("RunInstances", kind, specifications)
        yield from self._used("ec2:RunInstances", name, subnets)

    def _used(self, action: str, name: str, subnets: list[str]) -> Iterator[Need]:
        """What stands already and a launch refers to."""
        template = self._templates[name][1]
        yield self._template(action, name)
        yield Need(action, f"{EC2}::image/{template['ImageId']}")
        for subnet in subnets:
            yield Need(action, f"{EC2}:{ACCOUNT}:subnet/{subnet}")
        for group in template["SecurityGroupIds"]:
            yield Need(action, f"{EC2}:{ACCOUNT}:security-group/{group}")
        if group := template.get("Placement", {}).get("GroupId"):
            yield Need(action, f"{EC2}:{ACCOUNT}:placement-group/{group}")
        wanted = template.get("CapacityReservationSpecification", {})
        if target := wanted.get("CapacityReservationTarget"):
            reservation = target["CapacityReservationId"]
            yield Need(action, f"{EC2}:{ACCOUNT}:capacity-reservation/{reservation}")

    def _template(self, action: str, name: str) -> Need:
        found = self._templates[name][0]
        resource = f"{EC2}:{ACCOUNT}:launch-template/{found['LaunchTemplateId']}"
        return Need(action, resource, _context("ResourceTag", found["Tags"]))


def _making(operation: str, kind: str, specifications: list[Mapping[str, Any]]) -> Iterator[Need]:
    """Making a resource, and tagging it on the way."""
    tags = [
        tag
        for specification in specifications
        if specification["ResourceType"] == kind
        for tag in specification["Tags"]
    ]
    resource = f"{EC2}:{ACCOUNT}:{kind}/*"
    context = _context("RequestTag", tags)
    yield Need(f"ec2:{operation}", resource, context)
    if tags:
        yield Need("ec2:CreateTags", resource, {**context, "ec2:CreateAction": operation})


def _context(key: str, tags: list[Mapping[str, str]]) -> dict[str, str]:
    context = {f"aws:{key}/{tag['Key']}": tag["Value"] for tag in tags}
    if key == "ResourceTag":
        context |= {f"ec2:{key}/{tag['Key']}": tag["Value"] for tag in tags}
    if key == "RequestTag":
        context["aws:TagKeys"] = ",".join(tag["Key"] for tag in tags)
    return context


def allowed_by(policy: Mapping[str, Any], need: Need) -> list[str]:
    """The ids of the statements that allow it."""
    return [
        statement["Sid"]
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow"
        and need.action in _listed(statement["Action"])
        and any(_covers(pattern, need.resource) for pattern in _listed(statement["Resource"]))
        and _holds(statement.get("Condition", {}), need.context)
    ]


def granted_actions(policy: Mapping[str, Any]) -> set[str]:
    """Every action that a policy grants somewhere."""
    return {action for statement in policy["Statement"] for action in _listed(statement["Action"])}


def _covers(pattern: str, resource: str) -> bool:
    # `instance/*` in a need stands for one that does not exist yet.
    return pattern == "*" or fnmatchcase(resource, pattern)


def _holds(condition: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    for operator, keys in condition.items():
        for key, wanted in keys.items():
            actual = context.get(key)
            if operator == "StringEqualsIfExists":
                met = actual is None or actual in _listed(wanted)
            elif operator == "StringEquals":
                met = actual in _listed(wanted)
            elif operator == "ForAllValues:StringEquals":
                # As IAM has it, nothing at all is a subset, too.
                met = all(each in _listed(wanted) for each in (actual or "").split(",") if each)
            elif operator == "StringLike":
                met = actual is not None and any(fnmatchcase(actual, each) for each in _listed(wanted))
            else:
                raise NotImplementedError(f"condition operator {operator}")
            if not met:
                return False
    return True


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
