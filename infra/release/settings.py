"""What decides a release: the version and the addresses, from the project file of the workspace.

Everything else that names them is written from there (`versions`).
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The checkout."""
SOURCE: Final = Path("pyproject.toml")
"""Has the version as `project.version` and the addresses in `tool.nodeless.release`."""
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_ADDRESS: Final = re.compile(r"[a-z0-9][a-z0-9.-]*(?::\d+)?(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)+")


class ReleaseError(Exception):
    """A step of a release cannot be done; says what is wrong, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is released, and where it goes.

    Attributes:
        version: X.Y.Z, which Python, Helm, npm and OCI read alike; they write pre-releases differently.
        image: Repository of the controller's image, without tag.
        charts: Folder of the Helm charts in an OCI registry, without `oci://`.
    """

    version: str
    image: str
    charts: str

    @property
    def tag(self) -> str:
        """The git tag of the version."""
        return f"v{self.version}"


def read_settings(root: Path = ROOT) -> Settings:
    """The settings of a checkout.

    Raises:
        ReleaseError: The project file lacks one, or has one of another form.
    """
    document = tomllib.loads((root / SOURCE).read_text())
    found: dict[str, Any] = document.get("tool", {}).get("nodeless", {}).get("release", {})
    for name in ("image", "charts"):
        if name not in found:
            raise ReleaseError(f"{SOURCE}: [tool.nodeless.release] has no {name}")
    version = str(document["project"]["version"])
    parse_version(version)
    return Settings(version, check_address(str(found["image"])), check_address(str(found["charts"])))


def parse_version(version: str) -> tuple[int, int, int]:
    """The numbers of a version, to compare.

    Raises:
        ReleaseError: It is not X.Y.Z.
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ReleaseError(
            f"{version!r} is no version; hint: three numbers, as in 1.2.3, without v before them"
        )
    return int(found[1]), int(found[2]), int(found[3])


def check_address(address: str) -> str:
    """The address of a repository in a registry, if it is one.

    Raises:
        ReleaseError: It is none, or has a tag.
    """
    if not _ADDRESS.fullmatch(address):
        raise ReleaseError(
            f"{address!r} is no repository of a registry; hint: HOST/OWNER/NAME, lower case, no tag, no oci://"
        )
    return address
