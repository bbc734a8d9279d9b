"""Folders of Kustomize, built by the real program: their files are no manifests before that.

A patch looks like a Deployment without containers, a base is given once for each overlay, and names, images
and replicas are those of the overlay. So a folder with a kustomization is built as a whole, as
`kubectl apply -k` does; without a program for it, the command says how to pipe.
"""

import shutil
import subprocess
from pathlib import Path

from nodeless.cli.bounded_files import MOST_BYTES, UnreadableFileError

#: The names that Kustomize looks for in a folder.
NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
#: Seconds for one build: those with remote bases fetch repositories.
MOST_SECONDS = 120.0
#: Programs that build, with what they want before the folder; kubectl carries an older Kustomize.
_BUILDERS = (("kustomize", "build"), ("kubectl", "kustomize"))


def is_kustomization(folder: Path) -> bool:
    """Whether a folder is one of Kustomize."""
    return any((folder / name).is_file() for name in NAMES)


def kustomizations_below(folder: Path) -> list[Path]:
    """The folders of Kustomize below a folder, in the order of their paths."""
    return sorted({path.parent for name in NAMES for path in folder.rglob(name) if path.is_file()})


def build(folder: Path, most_seconds: float = MOST_SECONDS) -> str:
    """The manifests of a folder of Kustomize, as YAML.

    Args:
        folder: The folder.
        most_seconds: Seconds after which the program is ended.

    Raises:
        UnreadableFileError: There is no program for it, or it failed, or wrote too much, or took too long.
    """
    for name, verb in _BUILDERS:
        program = shutil.which(name)
        if program is not None:
            return _built(folder, [program, verb, str(folder)], f"{name} {verb}", most_seconds)
    raise UnreadableFileError(
        f"{folder} is a Kustomize folder, and neither kustomize nor kubectl is on PATH; "
        f"hint: kustomize build {folder} | nodeless plan -"
    )


def _built(folder: Path, command: list[str], shown: str, most_seconds: float) -> str:
    try:
        made = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=most_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFileError(
            f"{folder}: {shown} took more than {most_seconds:g} s; hint: can its remote bases be reached?"
        ) from None
    except OSError as error:
        raise UnreadableFileError(
            f"{folder}: {shown} cannot be started: {error.strerror or error}; hint: see {command[0]}"
        ) from None
    if made.returncode:
        said = " ".join(made.stderr.decode(errors="replace").split()) or f"exit code {made.returncode}"
        raise UnreadableFileError(f"{folder}: {shown} failed: {said}; hint: run {shown} {folder}")
    if len(made.stdout) > MOST_BYTES:
        raise UnreadableFileError(
            f"{folder}: {shown} wrote more than {MOST_BYTES // 2**20} MiB; hint: give fewer objects at a time"
        )
    try:
        return made.stdout.decode()
    except UnicodeDecodeError:
        raise UnreadableFileError(
            f"{folder}: what {shown} wrote is not UTF-8; hint: run {shown} {folder}"
        ) from None
