"""The modules that the suites come from: pinned, fetched by the go command, compared with their archives.

The go command lets nobody change what lies in its cache: an archive is unpacked into ours and adapted there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from localenv.cache import get_or_make
from localenv.conformance.adaptations import (
    ADAPTATIONS,
    CORE_ADAPTATIONS,
    OLDER_REQUIREMENTS,
    Adaptation,
    adapt_files,
    is_adaptable,
)
from localenv.golang import GoVersion, go_environment, toolchain
from localenv.progress import Report

#: Where a module keeps its suites.
SUITES = "test/suites"


class ModuleUnusable(RuntimeError):
    """A module cannot be fetched, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module with suites.

    Attributes:
        path: Its import path.
        version: The pinned one.
        sum: Of its archive, as in a go.sum.
        suites: Names of the suites that are run.
        adaptations: What is changed in its environment code.
    """

    path: str
    version: str
    sum: str
    suites: tuple[str, ...]
    adaptations: tuple[Adaptation, ...]

    def __str__(self) -> str:
        return f"{self.path}@{self.version}"


_PROVIDER_PATH, _CORE_PATH = "github.com/aws/karpenter-provider-aws", "sigs.k8s.io/karpenter"
_PROVIDER_SUITES = (
    *("nodeclaim", "integration", "ami", "drift", "consolidation", "interruption", "storage"),
    *("localzone", "ipv6", "scale"),
)


@dataclass(frozen=True, slots=True)
class Release:
    """Modules that are run together.

    Attributes:
        provider: The AWS provider's; its shipped defaults are those of every suite.
        core: Karpenter's own; its suites run with any provider's node class, which they are given as a file.
        go: The least version of Go by the modules' go.mod.
        settings: Of the controller, where a release expects other ones.
        arguments: Of the core's suites: conditions of nodes that this provider repairs.
    """

    provider: Module
    core: Module
    go: GoVersion
    settings: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its version, which is that of the provider."""
        return self.provider.version

    @property
    def modules(self) -> tuple[Module, Module]:
        """Both, the provider's first."""
        return self.provider, self.core

    @property
    def suites(self) -> tuple[str, ...]:
        """The names of all suites."""
        return tuple(suite for module in self.modules for suite in module.suites)


V1_14 = Release(
    Module(
        path=_PROVIDER_PATH,
        version="v1.14.0",
        sum="h1:QVQ947vQKzxM87aDbpZBtUnlVRVcU75c/RMlgVyX7nc=",
        suites=(*_PROVIDER_SUITES, "scheduling"),
        adaptations=ADAPTATIONS,
    ),
    Module(
        path=_CORE_PATH,
        version="v1.14.0",
        sum="h1:+SXlqYNb9FIKRpDgPPRnphVmWbrWLw4tgzKezr372Mc=",
        suites=("regression",),
        adaptations=CORE_ADAPTATIONS,
    ),
    go=(1, 26, 5),
    # Its repair specs are those of the repair that ends a broken node at once.
    settings=(("nodeless.legacyNodeRepair", "true"),),
)
V1_15 = Release(
    Module(
        path=_PROVIDER_PATH,
        version="v1.15.0",
        sum="h1:3qnrxRxKHPg9Hd71D7xH4xKxPfmcrB30EFBrMz74mOs=",
        suites=(*_PROVIDER_SUITES, "scheduling-strict", "scheduling-besteffort", "repair", "legacyrepair"),
        adaptations=(*ADAPTATIONS, *OLDER_REQUIREMENTS),
    ),
    Module(
        path=_CORE_PATH,
        version="v1.15.0",
        sum="h1:5SEptlAvsOZbNg4qg8OSdF1qi6BEZHZLA020nXY7jGw=",
        suites=("regression", "disruption"),
        adaptations=CORE_ADAPTATIONS,
    ),
    go=(1, 26, 9),
    settings=(
        ("nodeless.zonalShift", "true"),
        ("nodeless.terminateFirstDrift", "true"),
        ("nodeless.terminateFirstRepair", "true"),
    ),
    arguments=(
        "-repair-condition=AcceleratedHardwareReady=False/NvidiaXID79Error",
        "-reboot-condition=AcceleratedHardwareReady=False/NvidiaXID95Error",
    ),
)
#: Run unless another is asked for.
DEFAULT_RELEASE = V1_14
RELEASES = {release.name: release for release in (V1_14, V1_15)}


@dataclass(frozen=True, slots=True)
class Source:
    """A module on this machine.

    Attributes:
        module: Which.
        folder: Its files, with adapted environment code.
        archive: The archive that they were unpacked from.
    """

    module: Module
    folder: Path
    archive: Path


def go_command(release: Release, report: Report) -> Path:
    """The go command for a release. Raises ToolchainMissing."""
    return toolchain(release.go, f"the suites of Karpenter {release.name}", report)


def fetch(module: Module, go: Path) -> Path:
    """The archive of a module; the go command fetches it and checks it against the checksum database.

    Raises:
        ModuleUnusable: It cannot be fetched, or its sum is not the pinned one.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            [go, "mod", "download", "-json", str(module)],
            cwd=nowhere,
            env=go_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    found = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Zip" not in found:
        said = found.get("Error") or done.stderr.strip()
        raise ModuleUnusable(
            f"{module} cannot be fetched: {said}; hint: the Go module proxy is set by GOPROXY"
        )
    if found["Sum"] != module.sum:
        raise ModuleUnusable(f"{module} has the sum {found['Sum']}, pinned is {module.sum}")
    return Path(found["Zip"])


def unpack_module(module: Module, archive: Path, report: Report) -> Source:
    """The module with its adaptations, unpacked once for each set of them.

    Raises:
        AdaptationFailed: See `adapted`.
    """
    told = f"{module} {module.sum} {module.adaptations!r}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]

    def make(folder: Path) -> None:
        prefix = f"{module}/"
        with zipfile.ZipFile(archive) as packed:
            texts = {
                name.removeprefix(prefix): packed.read(name) for name in packed.namelist() if name[-1] != "/"
            }
        changed = adapt_files(
            {name: texts[name].decode() for name in texts if is_adaptable(name)}, module.adaptations
        )
        for name, content in {**texts, **{name: text.encode() for name, text in changed.items()}}.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    return Source(module, get_or_make(f"conformance-source-{digest}", make, report), archive)


def homes_of(release: Release, go: Path, report: Report) -> dict[str, Source]:
    """The module of each suite, fetched, unpacked and compared with what was published.

    Raises:
        ModuleUnusable: See `fetch` and `assert_as_published`.
        AdaptationFailed: See `adapted`.
    """
    homes: dict[str, Source] = {}
    for module in release.modules:
        source = unpack_module(module, fetch(module, go), report)
        report(f"{module}: {assert_as_published(source)} files of suites are as published")
        homes |= dict.fromkeys(module.suites, source)
    return homes


def assert_as_published(source: Source) -> int:
    """Compare every file but adapted environment code with the archive; the number of files of suites.

    Raises:
        ModuleUnusable: A file differs, is missing or is one too many.
    """
    prefix = f"{source.module}/"
    adaptable = {adaptation.file for adaptation in source.module.adaptations if is_adaptable(adaptation.file)}
    with zipfile.ZipFile(source.archive) as archive:
        published = {name.removeprefix(prefix): name for name in archive.namelist() if not name.endswith("/")}
        present = {
            path.relative_to(source.folder).as_posix() for path in source.folder.rglob("*") if path.is_file()
        }
        if odd := published.keys() ^ present:
            named = ", ".join(sorted(odd))
            raise ModuleUnusable(f"{source.folder} is not {source.module} as published: {named}")
        for name in sorted(published.keys() - adaptable):
            if (source.folder / name).read_bytes() != archive.read(published[name]):
                raise ModuleUnusable(f"{source.folder / name} is not what {source.module} was published with")
    return sum(name.startswith(f"{SUITES}/") for name in published)
