"""Pods that claim devices get nodes that have them, as many and such as their claims ask for."""

from collections import Counter, UserDict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from nodeless.model.devices import (
    AllocatedDevice,
    Allocation,
    ClaimedDevices,
    Device,
    DeviceAlternative,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from nodeless.model.labels import (
    HOSTNAME,
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MEMORY,
    INSTANCE_GPU_NAME,
    INSTANCE_TYPE,
    NODE_NAME,
    PROVISIONER_NAME,
    ZONE,
    ZONE_ID,
)
from nodeless.model.pods import NodeSelectorTerm, PodResourceClaim
from nodeless.model.subnets import SubnetRoom
from nodeless.model.taints import Taint, Toleration
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.batch import settle_pods
from nodeless.scheduling.devices import Devices
from nodeless.scheduling.devices.known_devices import KNOWN_CLASSES, NEURON, NVIDIA
from nodeless.scheduling.pods.eligibility import to_place
from nodeless.scheduling.pods.volumes import Volumes
from tests.scheduling.factories import claim, instance_type, needs, node, pods, pool, running, snapshot

GPU = PodResourceClaim("gpu", template="gpu")


def gpu_type(name, gpu, mib, count, cpu=8, price=None):
    labels = [
        needs(INSTANCE_GPU_NAME, "In", gpu),
        needs(INSTANCE_GPU_MEMORY, "In", str(mib)),
        needs(INSTANCE_GPU_COUNT, "In", str(count)),
    ]
    return instance_type(name, cpu, 4 * cpu, labels=labels, price=price, **{"nvidia.com/gpu": str(count)})


PLAIN = instance_type("plain", 16, 64, price=0.1)
T4, T4_4 = (
    gpu_type("g4dn.2xlarge", "t4", 16384, 1, price=0.75),
    gpu_type("g4dn.12xlarge", "t4", 16384, 4, 48, 3.9),
)
A10, A10_4 = (
    gpu_type("g5.2xlarge", "a10g", 22888, 1, price=1.2),
    gpu_type("g5.12xlarge", "a10g", 22888, 4, 48, 5.7),
)
A100 = gpu_type("p4d.24xlarge", "a100", 40960, 8, 96, 32.8)
H100 = gpu_type("p5.48xlarge", "h100", 81920, 8, 192, 98.3)
TRN = instance_type(
    "trn1.2xlarge",
    8,
    32,
    labels=[
        needs(INSTANCE_ACCELERATOR_NAME, "In", "trainium"),
        needs(INSTANCE_ACCELERATOR_COUNT, "In", "1"),
    ],
    price=1.3,
)
TYPES = (PLAIN, T4, T4_4, A10, A10_4, A100, H100, TRN)


def memory(comparison):
    return f"device.capacity['{NVIDIA}'].memory.{comparison}"


def one(*selectors, count=1, device_class=NVIDIA, name="gpu", **fields):
    alternative = DeviceAlternative(name, device_class, selectors, count, **fields)
    return DeviceRequest(name, (alternative,))


def template(*requests, name="gpu", constraints=()):
    return ResourceClaimTemplate("default", name, ClaimedDevices(requests, tuple(constraints)))


def claiming(number, cpu="1", claims=(GPU,), **fields):
    return pods(number, cpu, resource_claims=claims, **fields)


def cluster(*things, classes=KNOWN_CLASSES):
    """A snapshot with objects of dynamic resource allocation among the things."""
    seen = snapshot(pool(), *things)
    flat = [each for thing in things for each in (thing if isinstance(thing, list) else [thing])]

    def of(kind, key):
        return Map({key(each): each for each in flat if isinstance(each, kind)})

    return replace(
        seen,
        resource_claims=of(ResourceClaim, lambda each: each.key),
        resource_claim_templates=of(ResourceClaimTemplate, lambda each: each.key),
        resource_slices=of(ResourceSlice, lambda each: each.name),
        device_classes=Map({each.name: each for each in classes}),
    )


def planned(*things, types=TYPES, packing=LOWEST_PRICE, **fields):
    seen = cluster(*things, **fields)
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(packing=packing))


def bought(plan):
    return sorted(new.instance_type for new in plan.new_nodes)


def only_reason(plan):
    (reason,) = {(refusal.code, refusal.message) for refusal in plan.refusals}
    assert not plan.new_nodes
    assert not plan.placements
    return reason


def published(on, count, *, driver=NVIDIA, pool_name="", generation=1, slices=1, taken=(), **attributes):
    """A slice with so many devices of a node; what is `taken` is allocated by a claim."""
    devices = tuple(
        Device(
            f"gpu-{number}",
            tuple(
                sorted(
                    [
                        DeviceAttribute(f"{driver}/type", string="gpu"),
                        DeviceAttribute(f"{driver}/uuid", string=f"{on}-{number}"),
                        *(
                            DeviceAttribute(f"{driver}/{key}", string=value)
                            for key, value in attributes.items()
                        ),
                    ]
                )
            ),
            ((f"{driver}/memory", 15360 * 2**20 * 1000),),
        )
        for number in range(count)
    )
    made = [ResourceSlice(f"{on}-{driver}", driver, pool_name or on, generation, slices, on, devices)]
    if taken:
        held = tuple(AllocatedDevice(driver, pool_name or on, f"gpu-{number}") for number in taken)
        there = NodeSelectorTerm((needs(HOSTNAME, "In", on),))
        made.append(ResourceClaim("default", f"held-{on}", ClaimedDevices(), Allocation(held, (there,))))
    return made


def gpu_node(name, kind=T4_4, *, own="default", **fields):
    labels = {
        PROVISIONER_NAME: own,
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
        ZONE: "z1",
        HOSTNAME: name,
        INSTANCE_TYPE: kind.name,
    }
    plugins = ("nvidia.com/gpu", "vpc.amazonaws.com/efa")
    fields.setdefault("allocatable", {k: v for k, v in kind.allocatable.items() if k not in plugins})
    return node(name, labels=labels, **fields)


@pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
@pytest.mark.parametrize(
    ("selector", "type_"),
    [
        (memory("compareTo(quantity('10Gi')) >= 0"), "g4dn.2xlarge"),
        (memory("isGreaterThan(quantity('16Gi'))"), "g5.2xlarge"),
        (memory("compareTo(quantity('24Gi')) >= 0"), "p4d.24xlarge"),
        (memory("isGreaterThan(quantity('40Gi'))"), "p5.48xlarge"),
        (f"device.attributes['{NVIDIA}'].architecture == 'Ampere'", "g5.2xlarge"),
        (f"device.attributes['{NVIDIA}'].productName.lowerAscii().matches('^.*a100.*$')", "p4d.24xlarge"),
        (
            f"device.attributes['{NVIDIA}'].cudaComputeCapability.compareTo(semver('9.0.0')) >= 0",
            "p5.48xlarge",
        ),
        (f"device.attributes['{NVIDIA}'].cudaComputeCapability.major() == 7", "g4dn.2xlarge"),
        (f"device.driver == '{NVIDIA}' && !('x.com' in device.attributes)", "g4dn.2xlarge"),
        ("!has(device.attributes['other.com'].name)", "g4dn.2xlarge"),
    ],
)
def test_a_node_is_bought_whose_devices_meet_the_selector(selector, type_, packing):
    """An A10G has 23,028 MiB for its driver: less than the 24 Gi that it is sold with."""
    sizes = (T4, A10, A100, H100, PLAIN, TRN)
    plan = planned(claiming(1), template(one(selector)), types=sizes, packing=packing)
    assert bought(plan) == [type_]
    assert all(not name.endswith("/devices") for name in plan.new_nodes[0].requests)


CAPABILITY = f"device.attributes['{NVIDIA}'].cudaComputeCapability"
NAME = f"device.attributes['{NVIDIA}'].productName"


@pytest.mark.parametrize(
    "selector",
    [
        f"{CAPABILITY} == semver('7.5.0+build.1')",
        f"{CAPABILITY} == semver('v7.05', true)",
        f"{CAPABILITY}.isLessThan(semver('8', true)) && isSemver('v8.0', true) && !isSemver('v8.0')",
        f"{NAME}.split(' ', 1) == ['Tesla T4'] && {NAME}.split(' ', 0) == [] && {NAME}.charAt(8) == ''",
        "'Ä'.lowerAscii() == 'Ä'",
    ],
)
def test_functions_of_expressions_are_those_of_kubernetes(selector):
    assert bought(planned(claiming(1), template(one(selector)), types=(PLAIN, T4))) == [T4.name]


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        (f"{NAME}.substring(99) == ''", "no characters 99 to"),
        (f"{NAME}.charAt(99) == ''", "no characters 99 to"),
        ("quantity('1500m').asInteger() == 1", "not a whole number"),
        ("semver('7.5') != semver('7.5.0')", "7.5 is not valid SemVer string"),
    ],
)
def test_an_expression_that_kubernetes_cannot_evaluate_is_met_by_nothing(selector, fault):
    code, message = only_reason(planned(claiming(1), template(one(selector)), types=(PLAIN, T4)))
    assert code == "NoDeviceFits"
    assert fault in message


def test_a_class_of_another_driver_is_met_by_its_devices():
    of_type = f"device.attributes['{NEURON}'].instanceType == 'trn1.2xlarge'"
    for selectors in ((), (of_type,)):
        plan = planned(claiming(1), template(one(*selectors, device_class=NEURON)))
        assert bought(plan) == ["trn1.2xlarge"]


@pytest.mark.parametrize(("number", "each", "nodes"), [(8, 1, 2), (4, 2, 2), (2, 3, 2), (9, 1, 3), (1, 4, 1)])
def test_no_node_is_given_more_claims_than_it_has_devices(number, each, nodes):
    plan = planned(claiming(number, "100m"), template(one(count=each)), types=(PLAIN, T4_4))
    assert bought(plan) == ["g4dn.12xlarge"] * nodes
    assert max(len(new.pods) for new in plan.new_nodes) <= 4 // each


def test_claims_of_one_pod_are_met_together():
    """Three devices at once, in two claims and three requests."""
    two = PodResourceClaim("two", template="two")
    plan = planned(
        claiming(1, claims=(GPU, two)),
        template(one()),
        template(one(name="a"), one(name="b"), name="two"),
    )
    assert bought(plan) == ["g4dn.12xlarge"]


def test_pods_without_claims_go_where_they_went():
    plan = planned(claiming(1), pods(3, name="plain"), template(one()), types=(PLAIN, T4))
    assert bought(plan) in (["g4dn.2xlarge"], ["g4dn.2xlarge", "plain"])
    assert not plan.refusals


@pytest.mark.parametrize("taken", [(), (1,), (0, 3), (0, 1, 2, 3)])
def test_devices_that_a_node_publishes_and_no_claim_holds_are_used_first(taken):
    there = [gpu_node("there"), *published("there", 4, taken=taken)]
    plan = planned(claiming(4, "100m"), template(one()), there, types=(PLAIN, T4))
    assert len(plan.placements) == 4 - len(taken)
    assert bought(plan) == ["g4dn.2xlarge"] * len(taken)


@pytest.mark.parametrize(("slices", "places"), [(1, 1), (2, 4)])
def test_slices_count_once_all_of_their_pool_are_there(slices, places):
    """Until then the node counts as one that has not published its devices yet."""
    there = [gpu_node("there"), *published("there", 1, slices=slices)]
    plan = planned(claiming(4, "100m"), template(one()), there)
    assert len(plan.placements) == places


def test_a_node_that_publishes_no_device_has_none():
    plan = planned(claiming(1, "100m"), template(one()), gpu_node("there"), published("there", 0))
    assert bought(plan) == ["g4dn.2xlarge"]


@pytest.mark.parametrize(("number", "nodes"), [(0, 0), (3, 2)])
def test_what_did_not_come_with_a_node_is_not_bought_again(number, nodes):
    """A node was planned with four devices, and its driver publishes fewer, or none at all."""
    there = [gpu_node("there"), *published("there", number)]
    whole = planned(claiming(2, "100m"), template(one(count=4)), there, types=(PLAIN, T4_4))
    assert not whole.new_nodes
    assert {refusal.code for refusal in whole.refusals} == {"NoDeviceFits"}
    each = planned(claiming(number + 4, "100m"), template(one()), there, types=(PLAIN, T4_4))
    assert len(each.placements) == number
    assert bought(each) == ["g4dn.12xlarge"] * nodes


def test_devices_that_are_gone_before_the_pod_comes_are_not_counted_on():
    """The slice is deleted with its driver: the node is one that has not published yet."""
    there = gpu_node("there")
    before = planned(claiming(4, "100m"), template(one()), there, published("there", 4))
    taken_away = planned(claiming(4, "100m"), template(one()), there, published("there", 1))
    assert (len(before.placements), len(taken_away.placements)) == (4, 1)


@pytest.mark.parametrize(("slices", "fit"), [(2, {"a": 2, "b": 3}), (3, {})])
def test_a_pool_may_have_devices_of_many_nodes(slices, fit):
    """Names tell the devices of each node apart, as for kube-scheduler; and all slices have to be there."""
    made = [published(name, number, pool_name="all", slices=slices) for name, number in (("a", 2), ("b", 3))]
    nodes = [gpu_node(name) for name in ("a", "b")]
    plan = planned(claiming(9, "100m"), template(one()), nodes, *made, types=(PLAIN,))
    assert Counter(plan.placements.values()) == fit


def test_the_newest_generation_of_a_pool_counts():
    (old,), (new,) = published("there", 4, generation=1), published("there", 1, generation=2)
    there = [gpu_node("there"), replace(old, name="old"), new]
    plan = planned(claiming(2, "100m"), template(one()), there, types=(PLAIN, A10))
    assert len(plan.placements) == 1
    assert bought(plan) == ["g5.2xlarge"]


def test_a_node_that_has_not_published_its_devices_yet_is_not_bought_again():
    plan = planned(claiming(4, "100m"), template(one()), gpu_node("booting"))
    assert set(plan.placements.values()) == {"booting"}
    assert not plan.new_nodes


def test_a_claim_in_flight_has_the_devices_of_what_it_may_become():
    launched = claim(
        "c",
        T4_4.name,
        provider_id="aws:///z1/i-c",
        labels={INSTANCE_TYPE: T4_4.name},
        allocatable=T4_4.allocatable,
    )
    for there in (claim("c", T4_4.name), launched):
        plan = planned(claiming(5, "100m"), template(one()), there, types=(PLAIN, T4, T4_4))
        assert len(plan.placements) == 4
        assert bought(plan) == ["g4dn.2xlarge"]


def test_where_a_device_plugin_announces_the_devices_no_claim_is_met():
    """Nor on new nodes of its pool: another would be bought in every pass."""
    plugged = gpu_node("plugged", allocatable=T4_4.allocatable)
    waiting = [claiming(1, "100m"), template(one())]
    plan = planned(waiting[0], waiting[1], plugged)
    assert not plan.new_nodes
    assert not plan.placements
    (refusal,) = plan.refusals
    assert "karpenter.sh/provisioner-name NotIn [default]" in str(refusal)
    plan = planned(waiting[0], waiting[1], plugged, pool("other"))
    assert [new.pool.name for new in plan.new_nodes] == ["other"]


def test_what_nodes_of_a_type_publish_counts_for_the_type():
    """No driver's version is known before there is a node."""
    selector = f"device.attributes['{NVIDIA}'].driverVersion == '580.1.2'"
    code, message = only_reason(planned(claiming(1), template(one(selector))))
    assert code == "NoDeviceFits"
    assert "driverVersion" in message
    full = [gpu_node("there"), *published("there", 4, taken=range(4), driverVersion="580.1.2")]
    assert bought(planned(claiming(1), template(one(selector)), full)) == ["g4dn.12xlarge"]
    identified = f"device.attributes['{NVIDIA}'].uuid == 'there-0'"
    assert not planned(claiming(1), template(one(identified)), full).new_nodes


@pytest.mark.parametrize(("sold", "type_"), [(True, "p5.48xlarge"), (False, "p4d.24xlarge")])
def test_the_first_alternative_that_can_be_had_counts(sold, type_):
    first = DeviceAlternative("large", NVIDIA, (memory("isGreaterThan(quantity('70Gi'))"),), 1)
    second = DeviceAlternative("two", NVIDIA, (memory("isGreaterThan(quantity('30Gi'))"),), 2)
    offers = H100.offerings if sold else tuple(replace(each, available=False) for each in H100.offerings)
    types = (PLAIN, T4, A100, replace(H100, offerings=offers))
    plan = planned(claiming(1), template(DeviceRequest("gpu", (first, second))), types=types)
    assert bought(plan) == [type_]


def product(name):
    return f"device.attributes['{NVIDIA}'].productName == '{name}'"


def first_available(*alternatives, name="gpu"):
    """A request for the first of some alternatives: the selector and number of each."""
    made = (
        DeviceAlternative(f"alternative-{number}", NVIDIA, (selector,), count)
        for number, (selector, count) in enumerate(alternatives)
    )
    return DeviceRequest(name, tuple(made))


AN_A100, A_T4 = (product("NVIDIA A100-SXM4-40GB"), 1), (product("Tesla T4"), 1)


def test_several_requests_may_have_many_alternatives_each():
    """The last of eight is to be had, of each of four requests: 4,096 choices."""
    unknown = [(product(f"NVIDIA X{number}"), 1) for number in range(7)]
    requests = [first_available(*unknown, A_T4, name=f"gpu-{number}") for number in range(4)]
    assert bought(planned(claiming(1), template(*requests))) == [T4_4.name]


@pytest.mark.parametrize("types", [(T4, A100), (A100, T4)])
@pytest.mark.parametrize(
    ("pinned", "type_"),
    [(None, A100.name), (A100.name, A100.name), (T4.name, T4.name)],
)
def test_alternatives_of_as_many_devices_are_told_apart(types, pinned, type_):
    selector = {INSTANCE_TYPE: pinned} if pinned else {}
    claims = template(first_available(AN_A100, A_T4))
    plan = planned(claiming(1, selector=selector), claims, types=types)
    assert bought(plan) == [type_]


@pytest.mark.parametrize(
    "own", [needs(INSTANCE_TYPE, "In", T4_4.name), needs(INSTANCE_TYPE, "NotIn", A100.name, T4.name)]
)
@pytest.mark.parametrize("request_", [first_available(AN_A100, (A_T4[0], 2)), one(count=None)])
def test_devices_that_no_pool_of_the_pod_sells_are_not_asked_for(own, request_):
    """The pool has requirements of its own: types that it does not buy are no alternative."""
    limited = pool("default", own)
    types = (PLAIN, T4, A100, T4_4)
    assert bought(planned(claiming(1), limited, template(request_), types=types)) == [T4_4.name]


@pytest.mark.parametrize(
    "closed",
    [
        {"taints": (Taint("dedicated", "NoSchedule", "research"),)},
        {"replicas": 0},
        {"deletion_timestamp": 1.0},
    ],
)
def test_devices_of_a_pool_that_makes_no_node_for_the_pod_are_not_asked_for(closed):
    seen = cluster(pool("research", **closed), claiming(1), template(first_available(AN_A100, (A_T4[0], 2))))
    sold = {key: (A100,) if "research" in key else (PLAIN, T4_4) for key in seen.pools}
    assert bought(solve(seen, sold, Policy(packing=LOWEST_PRICE))) == [T4_4.name]


def test_devices_that_are_sold_only_where_the_pod_may_not_be_are_not_asked_for():
    elsewhere = replace(A100, offerings=tuple(replace(each, zone="z2") for each in A100.offerings))
    claims = template(first_available(AN_A100, (A_T4[0], 2)))
    pod = claiming(1, selector={ZONE: "z1"})
    assert bought(planned(pod, claims, types=(elsewhere, T4_4))) == [T4_4.name]


@pytest.mark.parametrize(("taken", "type_"), [(range(8), [T4_4.name]), (range(7), [])])
def test_an_alternative_that_only_a_full_node_has_is_not_waited_for(taken, type_):
    there = [
        gpu_node("there", A100),
        *published("there", 8, taken=taken, productName="NVIDIA A100-SXM4-40GB"),
    ]
    claims = template(first_available(AN_A100, (A_T4[0], 2)))
    assert bought(planned(claiming(1), claims, there, types=(PLAIN, T4_4))) == type_


def test_all_devices_of_a_node_go_to_one_pod():
    plan = planned(claiming(2, "100m"), template(one(count=None)), types=(PLAIN, T4_4, A100))
    assert bought(plan) == ["g4dn.12xlarge"] * 2


def test_access_for_administration_takes_no_device():
    there = [gpu_node("there"), *published("there", 1, taken=(0,))]
    plan = planned(claiming(3, "100m"), template(one(admin=True)), there, types=(PLAIN,))
    assert set(plan.placements.values()) == {"there"}


@pytest.mark.parametrize("allocation", [None, Allocation()])
def test_a_claim_that_is_being_deleted_is_not_planned_with(allocation):
    """kube-scheduler lets the pod wait, also where the claim is allocated."""
    going = ResourceClaim("default", "mine", ClaimedDevices((one(),)), allocation, deletion_timestamp=5.0)
    pod = claiming(1, claims=(PodResourceClaim("gpu", claim="mine"),))
    code, message = only_reason(planned(pod, going))
    assert code == "ResourceClaimNotFound"
    assert "default/mine is being deleted" in message


def test_a_claim_of_a_template_that_is_being_deleted_is_made_anew():
    there = Allocation(terms=(NodeSelectorTerm((needs(HOSTNAME, "In", "gone"),)),))
    going = ResourceClaim("default", "web-gpu", ClaimedDevices((one(),)), there, deletion_timestamp=5.0)
    (pod,) = claiming(1)
    plan = planned([replace(pod, generated_claims=(("gpu", "web-gpu"),))], going, template(one()))
    assert bought(plan) == [T4.name]


@pytest.mark.parametrize(
    ("requests", "fit"),
    [
        ((one(admin=True, name="a"), one(admin=True, name="b")), 0),
        ((one(admin=True, name="a"), one(name="b")), 0),
        ((one(name="a"), one(admin=True, name="b")), 0),
        ((one(admin=True),), 1),
    ],
)
def test_a_device_serves_one_request_of_a_claim(requests, fit):
    """Also where it is for administration; there is one device."""
    there = [gpu_node("there"), *published("there", 1)]
    plan = planned(claiming(1), template(*requests), there, types=(PLAIN,))
    assert len(plan.placements) == fit


@pytest.mark.parametrize(("own_first", "fit"), [(True, 1), (False, 0)])
def test_another_claim_may_look_at_a_device_but_not_have_what_is_looked_at(own_first, fit):
    there = [gpu_node("there"), *published("there", 1)]
    names = ("own", "admin") if own_first else ("admin", "own")
    claims = tuple(PodResourceClaim(f"{at}", template=name) for at, name in enumerate(names))
    made = template(one(), name="own"), template(one(admin=True), name="admin")
    assert len(planned(claiming(1, claims=claims), *made, there, types=(PLAIN,)).placements) == fit


SMALL, LARGE = product("small"), product("large")


def mixed_node(name="there", small=4, large=1):
    """Devices of two kinds, as GPUs that are split for good."""
    (slice_,) = published(name, small, productName="small")
    (other,) = published(name, large, productName="large", pool_name=f"{name}-large")
    return [gpu_node(name), slice_, replace(other, name=f"{name}-large")]


def test_a_claim_for_devices_of_several_kinds_is_met_by_a_node_that_has_them():
    """Fewer than the claim asks for in all are of the rarest kind."""
    requests = one(SMALL, count=2, name="small"), one(LARGE, name="large")
    plan = planned(claiming(2), template(*requests), mixed_node(), types=(PLAIN,))
    assert list(plan.placements.values()) == ["there"]
    plan = planned(claiming(2), template(*requests), mixed_node(), mixed_node("full"), types=(PLAIN,))
    assert set(plan.placements.values()) == {"there", "full"}


def test_an_earlier_claim_leaves_a_later_one_of_the_pod_the_devices_that_it_needs():
    claims = PodResourceClaim("any", template="any"), PodResourceClaim("small", template="small")
    made = template(one(), name="any"), template(one(SMALL, count=4), name="small")
    plan = planned(claiming(1, claims=claims), *made, mixed_node(), types=(PLAIN,))
    assert set(plan.placements.values()) == {"there"}


@pytest.mark.parametrize(("count", "fit"), [(32, 1), (33, 0), (None, 0)])
def test_a_claim_gets_no_more_devices_than_the_api_allows(count, fit):
    there = [gpu_node("there"), *published("there", 33)]
    assert len(planned(claiming(1), template(one(count=count)), there, types=(PLAIN,)).placements) == fit


@pytest.mark.parametrize("state", [{"unschedulable": False}, {"deletion_timestamp": 1.0}])
def test_who_shares_a_claim_with_pods_that_are_not_planned_gets_its_devices(state):
    shared = ResourceClaim("default", "shared", ClaimedDevices((one(),)))
    first, *others = claiming(3, "100m", claims=(PodResourceClaim("gpu", claim="shared"),))
    assert bought(planned([replace(first, **state), *others], shared, types=(PLAIN, T4))) == [T4.name]


def test_who_shares_a_claim_with_a_pod_that_is_refused_gets_its_devices():
    shared = ResourceClaim("default", "shared", ClaimedDevices((one(),)))
    named = PodResourceClaim("gpu", claim="shared")
    refused = claiming(1, claims=(named, PodResourceClaim("other", claim="missing")), name="a")
    plan = planned(refused, claiming(2, "100m", claims=(named,), name="b"), shared, types=(PLAIN, T4))
    assert bought(plan) == [T4.name]
    assert [refusal.pod for refusal in plan.refusals] == ["default/a-0"]


def test_pods_that_move_share_their_claim_on_the_new_node():
    ending = gpu_node("ending", T4, taints=(Taint("karpenter.sh/disrupted", "NoSchedule"),))
    held = ResourceClaim(
        "default",
        "shared",
        ClaimedDevices((one(),)),
        Allocation(
            (AllocatedDevice(NVIDIA, "ending", "gpu-0"),),
            (NodeSelectorTerm((needs(HOSTNAME, "In", "ending"),)),),
        ),
    )
    claims = (PodResourceClaim("gpu", claim="shared"),)
    moving = [running(each, "ending") for each in claiming(2, "100m", claims=claims)]
    plan = planned(moving, held, ending, published("ending", 1), types=(PLAIN, T4))
    assert bought(plan) == [T4.name]
    stays = running(claiming(1, "100m", claims=claims, name="stays")[0], "staying")
    plan = planned(moving, stays, held, ending, gpu_node("staying", T4), published("ending", 1), types=(T4,))
    assert not plan.new_nodes


def test_pods_that_share_a_claim_share_a_node_and_its_devices():
    shared = PodResourceClaim("gpu", claim="shared")
    wanted = ResourceClaim("default", "shared", ClaimedDevices((one(count=4),)))
    others = claiming(2, "100m", name="own")
    plan = planned(claiming(5, "3", (shared,)), others, wanted, template(one()))
    where = {key: number for number, new in enumerate(plan.new_nodes) for key in new.pods}
    assert len(where) == 7
    assert len({where[f"default/web-{number}"] for number in range(5)}) == 1
    assert {where[f"default/own-{number}"] for number in range(2)}.isdisjoint({where["default/web-0"]})


BY_LABEL = NodeSelectorTerm((needs(HOSTNAME, "In", "there"),))
#: As kube-scheduler writes it for devices in a node.
BY_NAME = NodeSelectorTerm((), match_fields=True, fields=(needs(NODE_NAME, "In", "there"),))


@pytest.mark.parametrize("term", [BY_LABEL, BY_NAME], ids=["label", "name"])
@pytest.mark.parametrize("room", [True, False])
def test_a_claim_that_is_allocated_names_the_node_of_its_pods(room, term):
    there = gpu_node("there", allocatable={"cpu": 4000 if room else 500, "memory": 2**34, "pods": 9})
    allocation = Allocation((AllocatedDevice(NVIDIA, "there", "gpu-0"),), (term,))
    wanted = ResourceClaim("default", "shared", ClaimedDevices((one(),)), allocation)
    waiting = claiming(1, "1", (PodResourceClaim("gpu", claim="shared"),))
    plan = planned(waiting, wanted, there, published("there", 1))
    assert plan.placements == ({"default/web-0": "there"} if room else {})
    assert not plan.new_nodes


def test_a_claim_that_is_allocated_in_a_zone_by_its_id_has_its_pods_there():
    """As of devices that a driver offers to all nodes of a zone."""
    term = NodeSelectorTerm((needs(ZONE_ID, "In", "use1-az6"),))
    held = Allocation((AllocatedDevice("fabric.example.com", "zone", "link-0"),), (term,))
    wanted = ResourceClaim("default", "shared", ClaimedDevices((one(),)), held)
    seen = cluster(claiming(1, "1", (PodResourceClaim("gpu", claim="shared"),)), wanted)
    subnets = tuple(
        SubnetRoom(f"subnet-{zone}", zone, 1000, zone_id)
        for zone, zone_id in (("z1", "use1-az4"), ("z2", "use1-az6"))
    )
    policy = Policy(packing=LOWEST_PRICE, subnets=dict.fromkeys(seen.pools, subnets))
    plan = solve(seen, dict.fromkeys(seen.pools, (PLAIN,)), policy)
    assert not plan.refusals
    (new,) = plan.new_nodes
    assert (new.requirements[ZONE].allows("z1"), new.requirements[ZONE].allows("z2")) == (False, True)


def test_claims_that_are_allocated_on_different_nodes_have_no_node_in_common():
    claims, made = [], []
    for name in ("a", "b"):
        term = NodeSelectorTerm((), match_fields=True, fields=(needs(NODE_NAME, "In", f"n-{name}"),))
        held = Allocation((AllocatedDevice(NVIDIA, f"n-{name}", "gpu-0"),), (term,))
        made += [ResourceClaim("default", name, ClaimedDevices((one(),)), held), gpu_node(f"n-{name}")]
        claims.append(PodResourceClaim(name, claim=name))
    code, message = only_reason(planned(claiming(1, "1", tuple(claims)), *made))
    assert code == "NoDeviceFits"
    assert "no node has all devices that the pod claims or requests: kubernetes.io/hostname" in message


def test_a_pod_that_moves_has_its_devices_allocated_anew():
    (waiting,) = claiming(1, "1")
    moving = replace(running(waiting, "gone"), generated_claims=(("gpu", "web-0-gpu-x"),), unschedulable=True)
    held = Allocation(
        (AllocatedDevice(NVIDIA, "gone", "gpu-0"),), (NodeSelectorTerm((needs(HOSTNAME, "In", "gone"),)),)
    )
    own = ResourceClaim("default", "web-0-gpu-x", ClaimedDevices((one(),)), held)
    leaving = gpu_node("gone", deletion_timestamp=1.0)
    plan = planned([moving], own, leaving, published("gone", 4), types=(PLAIN, T4))
    assert bought(plan) == ["g4dn.2xlarge"]


@pytest.mark.parametrize(("tolerated", "number"), [(True, 1), (False, 0)])
def test_a_device_with_a_taint_needs_a_toleration(tolerated, number):
    (slice_,) = published("there", 1)
    sick = tuple(replace(each, taints=(Taint("sick", "NoExecute"),)) for each in slice_.devices)
    tolerations = (Toleration("sick", "Exists"),) if tolerated else ()
    wanted = template(one(tolerations=tolerations))
    plan = planned(claiming(1), wanted, gpu_node("there"), replace(slice_, devices=sick), types=(PLAIN,))
    assert len(plan.placements) == number


def test_devices_must_have_an_attribute_in_common():
    """Two boards of two GPUs each: two pods of two, and none of three."""
    boards = [
        replace(
            slice_,
            devices=tuple(
                replace(
                    device,
                    attributes=(*device.attributes, DeviceAttribute("x.com/board", string=str(number // 2))),
                )
                for number, device in enumerate(slice_.devices)
            ),
        )
        for slice_ in published("there", 4)
    ]
    together = [DeviceConstraint((), "x.com/board")]
    there = [gpu_node("there"), *boards]
    two = planned(claiming(2, "1"), template(one(count=2), constraints=together), there, types=(PLAIN,))
    assert len(two.placements) == 2
    three = planned(claiming(1, "1"), template(one(count=3), constraints=together), there, types=(PLAIN,))
    assert only_reason(three)[0] == "NoDeviceFits"


@pytest.mark.parametrize(
    ("wanted", "fields", "code", "said"),
    [
        ([], {}, "ResourceClaimNotFound", "ResourceClaimTemplate default/gpu does not exist"),
        ([template(one())], {"classes": ()}, "DeviceClassNotFound", "DeviceClass gpu.nvidia.com"),
        (
            [template(one(memory("isGreaterThan(quantity('1Ti'))")))],
            {},
            "NoDeviceFits",
            "no known device meets device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('1Ti'))",
        ),
        ([template(one(count=99))], {}, "NoDeviceFits", "99 devices of one node, which has 8 at most"),
        (
            [template(one())],
            {"types": (PLAIN,)},
            "NoDeviceFits",
            "no instance type of any pool is known to have",
        ),
        (
            [template(one(), constraints=[DeviceConstraint((), "x.com/root")])],
            {},
            "NoDeviceFits",
            "the attribute x.com/root",
        ),
        (
            [template(one(capacity=(("memory", 2**40 * 1000),)))],
            {},
            "NoDeviceFits",
            "no known device has 1Ti of memory for one request",
        ),
        (
            [template(one(), constraints=[DeviceConstraint((), "", "x.com/root")])],
            {},
            "NoDeviceFits",
            "the attribute x.com/root",
        ),
        (
            [template(one(), constraints=[DeviceConstraint()])],
            {},
            "ResourceClaimsNotPlanned",
            "other than matchAttribute and distinctAttribute",
        ),
        ([template(one("device.nothing +"))], {}, "NoDeviceFits", "Syntax error"),
        ([template(one("device.driver"))], {}, "NoDeviceFits", "neither true nor false"),
        ([template(one(f"device.attributes['{NVIDIA}'].missing == 1"))], {}, "NoDeviceFits", "'missing'"),
        ([template(one("1 / 0 == 1"))], {}, "NoDeviceFits", "division by zero"),
        (
            [template(one(f"{list(range(300))}" + ".all(a, [1,2].all(b, [1].all(c, [2].all(d, true))))"))],
            {},
            "NoDeviceFits",
            "too many steps",
        ),
        ([template(one("true " + "&& true" * 2000))], {}, "NoDeviceFits", "longer than"),
        (
            [template(one("'a'" + ".replace('a', 'aaaaaaaaaa')" * 40 + " != ''"))],
            {},
            "NoDeviceFits",
            "becomes longer than",
        ),
        (
            [template(one("[1].map(a, device).exists(d, d.driver.matches('('))"))],
            {},
            "NoDeviceFits",
            "no known",
        ),
    ],
)
def test_a_refusal_says_what_no_node_has(wanted, fields, code, said):
    found = only_reason(planned(claiming(2), *wanted, **fields))
    assert found[0] == code
    assert said in found[1]


def test_where_the_pod_must_run_there_may_be_no_device():
    plan = planned(claiming(1, selector={INSTANCE_TYPE: "plain"}), template(one()))
    code, message = only_reason(plan)
    assert code == "NoDeviceFits"
    assert "no device that the pod claims or requests is where it must run" in message


def test_a_fault_in_one_claim_stays_with_its_pods():
    odd = PodResourceClaim("gpu", template="odd")
    plan = planned(
        claiming(2, claims=(odd,), name="odd"), claiming(2), template(one("1 +"), name="odd"), template(one())
    )
    assert [refusal.pod for refusal in plan.refusals] == ["default/odd-0", "default/odd-1"]
    assert sum(len(new.pods) for new in plan.new_nodes) == 2


REQUESTS = st.tuples(
    st.integers(1, 5),  # pods
    st.sampled_from([1, 1, 2, 3, 4, 8]),  # devices of each
    st.sampled_from([0, 14, 20, 30, 60, 90]),  # more GiB than these
    st.sampled_from(["100m", "2", "7"]),
)
GIB = {"t4": 15, "a10g": 22, "a100": 40, "h100": 79}


@settings(deadline=None)
@given(
    st.lists(REQUESTS, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([T4, T4_4]), st.integers(0, 4)), max_size=3),
    st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
)
def test_every_pod_has_its_devices_and_is_refused_only_where_no_type_has_them(groups, there, packing):
    waiting, wanted, asked = [], [], {}
    for number, (count, each, gib, cpu) in enumerate(groups):
        name = f"app{number}"
        waiting += claiming(count, cpu, (PodResourceClaim("gpu", template=name),), name=name)
        wanted.append(template(one(memory(f"isGreaterThan(quantity('{gib}Gi'))"), count=each), name=name))
        asked |= {f"default/{name}-{at}": (each, gib) for at in range(count)}
    nodes, free = [], {}
    for number, (kind, held) in enumerate(there):
        has = 4 if kind is T4_4 else 1
        name = f"n{number}"
        nodes += [gpu_node(name, kind), *published(name, has, taken=range(min(held, has)))]
        free[name] = has - min(held, has)
    types = (PLAIN, T4, T4_4, A10, A100, H100)
    plan = planned(*waiting, *wanted, *nodes, types=types, packing=packing)
    for name, number in free.items():
        mine = [asked[key] for key, place in plan.placements.items() if place == name]
        assert sum(each for each, _ in mine) <= number
        assert all(gib < 15 for _, gib in mine)
    for new in plan.new_nodes:
        for alternative in new.alternatives:
            kind = next(each for each in types if each.name == alternative.instance_type)
            gpu = next(iter(kind.requirements[INSTANCE_GPU_NAME].values))
            assert sum(asked[key][0] for key in new.pods) <= kind.capacity["nvidia.com/gpu"]
            assert all(asked[key][1] < GIB[gpu] for key in new.pods)
    for refusal in plan.refusals:
        each, gib = asked[refusal.pod]
        assert not any(
            each <= kind.capacity["nvidia.com/gpu"]
            and gib < GIB[next(iter(kind.requirements[INSTANCE_GPU_NAME].values))]
            for kind in types
            if "nvidia.com/gpu" in kind.capacity
        )
    assert len(plan.placements) + sum(len(new.pods) for new in plan.new_nodes) + len(plan.refusals) == len(
        asked
    )


def test_a_class_may_be_anybodys():
    """Of two drivers, the one whose nodes cost less."""
    plan = planned(
        claiming(1), template(one(device_class="any")), types=(T4, TRN), classes=(DeviceClass("any"),)
    )
    assert bought(plan) == ["g4dn.2xlarge"]


class UnreadCatalog(UserDict):
    """One in which nobody may look for the types of a pool."""

    def __getitem__(self, pool):
        raise AssertionError(f"the types of {pool} are looked at")


def test_where_nobody_claims_devices_no_type_is_looked_at():
    """Every solve begins with this, and consolidation makes hundreds of them."""
    seen = snapshot(pods(3, "1", "1Gi"), pool("default"))
    catalog = UnreadCatalog(dict.fromkeys(seen.pools))
    batch, refusals = settle_pods(Volumes(seen), Devices(seen, catalog), to_place(seen, 0.0))
    assert (sum(len(group.keys) for group in batch), refusals) == (3, [])
