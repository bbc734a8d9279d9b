"""What a node of a type costs an hour beside its instance, part by part.

    license     price of the system x vCPUs (of T families: vCPUs of the baseline)
    credits     price of a vCPU-hour x max(0, CPU in use - vCPUs of the baseline)
    volumes     (GiB x price + IOPS beyond the free ones x price + MiB/s beyond the free ones x price) / 730
    address     price of a public IPv4 address, where the node class or the subnets give one

What a node will hold is not known when its type is priced, so CPU in use is a share of all vCPUs that the
terms give: at 100 % the node is full of pods that use what they request; the system uses what it reserves.

Example: a t3a.nano has 2 vCPUs with a baseline of 5 % each. Full, it pays (2 - 0.1) x 0.05 = 0.095 dollars
an hour on top of its 0.0047.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

from nodeless.api.settings_warnings import NEEDS_IOPS
from nodeless.cloudprovider.billing.book import PriceBook, VolumePrices
from nodeless.cloudprovider.billing.entries import TIERS
from nodeless.cloudprovider.billing.terms import BillTerms
from nodeless.launch.families import CUSTOM, GIB, family_of
from nodeless.model import bill
from nodeless.model.bill import HOURS_A_MONTH, BillPart, PriceSource
from nodeless.model.instance_types import InstanceType
from nodeless.model.pools import BlockDevice, NodeClass
from nodeless.model.resources import CPU

#: What a gp3 volume has for the price of its size
#: (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html).
FREE_IOPS, FREE_THROUGHPUT = 3_000, 125
#: The kind of volumes for whose I/O requests AWS charges: how many there will be is not known.
_CHARGED_BY_REQUEST = "standard"
#: Where images of families that are not known have their root volume.
_USUAL_ROOTS = ("/dev/xvda", "/dev/sda1")
#: Windows without a license in the price (`PlatformDetails`): the user has one.
_OWN_LICENSE = "Windows BYOL"
#: Families whose default is to be slowed down at the end of their credits.
_STANDARD_BY_DEFAULT = ("t2",)
_UNITS_OF_CPU = 1000
_NO_REGION = "a region that is not named"


@dataclass(frozen=True, slots=True)
class Location:
    """Where nodes come to be, as far as it decides what they cost."""

    region: str
    public_addresses: bool | None = None
    """Whether their subnets give public IPv4 addresses; None: not known, or some do."""
    platform: str = ""
    """What the image says it is licensed as, as in `Red Hat Enterprise Linux`; empty: nothing."""


def shared_parts(node_class: NodeClass, location: Location, terms: BillTerms) -> tuple[BillPart, ...]:
    """The parts that are the same for every type."""
    parts: list[BillPart] = []
    if bill.EBS_VOLUMES in terms.parts:
        parts += _volumes(node_class, location.region, terms.book)
    if bill.ADDRESSES in terms.parts:
        parts += _address(node_class, location, terms.book)
    return tuple(parts)


def parts_of_type(
    instance_type: InstanceType, node_class: NodeClass, location: Location, terms: BillTerms
) -> tuple[BillPart, ...]:
    """The parts that go by the type."""
    system = family_of(node_class.ami_family).os
    parts: list[BillPart] = []
    if bill.LICENSES in terms.parts:
        parts += _license(instance_type, system, location, terms.book)
    if bill.CPU_CREDITS in terms.parts:
        parts += _credits(instance_type, system, location, terms)
    return tuple(parts)


def platform_of(node_class: NodeClass, location: Location) -> str:
    """What EC2 bills the instances of a node class as."""
    if location.platform == _OWN_LICENSE:
        return bill.LINUX
    system = bill.WINDOWS if family_of(node_class.ami_family).os == "windows" else bill.LINUX
    return location.platform or system


def is_burstable(name: str) -> bool:
    """Whether a type earns CPU credits: all T families with a digit, now and to come."""
    family = name.partition(".")[0]
    return len(family) > 1 and family[0] == "t" and family[1].isdigit()


def _license(
    instance_type: InstanceType, system: str, location: Location, book: PriceBook
) -> Iterator[BillPart]:
    if system == "linux":
        if location.platform:
            yield BillPart(bill.LICENSE, None, f"of {location.platform}")
        return
    if location.platform == _OWN_LICENSE:
        return
    if location.platform:
        yield BillPart(bill.LICENSE, None, f"of {location.platform.partition(' with ')[2]}")
    price = book.license(location.region, system)
    burstable = is_burstable(instance_type.name)
    cpus = _baseline(instance_type, book) if burstable else _cpus(instance_type)
    if price is None or cpus is None:
        yield BillPart(bill.LICENSE, None, f"of {system}")
    else:
        sources = book.sources("licenses", ("systems", system))
        if burstable:
            sources += _baseline_sources(instance_type, book)
        yield BillPart(bill.LICENSE, price * cpus, system, sources)


def _credits(
    instance_type: InstanceType, system: str, location: Location, terms: BillTerms
) -> Iterator[BillPart]:
    if not is_burstable(instance_type.name):
        return
    family = instance_type.name.partition(".")[0]
    mode = terms.credit_mode
    if mode == bill.STANDARD or (mode == bill.DEFAULT_MODE and family in _STANDARD_BY_DEFAULT):
        return
    baseline, price = _baseline(instance_type, terms.book), terms.book.credit(location.region, family, system)
    if baseline is None or price is None:
        yield BillPart(bill.CREDITS, None, f"of {instance_type.name}")
        return
    used = _cpus(instance_type) * terms.cpu_use / 100
    beyond = max(0.0, used - baseline)
    if beyond:
        sources = terms.book.sources("credits", ("families", family, system))
        sources += _baseline_sources(instance_type, terms.book)
        yield BillPart(bill.CREDITS, price * beyond, f"{beyond:.2f} vCPUs beyond {baseline:.2f}", sources)


def _cpus(instance_type: InstanceType) -> float:
    return instance_type.capacity.get(CPU, 0) / _UNITS_OF_CPU


def _baseline(instance_type: InstanceType, book: PriceBook) -> float | None:
    """VCPUs that may be used at all times for the price of the instance."""
    percent = book.baselines.get(instance_type.name)
    return None if percent is None else _cpus(instance_type) * percent / 100


def _baseline_sources(instance_type: InstanceType, book: PriceBook) -> tuple[PriceSource, ...]:
    family, _, size = instance_type.name.partition(".")
    return book.sources("baselines", ("families", family, size))


def _address(node_class: NodeClass, location: Location, book: PriceBook) -> Iterator[BillPart]:
    given = node_class.public_address
    if given is None:
        given = location.public_addresses
    if given is None:
        yield BillPart(bill.ADDRESS, None, "subnets decide")
    elif given:
        price = book.address(location.region)
        if price is None:
            yield BillPart(bill.ADDRESS, None, f"no price in {location.region or _NO_REGION}")
        else:
            yield BillPart(bill.ADDRESS, price, sources=book.sources("addresses", ("ipv4",)))


def _volumes(node_class: NodeClass, region: str, book: PriceBook) -> Iterator[BillPart]:
    family = family_of(node_class.ami_family)
    devices = node_class.block_devices or family.block_devices
    if node_class.launch_template:
        yield BillPart(bill.VOLUMES, None, f"those of launch template {node_class.launch_template}")
        return
    if not devices:
        yield BillPart(bill.VOLUMES, None, f"those of the image of family {node_class.ami_family or CUSTOM}")
        return
    priced = [_price_volume(device, region, book) for device in devices]
    known = [volume for volume in priced if volume.entries]
    if known:
        total = fsum(volume.dollars for volume in known) / HOURS_A_MONTH
        entries = [("regions", region, volume.kind, entry) for volume in known for entry in volume.entries]
        words = ", ".join(volume.words for volume in known)
        yield BillPart(bill.VOLUMES, total, words, book.sources("volumes", *entries))
    for device, volume in zip(devices, priced, strict=True):
        for reason in volume.missing:
            yield BillPart(bill.VOLUMES, None, f"{device.device_name}: {reason}")
    # EC2 makes the image's root volume also where no mapping names it, in the image's own size and type.
    roots = (family.root_device,) if family.root_device else _USUAL_ROOTS
    if not any(device.device_name in roots for device in devices):
        root = f"{family.root_device}: the image's own size"
        unnamed = f"the root volume of the image of family {node_class.ami_family or CUSTOM}"
        yield BillPart(bill.VOLUMES, None, root if family.root_device else unnamed)


@dataclass(frozen=True, slots=True)
class _VolumePrice:
    """What is known of a volume's price, and what is not."""

    kind: str
    dollars: float
    """A month, of the figures whose price is known."""
    entries: tuple[str, ...]
    """By which entries of its kind of volumes."""
    words: str
    missing: tuple[str, ...] = ()
    """Why the others are not known."""


def _price_volume(device: BlockDevice, region: str, book: PriceBook) -> _VolumePrice:
    # EC2's own default in a launch template; gp2, unlike the console's.
    kind = device.volume_type or "gp2"
    prices, where = book.volume(region, kind), region or _NO_REGION
    if prices is None:
        return _VolumePrice(kind, 0.0, (), "", (f"no price of {kind} in {where}",))
    dollars: list[float] = []
    entries: list[str] = []
    missing: list[str] = []
    words = f"IOPS of {kind}"
    if device.volume_size is None:
        missing.append("its snapshot's size")
    elif prices.gib is None:
        missing.append(f"no price of GiB of {kind} in {where}")
    else:
        size = -(-device.volume_size // GIB)
        words = f"{size} GiB {kind}"
        dollars.append(size * prices.gib)
        entries.append("gib")
    more = max(0, (device.iops or 0) - (FREE_IOPS if kind == "gp3" else 0))
    if more and not prices.iops:
        missing.append(f"no price of IOPS of {kind} in {where}")
    elif more:
        dollars.append(_of_tiers(more, prices))
        entries.append("iops")
    if kind in NEEDS_IOPS and not device.iops:
        missing.append(f"its IOPS (EC2 makes no {kind} volume without iops)")
    if kind == _CHARGED_BY_REQUEST:
        missing.append("its I/O requests (charged by the million)")
    faster = max(0, (device.throughput or 0) - FREE_THROUGHPUT) if kind == "gp3" else 0
    if faster:
        if prices.throughput is None:
            missing.append(f"no price of throughput of {kind} in {where}")
        else:
            words = words if entries else f"throughput of {kind}"
            dollars.append(faster * prices.throughput)
            entries.append("throughput")
    return _VolumePrice(kind, fsum(dollars), tuple(entries), words, tuple(missing))


def _of_tiers(iops: int, prices: VolumePrices) -> float:
    """Dollars a month of IOPS, each tier at its own price."""
    bounds = (0, *TIERS)
    total = 0.0
    for number, price in enumerate(prices.iops):
        last = number == len(prices.iops) - 1
        end = iops if last else min(iops, bounds[number + 1])
        total += max(0, end - bounds[number]) * price
    return total
