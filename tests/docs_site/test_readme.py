"""The first screen of README.md: what it is, one picture, three ways to install, two commands to try."""

import re

from tests.docs_site.conftest import ROOT

SCREEN = (ROOT / "README.md").read_text().partition("\n## ")[0]


def test_the_first_screen_fits_on_a_screen() -> None:
    assert len(SCREEN.splitlines()) < 30


def test_the_first_screen_has_a_picture_three_ways_to_install_and_two_commands() -> None:
    assert len(re.findall(r"!\[[^\]]+\]\(docs/images/[\w.-]+\)", SCREEN)) == 1
    ways = re.findall(r"\(docs/guides/install-with-(\w+)\.md\)", SCREEN)
    assert ways == ["pulumi", "helm", "terraform"]
    assert re.findall(r"^\$ (.+)$", SCREEN, re.MULTILINE) == ["make demo", "make test"]


def test_the_first_screen_leads_to_the_docs() -> None:
    assert "(docs/README.md)" in SCREEN
