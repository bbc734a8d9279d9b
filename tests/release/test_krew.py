"""The plugin for krew: the real krew installs it out of its archive, and the real kubectl runs it."""

from __future__ import annotations

import os
import platform as machine
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from infra.release import artifacts, krew
from infra.release.commands import run
from infra.release.settings import ROOT, ReleaseError, read_settings
from localenv.binaries import control_plane_binaries
from localenv.binaries import krew as krew_program
from nodeless import __version__

EPOCH = 1_800_000_000
VERSION = "{}.{}".format(*sys.version_info[:2])
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
HERE = next(
    each
    for each in krew.PLATFORMS
    if (each.os, each.arch) == (sys.platform, ARCHITECTURES[machine.machine()])
)
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {}
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the build tools' programs."""
    return artifacts.install_tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def archive(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of this platform, for the Python that runs the tests alone."""
    folder = tmp_path_factory.mktemp("krew")
    command: list[str | Path] = [
        "build",
        "--wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-config",
        "--out-dir",
        folder,
    ]
    run([tools / "uv", *command, "--python", tools / "python", ROOT / "controller"])
    (wheel,) = folder.glob("*.whl")
    krew.lay_out(folder / "laid-out", wheel, HERE, tools / "uv", [VERSION])
    return krew.pack(folder / "laid-out", folder / krew.archive_name(read_settings(), HERE), EPOCH, level=1)


def environment(root: Path) -> dict[str, str]:
    """The interpreter that this one's environment was made of has none of our packages."""
    python = root / "python"
    python.mkdir(exist_ok=True)
    link = python / f"python{VERSION}"
    if not link.exists():
        link.symlink_to(Path(sys.base_prefix) / "bin" / f"python{VERSION}")
    path = os.pathsep.join(map(str, (root / "bin", python, "/usr/bin", "/bin")))
    return {"PATH": path, "HOME": str(root), "KREW_ROOT": str(root), "KREW_NO_UPGRADE_CHECK": "1"}


def install(archive: Path, root: Path, manifest: str) -> subprocess.CompletedProcess[str]:
    file = root / krew.MANIFEST
    file.write_text(manifest)
    command: list[str | Path] = [krew_program(), "install", f"--manifest={file}", f"--archive={archive}"]
    return subprocess.run(command, env=environment(root), capture_output=True, text=True, check=False)


@pytest.mark.cluster
def test_krew_installs_it_and_kubectl_runs_it(archive: Path, tmp_path: Path) -> None:
    installed = install(archive, tmp_path, krew.manifest(read_settings(), {HERE: archive}))
    assert installed.returncode == 0, installed.stderr
    assert "Needs Python on PATH" in installed.stderr
    kubectl = control_plane_binaries()["kubectl"]

    def plugin(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [kubectl, "nodeless", *arguments]
        return subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)

    version = plugin("--version")
    assert (version.returncode, version.stdout.strip()) == (0, __version__), version.stderr
    assert "Usage: kubectl nodeless" in plugin("--help").stdout
    file = tmp_path / "pool.yaml"
    file.write_text(POOL)
    refused = plugin("validate", file)
    assert refused.returncode == 1, refused.stderr
    assert "spec.template" in refused.stdout
    # The solver, with its compiled parts.
    planned = plugin("plan", ROOT / "examples" / "plan")
    assert "Placed " in planned.stdout, planned.stderr
    assert not planned.stderr


@pytest.mark.cluster
def test_krew_refuses_an_archive_that_is_not_the_manifests(archive: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(krew.manifest(read_settings(), {HERE: archive}))
    document["spec"]["platforms"][0]["sha256"] = "0" * 64
    refused = install(archive, tmp_path, yaml.safe_dump(document))
    assert refused.returncode != 0
    assert "checksum" in refused.stderr


def test_without_a_python_that_fits_it_says_which_would(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extract(krew.PROGRAM, tmp_path, filter="data")
    (tmp_path / "bin").mkdir()
    for name in ("sh", "readlink", "dirname"):
        (tmp_path / "bin" / name).symlink_to(Path("/bin") / name)
    done = subprocess.run(
        [tmp_path / krew.PROGRAM],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"nodeless: no Python that it runs on is on PATH; hint: install one of {VERSION}\n"
    )


def test_an_archive_has_the_license_and_one_program(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    names = {each.name for each in members}
    assert {"LICENSE", krew.PROGRAM, "launch.py"} <= names
    assert [each.name for each in members if each.mode & 0o100] == [krew.PROGRAM]
    assert {each.mtime for each in members} == {EPOCH}
    # Pure packages once for all versions, compiled ones for each.
    assert "lib/common/nodeless/cli/entry.py" in names
    assert any(name.startswith(f"lib/{VERSION}/numpy/") for name in names)
    assert not any("/cryptography/" in name for name in names)


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / "laid" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "laid" / name / "file").write_text(name)
    one, two = (krew.pack(tmp_path / "laid", tmp_path / f"{each}.tar.gz", EPOCH) for each in (1, 2))
    assert one.read_bytes() == two.read_bytes()


def test_the_manifest_leads_to_the_files_of_the_release(tmp_path: Path) -> None:
    settings, archives = read_settings(), {}
    for each in krew.PLATFORMS:
        archives[each] = tmp_path / krew.archive_name(settings, each)
        archives[each].write_text(str(each))
    spec = yaml.safe_load(krew.manifest(settings, archives))["spec"]
    assert spec["version"] == f"v{__version__}"
    # The index refuses longer ones.
    assert len(spec["shortDescription"]) <= 50
    found = {tuple(each["selector"]["matchLabels"].values()): each["uri"] for each in spec["platforms"]}
    place = f"https://github.com/nodeless/nodeless/releases/download/v{__version__}"
    assert found == {
        (os_, arch): f"{place}/kubectl-nodeless-{__version__}-{os_}-{arch}.tar.gz"
        for os_ in ("linux", "darwin")
        for arch in ("amd64", "arm64")
    }


def test_pins_keep_their_hashes_and_lose_what_only_the_process_needs() -> None:
    lock = (
        "a==1 \\\n    --hash=x\ncryptography==2 \\\n    --hash=y\n    # via b\nopentelemetry-sdk==1\nz==3\n"
    )
    assert krew.requirements(lock) == "a==1 \\\n    --hash=x\nz==3\n"


def test_a_requirement_without_a_wheel_is_named(tools: Path, tmp_path: Path) -> None:
    nowhere = krew.Platform("linux", "riscv64", "riscv64-unknown-linux")
    with pytest.raises(ReleaseError, match="wheels"):
        krew.lay_out(tmp_path / "laid", tmp_path / "none.whl", nowhere, tools / "uv", ["3.13"])
