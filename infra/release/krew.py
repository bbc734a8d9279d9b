"""The plugin `kubectl nodeless` for krew: an archive for each platform, and the manifest that names them.

An archive holds the command with everything that it needs, as wheels unpacked, for each version of Python
that every one of them has a wheel of; a script starts it with whichever of these the user has. It is no
zipapp (as pex and shiv make them): extension modules cannot be imported out of one, so it would have to
unpack itself into the user's home first, and krew unpacks archives anyway. What only the controller's own
process needs (certificates of its webhooks, traces) is left out: wheels of it are not there everywhere.
"""

import csv
import gzip
import io
import re
import shutil
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import yaml

from infra.release.commands import run
from infra.release.settings import ROOT, ReleaseError, Settings

PLUGIN: Final = "nodeless"
MANIFEST: Final = "nodeless.yaml"
"""What goes into an index of krew, whose file has the plugin's name."""
PROGRAM: Final = "kubectl-nodeless"
PYTHONS: Final = ("3.13", "3.12", "3.11")
"""Those of which every wheel is there (`immutables` has none for 3.14); the first that is found is taken."""
LOCK: Final = ROOT / "controller" / "requirements.lock"
_LEFT_OUT: Final = re.compile(
    r"cffi|cryptography|googleapis-common-protos|opentelemetry-.*|protobuf|pycparser"
)
_PINNED: Final = re.compile(r"([A-Za-z0-9._-]+)==")
_COMMON: Final = "common"
_LAUNCH: Final = "launch.py"


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform of krew.

    Attributes:
        os: As `GOOS` has it.
        arch: As `GOARCH` has it.
        wheels: What uv calls the platform whose wheels run there.
    """

    os: str
    arch: str
    wheels: str

    def __str__(self) -> str:
        return f"{self.os}/{self.arch}"


PLATFORMS: Final = (
    Platform("linux", "amd64", "x86_64-manylinux_2_28"),
    Platform("linux", "arm64", "aarch64-manylinux_2_28"),
    Platform("darwin", "amd64", "x86_64-apple-darwin"),
    Platform("darwin", "arm64", "aarch64-apple-darwin"),
)

#: Symbolic links are followed by hand: `readlink -f` is missing on older systems of Apple.
_SCRIPT: Final = """\
#!/bin/sh
# kubectl-nodeless: starts the command with the first of these versions of Python that is on PATH.
program=$0
while [ -h "$program" ]; do
  target=$(readlink "$program")
  case $target in
    /*) program=$target ;;
    *) program=$(dirname "$program")/$target ;;
  esac
done
folder=$(dirname "$program")
for version in VERSIONS; do
  if command -v "python$version" >/dev/null 2>&1; then
    exec "python$version" -I "$folder/LAUNCH" "$@"
  fi
done
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
case " VERSIONS " in
  *" ${version:-none} "*) exec python3 -I "$folder/LAUNCH" "$@" ;;
esac
echo "nodeless: no Python that it runs on is on PATH; hint: install one of VERSIONS" >&2
exit 2
"""
_LAUNCHER: Final = '''\
"""Starts the command out of the folder that this file is in."""

import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "lib"
sys.path[:0] = [str(_FOLDER / "{0}.{1}".format(*sys.version_info[:2])), str(_FOLDER / "common")]
sys.argv[0] = "kubectl-nodeless"

from nodeless.cli.entry import main  # noqa: E402 - it is found there

if __name__ == "__main__":
    main()
'''


def archive_name(settings: Settings, platform: Platform) -> str:
    """The name of a platform's archive."""
    return f"{PROGRAM}-{settings.version}-{platform.os}-{platform.arch}.tar.gz"


def requirements(text: str) -> str:
    """The pins of a lock without those of packages that only the controller's process needs."""
    kept, leave = [], False
    for line in text.splitlines(keepends=True):
        if named := _PINNED.match(line):
            leave = _LEFT_OUT.fullmatch(named[1]) is not None
        if not leave:
            kept.append(line)
    return "".join(kept)


def lay_out(
    folder: Path, wheel: Path, platform: Platform, uv: Path, pythons: Iterable[str] = PYTHONS
) -> None:
    """Makes the folder that a platform's archive holds.

    Args:
        folder: Made anew.
        wheel: Of `nodeless-provisioner`.
        platform: Where it is to run.
        uv: The program.
        pythons: Versions of Python for which it is made.

    Raises:
        ReleaseError: A requirement has no wheel for it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    pins = folder / "requirements.txt"
    pins.write_text(requirements(LOCK.read_text()))
    versions = tuple(pythons)
    for version in versions:
        target: list[str | Path] = [
            "--quiet",
            "--no-deps",
            "--target",
            folder / "lib" / version,
            "--python-version",
            version,
        ]
        wanted = ["--only-binary", ":all:", "--python-platform", platform.wheels]
        command: list[str | Path] = [uv, "pip", "install", *target, *wanted]
        run([*command, "--require-hashes", "--requirements", pins])
        run([*command, wheel])
        shutil.rmtree(folder / "lib" / version / "bin", ignore_errors=True)
    pins.unlink()
    _share(folder / "lib", versions)
    named = " ".join(versions)
    script = _SCRIPT.replace("VERSIONS", named).replace("LAUNCH", _LAUNCH)
    (folder / PROGRAM).write_text(script)
    (folder / PROGRAM).chmod(0o755)
    (folder / _LAUNCH).write_text(_LAUNCHER)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")


def _share(lib: Path, versions: tuple[str, ...]) -> None:
    """Keeps once what is the same for each version: distributions whose wheel is for all of them."""
    first = lib / versions[0]
    for information in sorted(first.glob("*.dist-info")):
        if not _is_for_all(information) or not all((lib / v / information.name).is_dir() for v in versions):
            continue
        for name in list(_files(information)):
            kept = lib / _COMMON / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            (first / name).replace(kept)
            for version in versions[1:]:
                (lib / version / name).unlink()
    for version in versions:
        _remove_empty(lib / version)


def _is_for_all(information: Path) -> bool:
    tags = re.findall(r"^Tag: (\S+)", (information / "WHEEL").read_text(), re.MULTILINE)
    return bool(tags) and all(re.fullmatch(r"(py2\.)?py[23]-none-\S+|\S+-abi3-\S+", tag) for tag in tags)


def _files(information: Path) -> Iterator[str]:
    """The files of a distribution that are there, relative to their folder."""
    with (information / "RECORD").open(newline="") as record:
        for name, *_ in csv.reader(record):
            if not name.startswith("..") and (information.parent / name).is_file():
                yield name


def _remove_empty(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), reverse=True):
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()


def pack(folder: Path, archive: Path, epoch: int, level: int = 9) -> Path:
    """Packs a folder; the same files give the same bytes.

    Args:
        folder: Made by `lay_out`.
        archive: The file.
        epoch: Time of the files in it, in seconds.
        level: Of compression, 1 to 9.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as made,
    ):
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            content = file.read_bytes()
            entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
            entry.size, entry.mtime = len(content), epoch
            entry.mode = 0o755 if entry.name == PROGRAM else 0o644
            made.addfile(entry, io.BytesIO(content))
    return archive


def manifest(settings: Settings, archives: Mapping[Platform, Path], address: str = "") -> str:
    """The manifest for krew's index, with the checksum of each archive.

    Args:
        settings: What is released.
        archives: By platform; those that are missing are not offered.
        address: Folder of the archives; that of GitHub's release when it is empty.
    """
    home = repository()
    address = address or f"{home}/releases/download/{settings.tag}"
    platforms = [
        {
            "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
            "uri": f"{address}/{archive.name}",
            "sha256": sha256(archive.read_bytes()).hexdigest(),
            "bin": PROGRAM,
        }
        for platform, archive in archives.items()
    ]
    document: dict[str, Any] = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": settings.tag,
            "homepage": home,
            "shortDescription": "Plan nodes for EKS, with prices and reasons",
            "description": (
                "Shows which nodes pools of nodeless or Karpenter would get for pending pods, what they\n"
                "cost, and why a pod has no place; checks and converts pools, and proposes them for groups.\n"
                "Nothing is changed in the cluster.\n"
            ),
            "caveats": f"Needs Python on PATH: one of {', '.join(PYTHONS)}.\n",
            "platforms": platforms,
        },
    }
    return yaml.safe_dump(document, sort_keys=False, width=120)


def repository(root: Path = ROOT) -> str:
    """The address of the repository, as the distribution names it.

    Raises:
        ReleaseError: It names none.
    """
    project = tomllib.loads((root / "controller" / "pyproject.toml").read_text())["project"]
    found = project.get("urls", {}).get("Homepage")
    if not found:
        raise ReleaseError("controller/pyproject.toml: [project.urls] has no Homepage")
    return str(found)
