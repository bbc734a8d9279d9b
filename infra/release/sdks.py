"""The package of components in other languages: SDKs by the engine's generators, and `pulumi package add`."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from infra.release.commands import NotHere, run
from infra.release.settings import ROOT, ReleaseError

LANGUAGES: Final = ("nodejs", "python", "go", "dotnet", "java")
"""The languages that `pulumi package gen-sdk` knows."""
SCHEMA: Final = ROOT / "components" / "schema.json"


def hosts(generators: Path | None) -> dict[str, Path]:
    """Language hosts that can generate, by language: of an installed Pulumi, else those in `generators`."""
    found = {}
    for language in LANGUAGES:
        name = f"pulumi-language-{language}"
        installed = shutil.which(name)
        if installed is not None:
            found[language] = Path(installed)
        elif generators is not None and (generators / name).exists():
            found[language] = generators / name
    return found


def generate(pulumi: Path, language: str, host: Path, folder: Path, home: Path) -> Path:
    """Generates the SDK of a language; gives its folder.

    Args:
        pulumi: The engine.
        language: As `pulumi package gen-sdk` names it.
        host: Its language host.
        folder: SDKs go below it, each into a folder with the language's name.
        home: For the engine's own files.

    Raises:
        ReleaseError: The engine failed, or the SDK is not of our name and version.
    """
    schema = json.loads(SCHEMA.read_text())
    # As `pulumi package add` has it: a module for Go has its go.mod, a package for Python its pyproject.toml.
    schema.setdefault("meta", {})["supportPack"] = True
    source = home / "schema.json"
    home.mkdir(parents=True, exist_ok=True)
    source.write_text(json.dumps(schema))
    run(
        [pulumi, "package", "gen-sdk", source, "--language", language, "--out", folder],
        environment=_environment(home) | {"PATH": f"{host.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    sdk = folder / language
    _check(language, sdk, schema)
    return sdk


def _check(language: str, sdk: Path, schema: dict[str, Any]) -> None:
    """Every component is in the SDK, under the names that the examples import."""
    names = [token.rpartition(":")[2] for token in schema["resources"]]
    files = {str(file.relative_to(sdk)): file for file in sdk.rglob("*") if file.is_file()}
    stems = {file.stem.replace("_", "").lower() for file in files.values()}
    if missing := [name for name in names if name.lower() not in stems]:
        raise ReleaseError(f"the SDK for {language} has no {', '.join(missing)}")
    if language == "nodejs":
        package = json.loads(files["package.json"].read_text())
        wanted = (f"@{schema['namespace']}/{schema['name']}", schema["version"])
        if (package["name"], package["version"].removeprefix("v")) != wanted:
            raise ReleaseError(f"the SDK for nodejs is {package['name']} {package['version']}, not {wanted}")


def add_to_project(pulumi: Path, folder: Path, home: Path, *, with_uv: bool) -> str:
    """Adds the package to a new TypeScript project by its path, as its readers are told to.

    Args:
        pulumi: The engine.
        folder: Of the project; made anew.
        home: For the engine's own files.
        with_uv: Whether `uv` is on PATH; what is there already of it is hidden otherwise.

    Returns:
        What was done.

    Raises:
        NotHere: The language hosts of Python and Node.js are not installed.
        ReleaseError: The engine failed, or no SDK is linked.
    """
    needed = ("pulumi-language-python", "pulumi-language-nodejs")
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        raise NotHere(
            f"there is no {' and no '.join(missing)}, which only Pulumi's "
            "installers bring; hint: curl -fsSL https://get.pulumi.com | sh"
        )
    if with_uv and shutil.which("uv") is None:
        raise NotHere("there is no uv on PATH; hint: pip install uv")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: added\nruntime: nodejs\n")
    (folder / "package.json").write_text('{"name": "added", "dependencies": {"@pulumi/pulumi": "^3"}}\n')
    path = os.environ["PATH"] if with_uv else _without_uv()
    run(
        [pulumi, "package", "add", ROOT / "components" / "plugin"],
        folder=folder,
        environment=_environment(home) | {"PATH": path},
    )
    linked = json.loads((folder / "package.json").read_text())["dependencies"]
    if "@nodeless/nodeless" not in linked:
        raise ReleaseError(f"pulumi package add linked {sorted(linked)}, not @nodeless/nodeless")
    return f"linked as {linked['@nodeless/nodeless']}"


def _without_uv() -> str:
    """PATH without the folders that have uv."""
    folders = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "uv").exists()]
    # The interpreter is needed, and may lie beside uv.
    return os.pathsep.join([*folders, str(Path(sys.base_prefix) / "bin")])


def _environment(home: Path) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": home.absolute().as_uri(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_CONFIG_PASSPHRASE": "release",
    }
