"""What the controller's image is made of: its bill of materials (CycloneDX), out of the image's lock.

    python -m infra.image sbom [--check]

The document names every distribution that the lock pins for the image. It holds no time and no random
number: the same lock gives the same document.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "controller" / "requirements.lock"
SBOM: Final = ROOT / "controller" / "sbom.cdx.json"
_PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[\w.+!-]+)(?: ; (?P<marker>[^\\]+))?")


@dataclass(frozen=True, slots=True)
class Pin:
    """One distribution of the lock."""

    name: str
    version: str
    marker: str
    """On which interpreters and platforms it is installed; empty: on all."""


def pins(lock: str) -> Iterator[Pin]:
    """The distributions that a lock pins, in its order.

    Raises:
        ValueError: a distribution has no hash.
    """
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if (found := _PIN.match(entry)) is None:
            continue
        if "--hash=sha256:" not in entry:
            raise ValueError(f"{found['name']} is pinned without a hash; hint: make lock")
        yield Pin(found["name"], found["version"], (found["marker"] or "").strip())


def bill_of_materials(lock: str, version: str) -> str:
    """The lock as a CycloneDX document (JSON, version 1.6).

    Args:
        lock: text of the image's lock.
        version: version of the controller.
    """
    bom = Bom(components=[_component(pin) for pin in pins(lock)])
    image = Component(
        name="nodeless",
        version=version,
        type=ComponentType.CONTAINER,
        bom_ref=BomRef("nodeless"),
        description="Node provisioner for Kubernetes on EKS",
    )
    bom.metadata.component = image
    bom.register_dependency(image, bom.components)
    # Both would make each document another one.
    bom.metadata.timestamp = None
    bom.serial_number = None
    text: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return text + "\n"


def _component(pin: Pin) -> Component:
    url = PackageURL("pypi", name=pin.name, version=pin.version)
    return Component(
        name=pin.name,
        version=pin.version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=BomRef(str(url) + (f"#{pin.marker}" if pin.marker else "")),
    )


def controller_version() -> str:
    """Version of the controller's distribution, as its project file says."""
    text = (ROOT / "controller" / "pyproject.toml").read_text()
    (version,) = re.findall(r'^version = "([^"]+)"', text, re.MULTILINE)
    return str(version)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.image", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["sbom"], help="write controller/sbom.cdx.json")
    parser.add_argument("--check", action="store_true", help="only compare; exit code 1 on a difference")
    arguments = parser.parse_args()
    text = bill_of_materials(LOCK.read_text(), controller_version())
    if SBOM.is_file() and SBOM.read_text() == text:
        return 0
    if arguments.check:
        print(f"{SBOM.relative_to(ROOT)} is stale; hint: python -m infra.image sbom", file=sys.stderr)  # noqa: T201
        return 1
    SBOM.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
