"""Names of the public SSM parameters that hold the ids of the default images. Pure.

| family | images |
|---|---|
| AL2 | x86, x86 for GPUs and Neuron, arm64 |
| AL2023 | x86 and arm64, each plain and for NVIDIA; x86 for Neuron |
| Bottlerocket | x86 and arm64, each plain and for NVIDIA |
| Ubuntu | x86, arm64 |
| Windows2019, Windows2022, Windows2025 | x86 |

Who made the GPU or the accelerator decides: those of AMD and Habana need no driver of NVIDIA's. GPUs are
asked for by labels of their own, which types bear in both generations.

AWS publishes AL2 images up to Kubernetes 1.32. A release (v1 alias `al2023@v20240807`) has
parameters of its own beside the newest one's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeless.model.labels import ARCH, INSTANCE_ACCELERATOR_MANUFACTURER, INSTANCE_GPU_MANUFACTURER
from nodeless.model.requirements import IN, NOT_IN, Requirement, Requirements

_WINDOWS = "Windows"
_NVIDIA = Requirement.of(INSTANCE_GPU_MANUFACTURER, IN, ["nvidia"])
_NO_NVIDIA = Requirement.of(INSTANCE_GPU_MANUFACTURER, NOT_IN, ["nvidia"])
_NEURON = Requirement.of(INSTANCE_ACCELERATOR_MANUFACTURER, IN, ["aws"])
_NO_NEURON = Requirement.of(INSTANCE_ACCELERATOR_MANUFACTURER, NOT_IN, ["aws"])


@dataclass(frozen=True, slots=True)
class ImageParameter:
    """A parameter and the instance types that its image is for: those that meet one of `kinds`."""

    name: str
    kinds: tuple[Requirements, ...]


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
        ImageParameter(_of_release(family, version, each.name, release), each.kinds) for each in newest
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


def _parameter(name: str, architecture: str, *kinds: tuple[Requirement, ...]) -> ImageParameter:
    """For types of an architecture; without kinds for all of them."""
    runs = Requirement.of(ARCH, IN, [architecture])
    return ImageParameter(name, tuple(Requirements([runs, *kind]) for kind in kinds or ((),)))


def _al2(version: str) -> Iterator[ImageParameter]:
    root, tail = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2", "recommended/image_id"
    yield _parameter(f"{root}/{tail}", "amd64", (_NO_NVIDIA, _NO_NEURON))
    yield _parameter(f"{root}-gpu/{tail}", "amd64", (_NVIDIA,), (_NEURON,))
    yield _parameter(f"{root}-arm64/{tail}", "arm64", (_NO_NVIDIA, _NO_NEURON))


def _al2023(version: str) -> Iterator[ImageParameter]:
    root, tail = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023", "recommended/image_id"
    for label, spelled in (("amd64", "x86_64"), ("arm64", "arm64")):
        yield _parameter(f"{root}/{spelled}/standard/{tail}", label, (_NO_NVIDIA, _NO_NEURON))
        yield _parameter(f"{root}/{spelled}/nvidia/{tail}", label, (_NVIDIA,))
    yield _parameter(f"{root}/x86_64/neuron/{tail}", "amd64", (_NEURON,))


def _bottlerocket(version: str) -> Iterator[ImageParameter]:
    root = f"/aws/service/bottlerocket/aws-k8s-{version}"
    for label, spelled in (("amd64", "x86_64"), ("arm64", "arm64")):
        yield _parameter(f"{root}/{spelled}/latest/image_id", label, (_NO_NVIDIA,))
        yield _parameter(f"{root}-nvidia/{spelled}/latest/image_id", label, (_NVIDIA,))


def _ubuntu(version: str) -> Iterator[ImageParameter]:
    root = f"/aws/service/canonical/ubuntu/eks/20.04/{version}/stable/current"
    for architecture in ("amd64", "arm64"):
        yield _parameter(f"{root}/{architecture}/hvm/ebs-gp2/ami-id", architecture)
