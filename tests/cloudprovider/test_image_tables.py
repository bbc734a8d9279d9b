"""Images by worked examples: what each key of a selector asks of EC2, and each family's parameters (5)."""

from typing import Any

import pytest

from nodeless.api.reading import read_node_class
from nodeless.cloudprovider.aws.image_parameters import parameters_for
from nodeless.cloudprovider.aws.images import image_request, in_order, read_image
from nodeless.launch.images import image_for
from nodeless.launch.resolved import Image
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ARCH, INSTANCE_ACCELERATOR_MANUFACTURER, INSTANCE_GPU_MANUFACTURER
from nodeless.model.requirements import Requirement, Requirements

BOTH = ["self", "amazon"]


def requested(selector: dict[str, str]) -> tuple[list[str] | None, dict[str, list[str]]]:
    """Owners and filters of the request that follows from a node template's `amiSelector`."""
    discovery = {"karpenter.sh/discovery": "demo"}
    spec = {"subnetSelector": discovery, "securityGroupSelector": discovery, "amiSelector": selector}
    template = {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "default"},
        "spec": spec,
    }
    (term,) = read_node_class(template).images
    request = image_request(term)
    return request.get("Owners"), {each["Name"]: each["Values"] for each in request.get("Filters", ())}


@pytest.mark.parametrize(
    ("selector", "owners", "filters"),
    [
        pytest.param({"aws-ids": "ami-1, ami-2"}, None, {"image-id": ["ami-1", "ami-2"]}, id="aws-ids"),
        pytest.param({"aws::ids": "ami-1"}, None, {"image-id": ["ami-1"]}, id="aws::ids"),
        pytest.param({"aws::name": "node-*"}, BOTH, {"name": ["node-*"]}, id="aws::name"),
        pytest.param({"aws::name": "a,b"}, BOTH, {"name": ["a,b"]}, id="a-name-is-one-value"),
        pytest.param(
            {"aws::name": "node", "aws::owners": "self, 123456789012"},
            ["self", "123456789012"],
            {"name": ["node"]},
            id="aws::owners",
        ),
        pytest.param({"aws::owners": "amazon"}, ["amazon"], {}, id="owners-alone"),
        pytest.param({"team": "a,b"}, BOTH, {"tag:team": ["a,b"]}, id="a-tag-is-one-value"),
        pytest.param({"team": "a*"}, BOTH, {"tag:team": ["a*"]}, id="a-wildcard"),
        # The same images as those of which the tag has a value that matches *.
        pytest.param({"team": "*"}, BOTH, {"tag-key": ["team"]}, id="any-value"),
        pytest.param(
            {"aws-ids": "ami-1", "team": "a"},
            None,
            {"image-id": ["ami-1"], "tag:team": ["a"]},
            id="all-match",
        ),
    ],
)
def test_aws_5_2_each_key_of_an_image_selector_is_its_filter(
    selector: dict[str, str], owners: list[str] | None, filters: dict[str, list[str]]
) -> None:
    assert requested(selector) == (owners, filters)


def a_record(identifier: str, created: str, **changes: Any) -> dict[str, Any]:
    record = {"ImageId": identifier, "Architecture": "x86_64", "CreationDate": created, "Name": identifier}
    return {**record, **changes}


@pytest.mark.parametrize(
    ("records", "ids"),
    [
        pytest.param(
            [a_record("ami-1", "2024-01-01"), a_record("ami-2", "2024-02-01")], ["ami-2"], id="newest-first"
        ),
        pytest.param(
            [a_record("ami-1", "2024-01-01", Name="b"), a_record("ami-2", "2024-01-01", Name="a")],
            ["ami-1"],
            id="ties-by-name-backwards",
        ),
        pytest.param(
            [a_record("ami-1", "2024-01-01"), a_record("ami-2", "2024-02-01", Architecture="arm64")],
            ["ami-2", "ami-1"],
            id="one-of-each-kind",
        ),
        pytest.param(
            [
                a_record("ami-1", "2024-01-01"),
                a_record("ami-2", "2024-02-01", Tags=[{"Key": "kubernetes.io/os", "Value": "linux"}]),
            ],
            ["ami-2", "ami-1"],
            id="a-tag-makes-another-kind",
        ),
        pytest.param(
            [
                a_record("ami-1", "2024-01-01"),
                a_record("ami-2", "2024-02-01", Tags=[{"Key": "team", "Value": "a"}]),
            ],
            ["ami-2"],
            id="a-tag-of-ones-own-does-not",
        ),
    ],
)
def test_aws_5_2_images_stand_in_order_of_preference(records: list[dict[str, Any]], ids: list[str]) -> None:
    images = [image for record in records if (image := read_image(record)) is not None]
    assert [each.id for each in in_order(images)] == ids


def a_kind(architecture: str, maker: str, *, gpus_are_accelerators: bool) -> InstanceType:
    """A type with a GPU or an accelerator of a maker, or with neither."""
    gpu = maker if maker != "aws" else ""
    accelerator = maker if gpus_are_accelerators or maker == "aws" else ""
    borne = {INSTANCE_GPU_MANUFACTURER: gpu, INSTANCE_ACCELERATOR_MANUFACTURER: accelerator}
    makers = (Requirement.of(key, "In", [value] if value else []) for key, value in borne.items())
    requirements = Requirements([Requirement.of(ARCH, "In", [architecture]), *makers])
    return InstanceType(name="kind", requirements=requirements, capacity={}, overhead={}, offerings=())


def variants(family: str, version: str = "1.29", release: str = "") -> dict[str, str]:
    """What each kind of type boots from: plain, GPU, Neuron, on x86 and ARM; in both generations."""
    parameters = parameters_for(family, version, release)
    images = in_order(
        Image(parameter.name, kind, parameter.name) for parameter in parameters for kind in parameter.kinds
    )
    chosen: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for generation, found in chosen.items():
        for architecture in ("amd64", "arm64"):
            for maker in ("", "nvidia", "aws", "habana"):
                image = image_for(a_kind(architecture, maker, gpus_are_accelerators=generation), images)
                if image is not None:
                    found[f"{architecture} {maker}".strip()] = image.id
    assert chosen[True] == chosen[False]
    return chosen[True]


def test_aws_5_1_al2_has_an_image_for_gpus_and_neuron_and_none_for_gpus_on_arm() -> None:
    root, tail = "/aws/service/eks/optimized-ami/1.29/amazon-linux-2", "/recommended/image_id"
    assert variants("AL2") == {
        "amd64": root + tail,
        "amd64 nvidia": f"{root}-gpu{tail}",
        "amd64 aws": f"{root}-gpu{tail}",
        "amd64 habana": root + tail,
        "arm64": f"{root}-arm64{tail}",
        "arm64 habana": f"{root}-arm64{tail}",
    }


def test_aws_5_1_bottlerocket_has_an_image_for_nvidia_on_both_architectures() -> None:
    root = "/aws/service/bottlerocket/aws-k8s-1.29"
    plain = {f"amd64 {maker}".strip(): f"{root}/x86_64/latest/image_id" for maker in ("", "aws", "habana")}
    arm = {f"arm64 {maker}".strip(): f"{root}/arm64/latest/image_id" for maker in ("", "aws", "habana")}
    nvidia = {
        "amd64 nvidia": f"{root}-nvidia/x86_64/latest/image_id",
        "arm64 nvidia": f"{root}-nvidia/arm64/latest/image_id",
    }
    assert variants("Bottlerocket") == {**plain, **arm, **nvidia}


def test_aws_5_1_ubuntu_has_one_image_for_each_architecture_and_custom_has_none() -> None:
    root, tail = "/aws/service/canonical/ubuntu/eks/20.04/1.29/stable/current", "hvm/ebs-gp2/ami-id"
    kinds = [f"{maker}".strip() for maker in ("", "nvidia", "aws", "habana")]
    assert variants("Ubuntu") == {
        f"{architecture} {kind}".strip(): f"{root}/{architecture}/{tail}"
        for architecture in ("amd64", "arm64")
        for kind in kinds
    }
    assert variants("Custom") == {}


def test_aws_5_3_al2023_has_an_image_for_each_kind_but_neuron_on_arm() -> None:
    root, tail = "/aws/service/eks/optimized-ami/1.30/amazon-linux-2023", "recommended/image_id"
    assert variants("AL2023", "1.30") == {
        "amd64": f"{root}/x86_64/standard/{tail}",
        "amd64 nvidia": f"{root}/x86_64/nvidia/{tail}",
        "amd64 aws": f"{root}/x86_64/neuron/{tail}",
        "amd64 habana": f"{root}/x86_64/standard/{tail}",
        "arm64": f"{root}/arm64/standard/{tail}",
        "arm64 nvidia": f"{root}/arm64/nvidia/{tail}",
        "arm64 habana": f"{root}/arm64/standard/{tail}",
    }


@pytest.mark.parametrize(
    ("family", "release", "kind", "name"),
    [
        pytest.param(
            "AL2023",
            "v20240807",
            "arm64 nvidia",
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2023/arm64/nvidia/"
            "amazon-eks-node-al2023-arm64-nvidia-1.30-v20240807/image_id",
            id="al2023",
        ),
        pytest.param(
            "AL2",
            "v20240807",
            "amd64",
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2/amazon-eks-node-1.30-v20240807/image_id",
            id="al2",
        ),
        pytest.param(
            "AL2",
            "v20240807",
            "arm64",
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-arm64/"
            "amazon-eks-arm64-node-1.30-v20240807/image_id",
            id="al2-arm64",
        ),
        pytest.param(
            "AL2",
            "v20240807",
            "amd64 aws",
            "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-gpu/"
            "amazon-eks-gpu-node-1.30-v20240807/image_id",
            id="al2-gpu",
        ),
        pytest.param(
            "Bottlerocket",
            "v1.20.3",
            "amd64",
            "/aws/service/bottlerocket/aws-k8s-1.30/x86_64/1.20.3/image_id",
            id="bottlerocket-without-its-v",
        ),
        *(
            pytest.param(
                f"Windows{year}",
                "",
                "amd64",
                f"/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-1.30/image_id",
                id=f"windows{year}",
            )
            for year in (2019, 2022, 2025)
        ),
    ],
)
def test_aws_5_3_a_release_has_parameters_of_its_own(family: str, release: str, kind: str, name: str) -> None:
    assert variants(family, "1.30", release)[kind] == name
