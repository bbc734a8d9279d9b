"""The package `nodeless` that the components import: ours, or refused in one line."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pulumi_nodeless import __version__
from tests.components.conftest import ROOT

NEEDED = f"pulumi-nodeless {__version__} needs the package nodeless of nodeless-provisioner {__version__}"
CHECKOUT = "(from a checkout: CHECKOUT/controller instead of name and version)"
INSTALL = f"pip install nodeless-provisioner=={__version__} {CHECKOUT}"
REINSTALL = f"pip install --force-reinstall nodeless-provisioner=={__version__} {CHECKOUT}"


def install(site: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Puts a distribution into the folder as pip does: its files over what is there, and their list."""
    record = site / f"{name.replace('-', '_')}-{version}.dist-info"
    record.mkdir()
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    listed = [*files, f"{record.name}/METADATA", f"{record.name}/RECORD"]
    (record / "RECORD").write_text("".join(f"{path},,\n" for path in listed))


def foreign(site: Path, begins: str = "") -> None:
    """Another product's distribution, as the one on the index is."""
    install(
        site,
        "nodeless",
        "0.0.1",
        {"nodeless/__init__.py": begins, "nodeless/nodeless.py": "class Nodeless: ...\n"},
    )


def ours(site: Path, version: str = __version__) -> None:
    begins = (ROOT / "controller" / "nodeless" / "__init__.py").read_text().replace(__version__, version)
    model = (ROOT / "controller" / "nodeless" / "model" / "__init__.py").read_text()
    files = {"nodeless/__init__.py": begins, "nodeless/model/__init__.py": model}
    install(site, "nodeless-provisioner", version, files)


def overwritten(site: Path) -> None:
    ours(site)
    foreign(site)


def half_removed(site: Path) -> None:
    """What `pip uninstall nodeless` leaves of both."""
    overwritten(site)
    shutil.rmtree(site / "nodeless-0.0.1.dist-info")
    (site / "nodeless" / "__init__.py").unlink()
    (site / "nodeless" / "nodeless.py").unlink()


def own_folder(site: Path) -> None:
    (site / "nodeless").mkdir()
    (site / "nodeless" / "__init__.py").touch()


def own_file(site: Path) -> None:
    (site / "nodeless.py").touch()


def imported(site: Path) -> subprocess.CompletedProcess[str]:
    """A process that imports the components where nothing but they and the folder is on the path."""
    return subprocess.run(
        [sys.executable, "-S", "-c", "import pulumi_nodeless"],
        env={"PYTHONPATH": f"{site}:{ROOT / 'components'}"},
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )


def test_our_package_is_imported(tmp_path: Path) -> None:
    ours(tmp_path)
    done = imported(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


OTHER = f"{NEEDED}, but {{site}}/nodeless is of nodeless 0.0.1; hint: pip uninstall nodeless && {REINSTALL}"
SOMETHING = "is something else; hint: rename it or remove it from the path, then"


@pytest.mark.parametrize(
    ("prepare", "line"),
    [
        (foreign, OTHER),
        (lambda site: foreign(site, "raise RuntimeError('no key')"), OTHER),
        (lambda site: foreign(site, f"__version__ = '{__version__}'"), OTHER),
        (overwritten, OTHER),
        (half_removed, f"{NEEDED}, but files are missing in {{site}}/nodeless; hint: {REINSTALL}"),
        (own_folder, f"{NEEDED}, but {{site}}/nodeless {SOMETHING} {REINSTALL}"),
        (own_file, f"{NEEDED}, but {{site}}/nodeless.py {SOMETHING} {REINSTALL}"),
        (lambda site: None, f"{NEEDED}, which is not installed; hint: {INSTALL}"),
        (
            lambda site: ours(site, "9.9.9"),
            f"pulumi-nodeless {__version__} needs nodeless-provisioner {__version__}, but 9.9.9 is installed "
            f"({{site}}/nodeless/__init__.py); hint: {INSTALL}",
        ),
    ],
    ids=[
        "another product alone",
        "another product that fails when it is imported",
        "another product of the same version",
        "another product over ours",
        "what the removal of another product leaves of ours",
        "a folder of the program",
        "a file of the program",
        "nothing",
        "another version of ours",
    ],
)
def test_another_package_is_refused_with_what_it_is_and_what_to_do(
    tmp_path: Path, prepare: Callable[[Path], None], line: str
) -> None:
    prepare(tmp_path)
    done = imported(tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {line.format(site=tmp_path)}"
