"""Security groups, with rules inside or as resources of their own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from localenv.pulumi.aws.clients import AwsClients, AwsResource, error_code, unless_gone
from localenv.pulumi.aws.ec2 import Ec2Resource, arn, capitalized, tag_specifications, with_tags
from localenv.pulumi.resources import Inputs, Outputs


class SecurityGroup(Ec2Resource):
    token = "aws:ec2/securityGroup:SecurityGroup"
    in_place = frozenset({"ingress", "egress", "revokeRulesOnDelete", "tags"})
    computed = ("arn", "ownerId", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.ec2.create_security_group(
            GroupName=inputs["name"],
            # The text the real provider gives when the program gives none.
            Description=inputs.get("description", "Managed by Pulumi"),
            **capitalized(inputs, "vpcId"),
            TagSpecifications=tag_specifications("security-group", inputs),
        )
        return str(reply["GroupId"])

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        # EC2 gives every group a rule that lets everything out; the real provider takes it away first.
        group = _group(backend, identity)
        if group and group["IpPermissionsEgress"]:
            backend.ec2.revoke_security_group_egress(
                GroupId=identity, IpPermissions=group["IpPermissionsEgress"]
            )
        self._set_rules(backend, identity, {}, inputs)

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        if _group(backend, identity) is None:
            return None
        return with_tags(
            inputs, {"arn": arn(backend, "security-group", identity), "ownerId": backend.account}
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        self._set_rules(backend, identity, old, new)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ec2.delete_security_group, GroupId=identity)

    @staticmethod
    def _set_rules(backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        for direction in ("ingress", "egress"):
            before = {_key(rule): rule for rule in old.get(direction, [])}
            after = {_key(rule): rule for rule in new.get(direction, [])}
            gone = [_permission(rule, identity) for key, rule in before.items() if key not in after]
            added = [_permission(rule, identity) for key, rule in after.items() if key not in before]
            if gone:
                _call(backend, "revoke", direction)(GroupId=identity, IpPermissions=gone)
            if added:
                _authorize(backend, direction, identity, added)


class SecurityGroupRule(AwsResource):
    """One rule of a group; like the real one it has no id on AWS, so its id is a digest of what it says."""

    token = "aws:ec2/securityGroupRule:SecurityGroupRule"
    required = frozenset({"type", "securityGroupId", "protocol", "fromPort", "toPort"})
    in_place = frozenset({"description"})

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        _authorize(backend, inputs["type"], inputs["securityGroupId"], [self._rule(inputs)])
        return "sgrule-" + hashlib.sha256(_key(inputs).encode()).hexdigest()[:10]

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        return None if _group(backend, inputs["securityGroupId"]) is None else {}

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        call = getattr(backend.ec2, f"update_security_group_rule_descriptions_{new['type']}")
        call(GroupId=new["securityGroupId"], IpPermissions=[self._rule(new)])

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        call = _call(backend, "revoke", state["type"])
        try:
            unless_gone(call, GroupId=state["securityGroupId"], IpPermissions=[self._rule(state)])
        except ClientError as error:
            if error_code(error) != "InvalidPermission.NotFound":
                raise

    @staticmethod
    def _rule(inputs: Inputs) -> dict[str, Any]:
        source = inputs.get("sourceSecurityGroupId")
        groups = {"securityGroups": [source]} if source else {}
        return _permission(dict(inputs) | groups, inputs["securityGroupId"])


def _permission(rule: Mapping[str, Any], group: str) -> dict[str, Any]:
    described = {"Description": rule["description"]} if rule.get("description") else {}
    groups = list(rule.get("securityGroups", [])) + ([group] if rule.get("self") else [])
    made: dict[str, Any] = {"IpProtocol": str(rule["protocol"])}
    if made["IpProtocol"] != "-1":
        made |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    ranges = {
        "IpRanges": [{"CidrIp": block, **described} for block in rule.get("cidrBlocks", [])],
        "Ipv6Ranges": [{"CidrIpv6": block, **described} for block in rule.get("ipv6CidrBlocks", [])],
        "PrefixListIds": [{"PrefixListId": item, **described} for item in rule.get("prefixListIds", [])],
        "UserIdGroupPairs": [{"GroupId": item, **described} for item in groups],
    }
    return made | {key: value for key, value in ranges.items() if value}


def _authorize(backend: AwsClients, direction: str, group: str, permissions: list[dict[str, Any]]) -> None:
    """Add rules; one that is there already (an attempt before this one made it) is no error."""
    try:
        _call(backend, "authorize", direction)(GroupId=group, IpPermissions=permissions)
    except ClientError as error:
        if error_code(error) != "InvalidPermission.Duplicate":
            raise


def _call(backend: AwsClients, verb: str, direction: str) -> Any:
    return getattr(backend.ec2, f"{verb}_security_group_{direction}")


def _group(backend: AwsClients, identity: str) -> Mapping[str, Any] | None:
    reply = unless_gone(backend.ec2.describe_security_groups, GroupIds=[identity])
    return next(iter(reply["SecurityGroups"]), None) if reply else None


def _key(rule: Mapping[str, Any]) -> str:
    return json.dumps(rule, sort_keys=True)
