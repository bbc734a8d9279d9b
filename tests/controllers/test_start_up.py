"""The first moments of a command: what it imports, what its help says, what it needs."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeless import __version__
from nodeless.cli.main import ENTRIES, app, program_name

POOLS = Path(__file__).parents[2] / "examples" / "plan" / "pools.yaml"
#: What takes longer to import than a version, a page of help or the rules take altogether.
SLOW = {"aiohttp", "asyncio", "boto3", "botocore", "highspy", "kubernetes", "numpy", "pydantic", "structlog"}

CALL = """
import json, sys
from nodeless.cli.entry import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""

#: A Python in which a package is not installed.
WITHOUT = """
import sys
sys.modules[{package!r}] = None
from nodeless.cli.entry import main
main()
"""


def python(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("validate", POOLS)], ids=lambda each: each[0]
)
def test_what_needs_neither_cluster_nor_solver_imports_neither(arguments):
    ended = python(CALL, *arguments)
    assert ended.returncode == 0, ended.stderr
    imported = json.loads(ended.stderr.splitlines()[-1])
    assert {each.partition(".")[0] for each in imported} & SLOW == set()


def test_a_plan_of_files_imports_nothing_that_speaks_to_a_cluster_or_to_aws():
    ended = python(CALL, "plan", POOLS)
    assert ended.returncode == 0, ended.stderr
    imported = json.loads(ended.stderr.splitlines()[-1])
    assert {each.partition(".")[0] for each in imported} & {"aiohttp", "boto3", "kubernetes"} == set()


def test_logs_that_cannot_be_written_keep_the_controller_from_starting_and_one_line_says_so(tmp_path):
    missing = tmp_path / "missing" / "log"
    ended = python(
        "from nodeless.cli.entry import main; main()",
        "run",
        SYSTEM_NAMESPACE="karpenter",
        LOG_OUTPUT_PATHS=f"stdout,{missing}",
    )
    assert ended.returncode != 0
    assert ended.stderr.splitlines() == [
        f"nodeless: environment variable LOG_OUTPUT_PATHS='stdout,{missing}': cannot write to {missing}: "
        "No such file or directory; hint: name stdout, stderr or files that can be written"
    ]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_help_of_all_commands_says_what_that_of_each_says(entry):
    command = entry.load()
    assert " ".join((command.help or "").split("\n\n")[0].split()) == entry.summary
    assert command.rich_help_panel == entry.panel
    assert CliRunner().invoke(app, [entry.name, "--help"]).exit_code == 0


def test_a_command_that_is_not_there_is_answered_with_the_one_that_was_meant():
    ended = CliRunner().invoke(app, ["valdate"])
    assert ended.exit_code == 2
    assert "Did you mean 'validate'?" in ended.output


@pytest.mark.parametrize("package", ["typer", "numpy"])
def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(package):
    ended = python(WITHOUT.format(package=package), "plan", POOLS)
    hint = f"pip install 'nodeless-provisioner[controller]=={__version__}'"
    assert (ended.returncode, ended.stderr) == (
        2,
        f"nodeless: package {package} is not installed; hint: {hint}\n",
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell):
    def completed(words: str) -> str:
        count = len(words.split(" ")) - 1
        asked = {
            "_NODELESS_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": words,
            "COMP_CWORD": str(count),
        }
        return python(CALL, **asked).stdout

    assert "validate" in completed("nodeless va")
    assert "--default-instance-profile" in completed("nodeless convert --def")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/usr/bin/nodeless", "nodeless"),
        ("/usr/bin/kubectl-nodeless", "kubectl nodeless"),
        ("C:\\Scripts\\kubectl-nodeless.exe", "kubectl nodeless"),
        ("/lib/nodeless/__main__.py", "nodeless"),
    ],
)
def test_a_command_is_called_what_the_user_has_typed(path, said):
    assert program_name(path) == said


def test_the_plugin_of_kubectl_is_installed_and_speaks_of_itself():
    """kubectl takes any program on PATH that is called so for its plugin."""
    plugin = Path(sys.executable).with_name("kubectl-nodeless")
    helped = subprocess.run([plugin, "plan", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: kubectl nodeless plan" in helped.stdout
    wrong = subprocess.run([plugin, "valdate"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "kubectl nodeless --help" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_help_of_a_command_is_filled_to_the_width_of_the_terminal(entry):
    """A paragraph has short lines nowhere but at its end, and no line is wider."""
    shown = (
        CliRunner().invoke(app, [entry.name, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    )
    lines = [line.strip() for line in shown.partition("╭")[0].splitlines()]
    assert max(map(len, shown.splitlines())) <= 80
    for line, after in pairwise(lines):
        if line and after:
            assert len(line) + 1 + len(after.split()[0]) > 77, line
