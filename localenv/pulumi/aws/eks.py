"""What belongs to an EKS cluster: Fargate profiles, access entries, associations, add-ons."""

from __future__ import annotations

from typing import Any

from localenv.pulumi.aws.clients import AwsClients, unless_gone
from localenv.pulumi.aws.ec2 import present, with_tags
from localenv.pulumi.aws.eks_common import EksResource, instant, or_none, wait
from localenv.pulumi.resources import Inputs, Outputs, Resource


class FargateProfile(EksResource):
    """A Fargate profile; its id is `cluster:profile`. Only its tags can change."""

    token = "aws:eks/fargateProfile:FargateProfile"
    required = frozenset({"clusterName", "podExecutionRoleArn", "selectors"})
    optional = frozenset({"fargateProfileName", "subnetIds", "tags"})
    in_place = frozenset({"tags"})
    computed = ("arn", "status", "tagsAll")
    physical_name = "fargateProfileName"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        names = {"clusterName": inputs["clusterName"], "fargateProfileName": inputs["fargateProfileName"]}
        backend.eks.create_fargate_profile(
            **names,
            podExecutionRoleArn=inputs["podExecutionRoleArn"],
            selectors=inputs["selectors"],
            **present(subnets=inputs.get("subnetIds"), tags=inputs.get("tags")),
        )
        return ":".join(names.values())

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        wait(lambda: _profile(backend, identity), f"Fargate profile {identity}", "ACTIVE")

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        profile = _profile(backend, identity)
        if profile is None:
            return None
        return with_tags(inputs, {"arn": profile["fargateProfileArn"], "status": profile["status"]})

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        cluster, name = identity.split(":", 1)
        gone = unless_gone(backend.eks.delete_fargate_profile, clusterName=cluster, fargateProfileName=name)
        if gone is not None:
            wait(lambda: _profile(backend, identity), f"Fargate profile {identity}", None)


class AccessEntry(EksResource):
    """Lets a principal into a cluster; its id is `cluster:principal`."""

    token = "aws:eks/accessEntry:AccessEntry"
    required = frozenset({"clusterName", "principalArn"})
    optional = frozenset({"type", "userName", "kubernetesGroups", "tags"})
    in_place = frozenset({"userName", "kubernetesGroups", "tags"})
    computed = ("accessEntryArn", "createdAt", "modifiedAt", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.create_access_entry(
            clusterName=inputs["clusterName"],
            principalArn=inputs["principalArn"],
            **present(
                type=inputs.get("type"),
                username=inputs.get("userName"),
                kubernetesGroups=inputs.get("kubernetesGroups"),
                tags=inputs.get("tags"),
            ),
        )
        return f"{inputs['clusterName']}:{inputs['principalArn']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        cluster, principal = identity.split(":", 1)
        reply = unless_gone(backend.eks.describe_access_entry, clusterName=cluster, principalArn=principal)
        if reply is None:
            return None
        entry = reply["accessEntry"]
        outputs = {
            "accessEntryArn": entry["accessEntryArn"],
            "createdAt": instant(entry.get("createdAt")),
            "modifiedAt": instant(entry.get("modifiedAt")),
            "type": entry.get("type", "STANDARD"),
            "userName": entry.get("username", ""),
        }
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        if any(old.get(key) != new.get(key) for key in ("userName", "kubernetesGroups")):
            cluster, principal = identity.split(":", 1)
            backend.eks.update_access_entry(
                clusterName=cluster,
                principalArn=principal,
                kubernetesGroups=new.get("kubernetesGroups", []),
                **present(username=new.get("userName")),
            )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        cluster, principal = identity.split(":", 1)
        unless_gone(backend.eks.delete_access_entry, clusterName=cluster, principalArn=principal)


class AccessPolicyAssociation(Resource[AwsClients]):
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    required = frozenset({"clusterName", "principalArn", "policyArn", "accessScope"})
    computed = ("associatedAt", "modifiedAt")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.associate_access_policy(
            **{key: inputs[key] for key in ("clusterName", "principalArn", "policyArn", "accessScope")}
        )
        return "#".join((inputs["clusterName"], inputs["principalArn"], inputs["policyArn"]))

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        cluster, principal, policy = identity.split("#")
        reply = unless_gone(
            backend.eks.list_associated_access_policies, clusterName=cluster, principalArn=principal
        )
        for found in (reply or {}).get("associatedAccessPolicies", []):
            if found["policyArn"] == policy:
                return {
                    "associatedAt": instant(found.get("associatedAt")),
                    "modifiedAt": instant(found.get("modifiedAt")),
                }
        return None

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        cluster, principal, policy = identity.split("#")
        unless_gone(
            backend.eks.disassociate_access_policy,
            clusterName=cluster,
            principalArn=principal,
            policyArn=policy,
        )


class PodIdentityAssociation(EksResource):
    """Gives a service account a role; its id is the association's."""

    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    required = frozenset({"clusterName", "namespace", "serviceAccount", "roleArn"})
    optional = frozenset({"tags"})
    in_place = frozenset({"roleArn", "tags"})
    computed = ("associationArn", "associationId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.eks.create_pod_identity_association(
            **{key: inputs[key] for key in self.required}, **present(tags=inputs.get("tags"))
        )
        return f"{inputs['clusterName']}:{reply['association']['associationId']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        cluster, association = identity.split(":", 1)
        reply = or_none(
            backend.eks.describe_pod_identity_association, clusterName=cluster, associationId=association
        )
        if reply is None:
            return None
        found = reply["association"]
        outputs = {"associationArn": found["associationArn"], "associationId": found["associationId"]}
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        if old.get("roleArn") != new["roleArn"]:
            cluster, association = identity.split(":", 1)
            backend.eks.update_pod_identity_association(
                clusterName=cluster, associationId=association, roleArn=new["roleArn"]
            )

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        cluster, association = identity.split(":", 1)
        unless_gone(
            backend.eks.delete_pod_identity_association, clusterName=cluster, associationId=association
        )


class Addon(EksResource):
    """An add-on; its id is `cluster:addon`."""

    token = "aws:eks/addon:Addon"
    required = frozenset({"clusterName", "addonName"})
    optional = frozenset(
        {
            "addonVersion",
            "configurationValues",
            "resolveConflictsOnCreate",
            "resolveConflictsOnUpdate",
            "serviceAccountRoleArn",
            "preserve",
            "tags",
        }
    )
    in_place = optional
    computed = ("arn", "addonVersion", "createdAt", "modifiedAt", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        identity = f"{inputs['clusterName']}:{inputs['addonName']}"
        backend.eks.create_addon(
            clusterName=inputs["clusterName"],
            addonName=inputs["addonName"],
            **_addon_arguments(inputs, inputs.get("resolveConflictsOnCreate")),
            **present(tags=inputs.get("tags")),
        )
        return identity

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        wait(lambda: _addon(backend, identity), f"add-on {identity}", "ACTIVE")

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        addon = _addon(backend, identity)
        if addon is None:
            return None
        outputs = {
            "arn": addon["addonArn"],
            "addonVersion": addon.get("addonVersion", ""),
            "createdAt": instant(addon.get("createdAt")),
            "modifiedAt": instant(addon.get("modifiedAt")),
        }
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        keys = ("addonVersion", "configurationValues", "serviceAccountRoleArn")
        if all(old.get(key) == new.get(key) for key in keys):
            return
        cluster, name = identity.split(":", 1)
        backend.eks.update_addon(
            clusterName=cluster,
            addonName=name,
            **_addon_arguments(new, new.get("resolveConflictsOnUpdate")),
        )
        wait(lambda: _addon(backend, identity), f"add-on {identity}", "ACTIVE")

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        cluster, name = identity.split(":", 1)
        gone = unless_gone(
            backend.eks.delete_addon,
            clusterName=cluster,
            addonName=name,
            **present(preserve=state.get("preserve")),
        )
        if gone is not None:
            wait(lambda: _addon(backend, identity), f"add-on {identity}", None)


def _addon_arguments(inputs: Inputs, resolve_conflicts: str | None) -> dict[str, Any]:
    return present(
        addonVersion=inputs.get("addonVersion"),
        configurationValues=inputs.get("configurationValues"),
        serviceAccountRoleArn=inputs.get("serviceAccountRoleArn"),
        resolveConflicts=resolve_conflicts,
    )


def _profile(backend: AwsClients, identity: str) -> dict[str, Any] | None:
    cluster, name = identity.split(":", 1)
    reply = or_none(backend.eks.describe_fargate_profile, clusterName=cluster, fargateProfileName=name)
    return reply["fargateProfile"] if reply else None


def _addon(backend: AwsClients, identity: str) -> dict[str, Any] | None:
    cluster, name = identity.split(":", 1)
    reply = or_none(backend.eks.describe_addon, clusterName=cluster, addonName=name)
    return reply["addon"] if reply else None
