"""OpenTofu on the local AWS: the real program, with providers of our own that speak to it.

The providers (`providers/`) serve the schemas and refusals of hashicorp/aws and hashicorp/helm as far as the
module in `terraform/` and its examples use them. `aws` carries out what is applied on the local AWS; `helm`
plans alone.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localenv.binaries import opentofu, tofu_provider

#: Versions that the providers go by: the oldest ones that the module and its examples accept.
PROVIDERS = {"aws": "6.0.0", "helm": "3.0.0"}
_REGISTRY = "registry.opentofu.org/hashicorp"


class TofuFailed(Exception):
    """OpenTofu refused or failed; the text is what it wrote."""


class Tofu:
    """OpenTofu in one root module, which is initialized once.

    Attributes:
        folder: The root module.
    """

    def __init__(self, folder: Path, workshop: Path, environment: Mapping[str, str]) -> None:
        """Initialize the root module `folder`.

        Args:
            folder: The root module; OpenTofu writes its lock file there.
            workshop: For plans, states and OpenTofu's own files.
            environment: Of the providers, such as that of a local AWS.

        Raises:
            TofuFailed: The module cannot be initialized.
        """
        self.folder, self._workshop = folder, workshop
        workshop.mkdir(parents=True, exist_ok=True)
        self._program = opentofu()
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(workshop),
            "TF_CLI_CONFIG_FILE": str(self._configuration()),
            "TF_DATA_DIR": str(workshop / "data"),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            # Its processes and the providers' end in a second: collecting garbage is a quarter of their work.
            "GOGC": "off",
            "GOMEMLIMIT": "1GiB",
            **environment,
        }
        self.run("init", "-input=false", "-backend=false")

    def run(self, *arguments: str | Path) -> str:
        """What a command writes to its output. Raises TofuFailed."""
        command, *further = arguments
        done = subprocess.run(
            [self._program, f"-chdir={self.folder}", command, *self._plain(command), *further],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise TofuFailed(done.stdout + done.stderr)
        return done.stdout

    def plan(
        self, variables: Mapping[str, Any], *, state: str = "none", targets: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The plan for these variables as `tofu show -json` gives it. Raises TofuFailed."""
        plan = self._workshop / f"{state}.plan"
        aimed = [f"-target={target}" for target in targets]
        self.run("plan", *self._variable_flags(variables, state), f"-out={plan}", *aimed)
        document: dict[str, Any] = json.loads(self.run("show", "-json", plan))
        return document

    def apply(
        self, variables: Mapping[str, Any], *, state: str, targets: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Make what these variables ask for; give the outputs by name. Raises TofuFailed."""
        aimed = [f"-target={target}" for target in targets]
        self.run("apply", "-auto-approve", *self._variable_flags(variables, state), *aimed)
        outputs = json.loads(self.run("output", "-json", f"-state={self._state(state)}"))
        return {name: output["value"] for name, output in outputs.items()}

    def destroy(self, variables: Mapping[str, Any], *, state: str) -> None:
        """Take away what the state has. Raises TofuFailed."""
        self.run("destroy", "-auto-approve", *self._variable_flags(variables, state))

    def _variable_flags(self, variables: Mapping[str, Any], state: str) -> list[str]:
        file = self._workshop / f"{state}.tfvars.json"
        file.write_text(json.dumps(dict(variables)))
        return ["-input=false", f"-var-file={file}", f"-state={self._state(state)}"]

    def _state(self, name: str) -> Path:
        return self._workshop / f"{name}.tfstate"

    @staticmethod
    def _plain(command: str | Path) -> list[str]:
        return [] if command in ("fmt", "providers", "state") else ["-no-color"]

    def _configuration(self) -> Path:
        """The command line's configuration: providers come from a folder, never from a registry."""
        mirror = self._workshop / "providers"
        machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
        for name, version in PROVIDERS.items():
            place = mirror / _REGISTRY / name / version / f"{platform.system().lower()}_{machine}"
            place.mkdir(parents=True)
            (place / f"terraform-provider-{name}_v{version}").symlink_to(tofu_provider(name))
        file = self._workshop / "tofu.rc"
        file.write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n'
        )
        return file
