"""The docs site as a release publishes it, served on this machine, and a browser to read it with."""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium

ROOT = Path(__file__).parents[2]
VERSION, OLDER = "0.2", "0.1"
IDENTITY = {f"GIT_{role}_{part}": "docs" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def publish(folder: Path) -> None:
    """Publish the docs to a branch by mike, check that out, and name an older version beside it."""
    git = ("git", "-C", str(folder))
    environment = (
        os.environ
        | IDENTITY
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DOCS_SITE_DIR": str(folder / "build"),
            "NO_MKDOCS_2_WARNING": "1",
        }
    )
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "docs"], check=True, env=environment)
    deploy = ["mike", "deploy", "-F", str(ROOT / "mkdocs.yml"), "--update-aliases", VERSION, "latest"]
    done = subprocess.run(deploy, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run([*git, "checkout", "-q", "gh-pages"], check=True)
    versions = folder / "versions.json"
    both = f'[{{"version": "{VERSION}", "title": "{VERSION}", "aliases": ["latest"]}},'
    versions.write_text(f'{both} {{"version": "{OLDER}", "title": "{OLDER}", "aliases": []}}]')


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all published versions; made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "docs-site"
    with (shared / "docs-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "versions.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            publish(folder)
    return folder


@pytest.fixture(scope="session")
def site(published: Path) -> Path:
    """The folder of the site of this version."""
    return published / VERSION


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(published: Path) -> Iterator[str]:
    """Where the site of this version is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(published)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{VERSION}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium of this machine.

    Of one module's tests: as long as it is there an event loop runs in this thread, and no test has its own.
    """
    with chromium() as started:
        yield started
