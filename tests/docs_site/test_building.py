"""How pages become the site's: links, lists, the navigation; and a build that fails on what is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra import docs_site
from tests.docs_site.conftest import ROOT

FAULTS = {
    "guide.md": "# Guide\n\n[a](nowhere.md) [b](README.md#nowhere) [c](../no/such/file.py)\n",
    "forgotten.md": "# Not in the navigation\n",
    "README.md": "# Home\n\n[guide](guide.md)\n",
}


def test_a_dead_link_a_dead_anchor_and_a_forgotten_page_fail_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    for name, text in FAULTS.items():
        (tmp_path / "docs" / name).write_text(text)
    hook = ROOT / "infra" / "docs_site.py"
    listed = "nav: [README.md, guide.md, decisions/README.md]"
    config = f"INHERIT: {ROOT / 'mkdocs.yml'}\nsite_dir: {tmp_path / 'site'}\nhooks: [{hook}]\n"
    (tmp_path / "mkdocs.yml").write_text(f"{config}theme: {{custom_dir: docs}}\n{listed}\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"],
        cwd=tmp_path,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    for said in (
        "docs/guide.md: link to nowhere.md, which does not exist",
        "does not contain an anchor '#nowhere'",
        "docs/guide.md: link to ../no/such/file.py, which does not exist",
        'not included in the "nav" configuration:\n  - forgotten.md',
    ):
        assert said in done.stderr


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (["1. One:", "", "   ```", "   code", "     more", "   ```", "2. Two"],
         ["1. One:", "", "    ```", "    code", "      more", "    ```", "2. Two"]),
        (["Text", "- one", "  goes on", "  - inner", "", "After"],
         ["Text", "", "- one", "    goes on", "    - inner", "", "After"]),
        (["- one", "lazy end", "- two"], ["- one", "    lazy end", "- two"]),
        (["```", "- no list", "  x", "```"], ["```", "- no list", "  x", "```"]),
    ],
    ids=["code", "nested", "lazy", "fenced"],
)  # fmt: skip
def test_lists_are_those_of_the_generator(written: list[str], made: list[str]) -> None:
    assert list(docs_site._lists(iter(written))) == made


def test_the_make_targets_do_not_silence_what_fails_a_build() -> None:
    calls = re.findall(r"-m mkdocs (.*)", (ROOT / "Makefile").read_text())
    assert len(calls) == 2
    assert [call for call in calls if call.split("#")[0].split() != ["build"]] == []


def test_a_folder_of_the_navigation_has_all_pages_that_are_not_named_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    for name in ("a.md", "b.md", "README.md"):
        (tmp_path / "guides" / name).write_text("# x\n")
    nav = [{"Guides": ["guides/README.md", "guides/*"]}, {"More": "guides/b.md"}]
    assert docs_site._expand_nav(nav, tmp_path)[0] == {"Guides": ["guides/README.md", "guides/a.md"]}


def test_every_decision_is_listed() -> None:
    listed = docs_site.decisions(ROOT / "docs")
    files = list((ROOT / "docs" / "decisions").glob("0*.md"))
    assert listed.count("\n- [") == len(files) > 20
