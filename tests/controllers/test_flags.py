"""The command line of the controller: help, version, flags in Go's spelling, and wrong ones."""

import pytest
from typer.testing import CliRunner

from nodeless import __version__
from nodeless.cli.main import app
from nodeless.operator.flags import spelled_out


def call(*arguments, **environment):
    unset = {"SYSTEM_NAMESPACE": "", "METRICS_PORT": "", "COLUMNS": "200"}
    return CliRunner().invoke(app, spelled_out(arguments), env={**unset, **environment})


@pytest.mark.parametrize(
    "flag", ["--metrics-port", "--leader-elect", "--cluster-name", "--batch-max-duration", "--feature-gates"]
)
def test_the_help_shows_every_flag_with_its_variable(flag):
    shown = call("run", "--help")
    assert shown.exit_code == 0
    assert flag in shown.output
    assert flag.lstrip("-").replace("-", "_").upper() in shown.output


def test_version_is_an_option_too():
    assert call("--version").output.strip() == call("version").output.strip() == __version__


def test_a_flag_that_is_not_known_ends_with_2_and_the_one_that_was_meant():
    ended = call("run", "--metrics-prot", "1")
    assert ended.exit_code == 2
    assert "--metrics-port" in ended.output


def test_a_value_that_makes_no_sense_is_named_with_its_flag():
    ended = call("run", "-metrics-port=http", "--leader-elect=perhaps", "-disable-webhook")
    assert ended.exit_code == 2
    assert "flag --metrics-port='http' is not a port; hint:" in ended.output
    assert "flag --leader-elect='perhaps' is neither true nor false" in ended.output
    assert "disable-webhook" not in ended.output


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        (["run", "-metrics-port=1"], ["run", "--metrics-port=1"]),
        (["run", "--disable-webhook"], ["run", "--disable-webhook=true"]),
        (["run", "-leader-elect=false"], ["run", "--leader-elect=false"]),
        (["run", "--metrics-port", "1"], ["run", "--metrics-port", "1"]),
        (["plan", "-o", "-x"], ["plan", "-o", "-x"]),
        ([], []),
    ],
)
def test_goes_spellings_of_flags_are_understood(given, spelled):
    assert spelled_out(given) == spelled
