"""A build without BuildKit: what is wrong with it, and the image's manifests. Pure.

No step is run. Digests are made of what decides a layer: the base, the instruction, and the files that it
copies; the same build gives the same digest, and a changed file that is copied another one. Configuration and
manifests have the form of the OCI image specification, https://github.com/opencontainers/image-spec.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localenv.pulumi.docker_build.context import Context
from localenv.pulumi.docker_build.dockerfile import Dockerfile, DockerfileError, Instruction, Stage

INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_COPYING = ("ADD", "COPY")
_CHANGING_FILES = frozenset({*_COPYING, "RUN", "WORKDIR"})


@dataclass(frozen=True, slots=True)
class Build:
    """What is built: the Dockerfile on a context, with arguments, for platforms such as `linux/arm64`."""

    dockerfile: Dockerfile
    context: Context
    arguments: Mapping[str, str]
    platforms: Sequence[str]

    def faults(self) -> list[str]:
        """Everything because of which BuildKit would stop, or a release should."""
        unknown = sorted(set(self.arguments) - self.dockerfile.declared_arguments())
        return [
            *(f"no ARG declares the build argument {name}" for name in unknown),
            *(fault for index in range(len(self.dockerfile.stages)) for fault in self._faults_of(index)),
        ]

    def image(self) -> Image:
        """The image of all platforms."""
        manifests = [self._manifest(platform) for platform in self.platforms]
        return Image(_text({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))

    def _faults_of(self, index: int) -> Iterator[str]:
        stage = self.dockerfile.stages[index]
        earlier = {stage.name for stage in self.dockerfile.stages[:index] if stage.name}
        try:
            base = self.dockerfile.base(stage, self.arguments)
        except DockerfileError as error:
            yield str(error)
        else:
            if base not in earlier and not _is_pinned(base):
                yield f"line {stage.line}: FROM {base}: name a version or a digest"
        for one in (instruction for instruction in stage.instructions if instruction.name in _COPYING):
            origin = one.flags.get("from")
            if origin is not None and origin not in earlier and not _is_pinned(origin):
                yield f"line {one.line}: {one.name} --from={origin}: there is no such stage before it"
            for source in one.operands[:-1] if origin is None else ():
                if not self.context.matching(source):
                    yield f"line {one.line}: {one.name} {source}: not in the context"

    def _manifest(self, platform: str) -> dict[str, Any]:
        layers = self._layers(self.dockerfile.final, platform)
        system, architecture, *variant = platform.split("/")
        config = _text(
            {
                "architecture": architecture,
                "os": system,
                "config": configuration(self.dockerfile.final, self.arguments),
                "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
            }
        )
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": layers,
        }
        parts = {"os": system, "architecture": architecture} | dict(zip(["variant"], variant, strict=False))
        return _descriptor(_MANIFEST, _text(manifest)) | {"platform": parts}

    def _layers(self, stage: Stage, platform: str) -> list[dict[str, Any]]:
        """A layer for each instruction that changes files, the base's as one of its own."""
        by_name = {stage.name: stage for stage in self.dockerfile.stages if stage.name}
        base = self.dockerfile.base(stage, self.arguments)
        layers = (
            self._layers(by_name[base], platform)
            if base in by_name
            else [_layer(hashlib.sha256(f"{platform} {base}".encode()).hexdigest(), 0)]
        )
        used = {name: value for name, value in self.arguments.items() if _uses(stage, name)}
        for instruction in stage.instructions:
            if instruction.name in _CHANGING_FILES:
                copied = self._list_copied(instruction)
                origin = instruction.flags.get("from", "")
                inside = self._layers(by_name[origin], platform)[-1]["digest"] if origin in by_name else ""
                parts = [
                    layers[-1]["digest"],
                    instruction.name,
                    instruction.text,
                    self.context.digest(copied),
                    inside,
                ]
                seed = json.dumps([*parts, used])
                size = sum(self.context.sizes[path] for path in copied)
                layers = [*layers, _layer(hashlib.sha256(seed.encode()).hexdigest(), size)]
        return layers

    def _list_copied(self, instruction: Instruction) -> list[str]:
        if instruction.name not in _COPYING or "from" in instruction.flags:
            return []
        return sorted(
            {path for source in instruction.operands[:-1] for path in self.context.matching(source)}
        )


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a registry takes it: the text of its index."""

    manifest: str

    @property
    def digest(self) -> str:
        """The digest that the registry knows it by."""
        return f"sha256:{hashlib.sha256(self.manifest.encode()).hexdigest()}"


def configuration(stage: Stage, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What a container of a stage's image runs with, in the words of the OCI specification."""
    said: dict[str, Any] = {"Env": [], "Labels": {}, "ExposedPorts": {}}
    values: dict[str, str] = {}
    for instruction in stage.instructions:
        text = _fill_in(instruction.text, values)
        match instruction.name:
            case "ARG":
                name, _, default = text.partition("=")
                values[name] = arguments.get(name, default)
            case "ENV":
                said["Env"] += shlex.split(text)
            case "LABEL":
                said["Labels"] |= dict(part.split("=", 1) for part in shlex.split(text))
            case "EXPOSE":
                ports = [port if "/" in port else f"{port}/tcp" for port in text.split()]
                said["ExposedPorts"] |= {port: {} for port in ports}
            case "USER":
                said["User"] = text
            case "WORKDIR":
                said["WorkingDir"] = text
            case "ENTRYPOINT":
                said["Entrypoint"] = _command(text)
            case "CMD":
                said["Cmd"] = _command(text)
    return said


def _command(text: str) -> list[str]:
    """The exec form is a list; the shell form is given to a shell."""
    return list(json.loads(text)) if text.startswith("[") else ["/bin/sh", "-c", text]


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _uses(stage: Stage, argument: str) -> bool:
    return any(
        instruction.name == "ARG" and instruction.text.partition("=")[0] == argument
        for instruction in stage.instructions
    )


def _is_pinned(reference: str) -> bool:
    """Whether it names a digest, or a tag that is not the moving one."""
    _, _, tag = reference.rpartition("/")[2].partition(":")
    return reference == "scratch" or "@sha256:" in reference or tag not in {"", "latest"}


def _layer(digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": _LAYER, "digest": f"sha256:{digest}", "size": size}


def _descriptor(kind: str, content: str) -> dict[str, Any]:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content.encode())}


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True)
