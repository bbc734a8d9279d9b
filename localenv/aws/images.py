"""Machine images: what the AMI catalog holds and the public SSM parameters that lead to them.

EKS-optimized Amazon Linux 2 (up to Kubernetes 1.32, where AWS stopped), AL2 for GPUs, AL2023, Bottlerocket,
Windows Server and Canonical's Ubuntu for EKS, for every minor version from 1.24 to 1.36, in both
architectures where AWS has them. `catalog` is pure; the server writes it to a file that moto loads at
start.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers
from localenv.aws.upstream.pages import page

VERSIONS = tuple(f"1.{minor}" for minor in range(24, 37))
AMAZON = "602401143452"
BOTTLEROCKET = "092701018921"
CANONICAL = "099720109477"
WINDOWS = "801119661308"
WINDOWS_YEARS = ("2019", "2022", "2025")
#: The first Kubernetes version with images of Windows Server 2025.
WINDOWS_2025_FROM = "1.35"
#: The last Kubernetes version with images of Amazon Linux 2. Source:
#: https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html.
AL2_UNTIL = "1.32"
#: Images of version 1.24 carry this day; each later version is 120 days younger.
_BOTTLEROCKET_RELEASE = "1.20.0"
FIRST_DAY = date(2022, 11, 15)


def catalog() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The images in moto's file format, and the image id of every SSM parameter name."""
    images: dict[str, dict[str, Any]] = {}
    parameters: dict[str, str] = {}
    for index, version in enumerate(VERSIONS):
        created = FIRST_DAY + timedelta(days=120 * index)
        for name, parameter, architecture, owner, device in _families(version, created):
            image_id = f"ami-0{hashlib.sha256(name.encode()).hexdigest()[:16]}"
            images[image_id] = _image(
                image_id, name, architecture=architecture, owner=owner, device=device, created=created
            )
            parameters[parameter] = parameters[_of_release(parameter, name)] = image_id
    return list(images.values()), parameters


def _families(version: str, created: date) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, parameter, architecture, owner and root device of the images of one Kubernetes version."""
    stamp = created.strftime("v%Y%m%d")
    eks = f"/aws/service/eks/optimized-ami/{version}"
    for variant, prefix, architecture in (
        ("amazon-linux-2", "amazon-eks-node", "x86_64"),
        ("amazon-linux-2-arm64", "amazon-eks-arm64-node", "arm64"),
        ("amazon-linux-2-gpu", "amazon-eks-gpu-node", "x86_64"),
    ):
        if version in VERSIONS[VERSIONS.index(AL2_UNTIL) + 1 :]:
            continue
        parameter = f"{eks}/{variant}/recommended/image_id"
        yield f"{prefix}-{version}-{stamp}", parameter, architecture, AMAZON, "/dev/xvda"
    for architecture in ("x86_64", "arm64"):
        for variant in ("standard", "nvidia", *(("neuron",) if architecture == "x86_64" else ())):
            name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{stamp}"
            parameter = f"{eks}/amazon-linux-2023/{architecture}/{variant}/recommended/image_id"
            yield name, parameter, architecture, AMAZON, "/dev/xvda"
        for suffix in ("", "-nvidia"):
            name = f"bottlerocket-aws-k8s-{version}{suffix}-{architecture}-v{_BOTTLEROCKET_RELEASE}-{stamp}"
            parameter = f"/aws/service/bottlerocket/aws-k8s-{version}{suffix}/{architecture}/latest/image_id"
            yield name, parameter, architecture, BOTTLEROCKET, "/dev/xvda"
    for architecture, debian in (("x86_64", "amd64"), ("arm64", "arm64")):
        name = f"ubuntu-eks/k8s_{version}/images/hvm-ssd/ubuntu-focal-20.04-{debian}-server-{stamp[1:]}"
        parameter = (
            f"/aws/service/canonical/ubuntu/eks/20.04/{version}/stable/current/{debian}/hvm/ebs-gp2/ami-id"
        )
        yield name, parameter, architecture, CANONICAL, "/dev/sda1"
    for year in WINDOWS_YEARS:
        if year == "2025" and version not in VERSIONS[VERSIONS.index(WINDOWS_2025_FROM) :]:
            continue
        image = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
        parameter = f"/aws/service/ami-windows-latest/{image}/image_id"
        yield f"{image}-{stamp[1:]}", parameter, "x86_64", WINDOWS, "/dev/sda1"


def _of_release(parameter: str, name: str) -> str:
    """The parameter that stays with this release of an image; the same one where AWS has no other."""
    of_bottlerocket = parameter.replace("/latest/", f"/{_BOTTLEROCKET_RELEASE}/")
    return of_bottlerocket.replace("/recommended/", f"/{name}/")


def _image(
    image_id: str, name: str, *, architecture: str, owner: str, device: str, created: date
) -> dict[str, Any]:
    return {
        "ami_id": image_id,
        "name": name,
        "description": f"Kubernetes node image {name}",
        "owner_id": owner,
        "image_location": f"amazon/{name}",
        "architecture": architecture,
        "creation_date": f"{created.isoformat()}T09:30:00.000Z",
        "public": True,
        "state": "available",
        "virtualization_type": "hvm",
        "hypervisor": "xen",
        "root_device_type": "ebs",
        "root_device_name": device,
        "image_type": "machine",
        "sriov": "simple",
    }


_PARAMETERS = catalog()[1]
#: Parameters of a page of GetParametersByPath, at most.
_PAGE = 10
_ARN = re.compile(r"^arn:[^:]+:ssm:[^:]*:\d*:parameter(?=/)")
_OWN_PREFIXES = (
    "/aws/service/eks/",
    "/aws/service/bottlerocket/",
    "/aws/service/canonical/",
    "/aws/service/ami-windows-latest/Windows_Server-",
)


def get_parameter(call: Call) -> dict[str, Any]:
    """ssm.GetParameter: the public parameters of node images, by name or ARN; every other one is moto's."""
    name = _ARN.sub("", str(call.parameters.get("Name", "")))
    if not name.startswith(_OWN_PREFIXES):
        return call.forward()
    if name not in _PARAMETERS:
        raise AwsError("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": _parameter(call, name)}


def get_parameters(call: Call) -> dict[str, Any]:
    """ssm.GetParameters, likewise."""
    names = [str(n) for n in call.parameters.get("Names", [])]
    own = [n for n in names if n.startswith(_OWN_PREFIXES)]
    others = [n for n in names if n not in own]
    answer: dict[str, Any] = (
        call.forward(Names=others) if others else {"Parameters": [], "InvalidParameters": []}
    )
    answer["Parameters"] += [_parameter(call, n) for n in own if n in _PARAMETERS]
    answer["InvalidParameters"] += [n for n in own if n not in _PARAMETERS]
    return answer


def get_parameters_by_path(call: Call) -> dict[str, Any]:
    """ssm.GetParametersByPath: what lies below a path of ours, in pages; every other path is moto's."""
    path = str(call.parameters.get("Path", "")).rstrip("/") + "/"
    if not path.startswith(_OWN_PREFIXES):
        return call.forward()
    below = sorted(name for name in _PARAMETERS if name.startswith(path))
    if not call.parameters.get("Recursive"):
        below = [name for name in below if "/" not in name.removeprefix(path)]
    names, token = page(below, call.parameters, default=_PAGE, maximum=_PAGE)
    answer: dict[str, Any] = {"Parameters": [_parameter(call, name) for name in names]}
    return answer | ({"NextToken": token} if token else {})


def _parameter(call: Call, name: str) -> dict[str, Any]:
    return {
        "Name": name,
        "Type": "String",
        "Value": _PARAMETERS[name],
        "Version": 1,
        "ARN": f"arn:aws:ssm:{call.region}::parameter{name}",
        "DataType": "text",
    }


HANDLERS: Handlers = {
    ("ssm", "GetParameter"): get_parameter,
    ("ssm", "GetParameters"): get_parameters,
    ("ssm", "GetParametersByPath"): get_parameters_by_path,
}
