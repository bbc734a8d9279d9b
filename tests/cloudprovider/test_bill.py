"""The bill of a node: its parts by AWS's published prices, what is not known, what is left out by room."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.images import read_image
from nodeless.cloudprovider.aws.instance_type_builder import with_reservations
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.cloudprovider.billing.book import bundled_book, read_book
from nodeless.cloudprovider.billing.catalogs import BilledCatalogs, bill_catalog
from nodeless.cloudprovider.billing.parts import Location
from nodeless.cloudprovider.billing.terms import BillTerms, bill_terms, price_book_warnings, terms_of
from nodeless.disruption import DisruptionPolicy, disrupt
from nodeless.disruption.candidates import Prices
from nodeless.explain.price_terms import PriceTerms
from nodeless.launch.overlays import laid_over
from nodeless.launch.resolved import ResolvedNodeClass, Subnet
from nodeless.launch.unavailable import exclude_offerings
from nodeless.model import bill, events
from nodeless.model.bill import PriceSource
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import CAPACITY_RESERVATION_ID, CAPACITY_TYPE, ON_DEMAND, RESERVED, ZONE
from nodeless.model.overlays import NodeOverlay
from nodeless.model.placement import CapacityReservation
from nodeless.model.pods import PodShape
from nodeless.model.pools import BlockDevice, NodeClass, Reference
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import CPU, MEMORY
from nodeless.model.snapshot import Snapshot
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import price_terms_of
from nodeless.scheduling import PriceAdjustment
from nodeless.state import apply
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.factories import a_pending_pod, a_pool
from tests.scheduling.factories import NOW, instance_type

GIB, MIB = 2**30, 2**20
HERE = Location("us-east-1", public_addresses=False)
CLASS = NodeClass(Reference("EC2NodeClass", "default"), "AL2023")
POOL = a_pool()
PLAIN = BillTerms(least_memory=0)


def a_type(name="m5.large", cpus=2, price=0.096, *, gib=8.0, spot=None):
    offerings = [Offering("us-east-1a", "on-demand", price)]
    if spot is not None:
        offerings.append(Offering("us-east-1a", "spot", spot))
    capacity = {CPU: cpus * 1000, MEMORY: int(gib * GIB)}
    return InstanceType(name, Requirements(), capacity, {CPU: 70}, tuple(offerings))


def priced(instance_type, node_class=CLASS, location=HERE, terms=PLAIN):
    """The first offering with its bill."""
    (result,) = bill_catalog((instance_type,), POOL.name, node_class, location, terms)
    return result.offerings[0]


def part(offering, name):
    """Dollars of a part; KeyError where the bill has none of it."""
    return {each.name: each.dollars for each in offering.parts}[name]


def with_disk(**device):
    return replace(CLASS, block_devices=(BlockDevice("/dev/xvda", 100 * GIB, **device),))


def test_a_price_is_the_instance_and_its_root_volume():
    offering = priced(a_type())
    assert [each.name for each in offering.parts] == ["instance", "volumes"]
    assert offering.price == pytest.approx(0.096 + 20 * 0.08 / 730)
    assert offering.instance_price == 0.096


@pytest.mark.parametrize(
    ("device", "a_month"),
    [
        ({"volume_type": "gp2"}, 10.0),
        ({"volume_type": None}, 10.0),
        ({"volume_type": "gp3"}, 8.0),
        ({"volume_type": "gp3", "iops": 3000, "throughput": 125}, 8.0),
        ({"volume_type": "gp3", "iops": 6000, "throughput": 250}, 8.0 + 15.0 + 5.0),
        ({"volume_type": "io1", "iops": 1000}, 12.5 + 65.0),
        ({"volume_type": "io2", "iops": 70_000}, 12.5 + 32_000 * 0.065 + 32_000 * 0.046 + 6_000 * 0.032),
        ({"volume_type": "st1"}, 4.5),
        ({"volume_type": "sc1"}, 1.5),
    ],
)
def test_volumes_cost_by_type_size_iops_and_throughput(device, a_month):
    assert part(priced(a_type(), with_disk(**device)), "volumes") == pytest.approx(a_month / 730)


def test_every_volume_counts_and_bottlerocket_has_two():
    bottlerocket = replace(CLASS, ami_family="Bottlerocket")
    assert part(priced(a_type(), bottlerocket), "volumes") == pytest.approx(24 * 0.08 / 730)


def test_volumes_cost_what_their_region_asks():
    there = Location("eu-central-1", public_addresses=False)
    assert part(priced(a_type(), location=there), "volumes") == pytest.approx(20 * 0.0952 / 730)


@pytest.mark.parametrize(
    ("node_class", "location", "why"),
    [
        (replace(CLASS, ami_family="Custom"), HERE, "those of the image"),
        (replace(CLASS, launch_template="mine"), HERE, "launch template mine"),
        (with_disk(volume_type="gp4"), HERE, "no price of gp4 in us-east-1"),
        (with_disk(volume_type="io2", iops=9), Location("sa-east-1", False), "no price of io2 in sa-east-1"),
        (CLASS, Location("cn-north-1", False), "no price of gp3 in cn-north-1"),
        (
            replace(CLASS, block_devices=(BlockDevice("/dev/xvda", snapshot_id="snap-1"),)),
            HERE,
            "snapshot's size",
        ),
    ],
)
def test_a_volume_without_a_price_is_not_known_and_never_free(node_class, location, why):
    offering = priced(a_type(), node_class, location)
    (missing,) = [each for each in offering.parts if each.dollars is None]
    assert missing.name == "volumes"
    assert why in missing.detail
    assert offering.price == 0.096


def volumes_of(offering):
    """What is known of the volumes in dollars a month with its words, and what is not known."""
    parts = [each for each in offering.parts if each.name == "volumes"]
    known = [(each.dollars * 730, each.detail) for each in parts if each.dollars is not None]
    return known, [each.detail for each in parts if each.dollars is None]


@pytest.mark.parametrize(
    ("device", "given", "a_month", "words", "missing"),
    [
        (
            {"volume_type": "gp3", "iops": 6000, "throughput": 250},
            {"gib": 0.08, "iops": [0.005]},
            8.0 + 15.0,
            "100 GiB gp3",
            ["/dev/xvda: no price of throughput of gp3 in il-central-1"],
        ),
        (
            {"volume_type": "gp3", "iops": 6000, "throughput": 250},
            {"gib": 0.08, "throughput": 0.04},
            8.0 + 5.0,
            "100 GiB gp3",
            ["/dev/xvda: no price of IOPS of gp3 in il-central-1"],
        ),
        (
            {"volume_type": "gp3", "iops": 6000, "throughput": 250},
            {"gib": 0.08},
            8.0,
            "100 GiB gp3",
            [
                "/dev/xvda: no price of IOPS of gp3 in il-central-1",
                "/dev/xvda: no price of throughput of gp3 in il-central-1",
            ],
        ),
        (
            {"volume_type": "gp3", "iops": 6000},
            {"iops": [0.005]},
            15.0,
            "IOPS of gp3",
            ["/dev/xvda: no price of GiB of gp3 in il-central-1"],
        ),
    ],
)
def test_what_is_known_of_a_volume_counts_and_what_is_missing_is_named(
    device, given, a_month, words, missing
):
    book = read_book(json.dumps({"volumes": {"regions": {"il-central-1": {"gp3": given}}}}))
    offering = priced(
        a_type(), with_disk(**device), Location("il-central-1", False), replace(PLAIN, book=book)
    )
    assert volumes_of(offering) == ([(pytest.approx(a_month), words)], missing)
    (known, *_) = [each for each in offering.parts if each.name == "volumes"]
    assert [source.name for source in known.sources] == ["nodeless.priceBook"]


def test_the_iops_of_a_volume_from_a_snapshot_count_although_its_size_is_not_known():
    device = BlockDevice("/dev/xvda", snapshot_id="snap-1", volume_type="io1", iops=1000)
    offering = priced(a_type(), replace(CLASS, block_devices=(device,)))
    assert volumes_of(offering) == (
        [(pytest.approx(65.0), "IOPS of io1")],
        ["/dev/xvda: its snapshot's size"],
    )


@pytest.mark.parametrize(
    ("kind", "a_month", "missing"),
    [
        ("io1", 12.5, "its IOPS (EC2 makes no io1 volume without iops)"),
        ("io2", 12.5, "its IOPS (EC2 makes no io2 volume without iops)"),
        ("standard", 5.0, "its I/O requests (charged by the million)"),
    ],
)
def test_what_a_volume_costs_besides_its_size_is_not_known_and_never_free(kind, a_month, missing):
    assert volumes_of(priced(a_type(), with_disk(volume_type=kind))) == (
        [(pytest.approx(a_month), f"100 GiB {kind}")],
        [f"/dev/xvda: {missing}"],
    )


@pytest.mark.parametrize(
    ("family", "device", "missing"),
    [
        ("AL2023", "/dev/xvda", []),
        ("AL2023", "/dev/xvdb", ["/dev/xvda: the image's own size"]),
        ("AL2023", "/dev/sda1", ["/dev/xvda: the image's own size"]),
        ("Bottlerocket", "/dev/xvdb", ["/dev/xvda: the image's own size"]),
        ("Ubuntu", "/dev/sda1", []),
        ("Ubuntu", "/dev/sdb", ["/dev/sda1: the image's own size"]),
        ("Windows2022", "/dev/xvda", ["/dev/sda1: the image's own size"]),
        ("Custom", "/dev/sda1", []),
        ("Custom", "/dev/xvda", []),
        ("Custom", "/dev/sdb", ["the root volume of the image of family Custom"]),
    ],
)
def test_a_root_volume_that_no_mapping_names_is_not_known_and_never_free(family, device, missing):
    devices = (BlockDevice(device, 100 * GIB, "gp3"),)
    offering = priced(a_type(), replace(CLASS, ami_family=family, block_devices=devices))
    assert volumes_of(offering) == ([(pytest.approx(8.0), "100 GiB gp3")], missing)


def test_one_unknown_volume_leaves_the_others_counted():
    node_class = replace(
        CLASS, block_devices=(BlockDevice("/dev/xvda", 20 * GIB, "gp3"), BlockDevice("b", GIB, "gp9"))
    )
    found = [each.dollars for each in priced(a_type(), node_class).parts if each.name == "volumes"]
    assert found == [pytest.approx(1.6 / 730), None]


@pytest.mark.parametrize(
    ("node_class", "subnets", "dollars"),
    [
        (None, True, 0.005),
        (True, False, 0.005),
        (None, None, None),
    ],
)
def test_a_public_address_costs_where_node_class_or_subnets_give_one(node_class, subnets, dollars):
    offering = priced(
        a_type(), replace(CLASS, public_address=node_class), Location("us-east-1", public_addresses=subnets)
    )
    assert part(offering, "public IPv4") == dollars


@pytest.mark.parametrize(("node_class", "subnets"), [(False, True), (None, False)])
def test_no_public_address_costs_nothing(node_class, subnets):
    offering = priced(
        a_type(), replace(CLASS, public_address=node_class), Location("us-east-1", public_addresses=subnets)
    )
    assert "public IPv4" not in [each.name for each in offering.parts]


@pytest.mark.parametrize(
    ("name", "cpus", "beyond", "price"),
    [
        ("t3a.nano", 2, 2 - 0.1, 0.05),
        ("t3.large", 2, 2 - 0.6, 0.05),
        ("t4g.2xlarge", 8, 8 - 3.2, 0.04),
    ],
)
def test_burstable_types_pay_for_cpu_beyond_their_baseline(name, cpus, beyond, price):
    assert part(priced(a_type(name, cpus)), "CPU credits") == pytest.approx(beyond * price)


def test_a_nano_that_is_used_costs_some_twenty_times_its_list_price():
    assert priced(a_type("t3a.nano", price=0.0047)).price > 20 * 0.0047


def test_credits_go_by_mode_and_use():
    def names(name, **choices):
        offering = priced(a_type(name), terms=replace(PLAIN, **choices))
        return [each.name for each in offering.parts]

    assert "CPU credits" not in names("t2.large")
    assert "CPU credits" in names("t2.large", credit_mode=bill.UNLIMITED)
    assert "CPU credits" not in names("t3.large", credit_mode=bill.STANDARD)
    assert "CPU credits" not in names("t3.large", cpu_use=30)
    half = priced(a_type("t3.large"), terms=replace(PLAIN, cpu_use=50))
    assert part(half, "CPU credits") == pytest.approx((2 / 2 - 0.6) * 0.05)


def test_credits_of_a_family_that_is_not_known_are_not_known():
    assert part(priced(a_type("t5.large")), "CPU credits") is None
    assert "CPU credits" not in [each.name for each in priced(a_type("trn1.2xlarge")).parts]


@pytest.mark.parametrize(
    ("name", "cpus", "linux", "windows"),
    # On-demand prices of us-east-1 as AWS lists them.
    [("m5.large", 2, 0.096, 0.188), ("c5.2xlarge", 8, 0.34, 0.708), ("t3.large", 2, 0.0832, 0.1108)],
)
def test_windows_costs_what_aws_lists_for_it(name, cpus, linux, windows):
    offering = priced(a_type(name, cpus, linux), replace(CLASS, ami_family="Windows2022"))
    assert linux + part(offering, "license") == pytest.approx(windows)


@pytest.mark.parametrize(
    ("family", "licensed", "platform"),
    [
        ("AL2023", "", "Linux/UNIX"),
        ("AL2023", "Red Hat Enterprise Linux", "Red Hat Enterprise Linux"),
        ("Windows2022", "", "Windows"),
        ("Windows2022", "Windows with SQL Server Standard", "Windows with SQL Server Standard"),
        ("Windows2022", "Windows BYOL", "Linux/UNIX"),
    ],
)
def test_a_bill_says_for_which_platform_it_is(family, licensed, platform):
    node_class, location = replace(CLASS, ami_family=family), replace(HERE, platform=licensed)
    (billed,) = bill_catalog((a_type(),), POOL.name, node_class, location, PLAIN)
    assert {offering.platform for offering in billed.offerings} == {platform}


def test_credits_on_windows_have_their_own_price():
    offering = priced(a_type("t3.large"), replace(CLASS, ami_family="Windows2022"))
    assert part(offering, "CPU credits") == pytest.approx((2 - 0.6) * 0.096)


def test_the_license_of_an_image_that_costs_more_is_not_known():
    red_hat = replace(HERE, platform="Red Hat Enterprise Linux")
    (missing,) = [each for each in priced(a_type(), location=red_hat).parts if each.dollars is None]
    assert (missing.name, missing.detail) == ("license", "of Red Hat Enterprise Linux")


def test_of_windows_with_a_database_server_the_license_of_that_is_not_known():
    windows, sql = (
        replace(CLASS, ami_family="Windows2022"),
        replace(HERE, platform="Windows with SQL Server Web"),
    )
    found = [each for each in priced(a_type(), windows, location=sql).parts if each.name == "license"]
    assert [(each.detail, each.dollars is None) for each in found] == [
        ("of SQL Server Web", True),
        ("windows", False),
    ]


def test_a_license_of_ones_own_costs_nothing():
    windows, own = replace(CLASS, ami_family="Windows2022"), replace(HERE, platform="Windows BYOL")
    assert "license" not in {each.name for each in priced(a_type(), windows, location=own).parts}


@pytest.mark.parametrize(("kind", "licensed"), [("default", False), ("capacity-block", True)])
def test_an_on_demand_reservation_has_paid_for_the_license_and_a_capacity_block_has_not(kind, licensed):
    reservation = CapacityReservation("cr-1", "m5.large", "us-east-1a", 1, kind, platform="Windows")
    sold = instance_type("m5.large", 2, 8, offerings=(Offering("us-east-1a", "on-demand", 0.096),))
    types = with_reservations((sold,), [reservation])
    windows = replace(CLASS, ami_family="Windows2022")
    (billed,) = bill_catalog(types, POOL.name, windows, HERE, PLAIN)
    on_demand, reserved = billed.offerings
    assert part(on_demand, "license") == pytest.approx(2 * 0.046)
    assert ("license" in {each.name for each in reserved.parts}) is licensed
    assert part(reserved, "volumes") == part(on_demand, "volumes")


def test_a_node_on_windows_in_a_full_reservation_is_not_replaced_by_one_that_costs_more():
    reservation = CapacityReservation("cr-1", "m5.8xlarge", "z1", 0, platform="Windows")
    listed = (("m5.large", 2, 0.096), ("m5.8xlarge", 32, 1.536))
    sold = [
        instance_type(name, cpus, 4 * cpus, offerings=(Offering("z1", ON_DEMAND, price),))
        for name, cpus, price in listed
    ]
    windows = replace(CLASS, ami_family="Windows2022")
    pool = a_node_pool()
    billed = bill_catalog(with_reservations(tuple(sold), [reservation]), pool.name, windows, HERE, PLAIN)
    reserved = {CAPACITY_TYPE: RESERVED, CAPACITY_RESERVATION_ID: "cr-1", ZONE: "z1"}
    claim, node = node_of(pool, "a", "m5.8xlarge", types={each.name: each for each in billed})
    claim = replace(claim, labels={**claim.labels, **reserved})
    node = replace(node, labels={**node.labels, **reserved})
    seen = cluster(pool, claim, node, on("a", cpu="1", memory="2Gi"))
    assert not disrupt(seen, {pool.key: billed}, DisruptionPolicy(), NOW).commands


@pytest.mark.parametrize(
    ("left_out", "name"),
    [
        (bill.EBS_VOLUMES, "volumes"),
        (bill.CPU_CREDITS, "CPU credits"),
        (bill.ADDRESSES, "public IPv4"),
        (bill.LICENSES, "license"),
    ],
)
def test_a_setting_turns_each_part_off(left_out, name):
    def names(parts):
        terms = replace(PLAIN, parts=parts)
        node_class = replace(CLASS, ami_family="Windows2022", public_address=True)
        return {each.name for each in priced(a_type("t3.large"), node_class, terms=terms).parts}

    assert names(frozenset(bill.PARTS)) - names(frozenset(bill.PARTS) - {left_out}) == {name}
    assert names(frozenset()) == {"instance"}


def test_adjustments_change_the_instance_and_leave_the_rest():
    terms = replace(PLAIN, adjustments=(PriceAdjustment(instance_types=("m5.*",), percent=-50),))
    offering = priced(a_type(), terms=terms)
    assert part(offering, "adjustments") == pytest.approx(-0.048)
    assert offering.price == pytest.approx(0.048 + 1.6 / 730)
    assert offering.instance_price == 0.096
    free = replace(PLAIN, adjustments=(PriceAdjustment(price=0.0),))
    assert priced(a_type(), terms=free).price == pytest.approx(1.6 / 730)


def test_what_has_no_price_gets_none():
    nameless = replace(a_type(), offerings=(Offering("us-east-1a", "spot", 0.0, available=False),))
    assert priced(nameless) == nameless.offerings[0]
    assert not priced(replace(a_type(), offerings=(Offering("us-east-1a", "spot", float("nan")),))).for_sale


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ('{"volumes": {"regions": {"us-east-1": {"gp3": {"gib": -1}}}}}', "gp3.gib: -1 is not a price"),
        ('{"volumes": {"regions": {"us-east-1": {"gp3": {"gib": 8000}}}}}', "gp3.gib: 8000 is not a price"),
        (
            '{"volumes": {"regions": {"us-east-1": {"gp3": {"gib": "free"}}}}}',
            "gp3.gib: 'free' is not a price",
        ),
        ('{"volumes": {"regions": {"us-east-1": {"gp3": {"gib": NaN}}}}}', "gp3.gib: nan is not a price"),
    ],
)
def test_a_price_that_cannot_be_one_is_told_and_the_bundled_one_stays(given, fault):
    book = read_book(given)
    assert any(fault in each for each in book.faults)
    offering = priced(a_type(), terms=replace(PLAIN, book=book))
    assert offering.price == priced(a_type()).price
    assert told(offering)["volumes"] == ["AWS's EBS prices (2021-07-14)"]


def test_a_price_that_cannot_be_one_counts_as_not_known_where_none_is_bundled():
    book = read_book('{"volumes": {"regions": {"cn-north-1": {"gp3": {"gib": "0.5"}}}}}')
    (fault,) = book.faults
    assert fault.startswith(
        "volumes.regions.cn-north-1.gp3.gib: '0.5' is not a price from 0 to 10; it is ignored"
    )
    there = Location("cn-north-1", public_addresses=False)
    assert part(priced(a_type(), location=there, terms=replace(PLAIN, book=book)), "volumes") is None


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"volumes": {"regions": {"us-east-1": {"gp3": {"gb": 0.1}}}}},
            "volumes.regions.us-east-1.gp3.gb: unknown member with the value 0.1; it is ignored; "
            "hint: use gib, iops, throughput",
        ),
        (
            {"volumes": {"us-east-1": {"gp3": {"gib": 0.1}}}},
            "volumes.us-east-1: unknown member with the value {'gp3': {'gib': 0.1}}; it is ignored; "
            "hint: use regions, date, name, source, unit",
        ),
        (
            {"volumes": {"regions": {"eu-central-2": {"gp3": 0.1}}}},
            "volumes.regions.eu-central-2.gp3: 0.1 is not an object; it is ignored; "
            "hint: write an object with gib, iops, throughput",
        ),
        (
            {"volumes": {"regions": {"us-east-1 ": {"gp3": {"gib": 0.1}}}}},
            "volumes.regions.'us-east-1 ': unknown member with the value {'gp3': {'gib': 0.1}}; "
            "it is ignored; hint: use the id of a region such as us-east-1",
        ),
        (
            {"volumes": {"date": None}},
            "volumes.date: None is not a day; it is ignored; hint: write for example 2026-12-01, or leave "
            "it out",
        ),
        (
            {"credits": {"t3": {"linux": 0.01}}},
            "credits.t3: unknown member with the value {'linux': 0.01}; it is ignored; "
            "hint: use families, date, name, source, unit",
        ),
        (
            {"credits": {"families": {"t3": {"linux": "0.05"}}}},
            "credits.families.t3.linux: '0.05' is not a price from 0 to 10; it is ignored; "
            "hint: write a number without quotes, for example 0.08",
        ),
        (
            {"credits": {"families": {"t3": {"linux": None}}}},
            "credits.families.t3.linux: None is not a price from 0 to 10; it is ignored; "
            "hint: write a number without quotes, for example 0.08",
        ),
        (
            {"licenses": {"windows": 0.02}},
            "licenses.windows: unknown member with the value 0.02; it is ignored; "
            "hint: use systems, date, name, source, unit",
        ),
        (
            {"baselines": {"families": {"t3.large": 20}}},
            "baselines.families.'t3.large': unknown member with the value 20; it is ignored; "
            "hint: use a family of T types such as t3",
        ),
        (
            {"baselines": {"families": {"t3": {"large": 200}}}},
            "baselines.families.t3.large: 200 is not a percentage from 0 to 100; it is ignored; "
            "hint: write a number without quotes, for example 20",
        ),
        (
            {"addresses": {"IPv4": 0.01}},
            "addresses.IPv4: unknown member with the value 0.01; it is ignored; "
            "hint: use ipv4, date, name, source, unit",
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_changes_nothing(given, fault):
    book = read_book(json.dumps(given))
    assert book.faults == (fault,)
    assert replace(book, faults=()) == bundled_book()


@pytest.mark.parametrize(
    ("iops", "fault"),
    [
        (
            [0.065, 0.046, 0.032, 0.02],
            "[0.065, 0.046, 0.032, 0.02] has 4 tiers; it is ignored; hint: give at most 3",
        ),
        ([], "[] has no price; it is ignored; hint: give the price of an IOPS"),
        ([0.065, "0.046"], "'0.046' is not a price"),
    ],
)
def test_tiers_that_cannot_be_used_are_told_and_the_bundled_ones_stay(iops, fault):
    book = read_book(json.dumps({"volumes": {"regions": {"us-east-1": {"io2": {"iops": iops}}}}}))
    (told_of,) = book.faults
    assert told_of.startswith(f"volumes.regions.us-east-1.io2.iops: {fault}")
    assert book.volume("us-east-1", "io2") == bundled_book().volume("us-east-1", "io2")
    much = with_disk(volume_type="io2", iops=70_000)
    offering = priced(a_type(), much, terms=replace(PLAIN, book=book))
    assert offering.price == priced(a_type(), much).price
    assert told(offering)["volumes"] == ["AWS's EBS prices (2021-07-14)"]


@pytest.mark.parametrize(("iops", "a_month"), [(0.05, 3500.0), ([0.05], 3500.0), ([0.05, 0.04], 3120.0)])
def test_the_last_tier_that_is_given_holds_for_all_that_follow(iops, a_month):
    given = {"volumes": {"regions": {"us-east-1": {"io2": {"gib": 0, "iops": iops}}}}}
    terms = replace(PLAIN, book=read_book(json.dumps(given)))
    offering = priced(a_type(), with_disk(volume_type="io2", iops=70_000), terms=terms)
    assert part(offering, "volumes") == pytest.approx(a_month / 730)


def told(offering):
    return {each.name: [str(source) for source in each.sources] for each in offering.parts}


def test_each_part_says_where_its_price_is_from_and_of_what_day():
    instance = a_type("t3.large")
    listed = replace(instance.offerings[0], source=PriceSource("AWS Price List API", "2026-11-26T10:00:00Z"))
    node_class = replace(CLASS, ami_family="Windows2022", public_address=True)
    terms = replace(PLAIN, adjustments=(PriceAdjustment(percent=-50),))
    offering = priced(replace(instance, offerings=(listed,)), node_class, terms=terms)
    on_demand = "AWS's on-demand prices (2026-11-25)"
    baselines = "CPU baselines of the EC2 user guide (2023-05-01)"
    assert told(replace(offering, price=offering.price + 0.01)) == {
        "instance": ["AWS Price List API (2026-11-26T10:00:00Z)"],
        "adjustments": ["nodeless.priceAdjustments"],
        "license": [on_demand, baselines],
        "CPU credits": [on_demand, baselines],
        "volumes": ["AWS's EBS prices (2021-07-14)"],
        "public IPv4": ["AWS's VPC prices (2026-09-20)"],
        "node fee": ["nodeless.nodeFee"],
    }


def test_prices_of_the_setting_say_so_with_their_own_date():
    given = {
        "addresses": {"ipv4": 0.004},
        "volumes": {"date": "2026-12-01", "regions": {"us-east-1": {"gp3": {"throughput": 0.05}}}},
        "baselines": {"date": "<b>", "families": {"t3": {"large": 10}}},
    }
    terms = replace(PLAIN, book=read_book(json.dumps(given)))
    fast = replace(with_disk(volume_type="gp3", throughput=250), public_address=True)
    assert told(priced(a_type("t3.large"), fast, terms=terms)) == {
        "instance": [],
        "CPU credits": ["AWS's on-demand prices (2026-11-25)", "nodeless.priceBook"],
        "volumes": ["AWS's EBS prices (2021-07-14)", "nodeless.priceBook (2026-12-01)"],
        "public IPv4": ["nodeless.priceBook"],
    }
    # What no entry of the setting is used for is AWS's still.
    assert told(priced(a_type(), terms=terms))["volumes"] == ["AWS's EBS prices (2021-07-14)"]


def test_what_is_not_known_has_a_reason_and_no_source():
    book = replace(bundled_book(), volumes={}, credits={}, baselines={}, licenses={}, ipv4=None)
    node_class = replace(CLASS, ami_family="Windows2022", public_address=True)
    offering = priced(a_type("t3.large"), node_class, terms=replace(PLAIN, book=book))
    missing = [each for each in offering.parts if each.dollars is None]
    assert len(missing) == 4
    assert all(each.detail and not each.sources for each in missing)


def test_a_book_without_what_is_asked_leaves_gaps():
    book = replace(bundled_book(), volumes={}, credits={}, baselines={}, licenses={}, ipv4=None)
    node_class = replace(CLASS, ami_family="Windows2022", public_address=True)
    offering = priced(a_type("t3.large"), node_class, terms=replace(PLAIN, book=book))
    unknown = {each.name for each in offering.parts if each.dollars is None}
    assert unknown == {"volumes", "CPU credits", "license", "public IPv4"}
    assert offering.price == offering.instance_price


@pytest.mark.parametrize(
    "given", ["[]", "{", '{"volumes": 3}', '{"discs": {}}', '{"credits": {"families": 1}}']
)
def test_a_book_that_is_none_leaves_the_bundled_one(given):
    book = read_book(given)
    assert book.faults
    assert book.volume("us-east-1", "gp3") == bundled_book().volume("us-east-1", "gp3")


def test_prices_of_ones_own_replace_the_bundled_ones():
    book = read_book(json.dumps({"volumes": {"regions": {"cn-north-1": {"gp3": {"gib": 0.5312}}}}}))
    assert not book.faults
    there = Location("cn-north-1", public_addresses=False)
    offering = priced(a_type(), location=there, terms=replace(PLAIN, book=book))
    assert part(offering, "volumes") == pytest.approx(20 * 0.5312 / 730)


def test_prices_of_ones_own_hold_where_the_bundled_ones_are_of_another_currency():
    given = {
        "addresses": {"ipv4": 0.03},
        "credits": {"families": {"t3": {"linux": 0.3}}},
        "licenses": {"systems": {"windows": 0.3}},
    }
    book, region = read_book(json.dumps(given)), "cn-north-1"
    assert not book.faults
    assert (book.address(region), book.credit(region, "t3", "linux")) == (0.03, 0.3)
    assert book.license(region, "windows") == 0.3
    assert book.credit(region, "t4g", "linux") is None
    bundled = bundled_book()
    assert bundled.address(region) is bundled.license(region, "windows") is None


def test_the_bundled_book_is_sound_dated_and_knows_every_burstable_type():
    book = bundled_book()
    # Laid over itself, it is judged as what users give.
    again = read_book(files("nodeless.cloudprovider.billing").joinpath("book.json").read_text())
    assert replace(again, given={}) == book
    assert not again.faults
    assert all(book.dates.values())
    assert all(source.name and source.date for table in book.dates for source in book.sources(table, ("",)))
    burstable = [
        f.name for f in bundled_catalog().facts if f.name.partition(".")[0] in ("t2", "t3", "t3a", "t4g")
    ]
    assert burstable
    assert set(burstable) <= set(book.baselines)


def test_the_same_catalog_is_given_out_until_something_changes():
    kept, types = BilledCatalogs(), (a_type(),)
    first = kept.get(types, POOL, CLASS, HERE, PLAIN, frozenset())
    assert kept.get(types, POOL, CLASS, HERE, BillTerms(least_memory=0), frozenset()) is first
    assert kept.get(types, POOL, CLASS, HERE, replace(PLAIN, parts=frozenset()), frozenset()) is not first
    assert kept.get((a_type(),), POOL, CLASS, HERE, PLAIN, frozenset()) is not first


def test_settings_become_terms():
    data = {
        "aws.clusterName": "demo",
        "nodeless.billParts": "volumes, credits",
        "nodeless.cpuCredits": "standard",
        "nodeless.burstableCPUUse": "40",
        "nodeless.leastMemory": "0",
        "nodeless.priceBook": '{"addresses": {"ipv4": 0.004}}',
        "nodeless.priceAdjustments": '[{"percent": -9}]',
    }
    settings = GlobalSettings.from_config_map(data)
    terms = bill_terms(settings)
    assert terms_of(price_terms_of(settings)) == terms
    assert terms.parts == {"volumes", "credits"}
    assert (terms.credit_mode, terms.cpu_use, terms.least_memory) == ("standard", 40.0, 0)
    assert terms.book.address("us-east-1") == 0.004
    assert terms.adjustments == (PriceAdjustment(percent=-9.0),)
    assert bill_terms(GlobalSettings.from_config_map({"aws.clusterName": "demo"})) == BillTerms()
    assert terms_of(PriceTerms()) == BillTerms()


def test_admission_warns_of_entries_of_the_price_book_that_are_ignored():
    given = {"aws.clusterName": "demo", "nodeless.priceBook": '{"addresses": {"IPv4": 0.01}}'}
    (warning,) = price_book_warnings(given)
    assert warning.startswith("data: nodeless.priceBook: addresses.IPv4: unknown member with the value 0.01;")
    assert price_book_warnings({"nodeless.priceBook": '{"addresses": {"ipv4": 0.01}}'}) == []
    # What is no JSON object at all is refused, and so not warned of.
    assert price_book_warnings({"nodeless.priceBook": "[]"}) == []


def for_sale(types, pool=POOL, *, named=frozenset(), node_class=CLASS, least=128 * MIB):
    terms = BillTerms(least_memory=least)
    found = BilledCatalogs().get(types, pool, node_class, HERE, terms, named)
    assert [each.name for each in found] == [each.name for each in types]
    assert [each.allocatable for each in found] == [each.allocatable for each in types]
    return [each.name for each in found if each.offerings[0].for_sale]


def small(name, mebibytes):
    return replace(a_type(name, 2, 0.005), capacity={CPU: 2000, MEMORY: mebibytes * MIB})


def test_types_with_no_room_for_pods_are_not_bought_by_chance():
    nano, micro = small("t3a.nano", 74), small("t3a.micro", 548)
    assert for_sale((micro, nano)) == ["t3a.micro"]
    assert for_sale((micro, nano), least=0) == ["t3a.micro", "t3a.nano"]
    # 228 MiB are the least with the system's daemons; of a custom image only pods count.
    edge = small("t3a.micro", 228), small("t3a.nano", 227)
    assert for_sale(edge) == ["t3a.micro"]
    assert for_sale(edge, node_class=replace(CLASS, ami_family="Custom")) == ["t3a.micro", "t3a.nano"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("node.kubernetes.io/instance-type", "t3a.nano"),
        ("karpenter.k8s.aws/instance-family", "t3a"),
        ("karpenter.k8s.aws/instance-size", "nano"),
    ],
)
def test_types_that_a_pool_names_are_bought(key, value):
    pool = a_pool(requirements=Requirements([Requirement.of(key, IN, [value])]))
    assert "t3a.nano" in for_sale((small("t3a.micro", 548), small("t3a.nano", 74)), pool)


def test_types_are_bought_where_a_pool_has_nothing_else():
    assert for_sale((small("t3a.nano", 74),)) == ["t3a.nano"]


def test_types_that_a_pending_pod_names_are_bought():
    pod = a_pending_pod(
        shape=PodShape((("cpu", 100),), node_selector=(("node.kubernetes.io/instance-type", "t3a.nano"),))
    )
    node_class = replace(CLASS, reference=POOL.node_class)

    def sold(*pods):
        seen = Snapshot()
        for event in (events.PoolSeen(POOL), events.NodeClassSeen(node_class), *map(events.PodSeen, pods)):
            seen = apply(seen, event)
        catalogs, problems = offline_catalogs(bundled_catalog(), seen, ["us-east-1a"])
        assert not problems
        return {each.name for each in catalogs[POOL.key] if any(o.for_sale for o in each.offerings)}

    assert "t3a.nano" not in sold()
    assert "t3a.nano" in sold(pod)


@pytest.mark.parametrize("remaining", [1, 0])
def test_a_reservation_has_its_price_also_when_all_of_it_is_used(remaining):
    """Of a type that is sold on demand to nobody: the instance is paid for, its volumes are not."""
    unpriced = Offering("us-east-1a", "on-demand", 0.0, available=False)
    block = CapacityReservation("cr-1", "p5e.48xlarge", "us-east-1a", remaining, "capacity-block")
    reserved = with_reservations((instance_type("p5e.48xlarge", 192, 2048, offerings=(unpriced,)),), [block])
    pool = a_pool()
    billed = bill_catalog(reserved, pool.name, NodeClass(pool.node_class), Location("us-east-1"), BillTerms())
    prices = Prices({pool.key: billed})
    assert prices.at(pool.key, "p5e.48xlarge", "us-east-1a", "reserved") == pytest.approx(1.6 / 730, rel=0.01)
    assert prices.at(pool.key, "p5e.48xlarge", "us-east-1a", "on-demand") is None


def test_what_an_overlay_prices_at_nothing_has_that_price_also_where_it_is_sold_out():
    zones = ("us-east-1a", "us-east-1b")
    sold = instance_type("m5.large", 2, 8, offerings=[Offering(zone, "on-demand", 0.1) for zone in zones])
    pool = a_pool()
    free = laid_over((NodeOverlay("paid", price=0.0),), pool, (sold,))
    scarce = exclude_offerings(free, frozenset({("m5.large", "us-east-1a", "on-demand")}))
    billed = bill_catalog(scarce, pool.name, NodeClass(pool.node_class), Location("us-east-1"), BillTerms())
    prices = Prices({pool.key: billed})
    there, here = (prices.at(pool.key, "m5.large", zone, "on-demand") for zone in zones)
    assert there == here
    assert here is not None


@pytest.mark.parametrize(
    ("told", "platform"),
    [
        ("Red Hat Enterprise Linux", "Red Hat Enterprise Linux"),
        ("SUSE Linux", "SUSE Linux"),
        ("Ubuntu Pro", "Ubuntu Pro"),
        ("Linux/UNIX", ""),
        ("Windows", ""),
        ("Windows BYOL", "Windows BYOL"),
        ("Windows with SQL Server Standard", "Windows with SQL Server Standard"),
        ("Red Hat BYOL Linux", ""),
    ],
)
def test_an_image_says_what_is_paid_for_with_it(told, platform):
    record = {"ImageId": "ami-1", "Architecture": "x86_64", "PlatformDetails": told}
    image = read_image(record)
    assert image.platform == platform
    assert ResolvedNodeClass((), (), (image,), "nodes").platform == platform


@pytest.mark.parametrize(
    ("subnets", "given"),
    [((True, True), True), ((False,), False), ((True, False), None), ((None,), None), ((), None)],
)
def test_subnets_that_agree_say_whether_nodes_get_public_addresses(subnets, given):
    listed = tuple(Subnet(f"s-{i}", "z", 9, public_addresses=each) for i, each in enumerate(subnets))
    assert ResolvedNodeClass(listed, (), (), "nodes").public_addresses is given
