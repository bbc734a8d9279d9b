"""Changing the checkout: another version or address everywhere, and the cut of a version."""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Final

from infra.release import changelog
from infra.release.settings import ROOT, ReleaseError, Settings, check_address, parse_version, read_settings
from infra.release.versions import write_settings

CHANGELOG: Final = Path("CHANGELOG.md")
_GENERATORS: Final = (("pulumi_nodeless", "generate"), ("infra.image", "sbom"))
"""What writes the files that name the version and are generated."""


def set_everywhere(
    version: str | None = None, image: str | None = None, charts: str | None = None, root: Path = ROOT
) -> list[str]:
    """Writes what is given into every place, and generates what follows from it.

    Returns:
        The files that were written, without the generated ones.

    Raises:
        ReleaseError: A value has another form, or a place is missing; then nothing is written.
    """
    now = read_settings(root)
    settings = Settings(version or now.version, image or now.image, charts or now.charts)
    parse_version(settings.version)
    for address in (settings.image, settings.charts):
        check_address(address)
    changed = write_settings(settings, root)
    if changed:
        _generate(root)
    return changed


def cut(version: str, day: date, root: Path = ROOT) -> bool:
    """Makes the checkout that of a version: the version everywhere, and its section in the changelog.

    Returns:
        Whether anything was done; a version that is cut already is left as it is.

    Raises:
        ReleaseError: The version is not greater, nothing is unreleased, or files differ from the last commit.
    """
    wanted, now = parse_version(version), read_settings(root)
    text = (root / CHANGELOG).read_text()
    if now.version == version and version in changelog.released_versions(text):
        return False
    made = changelog.cut(text, version, day)
    if wanted < parse_version(now.version):
        raise ReleaseError(
            f"{version} is lower than {now.version}, the version of this checkout; hint: choose a greater one"
        )
    if dirty := uncommitted_files(root):
        differ = "1 file differs" if len(dirty) == 1 else f"{len(dirty)} files differ"
        raise ReleaseError(
            f"{differ} from the last commit ({', '.join(dirty[:3])}); hint: commit, or git stash -u"
        )
    set_everywhere(version, root=root)
    (root / CHANGELOG).write_text(made)
    return True


def uncommitted_files(root: Path = ROOT) -> list[str]:
    """Files that differ from the last commit, and those that git neither knows nor ignores."""
    return [line[3:] for line in git("status", "--porcelain", root=root).splitlines()]


def git(*arguments: str, root: Path = ROOT) -> str:
    """What git writes.

    Raises:
        ReleaseError: git refused; with its own words.
    """
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _generate(root: Path) -> None:
    # In processes of their own: this one has imported the packages with the version of before.
    path = os.pathsep.join(str(root / folder) for folder in (".", "controller", "components"))
    for module, command in _GENERATORS:
        done = subprocess.run(
            [sys.executable, "-m", module, command],
            cwd=root,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ReleaseError(f"python -m {module} {command} failed: {done.stderr.strip()}")
