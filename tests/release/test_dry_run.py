"""Steps of the dry run: what each ends as, and what publishing refuses."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.release import artifacts, publishing
from infra.release.__main__ import check_tag
from infra.release.commands import NotHere, run
from infra.release.dry_run import DryRun, Tools, step_names
from infra.release.settings import ReleaseError, read_settings
from tests.release.conftest import run_git

EPOCH = 1_800_000_000


class Run(DryRun):
    """A dry run of steps that the test gives."""

    def __init__(self, dist: Path, **steps: Callable[[], str]) -> None:
        self.said: list[str] = []
        super().__init__(Tools(), self.said.append, dist)
        self._given = steps

    def _steps(self) -> dict[str, Callable[[], str]]:
        return self._given


def fails() -> str:
    raise ReleaseError("it is broken; hint: mend it")


def is_missing() -> str:
    raise NotHere("there is no engine")


def goes_well() -> str:
    return "made"


def test_each_step_has_its_line_and_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    run = Run(tmp_path / "dist", first=fails, second=is_missing, third=goes_well)
    assert run.run() is False
    assert [(line.step, line.state, line.text) for line in run.lines] == [
        ("first", "FAILED", "it is broken; hint: mend it"),
        ("second", "skipped", "there is no engine"),
        ("third", "ok", "made"),
    ]
    assert run.said[-1].startswith("1 step went well, 1 was skipped (second), 1 failed (first)")
    report = (tmp_path / "dist" / "report.md").read_text()
    for line in run.lines:
        assert f"| {line.step} | {line.state} | {line.text} |" in report


def test_what_is_missing_here_fails_only_where_it_is_required(tmp_path: Path) -> None:
    assert Run(tmp_path, one=is_missing).run() is True
    assert Run(tmp_path, one=is_missing).run(required=["one"]) is False
    first_of_many = Run(tmp_path, **{"sdk-go": is_missing, "sdk-java": goes_well})
    assert first_of_many.run(required=["sdk"]) is False


def test_single_steps_are_chosen_by_name(tmp_path: Path) -> None:
    run = Run(tmp_path, **{"sdk-go": goes_well, "sdk-java": goes_well, "docs": fails})
    assert run.run(only=["sdk"]) is True
    assert [line.step for line in run.lines] == ["sdk-go", "sdk-java"]
    with pytest.raises(ReleaseError, match="no step sdkx; hint: sdk-go"):
        run.run(only=["sdkx"])


def test_a_run_clears_what_an_earlier_one_made(tmp_path: Path) -> None:
    (tmp_path / "old.whl").write_text("")
    Run(tmp_path, one=goes_well).run()
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]


def test_fast_steps_on_this_checkout_go_well(tmp_path: Path) -> None:
    made = DryRun(Tools(), lambda _: None, tmp_path)
    made.run(only=["versions", "changelog", "dockerfile", "sbom", "checksums"])
    assert {line.step: line.state for line in made.lines} == dict.fromkeys(
        ["versions", "changelog", "dockerfile", "sbom", "checksums"], "ok"
    )
    sums = (tmp_path / "SHA256SUMS").read_text().splitlines()
    version = read_settings().version
    assert [line.partition("  ")[2] for line in sums] == [f"nodeless-controller-{version}.cdx.json"]
    assert f"## [{version}] - " not in (tmp_path / "notes.md").read_text(), "the page has a title"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
    assert f"## [{version}] - " in (tmp_path / "CHANGELOG.md").read_text()


def test_a_step_without_what_an_earlier_one_makes_says_so(tmp_path: Path) -> None:
    made = DryRun(Tools(), lambda _: None, tmp_path)
    assert made.run(only=["metadata"]) is False
    assert "dist/python has nothing; hint: the step that makes it" in made.lines[0].text


def test_every_step_has_a_name_of_its_own() -> None:
    assert len(step_names()) == len(set(step_names())) >= 20


def test_a_failed_command_shows_its_last_lines_and_its_exit_code() -> None:
    with pytest.raises(ReleaseError, match=r"(?s)sh .* exit code 3:.*broken"):
        run(["sh", "-c", "echo broken >&2; exit 3"])
    assert run(["sh", "-c", "echo well; exit 3"], expected=3) == "well\n"


def test_an_archive_of_the_same_files_has_the_same_bytes_whenever_it_is_made(tmp_path: Path) -> None:
    packages = []
    for number, names in enumerate((["a", "b"], ["b", "a"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
        packages.append(artifacts.pack_folder(folder, tmp_path / f"{number}.tar.gz", EPOCH))
    first, second = packages
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        files = {member.name: member for member in archive.getmembers() if member.isfile()}
    assert {name.removeprefix("./") for name in files} == {"a", "b"}
    assert {(member.mtime, member.uid, member.uname) for member in files.values()} == {(EPOCH, 0, "")}


def test_files_that_differ_or_are_missing_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    made = tmp_path / "a" / "x.whl"
    made.write_text("1")
    with pytest.raises(ReleaseError, match=r"x\.whl made twice has other bytes; hint"):
        artifacts.compare([made], tmp_path / "b")
    (tmp_path / "b" / "x.whl").write_text("1")
    artifacts.compare([made], tmp_path / "b")


def test_checksums_are_those_of_the_files_as_they_are_downloaded(tmp_path: Path) -> None:
    dist, downloads = tmp_path / "dist", tmp_path / "downloads"
    for name in ("python/a.whl", "charts/b.tgz", "notes.md", "image.json"):
        (dist / name).parent.mkdir(parents=True, exist_ok=True)
        (dist / name).write_text(name)
    artifacts.write_checksums(dist)
    artifacts.write_checksums(dist)
    downloads.mkdir()
    for file in (*artifacts.released_files(dist), dist / artifacts.CHECKSUMS):
        shutil.copy2(file, downloads)
    assert sorted(file.name for file in downloads.iterdir()) == ["SHA256SUMS", "a.whl", "b.tgz"]
    subprocess.run(["sha256sum", "--check", "--strict", artifacts.CHECKSUMS], cwd=downloads, check=True)
    (dist / "a.whl").write_text("another")
    with pytest.raises(ReleaseError, match=r"has a\.whl more than once"):
        artifacts.write_checksums(dist)


def test_the_definitions_are_one_file_with_every_kind(tmp_path: Path) -> None:
    import yaml  # noqa: PLC0415

    documents = [*yaml.safe_load_all(artifacts.write_definitions(tmp_path / "crds.yaml").read_text())]
    assert len(documents) == 6
    assert {each["kind"] for each in documents} == {"CustomResourceDefinition"}


def test_a_tag_that_is_not_the_version_is_refused_and_so_is_a_version_that_is_not_cut(checkout: Path) -> None:
    version = read_settings(checkout).version
    with pytest.raises(ReleaseError, match=r"the tag v9\.9\.9 is not v.*; hint: .* cut 9\.9\.9"):
        check_tag("v9.9.9", checkout)
    with pytest.raises(ReleaseError, match=r"the tag 0\.1\.0 is not"):
        check_tag("0.1.0", checkout)
    text = (checkout / "CHANGELOG.md").read_text()
    (checkout / "CHANGELOG.md").write_text(text.replace(f"## [{version}]", "## [0.0.0]"))
    with pytest.raises(ReleaseError, match=f"no section .{version}.; hint"):
        check_tag(f"v{version}", checkout)
    (checkout / "CHANGELOG.md").write_text(text + f"\n## [{version}] - 2031-01-01\n\n- A.\n")
    check_tag(f"v{version}", checkout)


@pytest.mark.parametrize("what", publishing.PARTS)
def test_nothing_is_published_from_a_commit_without_the_tag_of_its_version(
    what: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it by hand, and whatever is on PATH."""
    called = tmp_path / "called"
    for name in ("docker", "cosign", "helm", "gh"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {called}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("GITHUB_REF_NAME", raising=False)

    with pytest.raises(
        ReleaseError, match=r"nothing is published: .* its tags are as-copied; hint: push the tag"
    ):
        publishing.PARTS[what](tmp_path, checkout)
    run_git(checkout, "tag", read_settings(checkout).tag)
    try:
        monkeypatch.setenv("GITHUB_REF_NAME", "v9.9.9")
        with pytest.raises(ReleaseError, match="nothing is published"):
            publishing.PARTS[what](tmp_path, checkout)
        monkeypatch.delenv("GITHUB_REF_NAME")
        (checkout / "README.md").write_text("changed\n")
        with pytest.raises(ReleaseError, match=r"nothing is published: README\.md differ"):
            publishing.PARTS[what](tmp_path, checkout)
    finally:
        run_git(checkout, "tag", "--delete", read_settings(checkout).tag)
    assert not called.exists()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Programs that write down how they were called, as no registry is at hand; gives what they were."""
    log, digest = tmp_path / "calls", f"sha256:{'a' * 64}"
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("docker", "cosign", "helm", "gh"):
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {log}\necho "Digest: {digest}" >&2\n'
            'while [ $# -gt 0 ]; do\n  [ "$1" = --metadata-file ] && '
            f'echo \'{{"containerimage.digest": "{digest}"}}\' > "$2"\n  shift\ndone\n'
        )
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: log.read_text().splitlines()


@pytest.fixture
def tagged(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout whose commit has the tag of its version."""
    tag = read_settings(checkout).tag
    run_git(checkout, "tag", tag)
    monkeypatch.setenv("GITHUB_REF_NAME", tag)
    yield checkout
    run_git(checkout, "tag", "--delete", tag)


def test_what_is_pushed_is_signed_by_its_digest(
    programs: Callable[[], list[str]], tagged: Path, tmp_path: Path
) -> None:
    settings, digest = read_settings(tagged), f"sha256:{'a' * 64}"
    (tmp_path / "charts").mkdir()
    for chart in artifacts.CHARTS:
        (tmp_path / "charts" / f"{chart}-{settings.version}.tgz").write_text("")

    publishing.publish_image(tmp_path, tagged)
    publishing.publish_charts(tmp_path, tagged)

    build, *signed = [call for call in programs() if not call.startswith("helm")]
    for part in (
        "docker buildx build",
        "--platform linux/amd64,linux/arm64",
        f"--build-arg VERSION={settings.version}",
        f"--tag {settings.image}:{settings.version} --push",
        "--sbom=true --provenance=mode=max",
    ):
        assert part in build
    assert signed[0] == f"cosign sign --yes --recursive {settings.image}@{digest}"
    assert signed[1].startswith("cosign attest --yes --type cyclonedx")
    assert signed[2:] == [
        f"cosign sign --yes {settings.charts}/{chart}@{digest}" for chart in artifacts.CHARTS
    ]
    pushed = [call for call in programs() if call.startswith("helm push")]
    assert [call.rpartition(" ")[2] for call in pushed] == [f"oci://{settings.charts}"] * 2


def test_a_release_on_github_has_the_notes_and_every_file(
    programs: Callable[[], list[str]], tagged: Path, tmp_path: Path
) -> None:
    dist, settings = tmp_path / "dist", read_settings(tagged)
    with pytest.raises(ReleaseError, match=r"notes\.md is missing; hint: make release-dry-run"):
        publishing.publish_github(dist, tagged)
    (dist / "python").mkdir(parents=True)
    (dist / "python" / "a.whl").write_text("")
    (dist / "notes.md").write_text("- A.\n")
    artifacts.write_checksums(dist)

    assert publishing.publish_github(dist, tagged) == f"{settings.tag}, with 2 files"

    assert programs() == [
        f"gh release create {settings.tag} --verify-tag --title {settings.tag} --notes-file {dist}/notes.md "
        f"{dist}/SHA256SUMS {dist}/python/a.whl"
    ]
