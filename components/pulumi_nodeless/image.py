"""The controller's image, built from the source for both architectures and pushed to a repository of ECR.

An alternative to a released image: `Controller` and `Environment` take the reference that this component
puts out. It needs BuildKit (`docker buildx`) where Pulumi runs, and the package `pulumi-docker-build`, which
the extra `image` of this distribution brings. A build happens in `pulumi up` only, and again only when the
source, its path or the lock has changed.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

import pulumi_nodeless
from pulumi_nodeless import names
from pulumi_nodeless.arguments import ArgumentReader

PLATFORMS: Final = ("linux/amd64", "linux/arm64")
"""What nodes and Fargate run."""
DOCKERFILE: Final = "controller/Dockerfile"
_REFERENCE: Final = re.compile(
    r"[a-z0-9][\w.-]*(?::\d+(?=/))?(?:/[\w.-]+)*(?::(?P<tag>[\w.-]+))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_SOURCE: Final = Path(__file__).resolve().parents[2]
_KEPT: Final = 10
"""Untagged images that the repository keeps, for going back."""


class ControllerImageArgs(TypedDict):
    """What is built, and where it goes."""

    cluster_name: str
    """Name of the cluster. It is part of the repository's name."""
    source: NotRequired[str]
    """Directory with the nodeless repository. Default: the checkout from which this package is installed."""
    version: NotRequired[str]
    """Tag of the image and value of its OCI version label. Default: the version of this package."""
    revision: NotRequired[str]
    """Commit of the source, for the OCI revision label. Default: unknown."""
    platforms: NotRequired[Sequence[str]]
    """Platforms to build for. Default: linux/amd64 and linux/arm64."""
    base: NotRequired[str]
    """Python base image of both build stages, preferably by digest, for example
    `python:3.13-slim-trixie@sha256:...`. Default: the one in controller/Dockerfile, by tag."""
    force_delete: NotRequired[bool]
    """Whether the repository may be deleted while it contains images. Default: true, since they can be built
    again."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of the repository."""


class ControllerImage(pulumi.ComponentResource):
    """An image of the controller, built and pushed to ECR."""

    image: pulumi.Output[str]
    """Reference of the image by digest, for the `image` argument of the controller."""
    repository_url: pulumi.Output[str]
    """URL of the repository."""

    def __init__(
        self, name: str, args: ControllerImageArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        reader = ArgumentReader("ControllerImage", args, ControllerImageArgs)
        cluster, tags = reader.cluster_name(), reader.tags("tags")
        source = Path(reader.text("source", str(_SOURCE)))
        version = reader.text("version", pulumi_nodeless.__version__)
        revision = reader.text("revision", "unknown")
        platforms = reader.texts("platforms", PLATFORMS)
        base = read_base(reader, "base")
        force = reader.flag("force_delete", True)
        for unknown in sorted(set(platforms) - set(PLATFORMS)):
            reader.report("platforms", f"{unknown!r} is not one of {', '.join(PLATFORMS)}")
        if not (source / DOCKERFILE).is_file():
            reader.report("source", f"{source} has no {DOCKERFILE}", "give a checkout, or a released image")
        check_buildable(reader, "source")
        reader.check()
        super().__init__("nodeless:index:ControllerImage", name, {}, opts)
        repository = self._repository(name, cluster, force, tags)
        self.repository_url = repository.repository_url
        build_args = {"VERSION": version, "REVISION": revision}
        if base:
            build_args |= {"BUILD_BASE": base, "RUN_BASE": base}
        self.image = self._build(name, repository, source, platforms, build_args)
        self.register_outputs({"image": self.image, "repositoryUrl": self.repository_url})

    def _repository(
        self, name: str, cluster: str, force: bool, tags: Mapping[str, str]
    ) -> aws.ecr.Repository:
        repository = aws.ecr.Repository(
            f"{name}-repository",
            name=names.image_repository(cluster),
            force_delete=force,
            image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            encryption_configurations=[
                aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="AES256")
            ],
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        aws.ecr.LifecyclePolicy(
            f"{name}-lifecycle",
            repository=repository.name,
            policy=pulumi.Output.json_dumps(
                {
                    "rules": [
                        {
                            "rulePriority": 1,
                            "description": f"keep the last {_KEPT} untagged images",
                            "selection": {
                                "tagStatus": "untagged",
                                "countType": "imageCountMoreThan",
                                "countNumber": _KEPT,
                            },
                            "action": {"type": "expire"},
                        }
                    ]
                }
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return repository

    def _build(
        self,
        name: str,
        repository: aws.ecr.Repository,
        source: Path,
        platforms: Sequence[str],
        build_args: Mapping[str, str],
    ) -> pulumi.Output[str]:
        # Imported here: only who builds needs the package.
        import pulumi_docker_build as docker_build  # noqa: PLC0415

        token = aws.ecr.get_authorization_token_output(
            registry_id=repository.registry_id, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        image = docker_build.Image(
            f"{name}-image",
            context=docker_build.BuildContextArgs(location=str(source)),
            dockerfile=docker_build.DockerfileArgs(location=str(source / DOCKERFILE)),
            platforms=[docker_build.Platform(platform) for platform in platforms],
            build_args=build_args,
            build_on_preview=False,
            push=True,
            tags=[repository.repository_url.apply(lambda url: f"{url}:{build_args['VERSION']}")],
            registries=[
                docker_build.RegistryArgs(
                    address=repository.repository_url,
                    username=token.user_name,
                    password=pulumi.Output.secret(token.password),
                )
            ],
            opts=pulumi.ResourceOptions(parent=self),
        )
        digest: pulumi.Output[Any] = image.digest
        return pulumi.Output.all(repository.repository_url, digest).apply(
            lambda parts: f"{parts[0]}@{parts[1]}"
        )


def read_base(reader: ArgumentReader, argument: str) -> str:
    """Reference of the base image; reports one that names no fixed content. Empty where none is given."""
    base = reader.text(argument)
    if not base:
        return ""
    found = _REFERENCE.fullmatch(base)
    if found is None:
        reader.report(
            argument, f"{base!r} is not a reference of an image", "python:3.13-slim-trixie@sha256:..."
        )
    elif not found["digest"] and found["tag"] in (None, "latest"):
        reader.report(
            argument, f"{base!r} may refer to another image tomorrow", "add a tag, best with its digest"
        )
    return base


def check_buildable(reader: ArgumentReader, argument: str) -> None:
    """Reports `argument`, which asks for a build, where the package that builds is missing."""
    if find_spec("pulumi_docker_build") is None:
        reader.report(
            argument, "building needs the package pulumi-docker-build", "pip install 'pulumi-nodeless[image]'"
        )
