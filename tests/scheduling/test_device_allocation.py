"""The search for devices follows kube-scheduler's (Kubernetes 1.36, `structured/internal/incubating`)."""

from dataclasses import replace

import pytest

from nodeless.model.devices import (
    AllocatedDevice,
    ClaimedDevices,
    CounterSet,
    Device,
    DeviceAlternative,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceSlice,
)
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling.devices.allocation import MOST_OFTEN, Allocator, ClaimError, how_often
from nodeless.scheduling.devices.groups import Held, pool_place
from nodeless.scheduling.devices.selections import combinations

DRIVER = "d.com"
CLASSES = {DRIVER: DeviceClass(DRIVER)}


def device(name, multiple=False, consumes=None, memory=None, **attributes):
    return Device(
        name,
        tuple(DeviceAttribute(f"{DRIVER}/{key}", integer=value) for key, value in sorted(attributes.items())),
        ((f"{DRIVER}/memory", memory),) if memory is not None else (),
        multiple=multiple,
        unqualified=(f"{DRIVER}/memory",),
        consumes=(CounterSet("set", (("c", consumes),)),) if consumes else (),
    )


def place_of(*devices, counters=0, held=()):
    sets = (CounterSet("set", (("c", counters),)),) if counters else ()
    made = ResourceSlice("s", DRIVER, "p", devices=devices, counter_sets=sets)
    taken = Held()
    taken.add((AllocatedDevice(DRIVER, "p", name) for name in held), ())
    return pool_place([made], {"s": devices}, taken)


def request(name="r", *selectors, count=1, **fields):
    return DeviceRequest(name, (DeviceAlternative("", DRIVER, selectors, count, **fields),))


def claim(*requests, **constraint):
    constraints = (DeviceConstraint(**constraint),) if constraint else ()
    return ClaimedDevices(requests, constraints)


def attribute(name, value):
    return f"'{name}' in device.attributes['{DRIVER}'] && device.attributes['{DRIVER}'].{name} == {value}"


def often(place, claimed):
    return how_often(place, [claimed], combinations([claimed], CLASSES)[0])


def test_it_comes_back_where_a_first_choice_leaves_nothing_for_what_follows():
    place = place_of(device("a", x=1, y=1), device("b", x=1))
    claimed = claim(request("any", attribute("x", 1)), request("special", attribute("y", 1)))
    picks = Allocator(place).allocate([claimed], combinations([claimed], CLASSES)[0])
    assert [pick.group for pick in picks] == [1, 0]


def test_all_devices_means_those_that_others_have_too():
    place = place_of(device("a"), device("b"))
    assert often(place, claim(request(count=None))) == 1
    assert often(place_of(device("a"), device("b"), held=["a"]), claim(request(count=None))) == 0


def test_a_request_takes_a_shared_device_once_and_another_request_takes_it_again():
    place = place_of(device("a", multiple=True, memory=10))
    part = (("memory", 2),)
    assert often(place, claim(request(count=2, capacity=part))) == 0
    assert often(place, claim(request("a", capacity=part), request("b", capacity=part))) == 2


def test_a_device_without_capacity_is_shared_without_limit():
    assert often(place_of(device("a", multiple=True)), claim(request())) == MOST_OFTEN


def test_a_shared_device_takes_its_counters_once():
    place = place_of(device("a", multiple=True, consumes=3, memory=10), device("b", consumes=3), counters=5)
    claimed = claim(request(capacity=(("memory", 5),)))
    assert often(place, claimed) == 2
    exclusive = claim(request("r", "!device.allowMultipleAllocations"))
    allocator = Allocator(place)
    assert allocator.allocate([claimed], combinations([claimed], CLASSES)[0])
    assert allocator.allocate([exclusive], combinations([exclusive], CLASSES)[0]) is None


def test_what_is_given_back_leaves_no_trace():
    """The first request tries the shared device, for which the second then finds no other."""
    place = place_of(
        device("a", multiple=True, consumes=3, memory=10, x=1), device("b", consumes=2, x=2), counters=5
    )
    claimed = claim(request("any"), request("one", attribute("x", 1)), distinct_attribute=f"{DRIVER}/x")
    assert often(place, claimed) == 1


@pytest.mark.parametrize(("count", "fits"), [(32, 1), (33, 0)])
def test_a_claim_has_no_more_devices_than_the_api_allows(count, fits):
    assert often(place_of(*(device(f"d{at}") for at in range(40))), claim(request(count=count))) == fits


def test_a_device_without_the_attribute_is_under_no_constraint_on_it():
    place = place_of(device("a"), device("b"))
    for kind in ("match_attribute", "distinct_attribute"):
        assert often(place, claim(request(), **{kind: f"{DRIVER}/x"})) == 0


def test_a_search_that_takes_too_long_finds_nothing():
    """Pairs of which none is one of three: every choice of devices fails at its last one."""
    place = place_of(*(device(f"d{at}", x=at // 2, y=at) for at in range(60)))
    claimed = claim(request("a", count=3), match_attribute=f"{DRIVER}/x")
    assert often(place, claimed) == 0
    endless = ClaimedDevices(
        (request("a", count=12), request("b", attribute("y", 99))),
        (DeviceConstraint((), f"{DRIVER}/z"),),
    )
    wide = place_of(*(device(f"d{at}", y=99 if at == 59 else at, z=1 if at < 59 else 2) for at in range(60)))
    assert often(wide, endless) == 0


def test_access_for_administration_takes_nothing_of_what_others_have():
    place = place_of(device("a"), held=["a"])
    assert often(place, claim(request(admin=True))) == MOST_OFTEN
    assert often(place, claim(request(admin=True, count=2))) == 0


def test_places_that_differ_in_identifiers_alone_are_one():
    slices = ResourceSlice("s", DRIVER, "p", devices=(device("a"), device("b")))
    other = replace(slices, pool="q", devices=(device("c"), device("d")))
    places = {pool_place([one], {"s": one.devices}, Held()) for one in (slices, other)}
    assert len(places) == 1


def test_all_devices_means_those_with_a_taint_too():
    """One that is not tolerated leaves the request without any; the others do not make up for it."""
    sick = replace(device("b"), taints=(Taint("sick", "NoSchedule"),))
    place = place_of(device("a"), sick)
    assert often(place, claim(request(count=None))) == 0
    assert often(place, claim(request(count=None, tolerations=(Toleration("sick", "Exists"),)))) == 1
    assert often(place_of(device("a"), device("b")), claim(request(count=None))) == 1


def test_all_devices_means_those_that_have_room():
    place = place_of(device("a", multiple=True, memory=2), device("b", multiple=True, memory=4))
    assert often(place, claim(request(count=None, capacity=(("memory", 2),)))) == 2


def test_a_constraint_that_one_of_all_devices_breaks_ends_the_claim():
    """Whatever other alternative the request has."""
    either = DeviceRequest(
        "r", (DeviceAlternative("all", DRIVER, (), None), DeviceAlternative("one", DRIVER, (), 1))
    )
    claimed = ClaimedDevices((either,), (DeviceConstraint((), f"{DRIVER}/x"),))
    ways = combinations([claimed], CLASSES)
    with pytest.raises(ClaimError):
        Allocator(place_of(device("a", x=1), device("b", x=2))).allocate([claimed], ways[0])
    alike = Allocator(place_of(device("a", x=1), device("b", x=1)))
    assert len(alike.allocate([claimed], ways[0])) == 2


def test_access_for_administration_takes_capacity_for_as_long_as_its_claim_is_looked_at():
    place = place_of(device("a", multiple=True, memory=4))
    part = (("memory", 3),)
    both = claim(request("admin", admin=True, capacity=part), request("own", capacity=part))
    assert often(place, both) == 0
    small = claim(request("admin", admin=True, capacity=(("memory", 1),)), request("own", capacity=part))
    assert often(place, small) == 1
