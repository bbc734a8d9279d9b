"""A copy of the checkout that a test may change."""

import shutil
import subprocess
from pathlib import Path

import pytest

from infra.release.settings import ROOT


def run_git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def commit(root: Path) -> None:
    run_git(root, "add", "--all")
    run_git(root, "commit", "--quiet", "--message", "all")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: the files of this checkout, as they are, without its tests."""
    root = tmp_path_factory.mktemp("release") / "checkout"
    listed = run_git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    for path in filter(None, listed):
        if not path.startswith("tests/") and (ROOT / path).is_file():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, root / path)
    run_git(root, "init", "--quiet", "--initial-branch", "main", ".")
    commit(root)
    run_git(root, "tag", "as-copied")
    return root


@pytest.fixture
def checkout(repository: Path) -> Path:
    """That repository, without what other tests did to it."""
    run_git(repository, "reset", "--quiet", "--hard", "as-copied")
    run_git(repository, "clean", "--quiet", "-xdf")
    return repository
