"""Names of the public SSM parameters that hold the ids of the default images. Pure.

| family | images |
|---|---|
| AL2 | x86, x86 for GPUs and Neuron, arm64 |
| AL2023 | x86 and arm64, each plain and for NVIDIA; x86 for Neuron |
| Bottlerocket | x86 and arm64, each plain and for NVIDIA |
| Ubuntu | x86, arm64 |
| Windows2019, Windows2022, Windows2025 | x86 |

AWS publishes AL2 images up to Kubernetes 1.32. A release (v1 alias `al2023@v20240807`) has
parameters of its own beside the newest one's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeless.model.labels import ARCH, INSTANCE_ACCELERATOR_MANUFACTURER
from nodeless.model.requirements import IN, NOT_IN, Requirement, Requirements

_WINDOWS = "Windows"


@dataclass(frozen=True, slots=True)
class ImageParameter:
    """A parameter and the instance types that its image is for."""

    name: str
    requirements: Requirements


def parameters_for(family: str, version: str, release: str = "") -> tuple[ImageParameter, ...]:
    """The parameters of a family for a Kubernetes version (`1.29`); none for family Custom.

    Args:
        family: AMI family.
        version: Kubernetes version.
        release: Release of the image, as `v20240807` or `1.20.3`; empty: the newest.
    """
    newest = _newest(family, version)
    if not release:
        return newest
    return tuple(
        ImageParameter(_of_release(family, version, each.name, release), each.requirements) for each in newest
    )


def _of_release(family: str, version: str, newest: str, release: str) -> str:
    """Bottlerocket names its versions without the v; Amazon Linux names whole images."""
    if family == "Bottlerocket":
        return newest.replace("/latest/", f"/{release.removeprefix('v')}/")
    if family == "AL2023":
        architecture, variant = newest.split("/")[-4:-2]
        image = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{release}"
    else:
        variant = newest.split("/amazon-linux-2")[1].partition("/")[0]
        image = f"amazon-eks{variant}-node-{version}-{release}"
    return newest.replace("/recommended/", f"/{image}/")


def _newest(family: str, version: str) -> tuple[ImageParameter, ...]:
    makers = {"AL2": _al2, "AL2023": _al2023, "Bottlerocket": _bottlerocket, "Ubuntu": _ubuntu}
    if family.startswith(_WINDOWS):
        return (_windows(family.removeprefix(_WINDOWS), version),)
    return tuple(makers[family](version)) if family in makers else ()


def _windows(year: str, version: str) -> ImageParameter:
    image = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
    return _parameter(f"/aws/service/ami-windows-latest/{image}/image_id", "amd64")


def _parameter(name: str, architecture: str, operator: str = "", *makers: str) -> ImageParameter:
    requirements = [Requirement.of(ARCH, IN, [architecture])]
    if operator:
        requirements.append(Requirement.of(INSTANCE_ACCELERATOR_MANUFACTURER, operator, makers))
    return ImageParameter(name, Requirements(requirements))


def _al2(version: str) -> Iterator[ImageParameter]:
    root, tail = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2", "recommended/image_id"
    yield _parameter(f"{root}/{tail}", "amd64", NOT_IN, "nvidia", "aws")
    yield _parameter(f"{root}-gpu/{tail}", "amd64", IN, "nvidia", "aws")
    yield _parameter(f"{root}-arm64/{tail}", "arm64", NOT_IN, "nvidia", "aws")


def _al2023(version: str) -> Iterator[ImageParameter]:
    root, tail = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023", "recommended/image_id"
    for label, spelled in (("amd64", "x86_64"), ("arm64", "arm64")):
        yield _parameter(f"{root}/{spelled}/standard/{tail}", label, NOT_IN, "nvidia", "aws")
        yield _parameter(f"{root}/{spelled}/nvidia/{tail}", label, IN, "nvidia")
    yield _parameter(f"{root}/x86_64/neuron/{tail}", "amd64", IN, "aws")


def _bottlerocket(version: str) -> Iterator[ImageParameter]:
    root = f"/aws/service/bottlerocket/aws-k8s-{version}"
    for label, spelled in (("amd64", "x86_64"), ("arm64", "arm64")):
        yield _parameter(f"{root}/{spelled}/latest/image_id", label, NOT_IN, "nvidia")
        yield _parameter(f"{root}-nvidia/{spelled}/latest/image_id", label, IN, "nvidia")


def _ubuntu(version: str) -> Iterator[ImageParameter]:
    root = f"/aws/service/canonical/ubuntu/eks/20.04/{version}/stable/current"
    for architecture in ("amd64", "arm64"):
        yield _parameter(f"{root}/{architecture}/hvm/ebs-gp2/ami-id", architecture)
