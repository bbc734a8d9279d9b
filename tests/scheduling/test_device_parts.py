"""Parts of devices: those that are allocated several times, partitions, and what constraints ask of them.

The judge is the search of kube-scheduler (`allocation`), which `test_device_allocation` holds to its rules.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.devices import (
    AllocatedDevice,
    Allocation,
    ClaimedDevices,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceShare,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
)
from nodeless.model.pods import NodeSelectorTerm, PodResourceClaim
from nodeless.scheduling.devices.allocation import Allocator
from nodeless.scheduling.devices.groups import Held, pool_place
from nodeless.scheduling.devices.matching import common_room
from nodeless.scheduling.devices.selections import combinations
from tests.scheduling.factories import HOSTNAME, instance_type, needs
from tests.scheduling.test_devices import (
    PLAIN,
    bought,
    claiming,
    gpu_node,
    one,
    only_reason,
    planned,
    template,
)

DRIVER = "parts.example.com"
CLASS = DeviceClass(DRIVER, (f"device.driver == '{DRIVER}'",))
GI = 2**30 * 1000
KIND = instance_type("parts.large", 48, 192, price=4.0)


def shared_device(name, gibibytes=40, policy=None, **fields):
    memory = f"{DRIVER}/memory"
    policies = ((memory, policy),) if policy else ()
    return Device(
        name,
        capacity=((memory, gibibytes * GI),),
        multiple=True,
        policies=policies,
        unqualified=(memory,),
        **fields,
    )


def slices_of(node, *devices, counters=()):
    """The slices of one pool of a node: those of counters come apart, as the API asks."""
    number = 1 + bool(counters)
    made = [ResourceSlice(f"{node}-a", DRIVER, node, 1, number, node, tuple(devices))]
    if counters:
        made.append(ResourceSlice(f"{node}-b", DRIVER, node, 1, number, node, counter_sets=tuple(counters)))
    return made


def wants(gibibytes=None, count=1, **fields):
    asked = (("memory", int(gibibytes * GI)),) if gibibytes is not None else ()
    return one(device_class=DRIVER, count=count, capacity=asked, **fields)


def plan_on(node_things, *things, types=(PLAIN,), **fields):
    return planned(*things, node_things, types=types, classes=(CLASS,), **fields)


def waiting(number, request, name="gpu", constraints=()):
    claim = PodResourceClaim("gpu", template=name)
    return [
        *claiming(number, "100m", (claim,), name=name),
        template(request, name=name, constraints=constraints),
    ]


@pytest.mark.parametrize(
    ("policy", "gibibytes", "fit"),
    [
        (None, 10, 8),
        (None, 15, 4),
        (None, 40, 2),
        (None, None, 2),
        (RequestPolicy(default=5 * GI), None, 16),
        (RequestPolicy(5 * GI, (5 * GI, 20 * GI)), 6, 4),
        (RequestPolicy(5 * GI, (), 4 * GI, 20 * GI, 4 * GI), 9, 6),
        (RequestPolicy(5 * GI, (), 4 * GI, 20 * GI, 4 * GI), 1, 20),
        (RequestPolicy(10 * GI, (), 10 * GI, None, 10 * GI), 10, 8),
    ],
)
def test_a_device_that_is_allocated_several_times_is_shared_as_long_as_its_capacity_lasts(
    policy, gibibytes, fit
):
    """Two devices of 40 Gi each; what is asked for is rounded up as the device says."""
    there = [
        gpu_node("there"),
        *slices_of("there", shared_device("a", 40, policy), shared_device("b", 40, policy)),
    ]
    plan = plan_on(there, *waiting(30, wants(gibibytes)))
    assert len(plan.placements) == fit


@pytest.mark.parametrize(("asked", "fit"), [(None, 20), (50, 20), (100, 2), (250, 2), (1001, 1)])
def test_steps_of_less_than_a_unit_are_whole_units(asked, fit):
    """kube-scheduler rounds amounts up to whole units where a policy has steps, here of 100m of two cores."""
    cores = f"{DRIVER}/cores"
    device = Device(
        "a",
        capacity=((cores, 2000),),
        multiple=True,
        policies=((cores, RequestPolicy(100, (), 100, None, 100)),),
        unqualified=(cores,),
    )
    capacity = () if asked is None else (("cores", asked),)
    there = [gpu_node("there"), *slices_of("there", device)]
    plan = plan_on(there, *waiting(50, one(device_class=DRIVER, capacity=capacity)))
    assert len(plan.placements) == fit


@pytest.mark.parametrize("gibibytes", [None, 40, 30, 10])
def test_a_claim_for_parts_of_several_devices_is_met_by_as_many(gibibytes):
    """Together they are more than any one device has."""
    there = [gpu_node("there"), *slices_of("there", shared_device("a", 40), shared_device("b", 40))]
    plan = plan_on(there, *waiting(1, wants(gibibytes, count=2)))
    assert set(plan.placements.values()) == {"there"}


def test_a_claim_for_partitions_of_several_devices_is_met_by_as_many():
    sets = [CounterSet(name, (("slices", 7000),)) for name in ("a", "b")]
    wholes = [Device(one.name, consumes=(one,)) for one in sets]
    there = [gpu_node("there"), *slices_of("there", *wholes, counters=sets)]
    plan = plan_on(there, *waiting(2, wants(count=2)))
    assert list(plan.placements.values()) == ["there"]


@pytest.mark.parametrize("gibibytes", [41, 21])
def test_a_device_gives_no_more_at_once_than_its_policy_allows(gibibytes):
    policy = RequestPolicy(5 * GI, (), 1 * GI, 20 * GI)
    there = [gpu_node("there"), *slices_of("there", shared_device("a", 40, policy))]
    code, message = only_reason(plan_on(there, *waiting(1, wants(gibibytes))))
    assert code == "NoDeviceFits"
    assert f"no known device has {gibibytes}Gi of memory for one request" in message


def test_what_claims_in_flight_have_of_a_device_is_not_given_again():
    """A claim is allocated before its pod is bound."""
    device = AllocatedDevice(DRIVER, "there", "a")
    held = Allocation((), (), (DeviceShare(device, ((f"{DRIVER}/memory", 25 * GI),)),))
    there = [gpu_node("there"), *slices_of("there", shared_device("a"), shared_device("b"))]
    plan = plan_on(there, *waiting(9, wants(10)), ResourceClaim("default", "held", ClaimedDevices(), held))
    assert len(plan.placements) == 1 + 4


def test_new_nodes_have_what_nodes_of_their_type_have_in_parts():
    full = DeviceShare(AllocatedDevice(DRIVER, "there", "a"), ((f"{DRIVER}/memory", 40 * GI),))
    held = ResourceClaim("default", "held", ClaimedDevices(), Allocation((), (), (full,)))
    there = [gpu_node("there", KIND), *slices_of("there", shared_device("a"))]
    plan = plan_on(there, *waiting(9, wants(10)), held, types=(PLAIN, KIND))
    assert bought(plan) == ["parts.large"] * 3
    assert not plan.placements


@pytest.mark.parametrize(("domain", "met"), [("", True), (f"{DRIVER}/", False)])
def test_a_capacity_is_named_as_the_driver_publishes_it(domain, met):
    """kube-scheduler compares the names as they are written."""
    there = [gpu_node("there"), *slices_of("there", shared_device("a"))]
    request = one(device_class=DRIVER, capacity=((f"{domain}memory", GI),))
    assert bool(plan_on(there, *waiting(1, request)).placements) is met


def partitions(gpu, sizes=(8, 4, 4, 2, 2, 2, 2)):
    """A device in parts, each at its place: slices of memory, each of which several parts may have."""
    made, starts = [], {}
    for size in sizes:
        start = starts.get(size, 0)
        starts[size] = start + size
        taken = (*((f"slice-{at}", 1000) for at in range(start, start + size)), ("slices", size * 1000))
        attributes = (DeviceAttribute(f"{DRIVER}/slices", integer=size),)
        made.append(
            Device(f"{gpu}-{size}-{start}", attributes, consumes=(CounterSet(gpu, tuple(sorted(taken))),))
        )
    counters = (*((f"slice-{at}", 1000) for at in range(8)), ("slices", 8000))
    return made, CounterSet(gpu, tuple(sorted(counters)))


def partitioned(node, gpus):
    parts = [partitions(f"gpu-{number}") for number in range(gpus)]
    devices = [device for some, _ in parts for device in some]
    return [gpu_node(node, KIND), *slices_of(node, *devices, counters=[counters for _, counters in parts])]


def of_size(size):
    return one(f"device.attributes['{DRIVER}'].slices == {size}", device_class=DRIVER)


@pytest.mark.parametrize(("size", "fit"), [(8, 2), (4, 4), (2, 8)])
def test_partitions_share_what_they_are_parts_of(size, fit):
    plan = plan_on(partitioned("there", 2), *waiting(20, of_size(size)), types=(PLAIN, KIND))
    assert len(plan.placements) == fit
    assert bought(plan) == ["parts.large"] * (-(-(20 - fit) // fit))


@pytest.mark.parametrize(
    ("held", "size", "fit"), [("gpu-0-2-0", 8, 1), ("gpu-0-2-0", 4, 3), ("gpu-0-8-0", 2, 4)]
)
def test_a_partition_that_is_allocated_leaves_the_rest(held, size, fit):
    allocation = Allocation((AllocatedDevice(DRIVER, "there", held),))
    claim = ResourceClaim("default", "held", ClaimedDevices(), allocation)
    plan = plan_on(partitioned("there", 2), *waiting(20, of_size(size)), claim)
    assert len(plan.placements) == fit


@pytest.mark.parametrize("spoil", ["name", "counter"])
def test_nothing_is_planned_of_a_pool_that_kube_scheduler_takes_for_invalid(spoil):
    node, devices, counters = partitioned("there", 1)
    first = devices.devices[0]
    odd = (
        first
        if spoil == "name"
        else replace(first, name="odd", consumes=(CounterSet("gone", (("slices", 1),)),))
    )
    spoiled = replace(devices, devices=(*devices.devices, odd))
    plan = plan_on([node, spoiled, counters], *waiting(1, of_size(2)))
    assert not plan.placements


def on_boards(node, boards):
    devices = [
        Device(f"d{at}", (DeviceAttribute("x.com/board", string=board),)) for at, board in enumerate(boards)
    ]
    return [gpu_node(node), *slices_of(node, *devices)]


@pytest.mark.parametrize(
    ("boards", "count", "fit"), [("aabb", 2, 2), ("aaab", 2, 1), ("abcd", 3, 1), ("aabb", 3, 0)]
)
def test_devices_must_differ_in_an_attribute(boards, count, fit):
    constraint = DeviceConstraint((), "", "x.com/board")
    plan = plan_on(on_boards("there", boards), *waiting(3, wants(count=count), constraints=[constraint]))
    assert len(plan.placements) == fit


def test_a_group_of_which_one_device_is_taken_is_no_group_for_who_needs_all_of_it():
    """Two devices are free, on two boards: kube-scheduler finds no two of one."""
    held = Allocation(tuple(AllocatedDevice(DRIVER, "there", name) for name in ("d0", "d2")))
    claim = ResourceClaim("default", "held", ClaimedDevices(), held)
    constraint = DeviceConstraint((), "x.com/board")
    plan = plan_on(on_boards("there", "aabb"), claim, *waiting(1, wants(count=2), constraints=[constraint]))
    assert not plan.placements


@pytest.mark.parametrize("named", ["a", "a/large"])
def test_a_constraint_may_be_about_one_alternative_of_a_request(named):
    """The two others may be of any board."""
    requests = (wants(name="a", count=1), wants(name="b", count=2))
    constraint = DeviceConstraint((named, "b"), "x.com/board")
    alternative = replace(requests[0].alternatives[0], name="large")
    first = replace(requests[0], alternatives=(alternative,))
    claim = PodResourceClaim("gpu", template="gpu")
    claimed = template(first, requests[1], constraints=[constraint])
    there = on_boards("there", "aabbb")
    assert len(plan_on(there, *claiming(1, "1", (claim,)), claimed).placements) == 1
    assert not plan_on(on_boards("there", "aabb"), *claiming(1, "1", (claim,)), claimed).placements


def test_access_for_administration_needs_a_device_on_the_node():
    admin = one(device_class=DRIVER, admin=True)
    there = [gpu_node("there"), *slices_of("there", Device("a"))]
    elsewhere = gpu_node("elsewhere")
    plan = plan_on([*there, elsewhere], *waiting(3, admin))
    assert set(plan.placements.values()) == {"there"}


SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@settings(deadline=None)
@given(st.lists(st.integers(0, 24), min_size=1, max_size=4), SIZES, st.lists(st.integers(0, 3), max_size=40))
def test_claims_of_several_sizes_are_promised_what_each_finds_in_any_order(parts, sizes, order):
    room, left = common_room(parts, set(sizes)), list(parts)
    for at in order:
        size = sizes[at % len(sizes)]
        if size > max(parts) or size > room:
            continue
        place = next((number for number, part in enumerate(left) if part >= size), None)
        assert place is not None
        left[place] -= size
        room -= size


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 5))
def test_nothing_is_lost_where_all_claims_are_of_one_size(size, part, number):
    assert common_room([part] * number, {size}) // size == part // size * number


def allocated_in_order(things, claims):
    """How many of some claims kube-scheduler's search finds devices for on a node, one after the other."""
    slices = sorted((each for each in things if isinstance(each, ResourceSlice)), key=lambda each: each.name)
    place = pool_place(slices, {each.name: each.devices for each in slices}, Held())
    allocator = Allocator(place)
    return [
        allocator.allocate([claimed], combinations([claimed], {DRIVER: CLASS})[0]) is not None
        for claimed in claims
    ]


MIXED = st.lists(
    st.tuples(st.integers(1, 8), st.sampled_from([3, 5, 8, 10, 13, 20, 40])), min_size=1, max_size=3
)


@settings(deadline=None)
@given(MIXED, st.integers(1, 4), st.randoms())
def test_what_is_planned_on_a_node_is_allocated_there_whatever_comes_first(groups, number, chance):
    there = [gpu_node("there"), *slices_of("there", *(shared_device(f"d{at}") for at in range(number)))]
    things, asked = [], {}
    for at, (count, gibibytes) in enumerate(groups):
        things += waiting(count, wants(gibibytes), name=f"app{at}")
        asked |= {f"default/app{at}-{pod}": ClaimedDevices((wants(gibibytes),)) for pod in range(count)}
    plan = plan_on(there, *things)
    order = sorted(plan.placements)
    chance.shuffle(order)
    assert all(allocated_in_order(there, [asked[key] for key in order]))
    if len({gibibytes for _, gibibytes in groups}) == 1:
        everyone = allocated_in_order(there, list(asked.values()))
        assert len(plan.placements) == everyone.count(True)


@pytest.mark.parametrize("term", [NodeSelectorTerm((needs(HOSTNAME, "In", "there"),))])
def test_pods_that_share_a_claim_share_its_part_of_a_device(term):
    shared = PodResourceClaim("gpu", claim="shared")
    claim = ResourceClaim("default", "shared", ClaimedDevices((wants(30),)))
    there = [gpu_node("there"), *slices_of("there", shared_device("a"))]
    plan = plan_on(there, *claiming(3, "100m", (shared,)), claim, *waiting(2, wants(10)))
    assert len(plan.placements) == 3 + 1
