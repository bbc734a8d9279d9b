"""What pages tell a reader to write is accepted by the code."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.operator.solver_settings import adjustments, commitments
from tests.docs_site.conftest import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```yaml\n(.+?)^```", re.MULTILINE | re.DOTALL)
OURS = ("karpenter.sh/v1", "karpenter.k8s.aws/v1", "karpenter.sh/v1alpha5", "karpenter.k8s.aws/v1alpha1")


def manifests() -> list[tuple[Path, str]]:
    found = [(page, block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    return [(page, block) for page, block in found if ours(block)]


def ours(block: str) -> bool:
    documents = [each for each in yaml.safe_load_all(block) if isinstance(each, dict)]
    return bool(documents) and all(each.get("apiVersion") in OURS for each in documents)


@pytest.mark.parametrize(("page", "block"), [pytest.param(*each, id=each[0].stem) for each in manifests()])
def test_a_manifest_of_ours_on_a_page_is_valid(page: Path, block: str) -> None:
    checked = CliRunner().invoke(app, ["validate", "-"], input=block)
    assert checked.exit_code == 0, f"{page}: {checked.output}"


def test_every_kind_has_a_manifest_on_a_page() -> None:
    kinds = {document["kind"] for _, block in manifests() for document in yaml.safe_load_all(block)}
    assert kinds == {"Provisioner", "AWSNodeTemplate", "NodePool", "EC2NodeClass", "NodeClaim"}


def test_price_adjustments_on_the_page_of_costs_are_accepted() -> None:
    found = re.findall(r"`(\[\{.+?\}\])`", (ROOT / "docs" / "cost.md").read_text())
    assert len(found) >= 3
    for text in found:
        assert adjustments(text)


def test_commitments_on_the_page_of_costs_are_accepted() -> None:
    blocks = [
        block for block in BLOCK.findall((ROOT / "docs" / "cost.md").read_text()) if "commitments" in block
    ]
    (text,) = [yaml.safe_load(block)["nodeless.commitments"] for block in blocks]
    assert [commitment.name for commitment in commitments(text)] == ["m7g", "training", "compute-plan"]
