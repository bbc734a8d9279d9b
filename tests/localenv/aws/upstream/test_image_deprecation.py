"""Deprecated images."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws


def test_an_owner_is_told_when_an_image_of_his_is_deprecated(
    aws: LocalAws,
) -> None:
    ec2 = aws.client("ec2")
    source = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    copy = ec2.copy_image(SourceImageId=source, SourceRegion="us-east-1", Name="copy")["ImageId"]
    assert "DeprecationTime" not in ec2.describe_images(ImageIds=[copy])["Images"][0]

    assert ec2.enable_image_deprecation(ImageId=copy, DeprecateAt="2020-01-02T03:04:05Z")["Return"]

    (told,) = ec2.describe_images(ImageIds=[copy])["Images"]
    assert told["DeprecationTime"] == "2020-01-02T03:04:00.000Z"
    assert copy in {each["ImageId"] for each in ec2.describe_images(Owners=["self"])["Images"]}
    ec2.disable_image_deprecation(ImageId=copy)
    assert "DeprecationTime" not in ec2.describe_images(ImageIds=[copy])["Images"][0]
    with pytest.raises(ClientError, match="AuthFailure"):
        ec2.enable_image_deprecation(ImageId=source, DeprecateAt="2020-01-02T03:04:05Z")
    with pytest.raises(ClientError, match="InvalidAMIID"):
        ec2.enable_image_deprecation(ImageId="ami-00000000000000000", DeprecateAt="2020-01-02T03:04:05Z")
