"""The catalog file: the bundled one, and what `nodeless catalog` makes."""

import json
import os
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from localenv.bundled_catalog import BUNDLED, generate_text
from nodeless.cli.main import app
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog, read_catalog, write_catalog
from nodeless.model.labels import SPOT
from nodeless.state.saving import SavedFormatError


async def test_the_bundled_catalog_is_what_its_command_makes(aws) -> None:
    hint = "run `python -m localenv.bundled_catalog`"
    assert await generate_text() == BUNDLED.read_text(), hint


def test_it_is_small_dated_and_complete() -> None:
    sold = bundled_catalog()

    assert BUNDLED.stat().st_size < 2**20
    assert sold.region == "us-east-1"
    assert len(sold.date.split("-")) == 3
    assert sold.on_demand["m5.large"] == 0.096
    assert len(sold.facts) > 1000
    assert not sold.spot


def test_a_catalog_reads_back_as_it_was_written_with_spot_prices_too() -> None:
    sold = bundled_catalog().with_spot_percent(40)

    assert sold.spot["m5.large", "us-east-1a"] == 0.0384
    assert read_catalog(write_catalog(sold)) == replace(sold, spot_percent=None)
    assert replace(sold, date="x").with_spot_percent(90).spot == sold.spot


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("{", "not JSON"),
        ("{}", "not a catalog of version 2"),
        (BUNDLED.read_text().replace('"hypervisor"', '"other"'), "hypervisor"),
        (BUNDLED.read_text().replace("[0,1,2]", "[0,99]", 1), "cannot be read"),
        (BUNDLED.read_text().replace('"arm64",8', '"arm64","eight"', 1), "cpus"),
    ],
)
def test_a_file_that_is_no_catalog_is_told(text: str, reported: str) -> None:
    with pytest.raises(SavedFormatError, match=reported):
        read_catalog(text)


@pytest.mark.parametrize("price", [-0.096, 0, 1e9, float("nan"), float("inf"), "free", True, [1], None])
def test_a_type_whose_price_cannot_be_one_has_none(price: object) -> None:
    document = json.loads(BUNDLED.read_text())
    (row,) = [row for row in document["types"] if row[0] == "m5.large"]
    row[document["members"].index("on-demand")] = price
    sold = read_catalog(json.dumps(document)).with_spot_percent(40)

    assert "m5.large" not in sold.on_demand
    assert ("m5.large", "us-east-1a") not in sold.spot
    assert len(sold.on_demand) == len(bundled_catalog().on_demand) - 1


def test_the_command_asks_aws_for_types_prices_and_spot(aws, monkeypatch) -> None:
    result = CliRunner().invoke(app, ["catalog", "--region", "eu-west-1"])
    assert result.exit_code == 0, result.output
    sold = read_catalog(result.stdout)
    assert (sold.region, sold.all_zones[0]) == ("eu-west-1", "eu-west-1a")
    assert sold.on_demand["m5.large"] == pytest.approx(0.1066, abs=0.001)
    assert 0 < sold.spot["m5.large", "eu-west-1a"] < sold.on_demand["m5.large"]
    assert SPOT in sold.facts[0].usage_classes


def test_without_a_region_it_says_what_to_set(monkeypatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delitem(os.environ, name, raising=False)
    monkeypatch.setitem(os.environ, "AWS_CONFIG_FILE", os.devnull)
    result = CliRunner().invoke(app, ["catalog"])
    assert result.exit_code == 2
    assert "no AWS region is known; hint: set AWS_REGION or give --region" in result.stderr
