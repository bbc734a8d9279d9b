"""What a node costs whose own pool does not buy its type: the instance by another pool, the rest its own."""

from dataclasses import replace

import pytest

from nodeless.model.bill import Bill, BillPart
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import OS
from nodeless.model.node_offerings import NodePrices
from nodeless.model.requirements import Requirement, Requirements

ZONE = "us-east-1a"
LICENSE = BillPart("license", 0.184, "windows")
DISCOUNT = BillPart("adjustments", -0.02)
FIFTY, TWENTY = BillPart("volumes", 0.0055, "50 GiB gp3"), BillPart("volumes", 0.0022, "20 GiB gp3")
ADDRESS = BillPart("public IPv4", 0.005)
CREDITS = BillPart("CPU credits", 0.1)


def sold(name="m5.xlarge", *parts, system="linux", price=0.192, fee=0.0, left_out=()):
    bill = Bill(price, parts, left_out=frozenset(left_out))
    offering = Offering(ZONE, "on-demand", bill.total + fee, bill=bill)
    labels = Requirements([Requirement.of(OS, "In", [system])])
    return InstanceType(name, labels, {}, {}, (offering,))


WINDOWS = {"NodePool/a-windows": (sold("m5.xlarge", LICENSE, FIFTY, system="windows"),)}
LINUX = {"NodePool/linux": (sold("m5.xlarge", TWENTY, ADDRESS),)}


def found(catalog, pool="", system="linux", instance_type="m5.xlarge"):
    return NodePrices(catalog).find(pool, instance_type, ZONE, "on-demand", system)


def told(offering):
    return {part.name: part.dollars for part in offering.parts}


@pytest.mark.parametrize("pool", ["None", "NodePool/gone"])
@pytest.mark.parametrize("catalog", [WINDOWS, {**WINDOWS, **LINUX}])
def test_a_linux_node_of_no_pool_pays_for_its_instance_and_takes_nothing_of_another_pool(catalog, pool):
    offering = found(catalog, pool)
    assert told(offering) == {"instance": 0.192, "volumes": None, "public IPv4": None}
    assert offering.price == pytest.approx(0.192)
    assert found(catalog, pool, system="").price == pytest.approx(0.192)


def test_a_node_whose_pool_buys_other_types_pays_by_its_own_node_class():
    own = {"NodePool/own": (sold("c5.large", DISCOUNT, TWENTY, ADDRESS, price=0.085),)}
    offering = found({**WINDOWS, **own}, "NodePool/own")
    assert told(offering) == {"instance": 0.192, "volumes": 0.0022, "public IPv4": 0.005}
    assert offering.price == pytest.approx(0.1992)


def test_a_windows_node_has_the_license_of_a_windows_pool_or_it_is_said_to_be_missing():
    own = {"NodePool/own": (sold("m5.2xlarge", LICENSE, FIFTY, system="windows"),)}
    by_linux = found({**LINUX, **own}, "NodePool/own", "windows")
    assert told(by_linux) == {"instance": 0.192, "license": None, "volumes": 0.0055}
    assert next(part.detail for part in by_linux.parts if part.name == "license") == "of windows"
    by_windows = found({**LINUX, **WINDOWS, **own}, "NodePool/own", "windows")
    assert told(by_windows) == {"instance": 0.192, "license": 0.184, "volumes": 0.0055}
    # The claim of a node that has not appeared may not say its system: it is that of its pool.
    assert found({**LINUX, **own}, "NodePool/own", "") == by_linux


def test_credits_are_known_for_the_same_system_alone():
    linux, windows = sold("t3.large", CREDITS), sold("t3.large", CREDITS, system="windows")
    assert told(found({"NodePool/a": (linux,)}, instance_type="t3.large"))["CPU credits"] == 0.1
    assert told(found({"NodePool/a": (windows,)}, instance_type="t3.large"))["CPU credits"] is None


def test_discounts_and_the_fee_stay_with_the_instance():
    other = {"NodePool/a": (sold("m5.xlarge", DISCOUNT, FIFTY, fee=0.01),)}
    offering = found(other)
    assert told(offering)["adjustments"] == -0.02
    assert offering.price == pytest.approx(0.182)
    assert told(offering)["node fee"] == pytest.approx(0.01)


def test_parts_that_settings_leave_out_are_not_missing():
    linux = sold("m5.xlarge", left_out=("volumes", "addresses", "licenses"))
    for system in ("linux", "windows"):
        assert told(found({"NodePool/a": (linux,)}, system=system)) == {"instance": 0.192}


def test_without_bills_a_price_is_that_of_the_instance():
    plain = replace(sold(), offerings=(Offering(ZONE, "on-demand", 0.192),))
    assert told(found({"NodePool/a": (plain,)}, system="windows")) == {"instance": 0.192}


def test_what_the_own_pool_buys_stays_as_it_is():
    assert told(found(WINDOWS, "NodePool/a-windows", "windows"))["license"] == 0.184
    assert found({}, "NodePool/a") is None
