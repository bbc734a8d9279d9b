"""Whether people can install what was built: in clean environments, from that and the public index."""

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.release.commands import run
from infra.release.settings import ROOT, ReleaseError

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""Versions that the distributions' classifiers name."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An installation, and commands that must work in it.

    Attributes:
        requirement: Distribution with its extra, without a version.
        commands: Each with its right exit code. The first word is a program of the environment.
    """

    requirement: str
    commands: tuple[tuple[int, tuple[str, ...]], ...]


_PLAN: Final = ("nodeless", "plan", str(ROOT / "examples" / "nodeless"))
_RULES: Final = "from nodeless.api.crds import all_crds; assert len(all_crds()) == 5"
_COMPONENTS: Final = "from pulumi_nodeless.schema import package_schema; assert package_schema()['resources']"
_IMAGE: Final = "import pulumi_docker_build; from pulumi_nodeless import ControllerImage"

_RESOLVED: Final = re.compile(r"^(?P<name>[\w.-]+)==.*\n +# from (?P<source>\S+)$", re.MULTILINE)

TRIALS: Final = (
    # Without the extra the command says in one line what to install.
    Trial("nodeless-provisioner", ((0, ("python", "-c", _RULES)), (2, _PLAN))),
    Trial("nodeless-provisioner[controller]", ((0, ("python", "-c", _RULES)), (0, _PLAN))),
    Trial("pulumi-nodeless", ((0, ("python", "-c", _COMPONENTS)),)),
    Trial("pulumi-nodeless[image]", ((0, ("python", "-c", _COMPONENTS)), (0, ("python", "-c", _IMAGE)))),
)
"""Every distribution, plain and with each of its extras."""


def interpreters(uv: Path) -> dict[str, Path]:
    """The interpreters of this machine by version; those that are missing are left out."""
    found = {}
    for version in PYTHONS:
        for candidate in _candidates(uv, version):
            found[version] = candidate
            break
    return found


def _candidates(uv: Path, version: str) -> Iterator[Path]:
    try:
        answer = run(
            [uv, "python", "find", "--no-project", "--system", version],
            environment={"UV_PYTHON_DOWNLOADS": "never"},
        )
        yield Path(answer.strip())
    except ReleaseError:
        pass
    # pyenv puts none of them on PATH.
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(home.glob(f"versions/{version}.*/bin/python{version}"))


def try_installation(trial: Trial, python: Path, wheels: Path, version: str, folder: Path, uv: Path) -> None:
    """Installs into a clean environment, and runs the commands.

    Args:
        trial: What is installed and run.
        python: The interpreter.
        wheels: Folder of the wheels that were built.
        version: Version of ours.
        folder: Of the environment; made anew.
        uv: Program that installs.

    Raises:
        ReleaseError: The installation failed, or a command ended otherwise.
    """
    run([uv, "venv", "--quiet", "--clear", "--no-project", "--no-config", "--python", python, folder])
    run(
        [
            *(uv, "pip", "install", "--quiet", "--no-config", "--python", folder / "bin" / "python"),
            *("--find-links", wheels, f"{trial.requirement}=={version}"),
        ]
    )
    for expected, (name, *arguments) in trial.commands:
        # Not in the checkout, whose packages would be found first.
        run(
            [folder / "bin" / name, *arguments],
            folder=folder,
            environment={"PYTHONPATH": "", "PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore"},
            expected=expected,
        )


def foreign(wheels: Path, version: str, uv: Path) -> list[str]:
    """Requirements whose name is like ours and that come from somewhere else than `wheels`.

    Every distribution is resolved with all extras, with the public index beside the wheels, as people do it;
    nothing is installed.

    Args:
        wheels: Folder of the wheels that were built.
        version: Version of ours.
        uv: Program that resolves.

    Raises:
        ReleaseError: Nothing satisfies the requirements.
    """
    wanted = sorted({f"{trial.requirement}=={version}" for trial in TRIALS if "[" in trial.requirement})
    command = ["pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--universal"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "requirements.in")
        source.write_text("\n".join(wanted))
        answer = run(
            [
                uv,
                *command,
                "--python-version",
                PYTHONS[0],
                "--emit-index-annotation",
                "--find-links",
                wheels,
                source,
            ]
        )
    return foreign_in(answer, wheels)


def foreign_in(answer: str, wheels: Path) -> list[str]:
    """As `foreign`, of what uv answers: each pin with the place that it comes from.

    Raises:
        ReleaseError: One of ours is not among them.
    """
    resolved = {match["name"]: match["source"] for match in _RESOLVED.finditer(answer)}
    ours = {"nodeless-provisioner", "pulumi-nodeless"}
    if missing := sorted(ours - resolved.keys()):
        raise ReleaseError(f"{', '.join(missing)}: not among what would be installed")
    return [
        f"{name} from {source}"
        for name, source in sorted(resolved.items())
        if "nodeless" in name and not (name in ours and source == wheels.resolve().as_uri())
    ]
