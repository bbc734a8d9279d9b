"""The cut: what is unreleased becomes a dated section, once, and only where that makes sense."""

from datetime import date
from pathlib import Path

import pytest

from infra.release import changelog, cutting
from infra.release.settings import ROOT, ReleaseError
from tests.release.conftest import run_git

DAY = date(2031, 2, 3)
HEAD = "# Changelog\n\nAll notable changes.\n\n"
ENTRY = "### Added\n\n- A thing\n  in two lines.\n"
OLD = "## [0.1.0] - 2030-01-01\n\n### Added\n\n- The first.\n"


def test_what_is_unreleased_becomes_a_section_below_an_empty_one() -> None:
    made = changelog.cut(f"{HEAD}## [Unreleased]\n\n{ENTRY}\n{OLD}", "0.2.0", DAY)
    assert made == f"{HEAD}## [Unreleased]\n\n## [0.2.0] - 2031-02-03\n\n{ENTRY}\n{OLD}"
    assert changelog.section(made, "0.2.0") == ENTRY.strip()
    assert changelog.section(made, "0.1.0") == "### Added\n\n- The first."
    assert changelog.section(made, "Unreleased") == ""
    assert changelog.cut(made, "0.2.0", date(2032, 1, 1)) == made, "once"


def test_the_first_version_may_be_any() -> None:
    made = changelog.cut(f"{HEAD}## [Unreleased]\n\n{ENTRY}", "0.1.0", DAY)
    assert made == f"{HEAD}## [Unreleased]\n\n## [0.1.0] - 2031-02-03\n\n{ENTRY}"


@pytest.mark.parametrize("body", ["", "### Added\n\n### Fixed\n", "A sentence before the entries.\n"])
def test_a_release_of_nothing_is_refused(body: str) -> None:
    with pytest.raises(ReleaseError, match=r"nothing below '## \[Unreleased\]'; hint: write what"):
        changelog.cut(f"{HEAD}## [Unreleased]\n\n{body}\n{OLD}", "0.2.0", DAY)


@pytest.mark.parametrize("version", ["0.0.9", "0.1.1"])
def test_a_version_that_is_not_greater_is_refused(version: str) -> None:
    text = f"{HEAD}## [Unreleased]\n\n{ENTRY}\n## [0.10.0] - 2030-01-01\n\n- A.\n\n{OLD}"
    with pytest.raises(ReleaseError, match=r"not greater than 0.10.0, .*hint: take"):
        changelog.cut(text, version, DAY)
    assert "[0.11.0] - 2031-02-03" in changelog.cut(text, "0.11.0", DAY)


def test_a_changelog_of_another_form_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"no line '## \[Unreleased\]'; hint: add it"):
        changelog.cut(HEAD + OLD, "0.2.0", DAY)
    with pytest.raises(ReleaseError, match=r"no section .9.9.9.; hint: python -m infra.release cut 9.9.9"):
        changelog.section(HEAD + OLD, "9.9.9")


def test_the_changelog_of_this_checkout_can_be_cut() -> None:
    text = (ROOT / cutting.CHANGELOG).read_text()
    assert changelog.sections(text)[0].name == "Unreleased"
    assert "released yet" not in changelog.section(text, "Unreleased"), "it becomes the section of a release"


def test_a_version_below_the_one_of_the_files_is_refused(checkout: Path) -> None:
    with pytest.raises(ReleaseError, match=r"0\.0\.1 is (lower|not greater) than"):
        cutting.cut("0.0.1", DAY, checkout)
    assert cutting.uncommitted_files(checkout) == []


@pytest.mark.parametrize("path", ["README.md", "new.txt"])
def test_a_cut_of_files_that_no_commit_has_is_refused(checkout: Path, path: str) -> None:
    with (checkout / path).open("a") as file:
        file.write("\nchanged\n")
    before = (checkout / "CHANGELOG.md").read_text()
    with pytest.raises(ReleaseError, match=rf"1 file differs from the last commit \({path}\); hint: commit"):
        cutting.cut("97.0.0", DAY, checkout)
    assert (checkout / "CHANGELOG.md").read_text() == before
    assert run_git(checkout, "diff", "--name-only", "--", "pyproject.toml") == ""
