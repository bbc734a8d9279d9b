"""Each gap says what moto does and where AWS says otherwise, and has its tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from localenv import aws

#: Parts of instant fleets, which are tested with them.
PARTS = {"fleet_choice", "fleet_market"}
GAPS = sorted(Path(aws.__file__).parent.glob("upstream/[a-z]*.py"))


@pytest.mark.parametrize("module", GAPS, ids=lambda module: module.stem)
def test_a_gap_says_what_moto_does_and_has_a_source_and_tests(module: Path) -> None:
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    assert "moto" in text.lower()
    assert "\nSource: " in text
    assert module.stem in PARTS or Path(__file__).with_name(f"test_{module.stem}.py").exists()
