"""The reference pages say what the tables say."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.cli.reference import pages

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", pages())
def test_a_page_is_what_its_tables_make(name):
    assert (DOCS / name).read_text() == pages()[name], "run `nodeless reference docs`"


def test_the_command_writes_the_pages(tmp_path):
    assert CliRunner().invoke(app, ["reference", str(tmp_path)]).exit_code == 0
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == pages()
