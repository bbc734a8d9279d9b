"""The page with the module's variables and outputs, out of the module as OpenTofu reads it.

    python -m localenv.opentofu.reference

writes docs/terraform.md; a test keeps the page equal to the module.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localenv.binaries import opentofu

_ROOT = Path(__file__).parents[2]
MODULE = _ROOT / "terraform"
PAGE = _ROOT / "docs" / "terraform.md"
_GROUP_OR_VARIABLE = re.compile(r'^#{80}\n# (.+)\n#{80}$|^variable "(\w+)"', re.MULTILINE)


def page() -> str:
    """The page as Markdown.

    Raises:
        subprocess.CalledProcessError: OpenTofu cannot read the module.
    """
    done = subprocess.run(
        [opentofu(), "show", "-json", f"-module={MODULE}"],
        env={"TF_CLI_CONFIG_FILE": "/dev/null", "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(_lines(json.loads(done.stdout)["root_module"])) + "\n"


def _lines(module: Mapping[str, Any]) -> Iterator[str]:
    yield "# The Terraform module"
    yield ""
    yield "<!-- Made by `python -m localenv.opentofu.reference`; change the descriptions in terraform/. -->"
    yield ""
    yield "Every variable and output of [terraform/](../terraform). How to use it:"
    yield "[install with Terraform](guides/install-with-terraform.md). All variables but `cluster_name` have"
    yield "a default that works."
    yield ""
    yield "## Variables"
    for group, name in _GROUP_OR_VARIABLE.findall((MODULE / "variables.tf").read_text()):
        if group:
            yield from (
                "",
                f"### {group}",
                "",
                "| variable | type | default | what it is |",
                "|---|---|---|---|",
            )
        else:
            found = module["variables"][name]
            default = "" if found.get("default") is None else f"`{json.dumps(found['default'])}`"
            cells = (f"`{name}`", _kind(found["type"]), default, _cell(found["description"]))
            yield "| " + " | ".join(cells) + " |"
    yield from ("", "## Outputs", "", "| output | what it is |", "|---|---|")
    for name, found in module["outputs"].items():
        yield f"| `{name}` | {_cell(found['description'])} |"


def _kind(given: str | list[Any]) -> str:
    return given if isinstance(given, str) else f"{given[0]} of {_kind(given[1])}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
