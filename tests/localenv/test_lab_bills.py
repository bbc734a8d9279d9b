"""Given nodes of a lab, when it tells their bill, then readers can follow it to the prices shown below it."""

import re

import pytest

from localenv.labs.cluster_view import price_of
from localenv.labs.lowest_price import bill_of

TYPES = ["t3a.small", "t3a.small", "t3a.nano"]


def test_the_bill_is_told_part_by_part_and_its_instances_are_those_of_the_table_of_nodes() -> None:
    told, text = bill_of(TYPES)

    total, parts = text.split(" = ")
    dollars = [float(part.rpartition(" ")[2]) for part in parts.split(" + ")]
    assert re.sub(r" [\d.]+", "", parts) == "instance + CPU credits + volumes"
    assert float(total) == pytest.approx(told, abs=5e-5)
    assert sum(dollars) == pytest.approx(told, abs=2e-4)
    assert dollars[0] == pytest.approx(sum(price_of(name, "us-east-1a", "on-demand") for name in TYPES))


def test_a_bill_of_one_node_says_what_each_part_consists_of() -> None:
    assert (
        "(4.80 vCPUs beyond 3.20) + volumes 0.0026 (4 GiB gp3, 20 GiB gp3)" in bill_of(["t3a.2xlarge"]).text
    )
