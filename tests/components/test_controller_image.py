"""The controller's image as part of a stack: built for both architectures and pushed, or given."""

from typing import Any

import pytest

import nodeless
from pulumi_nodeless import ArgumentError
from pulumi_nodeless.configuration import ConfigurationError
from pulumi_nodeless.controller import DEFAULT_IMAGE
from tests.components.conftest import CONFIG, ROOT, program
from tests.components.recorder import ACCOUNT, Recorder, run

REPOSITORY = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/nodeless/demo"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"


@pytest.fixture(scope="module")
def building() -> Recorder:
    return run(program, config={**CONFIG, "nodeless:buildImage": "true"})


def container_image(recorder: Recorder) -> str:
    (container,) = recorder.one(DEPLOYMENT).inputs["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def test_the_image_is_built_for_both_architectures_and_pushed_with_the_repositorys_credentials(
    building: Recorder,
) -> None:
    assert building.faults == []
    image = building.one("docker-build:index:Image").inputs
    assert image["platforms"] == ["linux/amd64", "linux/arm64"]
    assert image["push"] is True
    assert image["buildOnPreview"] is False
    assert image["dockerfile"] == {"location": str(ROOT / "controller" / "Dockerfile")}
    assert image["context"] == {"location": str(ROOT)}
    assert image["tags"] == [f"{REPOSITORY}:{nodeless.__version__}"]
    assert image["registries"] == [{"address": REPOSITORY, "username": "AWS", "password": "pw"}]
    assert building.one("aws:ecr/repository:Repository").inputs["imageScanningConfiguration"] == {
        "scanOnPush": True
    }


def test_the_pods_run_the_built_image_by_its_digest_and_wait_for_it(building: Recorder) -> None:
    assert container_image(building) == f"{REPOSITORY}@sha256:{'a' * 64}"
    image = building.one("docker-build:index:Image")
    assert image.urn in building.everything_behind(building.one(DEPLOYMENT))


def test_a_given_image_is_used_as_it_is(environment: Recorder) -> None:
    assert environment.of("docker-build:index:Image") == environment.of("aws:ecr/repository:Repository") == []
    assert container_image(environment) == DEFAULT_IMAGE
    given = "registry.example/nodeless@sha256:" + "b" * 64
    assert container_image(run(program, config={**CONFIG, "nodeless:controllerImage": given})) == given


@pytest.mark.parametrize(
    "base", [f"mirror.example:5000/library/python:3.13-slim@sha256:{'c' * 64}", "python:3.13-slim-trixie"]
)
def test_a_base_by_digest_is_that_of_both_stages(base: str) -> None:
    recorder = run(program, config={**CONFIG, "nodeless:buildImage": "true", "nodeless:imageBase": base})
    given = recorder.one("docker-build:index:Image").inputs["buildArgs"]
    assert given == {
        "BUILD_BASE": base,
        "RUN_BASE": base,
        "VERSION": nodeless.__version__,
        "REVISION": "unknown",
    }


def test_without_a_base_the_dockerfile_has_its_own(building: Recorder) -> None:
    given = building.one("docker-build:index:Image").inputs["buildArgs"]
    assert given == {"VERSION": nodeless.__version__, "REVISION": "unknown"}


def test_a_base_without_a_build_is_one_error_that_names_the_argument() -> None:
    with pytest.raises(ConfigurationError, match="nodeless:imageBase: no image is built"):
        run(program, config={**CONFIG, "nodeless:imageBase": "python:3.13-slim-trixie"})


def test_building_and_giving_an_image_is_one_error_that_names_the_argument() -> None:
    config = {**CONFIG, "nodeless:buildImage": "true", "nodeless:controllerImage": "registry.example/x"}
    with pytest.raises(ConfigurationError) as refused:
        run(program, config=config)
    assert [str(problem) for problem in refused.value.problems] == [
        "buildImage: contradicts controllerImage (hint: leave one of them out)"
    ]


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        ({"source": "/nowhere"}, "source: /nowhere has no controller/Dockerfile"),
        ({"base": "python"}, "base: 'python' may refer to another image tomorrow"),
        ({"base": "mirror.example:5000/python:latest"}, "base: .* may refer to another image tomorrow"),
        ({"base": "python:3.13@sha256:12"}, "base: .* is not a reference of an image"),
        ({"platforms": ["linux/s390x"]}, "platforms: 'linux/s390x' is not one of linux/amd64, linux/arm64"),
    ],
)
def test_what_cannot_be_built_is_named_before_anything_is_registered(args: Any, reported: str) -> None:
    def image() -> None:
        from pulumi_nodeless import ControllerImage  # noqa: PLC0415 - the SDKs are slow to import

        ControllerImage("own", {"cluster_name": "demo", **args})

    recorder = Recorder()
    with pytest.raises(ArgumentError, match=reported):
        run(image, recorder=recorder)
    assert list(recorder.custom()) == []
