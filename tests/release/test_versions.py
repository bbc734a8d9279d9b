"""Version and addresses stand in one file; every other place follows, and none is forgotten."""

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

import nodeless
from infra.release import cutting
from infra.release.settings import ROOT, ReleaseError, parse_version, read_settings
from infra.release.versions import DECLARED, differences, differences_in, write_settings
from localenv.kubelets.launcher import EXECUTED_IMAGES
from pulumi_nodeless.controller import DEFAULT_IMAGE
from pulumi_nodeless.names import IMAGE_REPOSITORY
from tests.release.conftest import commit, run_git

OTHER = "98.76.54"


def test_every_place_of_this_checkout_says_what_the_project_file_says() -> None:
    assert [str(each) for each in differences()] == [], "hint: python -m infra.release set VERSION"


def test_the_running_packages_are_of_that_version_and_that_image() -> None:
    settings = read_settings()
    assert nodeless.__version__ == settings.version
    assert f"{settings.image}:{settings.version}" == DEFAULT_IMAGE
    assert (IMAGE_REPOSITORY,) == EXECUTED_IMAGES == (settings.image,)


def test_a_declaration_that_differs_is_found_with_its_line() -> None:
    wanted = read_settings()
    for declaration in DECLARED:
        text = (ROOT / declaration.path).read_text()
        match = declaration.pattern.search(text)
        assert match is not None
        (part,) = match.groupdict()
        line = text.count("\n", 0, match.start(part)) + 1
        other = OTHER if part == "version" else "other.example/somewhere"
        changed = text[: match.start(part)] + other + text[match.end(part) :]
        found = [str(each) for each in differences_in(declaration.path, changed, wanted)]
        assert found == [f"{declaration.path}:{line}: {other}, where pyproject.toml says {match[part]}"]


@pytest.mark.parametrize(
    "reference",
    [
        "image: ghcr.io/nodeless/controller:9.9.9",
        "image: ghcr.io/somebody/controller:{version}",
        "pip install nodeless-provisioner==9.9.9",
        "pip install 'pulumi-nodeless[image]==9.9.9'",
        "github.com/nodeless/pulumi-nodeless/sdk/go v9.9.9",
        "helm install x oci://ghcr.io/nodeless/charts/nodeless --version 9.9.9",
        "helm install x oci://ghcr.io/somebody/charts/nodeless-crd --version {version}",
    ],
)
def test_a_page_that_names_another_version_or_place_is_found(reference: str) -> None:
    wanted = read_settings()
    text = f"# New\n\n    {reference.format(version=wanted.version)}\n"
    assert [(each.path, each.line) for each in differences_in("docs/new.md", text, wanted)] == [
        ("docs/new.md", 3)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "public.ecr.aws/karpenter/controller:v0.27.0",
        "ghcr.io/nodeless/controller@sha256:abc",
        "oci://public.ecr.aws/karpenter/karpenter --version 1.2.3",
        "boto3==1.2.3",
    ],
)
def test_what_others_release_is_none_of_ours(text: str) -> None:
    assert differences_in("docs/new.md", text, read_settings()) == []


def test_a_declaration_that_is_gone_is_an_error_that_names_it(checkout: Path) -> None:
    file = checkout / "controller" / "Dockerfile"
    file.write_text(file.read_text().replace("ARG VERSION=", "ARG RELEASE="))
    with pytest.raises(ReleaseError, match=r"controller/Dockerfile: 0 lines are like .* hint"):
        differences(checkout)
    file.unlink()
    with pytest.raises(ReleaseError, match=r"controller/Dockerfile: not among the files"):
        differences(checkout)


@pytest.mark.large
def test_another_version_is_written_everywhere_and_nothing_of_the_old_one_is_left(checkout: Path) -> None:
    """Also in what is generated, and where no table knows of it: a cut does what `set` does."""
    before = read_settings(checkout).version

    assert cutting.cut(OTHER, date(2031, 2, 3), checkout) is True

    assert differences(checkout) == []
    assert cutting.cut(OTHER, date(2031, 2, 4), checkout) is False, "once, also before it is committed"
    changed = set(run_git(checkout, "diff", "--name-only").split())
    declared = {each.path for each in DECLARED if "version" in each.pattern.groupindex}
    assert changed >= declared | {"components/schema.json", "controller/sbom.cdx.json"}
    added = [line for line in run_git(checkout, "diff", "-U0").splitlines() if re.match(r"\+(?!\+\+)", line)]
    assert [line for line in added if OTHER not in line and len(line) > 1] == []
    ours = re.compile(rf"(?<![\w.]){re.escape(before)}(?![\w.]*\d)")
    kept = re.compile(r"CHANGELOG\.md|.*\.(lock|sum|mod|svg|png)$|docs/decisions/.*|infra/release/.*")
    listed = filter(None, run_git(checkout, "ls-files", "-z").split("\0"))
    left = [
        f"{path}: {line}"
        for path in listed
        if not kept.fullmatch(path)
        for line in (checkout / path).read_text().splitlines()
        if ours.search(line) and re.search(r"nodeless|version", line, re.IGNORECASE)
    ]
    assert left == [], "a place that names our version and is not in infra/release/versions.py"
    commit(checkout)
    with pytest.raises(ReleaseError, match="nothing below"):
        cutting.cut("98.76.55", date(2031, 2, 4), checkout)
    with pytest.raises(ReleaseError, match=f"not greater than {OTHER}"):
        cutting.cut("98.76.53", date(2031, 2, 4), checkout)


def test_another_registry_is_written_everywhere(checkout: Path) -> None:
    settings = read_settings(checkout)
    image, charts = "registry.example:5000/acme/controller", "registry.example:5000/acme/charts"

    write_settings(type(settings)(settings.version, image, charts), checkout)

    assert read_settings(checkout).image == image
    assert differences(checkout) == []
    values = yaml.safe_load((checkout / "charts" / "nodeless" / "values.yaml").read_text())
    assert values["controller"]["image"]["repository"] == image
    example = (checkout / "examples" / "yaml" / "Pulumi.yaml").read_text()
    assert f"{image}:{settings.version}" in example
    listed = run_git(checkout, "grep", "--files-with-matches", "--fixed-strings", image).split()
    assert len(listed) >= 8


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", "1.02.3", ""])
def test_what_the_registries_read_differently_is_no_version(version: str) -> None:
    with pytest.raises(ReleaseError, match="three numbers"):
        parse_version(version)


@pytest.mark.parametrize(
    "image", ["controller", "ghcr.io/Acme/controller", "oci://ghcr.io/a/b", "ghcr.io/a/b:1.0"]
)
def test_what_is_no_address_is_refused_before_anything_is_written(checkout: Path, image: str) -> None:
    with pytest.raises(ReleaseError, match="no repository of a registry"):
        cutting.set_everywhere(image=image, root=checkout)
    assert run_git(checkout, "status", "--porcelain") == ""
