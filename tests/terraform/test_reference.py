"""The pages about the module say what the module is."""

from __future__ import annotations

import json
import re

import pytest

from localenv.opentofu import Tofu
from localenv.opentofu.reference import PAGE, page
from tests.terraform.conftest import ROOT

pytestmark = pytest.mark.cluster

GUIDE = ROOT / "docs" / "guides" / "install-with-terraform.md"


def test_the_page_of_variables_and_outputs_is_that_of_the_module() -> None:
    assert PAGE.read_text() == page(), "hint: python -m localenv.opentofu.reference"


def test_the_guide_names_variables_and_outputs_that_exist(module: Tofu) -> None:
    read = json.loads(module.run("show", "-json", "-config"))["root_module"]
    known = set(read["variables"]) | set(read["outputs"])
    text = GUIDE.read_text()
    missing = text.partition("<!-- not here -->")[2].partition("<!-- end -->")[0]
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text.replace(missing, "")))
    example = {"run_on", "private_subnet_ids", "image_repository", "image_tag", "create_pod_identity_agent"}
    example |= {"helm_release", "node_role_name"}
    assert named - known - example == set()
    absent = set(re.findall(r"^\| `(\w+)`", missing, re.MULTILINE))
    assert absent
    assert absent & known == set()
