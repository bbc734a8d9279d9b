"""Node classes whose images are named by SSM parameters of the user's."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from localenv.aws import LocalAws
from nodeless.cloudprovider import NodeClassUnresolved
from nodeless.model.pools import SelectorTerm
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS

PRESENT, GONE = SelectorTerm(parameters=("/images/x86",)), SelectorTerm(parameters=("/images/arm",))


def image_in_parameter(aws: LocalAws, name: str = "/images/x86") -> str:
    images = aws.client("ec2").describe_images(
        Owners=["amazon"], Filters=[{"Name": "name", "Values": ["amazon-eks-node-1.29-*"]}]
    )["Images"]
    identifier = str(images[0]["ImageId"])
    aws.client("ssm").put_parameter(Name=name, Value=identifier, Type="String")
    return identifier


async def test_a_parameter_that_is_missing_leaves_the_images_of_the_other_terms(
    aws: LocalAws, world: World
) -> None:
    identifier = image_in_parameter(aws)
    with capture_logs() as said:
        async with a_provider() as provider:
            for terms in ((PRESENT, GONE), (GONE, PRESENT)):
                resolved = await provider.resolve(replace(NODE_CLASS, images=terms))
                assert [image.id for image in resolved.images] == [identifier]
    warnings = [entry["event"] for entry in said if "SSM" in entry["event"]]
    assert len(warnings) == 1
    assert "there is no SSM parameter /images/arm" in warnings[0]


async def test_parameters_none_of_which_exists_are_named(aws: LocalAws, world: World) -> None:
    other = SelectorTerm(parameters=("/images/gpu",))
    async with a_provider() as provider:
        with pytest.raises(NodeClassUnresolved, match="there is no SSM parameter /images/arm, /images/gpu"):
            await provider.resolve(replace(NODE_CLASS, images=(GONE, other)))
