"""What belongs to an EKS cluster: Fargate profiles, access entries, associations, add-ons."""

from __future__ import annotations

from typing import Any, ClassVar

from localenv.pulumi.aws.clients import AwsClients, AwsResource, unless_gone
from localenv.pulumi.aws.ec2 import given, present, with_tags
from localenv.pulumi.aws.eks_common import EksResource, instant, wait
from localenv.pulumi.resources import Inputs, Outputs

#: Inputs of an add-on that EKS takes under the same names.
_ADDON_SETTINGS = ("addonVersion", "configurationValues", "serviceAccountRoleArn")


class ClusterPart(EksResource):
    """What belongs to a cluster; its id is `cluster:part`.

    Attributes:
        kind: How the calls of EKS are named, such as `fargate_profile`.
        key: The argument that names the part in them.
        member: Where the part is in a reply.
        waited_for: How messages name a part that has a status; others are ready, and gone, at once.
    """

    kind: ClassVar[str]
    key: ClassVar[str]
    member: ClassVar[str]
    waited_for: ClassVar[str] = ""

    def find(self, backend: AwsClients, identity: str) -> dict[str, Any] | None:
        """What EKS says of the part; None when it is gone."""
        reply = unless_gone(getattr(backend.eks, f"describe_{self.kind}"), **self.names(identity))
        return reply[self.member] if reply else None

    def names(self, identity: str) -> dict[str, str]:
        """What names the part in calls of EKS."""
        cluster, name = identity.split(":", 1)
        return {"clusterName": cluster, self.key: name}

    def finish(self, backend: AwsClients, identity: str, inputs: Inputs) -> None:
        self.wait(backend, identity, "ACTIVE")

    def wait(self, backend: AwsClients, identity: str, state: str | None) -> None:
        """Wait until the status is `state`; None means until the part is gone."""
        if self.waited_for:
            wait(lambda: self.find(backend, identity), f"{self.waited_for} {identity}", state)

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        # Only add-ons can be asked to preserve what they installed.
        arguments = self.names(identity) | given(state, "preserve")
        if unless_gone(getattr(backend.eks, f"delete_{self.kind}"), **arguments) is not None:
            self.wait(backend, identity, None)


class FargateProfile(ClusterPart):
    """A Fargate profile; its id is `cluster:profile`. Only its tags can change."""

    token = "aws:eks/fargateProfile:FargateProfile"
    kind, key, member = "fargate_profile", "fargateProfileName", "fargateProfile"
    waited_for = "Fargate profile"
    required = frozenset({"clusterName", "podExecutionRoleArn", "selectors"})
    in_place = frozenset({"tags"})
    computed = ("arn", "status", "tagsAll")
    physical_name = "fargateProfileName"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.create_fargate_profile(
            **given(inputs, *self.required, self.key, "tags"), **present(subnets=inputs.get("subnetIds"))
        )
        return f"{inputs['clusterName']}:{inputs['fargateProfileName']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        profile = self.find(backend, identity)
        if profile is None:
            return None
        return with_tags(inputs, {"arn": profile["fargateProfileArn"], "status": profile["status"]})


class AccessEntry(ClusterPart):
    """Lets a principal into a cluster; its id is `cluster:principal`."""

    token = "aws:eks/accessEntry:AccessEntry"
    kind, key, member = "access_entry", "principalArn", "accessEntry"
    required = frozenset({"clusterName", "principalArn"})
    in_place = frozenset({"userName", "kubernetesGroups", "tags"})
    computed = ("accessEntryArn", "createdAt", "modifiedAt", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.create_access_entry(
            **given(inputs, *self.required, "type", "kubernetesGroups", "tags"),
            **present(username=inputs.get("userName")),
        )
        return f"{inputs['clusterName']}:{inputs['principalArn']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        entry = self.find(backend, identity)
        if entry is None:
            return None
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
            backend.eks.update_access_entry(
                **self.names(identity),
                kubernetesGroups=new.get("kubernetesGroups", []),
                **present(username=new.get("userName")),
            )


class AccessPolicyAssociation(AwsResource):
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    required = frozenset({"clusterName", "principalArn", "policyArn", "accessScope"})
    computed = ("associatedAt", "modifiedAt")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.associate_access_policy(**given(inputs, *self.required))
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


class PodIdentityAssociation(ClusterPart):
    """Gives a service account a role; its id is `cluster:association`."""

    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    kind, key, member = "pod_identity_association", "associationId", "association"
    required = frozenset({"clusterName", "namespace", "serviceAccount", "roleArn"})
    in_place = frozenset({"roleArn", "tags"})
    computed = ("associationArn", "associationId", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        reply = backend.eks.create_pod_identity_association(**given(inputs, *self.required, "tags"))
        return f"{inputs['clusterName']}:{reply['association']['associationId']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        found = self.find(backend, identity)
        if found is None:
            return None
        outputs = {"associationArn": found["associationArn"], "associationId": found["associationId"]}
        return with_tags(inputs, outputs)

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        super().update(backend, identity, old, new)
        if old.get("roleArn") != new["roleArn"]:
            backend.eks.update_pod_identity_association(**self.names(identity), roleArn=new["roleArn"])


class Addon(ClusterPart):
    """An add-on; its id is `cluster:addon`."""

    token = "aws:eks/addon:Addon"
    kind, key, member = "addon", "addonName", "addon"
    waited_for = "add-on"
    required = frozenset({"clusterName", "addonName"})
    in_place = frozenset(
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
    computed = ("arn", "addonVersion", "createdAt", "modifiedAt", "tagsAll")

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.eks.create_addon(
            **given(inputs, *self.required, "tags"),
            **_addon_arguments(inputs, inputs.get("resolveConflictsOnCreate")),
        )
        return f"{inputs['clusterName']}:{inputs['addonName']}"

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        addon = self.find(backend, identity)
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
        if all(old.get(key) == new.get(key) for key in _ADDON_SETTINGS):
            return
        backend.eks.update_addon(
            **self.names(identity), **_addon_arguments(new, new.get("resolveConflictsOnUpdate"))
        )
        self.wait(backend, identity, "ACTIVE")


def _addon_arguments(inputs: Inputs, resolve_conflicts: str | None) -> dict[str, Any]:
    return given(inputs, *_ADDON_SETTINGS) | present(resolveConflicts=resolve_conflicts)
