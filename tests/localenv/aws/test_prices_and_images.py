"""Prices of the price book over AWS's calls, and node images found through SSM."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws, price_book
from localenv.aws.images import VERSIONS

EKS = "/aws/service/eks/optimized-ami"


def sweep(aws: LocalAws, **filters: str) -> dict[str, float]:
    """Prices as a client of the price list reads them."""
    terms = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()]
    pages = (
        aws.client("pricing").get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=terms)
    )
    prices = {}
    for page in pages:
        for text in page["PriceList"]:
            document = json.loads(text)
            for term in document["terms"]["OnDemand"].values():
                for dimension in term["priceDimensions"].values():
                    name = document["product"]["attributes"]["instanceType"]
                    prices[name] = float(dimension["pricePerUnit"]["USD"])
    return prices


def test_on_demand_prices_in_the_two_sweeps_of_the_controller(aws: LocalAws) -> None:
    common = {
        "regionCode": "us-east-1",
        "serviceCode": "AmazonEC2",
        "preInstalledSw": "NA",
        "operatingSystem": "Linux",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    shared = sweep(aws, **common, tenancy="Shared", productFamily="Compute Instance")
    metal = sweep(aws, **common, tenancy="Dedicated", productFamily="Compute Instance (bare metal)")
    assert shared["m5.large"] == 0.096
    assert metal["m5.metal"] == 4.608
    assert len(shared) > 1000
    assert not set(shared) & set(metal)


def test_the_price_list_comes_in_pages(aws: LocalAws) -> None:
    client = aws.client("pricing")
    terms = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}]
    first = client.get_products(ServiceCode="AmazonEC2", Filters=terms)
    assert len(first["PriceList"]) == 100
    second = client.get_products(ServiceCode="AmazonEC2", Filters=terms, NextToken=first["NextToken"])
    assert not set(first["PriceList"]) & set(second["PriceList"])


def test_spot_is_below_on_demand_everywhere_and_differs_by_zone(aws: LocalAws) -> None:
    pages = (
        aws.client("ec2")
        .get_paginator("describe_spot_price_history")
        .paginate(ProductDescriptions=["Linux/UNIX"])
    )
    rows = [row for page in pages for row in page["SpotPriceHistory"]]
    on_demand = sweep(aws, regionCode="us-east-1")
    assert len(rows) > 4000
    assert all(float(row["SpotPrice"]) < on_demand[row["InstanceType"]] for row in rows)
    assert len({row["SpotPrice"] for row in rows if row["InstanceType"] == "m5.large"}) > 1


@pytest.mark.parametrize("region", ["eu-west-1", "ap-northeast-2"])
def test_every_region_has_prices(aws: LocalAws, region: str) -> None:
    assert sweep(aws, regionCode=region, instanceType="m5.large")["m5.large"] > 0.096


def test_a_spot_price_is_always_below_on_demand() -> None:
    book = price_book.load()
    for name in book.list_prices:
        for zone in ("us-east-1a", "eu-west-1b", "ap-northeast-2d"):
            spot, on_demand = book.spot(name, zone), book.on_demand(name, zone[:-1])
            assert spot is not None
            assert on_demand is not None
            assert 0 < spot < on_demand / 2
    assert book.spot("m5.enormous", "us-east-1a") is None


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        (f"{EKS}/{{}}/amazon-linux-2023/arm64/standard/recommended/image_id", "arm64"),
        ("/aws/service/bottlerocket/aws-k8s-{}/x86_64/latest/image_id", "x86_64"),
        ("/aws/service/bottlerocket/aws-k8s-{}-nvidia/arm64/latest/image_id", "arm64"),
        ("/aws/service/canonical/ubuntu/eks/20.04/{}/stable/current/amd64/hvm/ebs-gp2/ami-id", "x86_64"),
    ],
)
def test_node_images_exist_for_every_version(aws: LocalAws, name: str, architecture: str) -> None:
    ssm, ec2 = aws.client("ssm"), aws.client("ec2")
    found = [ssm.get_parameter(Name=name.format(version))["Parameter"]["Value"] for version in VERSIONS]
    images: list[dict[str, Any]] = ec2.describe_images(ImageIds=found)["Images"]
    assert len(images) == len(set(found)) == len(VERSIONS)
    assert {image["Architecture"] for image in images} == {architecture}
    assert all(image["RootDeviceName"].startswith("/dev/") for image in images)
    assert len({image["CreationDate"] for image in images}) == len(VERSIONS)


@pytest.mark.parametrize("variant", ["", "-arm64", "-gpu"])
def test_images_of_amazon_linux_2_end_with_kubernetes_1_32(aws: LocalAws, variant: str) -> None:
    ssm, name = aws.client("ssm"), f"{EKS}/{{}}/amazon-linux-2{variant}/recommended/image_id"
    until = VERSIONS.index("1.32") + 1
    assert all(ssm.get_parameter(Name=name.format(version)) for version in VERSIONS[:until])
    for version in VERSIONS[until:]:
        with pytest.raises(ClientError, match="ParameterNotFound"):
            ssm.get_parameter(Name=name.format(version))


def test_parameters_that_do_not_exist(aws: LocalAws) -> None:
    ssm = aws.client("ssm")
    with pytest.raises(ClientError, match="ParameterNotFound"):
        ssm.get_parameter(Name=f"{EKS}/1.9/amazon-linux-2/recommended/image_id")
    ssm.put_parameter(Name="/ours", Value="x", Type="String")
    known = f"{EKS}/1.30/amazon-linux-2/recommended/image_id"
    answer = ssm.get_parameters(Names=[known, "/ours", f"{EKS}/nope"])
    assert {p["Name"] for p in answer["Parameters"]} == {known, "/ours"}
    assert answer["InvalidParameters"] == [f"{EKS}/nope"]


@pytest.mark.parametrize(
    ("path", "release"),
    [
        (f"{EKS}/1.32/amazon-linux-2023/x86_64/standard", "v2025"),
        (f"{EKS}/1.30/amazon-linux-2-arm64", "v2024"),
        ("/aws/service/bottlerocket/aws-k8s-1.33/arm64", "1.20.0"),
    ],
)
def test_a_release_of_an_image_has_a_parameter_of_its_own_found_by_path_and_by_arn(
    aws: LocalAws, path: str, release: str
) -> None:
    ssm = aws.client("ssm")
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
    found = {each["Name"]: each for page in pages for each in page["Parameters"]}
    assert len({each["Value"] for each in found.values()}) == 1
    (pinned,) = [name for name in found if "recommended" not in name and "latest" not in name]
    assert release in pinned
    by_arn = ssm.get_parameter(Name=found[pinned]["ARN"])["Parameter"]
    assert by_arn["Value"] == found[pinned]["Value"]


def test_a_long_path_of_parameters_comes_in_pages_of_ten(aws: LocalAws) -> None:
    ssm = aws.client("ssm")
    first = ssm.get_parameters_by_path(Path=f"{EKS}/1.32", Recursive=True)
    assert len(first["Parameters"]) == 10 and first["NextToken"]
    assert ssm.get_parameters_by_path(Path=f"{EKS}/1.32")["Parameters"] == []
