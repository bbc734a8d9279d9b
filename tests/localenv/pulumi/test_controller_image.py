"""A stack that builds the controller's image: pushed, run by its digest, gone with the stack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pulumi_kubernetes as k8s
import pytest

import nodeless
from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import ResourceStep, StackFailed
from localenv.pulumi.project import ROOT
from pulumi_nodeless import ControllerImage
from tests.localenv.pulumi.conftest import Program, Shop
from tests.localenv.pulumi.ready_pods import ReadyPods

pytestmark = pytest.mark.cluster
REPOSITORY = "nodeless/demo"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/controller"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkout of one's own, so that a test may change it."""
    copied = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "controller", copied / "controller", ignore=ignored)
    return copied


def building(control_plane: ControlPlane, source: Path, **more: Any) -> Program:
    """A program that builds the image and runs it."""

    def program() -> None:
        cloud = aws_sdk.Provider("aws", region="us-east-1")
        cluster = k8s.Provider("cluster", kubeconfig=control_plane.kubeconfig.read_text())
        image = ControllerImage(
            "nodeless",
            {"cluster_name": "demo", "source": str(source), **more},
            pulumi.ResourceOptions(providers=[cloud]),
        )
        labels = {"app": "controller"}
        k8s.apps.v1.Deployment(
            "deployment",
            metadata={"name": "controller", "namespace": "default"},
            spec={
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "controller", "image": image.image}]},
                },
            },
            opts=pulumi.ResourceOptions(provider=cluster),
        )
        pulumi.export("image", image.image)

    return program


def changed(shop: Shop, operation: str = "up") -> set[tuple[str, str]]:
    """What an operation does to which resources, as (operation, name)."""
    steps: list[ResourceStep] = []
    getattr(shop.stack, operation)(steps.append)
    return {
        (step.operation, step.name)
        for step in steps
        if step.operation != "same" and step.type != "pulumi:pulumi:Stack"
    }


def test_a_stack_builds_pushes_runs_and_removes_the_image(
    shop: Shop, control_plane: ControlPlane, aws: LocalAws, api: KubernetesApi, source: Path
) -> None:
    ecr = aws.client("ecr")

    def running() -> str:
        (container,) = api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
        return str(container["image"])

    shop.program = building(control_plane, source)
    with ReadyPods(api):
        shop.stack.up()
        first = shop.stack.outputs()["image"]
        url, _, digest = first.partition("@")
        assert running() == first
        (pushed,) = ecr.describe_images(repositoryName=REPOSITORY)["imageDetails"]
        assert (pushed["imageDigest"], pushed["imageTags"]) == (digest, [nodeless.__version__])
        index = json.loads(
            ecr.batch_get_image(repositoryName=REPOSITORY, imageIds=[{"imageDigest": digest}])["images"][0][
                "imageManifest"
            ]
        )
        assert [manifest["platform"]["architecture"] for manifest in index["manifests"]] == ["amd64", "arm64"]
        assert url.endswith(f".dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}")

        assert changed(shop) == set(), "another password is no change"

        module = source / "controller" / "nodeless" / "__init__.py"
        module.write_text(module.read_text() + "# changed\n")
        (source / "README.md").write_text("not part of the build\n")
        both = {("update", "nodeless-image"), ("update", "deployment")}
        assert changed(shop, "preview") == both
        assert running() == first
        assert changed(shop) == both
        second = shop.stack.outputs()["image"]
        assert second != first
        assert running() == second
        assert shop.stack.refresh().keys() <= {"same"}

        shop.stack.destroy()
    assert ecr.describe_repositories()["repositories"] == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("COPY controller controller", "COPY controler controller", "COPY controler: not in the context"),
        ("FROM ${RUN_BASE}", "FROM python", "FROM python: name a version or a digest"),
        (f"ARG VERSION={nodeless.__version__}\n", "", "no ARG declares the build argument VERSION"),
        ("--from=build", "--from=built", "there is no such stage before it"),
    ],
)
def test_a_build_that_cannot_work_is_refused_in_the_preview(
    shop: Shop, control_plane: ControlPlane, source: Path, before: str, after: str, told: str
) -> None:
    dockerfile = source / "controller" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace(before, after))
    shop.program = building(control_plane, source)
    with pytest.raises(StackFailed, match=told):
        shop.stack.preview()
