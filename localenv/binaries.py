"""Where the programs of the local environment come from: installed ones first, else built once.

The control plane is looked for in `$KUBEBUILDER_ASSETS`, on PATH, in the cache, and is
built when it is nowhere; the Pulumi engine, Helm, Prometheus and OpenTofu likewise, from PATH on. OpenTofu's
providers are our own and always built. A source that lacks a program is named and passed over, never mixed
with another. How a build goes stands in `golang`, how the result is kept in `cache`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from localenv.cache import get_or_make, source_digest
from localenv.golang import GoProgram, build, module_folder, required_go, required_version, toolchain
from localenv.progress import Report, StreamReport

#: The programs a control plane is made of; all of one source.
CONTROL_PLANE_PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

_HERE = Path(__file__).parent
_CONTROL_PLANE_SOURCE = _HERE / "control_plane" / "source"
_PULUMI_MODULE = "github.com/pulumi/pulumi/pkg/v3"
_HELM_MODULE = "helm.sh/helm/v4"
_HOSTS_SOURCE = _HERE / "language_hosts" / "source"
_PULUMI_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
_PYTHON_EXECUTOR = "pulumi-language-python-exec"
_KREW_MODULE = "sigs.k8s.io/krew"
_OPENTOFU_MODULE = "github.com/opentofu/opentofu"
_TOFU_PROVIDERS = _HERE / "opentofu" / "providers"
#: Those whose generators are part of the engine's module.
HOSTED_LANGUAGES = ("go", "nodejs", "python")


def control_plane_binaries(report: Report | None = None) -> dict[str, Path]:
    """The programs of the control plane by name; `kubectl` is among them where its source has it.

    Args:
        report: Hears about the build, if there is one; standard error by default.

    Raises:
        ToolchainMissing: Nothing is installed and there is no Go to build with.
        BuildFailed: The build failed.
    """
    report = report or StreamReport()
    return _in_assets(report) or _on_path(report) or _built_control_plane(report)


def tofu_provider(name: str, report: Report | None = None) -> Path:
    """Our provider of OpenTofu called `name` (aws, helm); otherwise as `control_plane_binaries`."""
    return _build(tofu_provider_program(name), report or StreamReport())


def language_hosts(report: Report | None = None) -> Path:
    """A folder of language hosts by which the engine generates, installs and adds packages.

    Programs and plugins in Python run, too. Arguments and errors as for `control_plane_binaries`.
    """
    program, report = language_hosts_program(), report or StreamReport()

    def make(folder: Path) -> None:
        build(program, folder, report)
        for language in HOSTED_LANGUAGES:
            (folder / f"pulumi-language-{language}").symlink_to(program.output)
        # What runs a Python program is a script of the SDK's module, and is looked for beside the host.
        go = toolchain(required_go(program.source), program.title, report)
        sdk = module_folder(go, program.source, _PULUMI_SDK_MODULE)
        shutil.copyfile(sdk / "python" / "cmd" / _PYTHON_EXECUTOR, folder / _PYTHON_EXECUTOR)
        (folder / _PYTHON_EXECUTOR).chmod(0o755)

    return get_or_make(f"{program.output}-{source_digest(program.source)}", make, report)


def control_plane_program() -> GoProgram:
    """The multi-call binary; unstamped, its API server would call itself v0.0.0."""
    version = required_version(_CONTROL_PLANE_SOURCE, "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamp = "k8s.io/component-base/version.git"
    return GoProgram(
        title=f"the Kubernetes control plane {version}",
        source=_CONTROL_PLANE_SOURCE,
        package=".",
        output="controlplane",
        variables=((f"{stamp}Version", version), (f"{stamp}Major", major), (f"{stamp}Minor", minor)),
    )


def pulumi_program() -> GoProgram:
    """The Pulumi engine and its command line."""
    stamp = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
    return _program("the Pulumi engine", "pulumi", _PULUMI_MODULE, "pulumi", stamp=stamp)


def helm_program() -> GoProgram:
    """Helm's command line; unstamped, it would call itself v4.3 whatever the patch release."""
    return _program("Helm", "helm", _HELM_MODULE, "helm", stamp=f"{_HELM_MODULE}/internal/version.version")


def krew_program() -> GoProgram:
    """The manager of kubectl's plugins; unstamped, it would call itself unknown."""
    return _program("krew", "krew", _KREW_MODULE, "krew", stamp=f"{_KREW_MODULE}/internal/version.gitTag")


def language_hosts_program() -> GoProgram:
    """Generators, package managers and environments of the engine's modules, behind its protocol of hosts."""
    version = required_version(_HOSTS_SOURCE, _PULUMI_MODULE)
    return GoProgram(
        title=f"the language hosts {version}",
        source=_HOSTS_SOURCE,
        package=".",
        output="languagehosts",
    )


def prometheus_program(name: str) -> GoProgram:
    """Prometheus' server, or its tool for rules and queries."""
    return _program(
        name,
        "prometheus",
        "github.com/prometheus/prometheus",
        name,
        stamp="github.com/prometheus/common/version.Version",
        value="{}",
        # What finds targets in clouds is most of its code; here they are given.
        tags=("remove_all_sd",),
    )


def opentofu_program() -> GoProgram:
    """OpenTofu's command line; unstamped, it would call itself a development version."""
    stamp = f"{_OPENTOFU_MODULE}/version.dev"
    return _program("OpenTofu", "opentofu", _OPENTOFU_MODULE, "tofu", stamp=stamp, value="no")


def tofu_provider_program(name: str) -> GoProgram:
    """A provider of OpenTofu that knows what the module in terraform/ uses, for tests of it."""
    return GoProgram(
        title=f"the provider {name} for the local environment",
        source=_TOFU_PROVIDERS,
        package=f"./{name}",
        output=f"terraform-provider-{name}",
    )


def _program(
    title: str,
    folder: str,
    module: str,
    command: str,
    *,
    stamp: str = "",
    value: str = "v{}",
    tags: tuple[str, ...] = (),
) -> GoProgram:
    """A command of a module, in the version that the go.mod of our folder requires.

    The linker's variable `stamp` gets `value`, in which `{}` stands for the version's number.
    """
    source = _HERE / folder / "source"
    version = required_version(source, module)
    return GoProgram(
        title=f"{title} {version}",
        source=source,
        package=f"{module}/cmd/{command}",
        output=command,
        variables=((stamp, value.format(version.removeprefix("v"))),) if stamp else (),
        tags=tags,
    )


class Finder(Protocol):
    """Finds a program on PATH, or builds it; arguments and errors as for `control_plane_binaries`."""

    def __call__(self, report: Report | None = None) -> Path: ...


def _finder(program: Callable[[], GoProgram]) -> Finder:
    def find(report: Report | None = None) -> Path:
        wanted = program()
        on_path = shutil.which(wanted.output)
        return _build(wanted, report or StreamReport()) if on_path is None else Path(on_path)

    return find


pulumi_engine = _finder(pulumi_program)
helm = _finder(helm_program)
prometheus = _finder(lambda: prometheus_program("prometheus"))
promtool = _finder(lambda: prometheus_program("promtool"))
opentofu = _finder(opentofu_program)
#: The linter of GitHub's workflows.
actionlint = _finder(
    lambda: _program("actionlint", "actionlint", "github.com/rhysd/actionlint", "actionlint")
)
#: The manager of kubectl's plugins.
krew = _finder(krew_program)


def _build(program: GoProgram, report: Report) -> Path:
    def make(folder: Path) -> None:
        build(program, folder, report)

    return get_or_make(f"{program.output}-{source_digest(program.source)}", make, report) / program.output


def _in_assets(report: Report) -> dict[str, Path] | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return None
    found = {name: Path(folder) / name for name in (*CONTROL_PLANE_PROGRAMS, "kubectl")}
    return _complete(f"KUBEBUILDER_ASSETS={folder}", {n: p for n, p in found.items() if p.is_file()}, report)


def _on_path(report: Report) -> dict[str, Path] | None:
    found = {name: shutil.which(name) for name in CONTROL_PLANE_PROGRAMS}
    present = {name: Path(path) for name, path in found.items() if path is not None}
    if not present:
        return None
    kubectl = shutil.which("kubectl")
    return _complete("PATH", present | ({"kubectl": Path(kubectl)} if kubectl else {}), report)


def _complete(source: str, found: dict[str, Path], report: Report) -> dict[str, Path] | None:
    missing = [name for name in CONTROL_PLANE_PROGRAMS if name not in found]
    if missing:
        report(f"{source} lacks {', '.join(missing)}, so another control plane is used")
        return None
    return found


def _built_control_plane(report: Report) -> dict[str, Path]:
    program = control_plane_program()
    names = (*CONTROL_PLANE_PROGRAMS, "kubectl")

    def make(folder: Path) -> None:
        build(program, folder, report)
        for name in names:
            (folder / name).symlink_to(program.output)

    entry = get_or_make(f"control-plane-{source_digest(program.source)}", make, report)
    return {name: entry / name for name in names}
