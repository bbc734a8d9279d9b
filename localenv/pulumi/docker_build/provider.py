"""The attached provider of package `docker-build`: images into the local ECR, without Docker.

Inputs are checked against the SDK's types; the Dockerfile and the context are read, as a build would read
them; the manifest is pushed to ECR under every tag, with the credentials that the program hands over. What
does not happen is the running of the build's steps. A build happens when the source, the Dockerfile or an
input changes, and in no preview: there the digest is unknown, as with the real provider and `buildOnPreview`
off. The credentials' change from one run to the next is none of the image's.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localenv.pulumi import wire
from localenv.pulumi.aws.clients import AwsClients, AwsEndpoint, unless_gone
from localenv.pulumi.docker_build.build import INDEX, Build
from localenv.pulumi.docker_build.context import read_context
from localenv.pulumi.docker_build.dockerfile import DockerfileError, parse
from localenv.pulumi.input_check import check_inputs
from localenv.pulumi.provider import Provider
from localenv.pulumi.resources import (
    Change,
    Checked,
    Difference,
    Fault,
    Inputs,
    Outputs,
    Proposal,
    ResourceFailed,
)

IMAGE = "docker-build:index:Image"
CONTEXT_HASH = "contextHash"
#: Inputs with a meaning here; the network is that of steps, which are not run.
_CARRIED_OUT = frozenset(
    {
        *("buildArgs", "buildOnPreview", "context", "dockerfile", "network"),
        *("platforms", "push", "registries", "tags"),
    }
)
_REFERENCE = re.compile(
    r"(?P<host>(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[\w-]+)\.amazonaws\.com(?:\.cn)?)"
    r"/(?P<repository>[^:@]+):(?P<tag>[\w.-]+)"
)


class DockerBuildProvider(Provider):
    """Carries out `docker-build:index:Image` on the local ECR."""

    package = "docker-build"

    def __init__(self, aws: AwsEndpoint) -> None:
        super().__init__()
        self._clients = AwsClients(aws, str(aws.session().region_name))

    def close(self) -> None:
        """Close the connections to AWS."""
        self._clients.close()

    def check(self, token: str, inputs: Inputs, proposal: Proposal) -> Checked:
        if token != IMAGE:
            return Checked(dict(inputs), (Fault("", f"resource type {token} is not known here"),))
        faults = [Fault("", problem) for problem in check_inputs(token, inputs)]
        faults += [
            Fault(key, "this input is not carried out without Docker")
            for key in inputs
            if key not in _CARRIED_OUT
        ]
        if faults:
            return Checked(dict(inputs), tuple(faults))
        try:
            build = _build_of(inputs)
        except (DockerfileError, OSError) as error:
            return Checked(dict(inputs), (Fault("dockerfile", str(error)),))
        faults = [Fault("dockerfile", fault) for fault in build.faults()]
        faults += [Fault("tags", fault) for fault in _tag_faults(inputs)]
        return Checked({**inputs, CONTEXT_HASH: _context_hash(build, inputs)}, tuple(faults))

    def compare(self, token: str, old: Inputs, new: Inputs) -> Difference:
        before, after = _without_passwords(old), _without_passwords(new)
        return Difference(
            tuple(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))
        )

    def foresee(self, token: str, inputs: Inputs) -> Outputs:
        return {**inputs, "digest": wire.UNKNOWN, "ref": wire.UNKNOWN}

    def foresee_change(self, token: str, change: Change) -> Outputs:
        return self.foresee(token, change.new)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        outputs = self._build_and_push(inputs)
        return str(outputs["digest"]), outputs

    def read(self, token: str, identity: str, inputs: Inputs) -> Outputs | None:
        name = _parts(inputs["tags"][0])
        reply = self._details(name, imageTag=name["tag"])
        return _outputs(inputs, reply["imageDetails"][0]["imageDigest"]) if reply else None

    def update(self, token: str, identity: str, change: Change, timeout: float) -> Outputs:
        return self._build_and_push(change.new)

    def delete(self, token: str, identity: str, inputs: Inputs, state: Inputs, timeout: float) -> None:
        for name in map(_parts, state.get("tags") or ()):
            unless_gone(
                self._clients.ecr.batch_delete_image,
                repositoryName=name["repository"],
                imageIds=[{"imageDigest": state["digest"]}],
            )

    def _build_and_push(self, inputs: Inputs) -> Outputs:
        image = _build_of(inputs).image()
        for name in map(_parts, inputs["tags"]):
            self._sign_in(name, inputs)
            if not self._holds(name, image.digest):
                self._clients.ecr.put_image(
                    repositoryName=name["repository"],
                    imageTag=name["tag"],
                    imageManifest=image.manifest,
                    imageManifestMediaType=INDEX,
                    imageDigest=image.digest,
                )
        return _outputs(inputs, image.digest)

    def _sign_in(self, name: re.Match[str], inputs: Inputs) -> None:
        """As the registry would: the credentials must be those that ECR gave out."""
        reply = self._clients.ecr.get_authorization_token(registryIds=[name["account"]])
        token = base64.b64decode(reply["authorizationData"][0]["authorizationToken"]).decode()
        given = {
            f"{registry.get('username')}:{registry.get('password')}"
            for registry in inputs.get("registries") or ()
            if str(registry["address"]).removeprefix("https://").partition("/")[0] == name["host"]
        }
        if token not in given:
            raise ResourceFailed(
                f"push to {name['host']}: no basic auth credentials"
                "\nhint: give `registries` the user name and password of getAuthorizationToken"
            )

    def _holds(self, name: re.Match[str], digest: str) -> bool:
        reply = self._details(name, imageDigest=digest)
        return reply is not None and name["tag"] in reply["imageDetails"][0].get("imageTags", ())

    def _details(self, name: re.Match[str], **image: str) -> Any:
        """What ECR knows of an image, None when there is none."""
        return unless_gone(
            self._clients.ecr.describe_images, repositoryName=name["repository"], imageIds=[image]
        )


def _build_of(inputs: Inputs) -> Build:
    dockerfile = Path(inputs["dockerfile"]["location"])
    return Build(
        parse(dockerfile.read_text()),
        read_context(Path(inputs["context"]["location"]), dockerfile),
        inputs.get("buildArgs") or {},
        inputs.get("platforms") or ["linux/amd64"],
    )


def _context_hash(build: Build, inputs: Inputs) -> str:
    files = build.context.digest(build.context.digests)
    dockerfile = Path(inputs["dockerfile"]["location"]).read_bytes()
    return hashlib.sha256(files.encode() + dockerfile).hexdigest()


def _tag_faults(inputs: Inputs) -> Iterator[str]:
    """Tags that cannot be pushed; those that are not known yet wait for the update."""
    if not inputs.get("push") or not inputs.get("tags"):
        yield "an image without `push` and a tag stays nowhere"
    for tag in inputs.get("tags") or ():
        if tag != wire.UNKNOWN and not _REFERENCE.fullmatch(tag):
            yield f"{tag}: not a tag of an ECR repository"


def _parts(tag: str) -> re.Match[str]:
    found = _REFERENCE.fullmatch(tag)
    if found is None:
        raise ResourceFailed(f"{tag}: not a tag of an ECR repository")
    return found


def _without_passwords(inputs: Inputs) -> dict[str, Any]:
    registries = [
        {key: value for key, value in registry.items() if key != "password"}
        for registry in inputs.get("registries") or ()
    ]
    return {**inputs, "registries": registries}


def _outputs(inputs: Inputs, digest: str) -> Outputs:
    return {**inputs, "digest": digest, "ref": f"{inputs['tags'][0]}@{digest}"}
