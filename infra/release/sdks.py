"""The package of components in other languages: SDKs by the engine's generators, and `pulumi package add`."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from infra.release.commands import NotHere, program, run
from infra.release.settings import ROOT, ReleaseError

LANGUAGES: Final = ("nodejs", "python", "go", "dotnet", "java")
"""The languages that `pulumi package gen-sdk` knows."""
SCHEMA: Final = ROOT / "components" / "schema.json"
PLUGIN: Final = ROOT / "components" / "plugin"
"""The folder of the component host."""
DOWNLOADS: Final = "get.pulumi.com"
"""Where the engine downloads the plugins of providers."""


def hosts(built: Path | None) -> dict[str, Path]:
    """Language hosts, by language: of an installed Pulumi, else those in `built`."""
    found = {}
    for language in LANGUAGES:
        name = f"pulumi-language-{language}"
        installed = shutil.which(name)
        if installed is not None:
            found[language] = Path(installed)
        elif built is not None and (built / name).exists():
            found[language] = built / name
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


def add_to_project(
    pulumi: Path,
    language_hosts: Mapping[str, Path],
    folder: Path,
    home: Path,
    *,
    uv: Path | None,
    plugin: Path = PLUGIN,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Adds the package to a new TypeScript project by its path, as its readers are told to.

    Args:
        pulumi: The engine.
        language_hosts: As `hosts` finds them.
        folder: Of the project; made anew.
        home: For the engine's own files.
        uv: Put on PATH; without it, what is there already of uv is hidden.
        plugin: The folder to add.
        environment: Further variables of the engine and what it starts.

    Returns:
        What was done.

    Raises:
        NotHere: A language host of Python or Node.js is missing, or npm, or the way to Pulumi's downloads.
        ReleaseError: The engine failed, or no SDK is linked.
    """
    if missing := [each for each in ("python", "nodejs") if each not in language_hosts]:
        named = " and no ".join(f"pulumi-language-{each}" for each in missing)
        raise NotHere(f'there is no {named}; hint: --hosts "$(python -m localenv which language-hosts)"')
    program("npm", "https://nodejs.org/en/download")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: added\nruntime: nodejs\n")
    (folder / "package.json").write_text('{"name": "added", "dependencies": {"@pulumi/pulumi": "^3"}}\n')
    path = os.pathsep.join([str(_link_hosts(language_hosts, home / "hosts")), *_folders_of_programs(uv)])
    try:
        run(
            [pulumi, "package", "add", plugin],
            folder=folder,
            environment=_environment(home) | {"PATH": path} | dict(environment or {}),
        )
    except ReleaseError as error:
        if f'Get "https://{DOWNLOADS}/' in str(error):
            raise NotHere(
                f"{DOWNLOADS}, which has the plugins of aws, eks and kubernetes, does not answer"
            ) from None
        raise
    linked = json.loads((folder / "package.json").read_text())["dependencies"]
    if "@nodeless/nodeless" not in linked:
        raise ReleaseError(f"pulumi package add linked {sorted(linked)}, not @nodeless/nodeless")
    return f"linked as {linked['@nodeless/nodeless']}"


def _link_hosts(language_hosts: Mapping[str, Path], folder: Path) -> Path:
    """A folder with these hosts alone: theirs may have uv, too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for host in language_hosts.values():
        (folder / host.name).symlink_to(host.absolute())
    return folder


def _folders_of_programs(uv: Path | None) -> list[str]:
    """Those of PATH that have no uv, before them that of `uv`."""
    folders = os.environ["PATH"].split(os.pathsep)
    if uv is not None:
        return [str(uv.absolute().parent), *folders]
    # The interpreter is needed, and may lie beside uv.
    return [
        *(each for each in folders if not (Path(each) / "uv").exists()),
        str(Path(sys.base_prefix) / "bin"),
    ]


def _environment(home: Path) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": home.absolute().as_uri(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_CONFIG_PASSPHRASE": "release",
    }
