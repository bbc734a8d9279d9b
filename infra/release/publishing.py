"""What the workflow of a release does after the dry run: image, charts and GitHub's release.

Distributions are published by the index's own action, which needs no secret. Each function here refuses a
commit whose tag is not its version, signs by the workflow's identity (cosign without a key), and says what it
has published. Registries and GitHub must be logged in to.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from infra.release import artifacts
from infra.release.commands import program, run
from infra.release.cutting import git, uncommitted_files
from infra.release.dry_run import image_command
from infra.release.settings import ROOT, ReleaseError, Settings, read_settings

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def publish_image(dist: Path, root: Path = ROOT) -> str:
    """Builds, pushes and signs the image of both architectures, with bill of materials and provenance."""
    settings = _released_settings(root)
    docker, metadata = program("docker", "install it"), dist / artifacts.IMAGE
    metadata.parent.mkdir(parents=True, exist_ok=True)
    run(
        [
            *image_command(docker, settings.version, artifacts.source_date()),
            *("--sbom=true", "--provenance=mode=max", "--metadata-file", metadata),
            *("--tag", f"{settings.image}:{settings.version}", "--push"),
        ]
    )
    digest = str(json.loads(metadata.read_text())["containerimage.digest"])
    reference = f"{settings.image}@{digest}"
    cosign = program("cosign", "install it")
    run([cosign, "sign", "--yes", "--recursive", reference])
    sbom = ROOT / "controller" / "sbom.cdx.json"
    run([cosign, "attest", "--yes", "--type", "cyclonedx", "--predicate", sbom, reference])
    return f"{settings.image}:{settings.version} is {reference}"


def publish_charts(dist: Path, root: Path = ROOT) -> str:
    """Pushes the packaged charts to the OCI registry, and signs them."""
    settings = _released_settings(root)
    helm, cosign = program("helm", "install it"), program("cosign", "install it")
    references = []
    for chart in artifacts.CHARTS:
        package = dist / "charts" / f"{chart}-{settings.version}.tgz"
        if not package.is_file():
            raise ReleaseError(f"{package} is missing; hint: make release-dry-run")
        said = run([helm, "push", package, f"oci://{settings.charts}"], merged=True)
        digest = _DIGEST.search(said)
        if digest is None:
            raise ReleaseError(f"helm push {package.name} said no digest: {said.strip()}")
        references.append(f"{settings.charts}/{chart}@{digest[0]}")
        run([cosign, "sign", "--yes", references[-1]])
    return "\n".join(references)


def publish_github(dist: Path, root: Path = ROOT) -> str:
    """Makes GitHub's release of the tag: its notes are the changelog's section, its files those of dist/."""
    settings = _released_settings(root)
    notes, sums = dist / "notes.md", dist / artifacts.CHECKSUMS
    for needed in (notes, sums):
        if not needed.is_file():
            raise ReleaseError(f"{needed} is missing; hint: make release-dry-run")
    attached = artifacts.released_files(dist)
    command = ["release", "create", settings.tag, "--verify-tag", "--title", settings.tag, "--notes-file"]
    run([program("gh", "install it"), *command, notes, sums, *attached])
    return f"{settings.tag}, with {len(attached) + 1} files"


PARTS: Final[Mapping[str, Callable[..., str]]] = MappingProxyType(
    {"image": publish_image, "charts": publish_charts, "github": publish_github}
)
"""What can be published, by name."""


def _released_settings(root: Path) -> Settings:
    """The settings of a commit that is tagged with its version.

    Raises:
        ReleaseError: HEAD has no such tag, or files differ from it.
    """
    settings = read_settings(root)
    tags = git("tag", "--points-at", "HEAD", root=root).split()
    given = os.environ.get("GITHUB_REF_NAME", settings.tag)
    if settings.tag not in tags or given != settings.tag:
        raise ReleaseError(
            f"nothing is published: this commit has the version {settings.version}, and its tags are "
            f"{', '.join(tags) or 'none'}; hint: push the tag {settings.tag}"
        )
    if dirty := uncommitted_files(root):
        raise ReleaseError(f"nothing is published: {', '.join(dirty[:3])} differ from the commit")
    return settings
