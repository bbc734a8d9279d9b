"""Everything of a release that can run on this machine, step by step, with a line for each.

A step ends as `ok`, as `skipped` with what is missing here, or as `FAILED`. What is made lies in dist/, and
report.md in it says the same. Nothing is published, and no file of the checkout changes.
"""

import re
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from infra.image import LOCK, SBOM, bill_of_materials
from infra.release import artifacts, changelog, installs, krew, sdks
from infra.release.commands import NotHere, program, run
from infra.release.cutting import CHANGELOG, git, uncommitted_files
from infra.release.settings import ROOT, ReleaseError, read_settings
from infra.release.versions import differences
from nodeless.explain.words import count

DIST: Final = ROOT / "dist"
_SKIPPED, _FAILED = "skipped", "FAILED"


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs that are not on PATH everywhere.

    Attributes:
        helm: Helm.
        pulumi: The engine.
        hosts: Folder of language hosts, for those that are not on PATH.
    """

    helm: Path | None = None
    pulumi: Path | None = None
    hosts: Path | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """How a step ended."""

    step: str
    state: str
    text: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.state:8} {self.step:14} {self.seconds:6.1f} s  {self.text}"


class DryRun:
    """One run.

    Attributes:
        lines: How each step ended, in order.
    """

    def __init__(self, tools: Tools, report: Callable[[str], None], dist: Path = DIST) -> None:
        self.lines: list[Line] = []
        self._tools, self._report, self._dist = tools, report, dist
        self._settings = read_settings()
        self._epoch = artifacts.source_date()
        self._work = dist

    def run(self, only: Collection[str] = (), required: Collection[str] = ()) -> bool:
        """Runs the steps; whether all went well.

        Args:
            only: Names of steps, or what they begin with before a hyphen; empty: all.
            required: Likewise of steps that may not be skipped.

        Raises:
            ReleaseError: There is no step of such a name.
        """
        steps = self._steps()
        chosen, needed = _select_steps(steps, only) or {*steps}, _select_steps(steps, required)
        artifacts.clear(self._dist)
        with tempfile.TemporaryDirectory(prefix="nodeless-release-") as work:
            self._work = Path(work)
            for name, step in steps.items():
                if name in chosen:
                    self._run_step(name, step, name in needed)
        self._write_report()
        failed = [line.step for line in self.lines if line.state == _FAILED]
        skipped = [line.step for line in self.lines if line.state == _SKIPPED]
        well = len(self.lines) - len(failed) - len(skipped)
        self._report(
            f"{count(well, 'step')} went well, {count(len(skipped), 'was', 'were')} "
            f"skipped{_name_steps(skipped)}, {len(failed)} failed"
            f"{_name_steps(failed)}; what was made is in {self._dist}"
        )
        return not failed

    def _steps(self) -> dict[str, Callable[[], str]]:
        return {
            "versions": self._versions,
            "changelog": self._changelog,
            "distributions": self._distributions,
            "metadata": self._metadata,
            **{f"install-{version}": self._install(version) for version in installs.PYTHONS},
            "origin": self._origin,
            "krew": self._krew,
            "charts": self._charts,
            **{f"sdk-{language}": self._sdk(language) for language in sdks.LANGUAGES},
            "package-add": self._package_add,
            "package-no-uv": self._package_add_without_uv,
            "dockerfile": self._dockerfile,
            "sbom": self._sbom,
            "image": self._image,
            "docs": self._docs,
            "checksums": self._checksums,
        }

    def _run_step(self, name: str, step: Callable[[], str], required: bool) -> None:
        began = time.monotonic()
        try:
            state, text = "ok", step()
        except NotHere as reason:
            state, text = (_FAILED if required else _SKIPPED), str(reason)
        except (ReleaseError, ValueError, OSError) as error:
            state, text = _FAILED, str(error)
        self.lines.append(Line(name, state, text, time.monotonic() - began))
        self._report(str(self.lines[-1]))

    def _versions(self) -> str:
        if found := differences():
            listed = "\n    ".join(map(str, found))
            raise ReleaseError(
                f"{len(found)} places differ; hint: python -m infra.release set VERSION:\n    {listed}"
            )
        state = "of a commit" if not uncommitted_files() else "of a commit and changes that are in none"
        commit = git("rev-parse", "--short", "HEAD").strip()
        return f"every place says {self._settings.version}; {state}, {commit}"

    def _changelog(self) -> str:
        version, text = self._settings.version, (ROOT / CHANGELOG).read_text()
        day = datetime.now(UTC).date()
        made = changelog.cut(text, version, day)
        (self._dist / CHANGELOG).write_text(made)
        (self._dist / "notes.md").write_text(changelog.section(made, version) + "\n")
        return f"{version} is cut already" if made == text else f"cut as {version} of {day}, in dist/ only"

    def _distributions(self) -> str:
        tools = artifacts.install_tools(self._work / "tools")
        made = artifacts.build_distributions(self._python, tools, self._epoch)
        artifacts.build_distributions(self._work / "again", tools, self._epoch)
        artifacts.compare(made, self._work / "again")
        return f"{', '.join(each.name for each in made)}; built twice, byte by byte the same"

    def _metadata(self) -> str:
        run(
            [
                program("twine", "make install"),
                "--no-color",
                "check",
                "--strict",
                *self._artifacts_in("python"),
            ]
        )
        return "twine check --strict finds nothing"

    def _install(self, version: str) -> Callable[[], str]:
        def step() -> str:
            uv = artifacts.install_tools(self._work / "tools") / "uv"
            python = installs.interpreters(uv).get(version)
            if python is None:
                raise NotHere(
                    f"no interpreter of Python {version} was found; hint: uv python install {version}"
                )
            self._artifacts_in("python")
            for trial in installs.TRIALS:
                folder = self._work / "venv"
                installs.try_installation(trial, python, self._python, self._settings.version, folder, uv)
            return f"{', '.join(trial.requirement for trial in installs.TRIALS)} install and work"

        return step

    def _origin(self) -> str:
        self._artifacts_in("python")
        uv = artifacts.install_tools(self._work / "tools") / "uv"
        if found := installs.foreign(self._python, self._settings.version, uv):
            raise ReleaseError(f"from somebody else: {'; '.join(found)}")
        return "with the public index, what is named like ours comes from dist/ alone"

    def _krew(self) -> str:
        uv = artifacts.install_tools(self._work / "tools") / "uv"
        (wheel,) = (
            each
            for each in self._artifacts_in("python")
            if each.name.startswith("nodeless_provisioner-") and each.suffix == ".whl"
        )
        archives: dict[krew.Platform, Path] = {}
        lacking = []
        for platform in krew.PLATFORMS:
            folder, archive = (
                self._work / "krew",
                self._dist / "krew" / krew.archive_name(self._settings, platform),
            )
            try:
                krew.lay_out(folder, wheel, platform, uv)
            except ReleaseError as error:
                lacking.append(f"{platform} cannot be built: {str(error).splitlines()[-1].strip()}")
                continue
            archives[platform] = krew.pack(folder, archive, self._epoch)
        if not archives:
            raise ReleaseError("; ".join(lacking))
        (self._dist / "krew" / krew.MANIFEST).write_text(krew.manifest(self._settings, archives))
        sizes = (f"{platform} {made.stat().st_size / 1e6:.0f} MB" for platform, made in archives.items())
        return "; ".join((f"{krew.MANIFEST} with {', '.join(sizes)}", *lacking))

    def _charts(self) -> str:
        helm = self._tools.helm or program("helm", "https://helm.sh/docs/intro/install")
        made = artifacts.package_charts(self._dist / "charts", helm, self._epoch)
        artifacts.package_charts(self._work / "charts", helm, self._epoch)
        artifacts.compare(made, self._work / "charts")
        definitions = artifacts.write_definitions(self._dist / "charts" / "nodeless-crds.yaml")
        rendered = run([helm, "template", "karpenter", made[1], "--set", "settings.clusterName=demo"])
        wanted = f"{self._settings.image}:{self._settings.version}"
        if not re.search(rf"image: \"?{re.escape(wanted)}\"?$", rendered, re.MULTILINE):
            raise ReleaseError(f"{made[1].name} does not run {wanted}")
        return f"{', '.join(each.name for each in (*made, definitions))}; linted, packaged twice, the same"

    def _sdk(self, language: str) -> Callable[[], str]:
        def step() -> str:
            pulumi = self._tools.pulumi or program("pulumi", "https://www.pulumi.com/docs/install")
            host = sdks.hosts(self._tools.hosts).get(language)
            if host is None:
                raise NotHere(f"there is no pulumi-language-{language}; hint: Pulumi's installer brings it")
            home = self._work / "pulumi"
            sdk = sdks.generate(pulumi, language, host, self._work / "sdks", home)
            name = f"nodeless-{language}-{self._settings.version}.tar.gz"
            artifacts.pack_folder(sdk, self._dist / "sdks" / name, self._epoch)
            return f"{name}, {sum(each.is_file() for each in sdk.rglob('*'))} files"

        return step

    def _package_add(self) -> str:
        return self._add_sdk(artifacts.install_tools(self._work / "tools") / "uv")

    def _package_add_without_uv(self) -> str:
        return self._add_sdk(None)

    def _add_sdk(self, uv: Path | None) -> str:
        pulumi = self._tools.pulumi or program("pulumi", "https://www.pulumi.com/docs/install")
        found = sdks.hosts(self._tools.hosts)
        return sdks.add_to_project(pulumi, found, self._work / "added", self._work / "pulumi", uv=uv)

    def _dockerfile(self) -> str:
        run([program("hadolint", "make install"), ROOT / "controller" / "Dockerfile"])
        return "hadolint finds nothing"

    def _sbom(self) -> str:
        text = SBOM.read_text()
        if text != bill_of_materials(LOCK.read_text(), self._settings.version):
            raise ReleaseError(f"{SBOM.relative_to(ROOT)} is stale; hint: python -m infra.image sbom")
        (self._dist / f"nodeless-controller-{self._settings.version}.cdx.json").write_text(text)
        return "the bill of materials is that of the lock"

    def _image(self) -> str:
        docker = program("docker", "https://docs.docker.com/engine/install")
        for needed in (["buildx", "version"], ["info"]):
            try:
                run([docker, *needed])
            except ReleaseError as error:
                raise NotHere(
                    f"docker {' '.join(needed)} fails: {str(error).splitlines()[-1].strip()}"
                ) from None
        run([*image_command(docker, self._settings.version, self._epoch), "--output", "type=cacheonly"])
        return "built for linux/amd64 and linux/arm64, and kept nowhere"

    def _docs(self) -> str:
        if not re.search(r"^docs:", (ROOT / "Makefile").read_text(), re.MULTILINE):
            raise NotHere("the Makefile has no target docs")
        run(["make", "docs"])
        return "make docs"

    def _checksums(self) -> str:
        sums = artifacts.write_checksums(self._dist)
        return f"{len(sums.read_text().splitlines())} files in {sums.name}"

    @property
    def _python(self) -> Path:
        return self._dist / "python"

    def _artifacts_in(self, folder: str) -> list[Path]:
        """What an earlier step made."""
        files = sorted((self._dist / folder).glob("*"))
        if not files:
            raise ReleaseError(
                f"dist/{folder} has nothing; hint: the step that makes it failed, or was left out"
            )
        return files

    def _write_report(self) -> None:
        head = f"# Dry run of {self._settings.version}\n\n| step | result | | seconds |\n|---|---|---|---|\n"
        rows = [
            f"| {line.step} | {line.state} | {line.text.replace(chr(10), '<br>')} | {line.seconds:.1f} |\n"
            for line in self.lines
        ]
        (self._dist / "report.md").write_text(head + "".join(rows))


def step_names() -> list[str]:
    """The names of all steps, in their order."""
    return [*DryRun(Tools(), lambda _: None)._steps()]


def image_command(docker: Path, version: str, epoch: int) -> list[str | Path]:
    """The command that builds the controller's image for both architectures, without where it goes."""
    revision = git("rev-parse", "HEAD").strip()
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    arguments = {
        "VERSION": version,
        "REVISION": revision,
        "CREATED": created,
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    return [
        *(docker, "buildx", "build", str(ROOT), "--file", str(ROOT / "controller" / "Dockerfile")),
        *("--platform", "linux/amd64,linux/arm64"),
        *(part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")),
    ]


def _select_steps(steps: Collection[str], names: Collection[str]) -> set[str]:
    """The steps of these names; `sdk` stands for each that begins with `sdk-`."""
    found = {name: {each for each in steps if each == name or each.startswith(f"{name}-")} for name in names}
    if unknown := [name for name, matching in found.items() if not matching]:
        raise ReleaseError(f"there is no step {', '.join(unknown)}; hint: {', '.join(steps)}")
    return set().union(*found.values())


def _name_steps(steps: list[str]) -> str:
    return f" ({', '.join(steps)})" if steps else ""
