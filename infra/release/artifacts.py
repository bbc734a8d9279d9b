"""The files of a release: distributions, charts, checksums. The same commit gives the same bytes."""

import gzip
import io
import shutil
import sys
import tarfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from infra.release.commands import run
from infra.release.cutting import git
from infra.release.settings import ROOT, ReleaseError

DISTRIBUTIONS: Final = {"controller": "nodeless-provisioner", "components": "pulumi-nodeless"}
"""What an index gets, by the folder that it is made of. That of localenv/ is published nowhere."""
CHARTS: Final = ("nodeless-crd", "nodeless")
BUILD_TOOLS: Final = ROOT / "controller" / "build-requirements.lock"
"""The build backend and uv, by hash; the image is built with the same."""
CHECKSUMS: Final = "SHA256SUMS"
IMAGE: Final = "image.json"
"""What buildx says of the image that it pushed."""


def source_date(root: Path = ROOT) -> int:
    """Seconds since the epoch of the commit, which is the time of every file that is made of it."""
    return int(git("log", "-1", "--format=%ct", root=root))


def install_tools(folder: Path) -> Path:
    """The build tools in a virtual environment of their own; gives the folder of its programs.

    Raises:
        ReleaseError: They could not be installed.
    """
    programs = folder / "bin"
    if not (programs / "uv").is_file():
        run([sys.executable, "-m", "venv", "--clear", folder])
        pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--require-hashes"]
        run([programs / "python", *pip, "-r", BUILD_TOOLS])
    return programs


def build_distributions(folder: Path, tools: Path, epoch: int) -> list[Path]:
    """Builds source archives and, out of these, wheels.

    Args:
        folder: Where they go; made when it is missing.
        tools: Folder of the build tools' programs.
        epoch: Time of the files in them, in seconds.

    Raises:
        ReleaseError: A build failed.
    """
    for source in DISTRIBUTIONS:
        # Without `--sdist` and `--wheel` the wheel is made of the source archive, which so is complete.
        command = ["build", "--quiet", "--no-build-isolation", "--no-config"]
        run(
            [tools / "uv", *command, "--python", tools / "python", "--out-dir", folder, ROOT / source],
            environment={"SOURCE_DATE_EPOCH": str(epoch), "UV_PYTHON_DOWNLOADS": "never"},
        )
    (folder / ".gitignore").unlink(missing_ok=True)
    return sorted(folder.iterdir())


def package_charts(folder: Path, helm: Path, epoch: int) -> list[Path]:
    """Lints and packages the charts with Helm.

    Args:
        folder: Where they go; made when it is missing.
        helm: The program.
        epoch: Time of the files in them, in seconds.

    Raises:
        ReleaseError: Helm refused a chart.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for chart in CHARTS:
        source = ROOT / "charts" / chart
        values = ["--set", "settings.clusterName=demo"] if chart == "nodeless" else []
        run([helm, "lint", "--strict", source, *values])
        said = run([helm, "package", source, "--destination", folder])
        package = folder / Path(said.strip().rpartition(" ")[2]).name
        _normalize(package, epoch)
        made.append(package)
    return made


def _normalize(package: Path, epoch: int) -> None:
    """Gives the files of an archive one time, one owner and one order: Helm writes the time of packaging."""
    with tarfile.open(package, "r:gz") as archive:
        members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
        contents = [(member, stream.read() if stream else b"") for member, stream in members]
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        # A chart's readers expect Chart.yaml first, as Helm writes it.
        for member, content in sorted(contents, key=lambda each: (not _is_chart_file(each[0]), each[0].name)):
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.size, entry.mode, entry.mtime = member.type, len(content), 0o644, epoch
            archive.addfile(entry, io.BytesIO(content))
    with package.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed:
        packed.write(inner.getvalue())


def _is_chart_file(member: tarfile.TarInfo) -> bool:
    return member.name.count("/") == 1 and member.name.endswith("/Chart.yaml")


def write_definitions(file: Path) -> Path:
    """Writes the custom resource definitions as one file for `kubectl apply --server-side`."""
    texts = [each.read_text().strip() for each in sorted((ROOT / "controller" / "crds").glob("*.yaml"))]
    if not texts:
        raise ReleaseError("controller/crds has no definition; hint: nodeless crds controller/crds")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"---\n{text.removeprefix('---').strip()}\n" for text in texts))
    return file


def pack_folder(folder: Path, package: Path, epoch: int) -> Path:
    """Packs a folder as a .tar.gz; the same files give the same bytes."""
    package.parent.mkdir(parents=True, exist_ok=True)
    shutil.make_archive(str(package).removesuffix(".tar.gz"), "gztar", folder)
    _normalize(package, epoch)
    return package


def compare(made: Iterable[Path], again: Path) -> None:
    """Compares files with those of the same names that were made a second time.

    Raises:
        ReleaseError: One is missing or has other bytes.
    """
    for file in made:
        other = again / file.name
        if not other.is_file() or other.read_bytes() != file.read_bytes():
            raise ReleaseError(f"{file.name} made twice has other bytes; hint: compare them by diffoscope")


def released_files(folder: Path) -> list[Path]:
    """What of dist/ is attached to a release: all but the texts that are made for its page.

    Raises:
        ReleaseError: Two files have one name, which a release cannot have.
    """
    files = sorted(
        each
        for each in folder.rglob("*")
        if each.is_file() and each.suffix != ".md" and each.name not in (CHECKSUMS, IMAGE)
    )
    names = [each.name for each in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ReleaseError(f"{folder} has {', '.join(twice)} more than once")
    return files


def write_checksums(folder: Path) -> Path:
    """Writes the checksums of what is released, as `sha256sum --check` reads them beside downloads."""
    sums = folder / CHECKSUMS
    lines = [f"{sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in released_files(folder)]
    sums.write_text("".join(lines))
    return sums


def clear(folder: Path) -> None:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
