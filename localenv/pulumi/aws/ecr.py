"""Repositories of ECR and what they keep."""

from __future__ import annotations

from localenv.pulumi.aws.clients import AwsClients, AwsResource, changed_tags, tag_list, unless_gone
from localenv.pulumi.aws.ec2 import given, present, with_tags
from localenv.pulumi.resources import Inputs, Outputs


class Repository(AwsResource):
    """A repository of images; its id is its name."""

    token = "aws:ecr/repository:Repository"
    in_place = frozenset({"forceDelete", "imageScanningConfiguration", "imageTagMutability", "tags"})
    computed = ("arn", "registryId", "repositoryUrl", "tagsAll")
    physical_name = "name"

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        configurations = inputs.get("encryptionConfigurations", [])
        encryption = given(configurations[0], "encryptionType", "kmsKey") if configurations else None
        backend.ecr.create_repository(
            repositoryName=inputs["name"],
            **given(inputs, "imageScanningConfiguration", "imageTagMutability"),
            **present(encryptionConfiguration=encryption),
            tags=tag_list(inputs.get("tags")),
        )
        return str(inputs["name"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ecr.describe_repositories, repositoryNames=[identity])
        if reply is None:
            return None
        (found,) = reply["repositories"]
        return with_tags(
            inputs,
            {
                "arn": found["repositoryArn"],
                "registryId": found["registryId"],
                "repositoryUrl": found["repositoryUri"],
            },
        )

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        if (scanning := new.get("imageScanningConfiguration")) != old.get("imageScanningConfiguration"):
            backend.ecr.put_image_scanning_configuration(
                repositoryName=identity, imageScanningConfiguration=scanning or {"scanOnPush": False}
            )
        if (mutability := new.get("imageTagMutability", "MUTABLE")) != old.get(
            "imageTagMutability", "MUTABLE"
        ):
            backend.ecr.put_image_tag_mutability(repositoryName=identity, imageTagMutability=mutability)
        removed, added = changed_tags(old.get("tags"), new.get("tags"))
        arn = backend.ecr.describe_repositories(repositoryNames=[identity])["repositories"][0][
            "repositoryArn"
        ]
        if removed:
            backend.ecr.untag_resource(resourceArn=arn, tagKeys=removed)
        if added:
            backend.ecr.tag_resource(resourceArn=arn, tags=tag_list(added))

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        # Without force ECR refuses while there are images.
        unless_gone(
            backend.ecr.delete_repository, repositoryName=identity, force=bool(state.get("forceDelete"))
        )


class LifecyclePolicy(AwsResource):
    """Which images a repository forgets; its id is the repository's name."""

    token = "aws:ecr/lifecyclePolicy:LifecyclePolicy"
    required = frozenset({"repository", "policy"})
    computed = ("registryId",)

    def create(self, backend: AwsClients, inputs: Inputs) -> str:
        backend.ecr.put_lifecycle_policy(
            repositoryName=inputs["repository"], lifecyclePolicyText=inputs["policy"]
        )
        return str(inputs["repository"])

    def read(self, backend: AwsClients, identity: str, inputs: Inputs) -> Outputs | None:
        reply = unless_gone(backend.ecr.get_lifecycle_policy, repositoryName=identity)
        return None if reply is None else {"registryId": reply["registryId"]}

    def delete(self, backend: AwsClients, identity: str, state: Inputs) -> None:
        unless_gone(backend.ecr.delete_lifecycle_policy, repositoryName=identity)
