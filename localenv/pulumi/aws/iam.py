"""Roles, policies, instance profiles and the identity provider of a cluster."""

from __future__ import annotations

from typing import Any

from localenv.pulumi.aws.clients import AwsClients, AwsResource, retag, tag_list, unless_gone
from localenv.pulumi.aws.ec2 import capitalized, present, with_tags
from localenv.pulumi.resources import Inputs, Outputs

#: A managed policy keeps at most five versions; the oldest has to go before a sixth.
_MOST_VERSIONS = 5


class Role(AwsResource):
    """A role; its id is its name."""

    token = "aws:iam/role:Role"
    required = frozenset({"assumeRolePolicy"})
    in_place = frozenset(
        {
            "assumeRolePolicy",
            "description",
            "maxSessionDuration",
            "permissionsBoundary",
            "forceDetachPolicies",
            "tags",
        }
    )
    computed = ("arn", "uniqueId", "createDate", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.iam.create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            **capitalized(inputs, "path", "description", "maxSessionDuration", "permissionsBoundary"),
            Tags=tag_list(inputs.get("tags")),
        )
        return str(inputs["name"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.iam.get_role, RoleName=identity)
        if reply is None:
            return None
        role = reply["Role"]
        outputs = {
            "arn": role["Arn"],
            "uniqueId": role["RoleId"],
            "createDate": role["CreateDate"].isoformat(),
        }
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        if old.get("assumeRolePolicy") != new["assumeRolePolicy"]:
            backend.iam.update_assume_role_policy(RoleName=identity, PolicyDocument=new["assumeRolePolicy"])
        changed = {"description", "maxSessionDuration"} & {k for k in new if old.get(k) != new[k]}
        if changed or ("description" in old and "description" not in new):
            backend.iam.update_role(
                **present(
                    RoleName=identity,
                    Description=new.get("description", ""),
                    MaxSessionDuration=new.get("maxSessionDuration"),
                )
            )
        if old.get("permissionsBoundary") != new.get("permissionsBoundary"):
            self._set_boundary(backend, identity, new.get("permissionsBoundary"))
        retag(old, new, backend.iam.untag_role, backend.iam.tag_role, RoleName=identity)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        if state.get("forceDetachPolicies"):
            self._detach_all(backend, identity)
        unless_gone(backend.iam.delete_role, RoleName=identity)

    @staticmethod
    def _set_boundary(backend: AwsClients, identity: str, boundary: str | None) -> None:
        if boundary is None:
            backend.iam.delete_role_permissions_boundary(RoleName=identity)
        else:
            backend.iam.put_role_permissions_boundary(RoleName=identity, PermissionsBoundary=boundary)

    @staticmethod
    def _detach_all(backend: AwsClients, identity: str) -> None:
        attached = unless_gone(backend.iam.list_attached_role_policies, RoleName=identity) or {}
        for policy in attached.get("AttachedPolicies", []):
            backend.iam.detach_role_policy(RoleName=identity, PolicyArn=policy["PolicyArn"])


class RolePolicy(AwsResource):
    """A policy inside a role; its id is `role:name`."""

    token = "aws:iam/rolePolicy:RolePolicy"
    required = frozenset({"role", "policy"})
    in_place = frozenset({"policy"})
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        self.update(backend, "", {}, inputs)
        return f"{inputs['role']}:{inputs['name']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        role, name = identity.split(":", 1)
        found = unless_gone(backend.iam.get_role_policy, RoleName=role, PolicyName=name)
        return None if found is None else {}

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        backend.iam.put_role_policy(
            RoleName=new["role"], PolicyName=new["name"], PolicyDocument=new["policy"]
        )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        role, name = identity.split(":", 1)
        unless_gone(backend.iam.delete_role_policy, RoleName=role, PolicyName=name)


class Policy(AwsResource):
    """A managed policy; its id is its ARN, and a changed document becomes its default version."""

    token = "aws:iam/policy:Policy"
    required = frozenset({"policy"})
    in_place = frozenset({"policy", "tags"})
    computed = ("arn", "policyId", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.iam.create_policy(
            PolicyName=inputs["name"],
            PolicyDocument=inputs["policy"],
            **capitalized(inputs, "path", "description"),
            Tags=tag_list(inputs.get("tags")),
        )
        return str(reply["Policy"]["Arn"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.iam.get_policy, PolicyArn=identity)
        if reply is None:
            return None
        return with_tags(inputs, {"arn": identity, "policyId": reply["Policy"]["PolicyId"]})

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        if old.get("policy") != new["policy"]:
            versions = self._old_versions(backend, identity)
            if len(versions) >= _MOST_VERSIONS - 1:
                backend.iam.delete_policy_version(PolicyArn=identity, VersionId=versions[0])
            backend.iam.create_policy_version(
                PolicyArn=identity, PolicyDocument=new["policy"], SetAsDefault=True
            )
        retag(old, new, backend.iam.untag_policy, backend.iam.tag_policy, PolicyArn=identity)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        if unless_gone(backend.iam.get_policy, PolicyArn=identity) is None:
            return
        for version in self._old_versions(backend, identity):
            backend.iam.delete_policy_version(PolicyArn=identity, VersionId=version)
        backend.iam.delete_policy(PolicyArn=identity)

    @staticmethod
    def _old_versions(backend: AwsClients, identity: str) -> list[str]:
        versions = backend.iam.list_policy_versions(PolicyArn=identity)["Versions"]
        old = [str(version["VersionId"]) for version in versions if not version["IsDefaultVersion"]]
        return sorted(old, key=lambda version: int(version.removeprefix("v")))


class RolePolicyAttachment(AwsResource):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    required = frozenset({"role", "policyArn"})

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.iam.attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return f"{inputs['role']}/{inputs['policyArn']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.iam.list_attached_role_policies, RoleName=inputs["role"]) or {}
        attached = [policy["PolicyArn"] for policy in reply.get("AttachedPolicies", [])]
        return {} if inputs["policyArn"] in attached else None

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.iam.detach_role_policy, RoleName=state["role"], PolicyArn=state["policyArn"])


class InstanceProfile(AwsResource):
    """An instance profile with at most one role; its id is its name."""

    token = "aws:iam/instanceProfile:InstanceProfile"
    in_place = frozenset({"role", "tags"})
    computed = ("arn", "uniqueId", "createDate", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        name = str(inputs["name"])
        backend.iam.create_instance_profile(
            InstanceProfileName=name, **capitalized(inputs, "path"), Tags=tag_list(inputs.get("tags"))
        )
        return name

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        if "role" in inputs and not (_profile(backend, identity) or {}).get("Roles"):
            backend.iam.add_role_to_instance_profile(InstanceProfileName=identity, RoleName=inputs["role"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        profile = _profile(backend, identity)
        if profile is None:
            return None
        outputs = {
            "arn": profile["Arn"],
            "uniqueId": profile["InstanceProfileId"],
            "createDate": profile["CreateDate"].isoformat(),
        }
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        if old.get("role") != new.get("role"):
            self._empty(backend, identity)
            if "role" in new:
                backend.iam.add_role_to_instance_profile(InstanceProfileName=identity, RoleName=new["role"])
        iam = backend.iam
        retag(old, new, iam.untag_instance_profile, iam.tag_instance_profile, InstanceProfileName=identity)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        self._empty(backend, identity)
        unless_gone(backend.iam.delete_instance_profile, InstanceProfileName=identity)

    @staticmethod
    def _empty(backend: AwsClients, identity: str) -> None:
        for role in (_profile(backend, identity) or {}).get("Roles", []):
            backend.iam.remove_role_from_instance_profile(
                InstanceProfileName=identity, RoleName=role["RoleName"]
            )


class OpenIdConnectProvider(AwsResource):
    """The identity provider that lets IAM trust a cluster's service accounts; its id is its ARN."""

    token = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"
    required = frozenset({"url", "clientIdLists"})
    in_place = frozenset({"clientIdLists", "thumbprintLists", "tags"})
    computed = ("arn", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.iam.create_open_id_connect_provider(
            **present(
                Url=inputs["url"],
                ClientIDList=inputs["clientIdLists"],
                ThumbprintList=inputs.get("thumbprintLists"),
            ),
            Tags=tag_list(inputs.get("tags")),
        )
        return str(reply["OpenIDConnectProviderArn"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        found = unless_gone(backend.iam.get_open_id_connect_provider, OpenIDConnectProviderArn=identity)
        return None if found is None else with_tags(inputs, {"arn": identity})

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        if "thumbprintLists" in new and old.get("thumbprintLists") != new["thumbprintLists"]:
            backend.iam.update_open_id_connect_provider_thumbprint(
                OpenIDConnectProviderArn=identity, ThumbprintList=new["thumbprintLists"]
            )
        before, after = set(old.get("clientIdLists", [])), set(new["clientIdLists"])
        for client in sorted(after - before):
            backend.iam.add_client_id_to_open_id_connect_provider(
                OpenIDConnectProviderArn=identity, ClientID=client
            )
        for client in sorted(before - after):
            backend.iam.remove_client_id_from_open_id_connect_provider(
                OpenIDConnectProviderArn=identity, ClientID=client
            )
        untag, tag = backend.iam.untag_open_id_connect_provider, backend.iam.tag_open_id_connect_provider
        retag(old, new, untag, tag, OpenIDConnectProviderArn=identity)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.iam.delete_open_id_connect_provider, OpenIDConnectProviderArn=identity)


def _profile(backend: AwsClients, identity: str) -> dict[str, Any] | None:
    reply = unless_gone(backend.iam.get_instance_profile, InstanceProfileName=identity)
    return reply["InstanceProfile"] if reply else None
