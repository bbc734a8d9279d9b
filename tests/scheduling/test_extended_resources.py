"""Pods that request an extended resource which devices serve get nodes that announce it, or publish these."""

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
    DeviceAttribute,
    DeviceClass,
    NodeAccess,
    ResourceClaim,
    ResourceSlice,
)
from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE
from nodeless.model.pods import NodeSelectorTerm
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.devices import class_faults, served_on, serving_classes
from nodeless.scheduling.devices.known_devices import NEURON, NVIDIA
from tests.scheduling.factories import claim, needs, pods, pool, running
from tests.scheduling.test_devices import (
    A10,
    A100,
    PLAIN,
    T4,
    T4_4,
    TRN,
    bought,
    claiming,
    cluster,
    gpu_node,
    gpu_type,
    one,
    only_reason,
    published,
    template,
)
from tests.scheduling.test_devices import (
    planned as planned_with,
)

GPU = "nvidia.com/gpu"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{NVIDIA}"
CLASS = DeviceClass(
    NVIDIA, (f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'gpu'",), GPU
)


def classes(*some):
    return {each.name: each for each in some}


def test_of_classes_that_serve_one_resource_the_newest_counts_then_the_first_by_name():
    old, b, a = (
        DeviceClass("old", (), GPU, 1.0),
        DeviceClass("b", (), GPU, 2.0),
        DeviceClass("a", (), GPU, 2.0),
    )
    serving = serving_classes(cluster(classes=[old, b, a]))
    assert serving[GPU] is a
    assert serving[f"{IMPLICIT.rpartition('/')[0]}/old"] is old
    said = list(class_faults(classes(old, b, a)))
    assert [each.partition(" ")[2][:1] for each in said] == ["b", "o"]
    assert "DeviceClass old: spec.extendedResourceName nvidia.com/gpu is served by DeviceClass a" in said[1]
    assert "which is newer" in said[1]


@pytest.mark.parametrize(
    "name", ["gpu", "requests.nvidia.com/gpu", "x.kubernetes.io/gpu", "nvidia.com/g p", "/x"]
)
def test_a_class_whose_name_for_a_resource_is_none_serves_its_own_alone(name):
    odd = DeviceClass("odd", (), name)
    assert list(serving_classes(cluster(classes=[odd]))) == ["deviceclass.resource.kubernetes.io/odd"]
    (said,) = class_faults(classes(odd))
    assert f"DeviceClass odd: spec.extendedResourceName {name} " in said


@pytest.mark.parametrize(
    ("version", "named", "serves"), [((1, 36), "", True), ((1, 35), "", False), ((1, 35), GPU, True)]
)
def test_a_cluster_before_1_36_serves_resources_by_devices_where_its_classes_may_name_some(
    version, named, serves
):
    seen = cluster(classes=[replace(CLASS, extended_resource=named)])
    assert (IMPLICIT in serving_classes(replace(seen, server_version=version))) is serves


@pytest.mark.parametrize(
    ("slices", "class_", "served"),
    [
        (published("there", 1), CLASS, {GPU, IMPLICIT}),
        (published("there", 0), CLASS, set()),
        (published("there", 1, slices=2), CLASS, set()),
        (published("other", 1), CLASS, set()),
        (published("there", 1), replace(CLASS, selectors=("false",)), set()),
        (published("there", 1), replace(CLASS, selectors=("1 +",)), set()),
        (published("there", 1), replace(CLASS, extended_resource=""), {IMPLICIT}),
    ],
)
def test_a_node_serves_a_resource_once_all_slices_with_devices_of_its_class_are_there(slices, class_, served):
    seen = cluster(gpu_node("there"), gpu_node("other"), *slices, classes=[class_])
    assert served_on(seen, "there", [GPU, IMPLICIT, "cpu"]) == served


def planned(*things, class_=CLASS, **fields):
    return planned_with(*things, classes=[class_], **fields)


def asking(number, gpus=1, cpu="100m", resource=GPU, **fields):
    return pods(number, cpu, extra={resource: str(gpus)}, **fields)


def plugged(name="plugged", kind=T4_4, **fields):
    """A node whose device plugin announces its GPUs."""
    return gpu_node(name, kind, allocatable=kind.allocatable, **fields)


def placed(plan):
    names = list(plan.placements.values())
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize("taken", [(), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_a_node_without_a_device_plugin_serves_a_resource_by_devices_that_nobody_has(resource, taken):
    there = [gpu_node("there"), *published("there", 4, taken=taken)]
    plan = planned(asking(5, resource=resource), there, types=(PLAIN, T4))
    assert len(plan.placements) == 4 - len(taken)
    assert bought(plan) == ["g4dn.2xlarge"] * (1 + len(taken))


def test_a_node_that_announces_the_resource_serves_it_by_its_device_plugin():
    held = [running(pod, "plugged") for pod in asking(1, 3, name="held")]
    plan = planned(asking(2), plugged(), held, types=(PLAIN, T4))
    assert placed(plan) == {"plugged": 1}
    assert bought(plan) == ["g4dn.2xlarge"]


def test_nodes_of_both_kinds_are_used_together():
    there = [gpu_node("there", own="other"), *published("there", 4, taken=(0,)), plugged(), pool("other")]
    plan = planned(asking(8), *there, types=(PLAIN, T4))
    assert placed(plan) == {"there": 3, "plugged": 4}
    assert bought(plan) == ["g4dn.2xlarge"]


def test_a_node_of_nobodys_pool_that_announces_the_resource_is_used_for_it_and_for_no_claim():
    labels = {INSTANCE_TYPE: T4_4.name, HOSTNAME: "plugged"}
    foreign = replace(plugged(), labels=labels)
    plan = planned(asking(3), claiming(2, "100m", name="claiming"), template(one()), foreign, types=(T4,))
    assert placed(plan) == {"plugged": 3}
    assert bought(plan) == ["g4dn.2xlarge"] * 2


@pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])
def test_claims_and_requests_have_the_gpus_of_a_node_between_them(packing):
    """Five GPUs are wanted; a node has four, whoever gives them out."""
    wanted = [asking(3), claiming(2, "100m", name="claiming"), template(one())]
    plan = planned(*wanted, types=(T4_4,), packing=packing)
    assert bought(plan) == [T4_4.name] * 2
    there = [gpu_node("there"), *published("there", 4)]
    assert len(planned(*wanted, *there, types=(PLAIN,)).placements) == 4
    assert placed(planned(*wanted, gpu_node("booting"), types=(T4_4,))) == {"booting": 4}


def test_in_a_pool_of_device_plugins_requests_are_met_and_claims_are_not():
    wanted = [asking(5), claiming(1, "100m", name="claiming"), template(one())]
    plan = planned(*wanted, plugged(), types=(T4,))
    assert placed(plan) == {"plugged": 4}
    assert bought(plan) == ["g4dn.2xlarge"]
    assert [refusal.pod for refusal in plan.refusals] == ["default/claiming-0"]


def test_the_request_is_one_of_the_claim_where_the_type_has_the_resource():
    (new,) = planned(asking(2), types=(T4_4,)).new_nodes
    assert new.requests[GPU] == 2
    assert not any(name.endswith("/devices") for name in new.requests)


def test_a_resource_that_only_a_class_serves_is_had_by_its_devices():
    """No instance type announces it, so that it was refused."""
    chips = f"deviceclass.resource.kubernetes.io/{NEURON}"
    of_aws = DeviceClass(NEURON, (f"device.driver == '{NEURON}'",))
    (new,) = planned(asking(1, resource=chips), class_=of_aws, types=(PLAIN, T4, TRN)).new_nodes
    assert new.instance_type == TRN.name
    assert chips not in new.requests, "EC2 has no such thing"
    own = replace(CLASS, extended_resource="example.com/gpu")
    plan = planned(asking(5, resource="example.com/gpu"), class_=own, types=(PLAIN, T4_4))
    assert bought(plan) == [T4_4.name] * 2


def test_both_names_of_a_class_are_names_of_the_same_devices():
    plan = planned(asking(3), asking(2, resource=IMPLICIT, name="implicit"), types=(T4_4,))
    assert bought(plan) == [T4_4.name] * 2


def test_a_type_whose_devices_nobody_knows_is_had_by_its_device_plugin():
    old = gpu_type("p2.xlarge", "k80", 12288, 1, price=0.9)
    assert bought(planned(asking(1), types=(PLAIN, old))) == [old.name]
    assert bought(planned(asking(1), types=(PLAIN, old, T4))) == [T4.name]
    booting = gpu_node("booting", old, allocatable={"cpu": 8000, "memory": 2**34, "pods": 9})
    booting = replace(booting, labels={**booting.labels, "karpenter.sh/initialized": "false"})
    assert placed(planned(asking(1), booting, types=(PLAIN, old))) == {"booting": 1}


def test_devices_that_the_class_does_not_mean_serve_nothing():
    """Neither of a node to come, which would be bought in every pass, nor of one that is there."""
    ampere = replace(
        CLASS, selectors=(*CLASS.selectors, f"device.attributes['{NVIDIA}'].architecture == 'Ampere'")
    )
    there = [gpu_node("there"), *published("there", 4, architecture="Turing")]
    for kind in (gpu_node("booting"), *([there])):
        plan = planned(asking(1), kind, class_=ampere, types=(PLAIN, T4, A10))
        assert bought(plan) == [A10.name]
    code, message = only_reason(planned(asking(1), there, class_=ampere, types=(PLAIN, T4)))
    assert code == "NoDeviceFits"
    assert message.startswith("nvidia.com/gpu: no node announces it")
    assert f"DeviceClass {NVIDIA} serves it by devices: no known device meets" in message
    assert "architecture == 'Ampere'" in message
    # Where a device plugin announces them it is one of any kind.
    plan = planned(asking(5), plugged(), class_=ampere, types=(PLAIN, T4))
    assert (placed(plan), bought(plan)) == ({"plugged": 4}, [T4.name])


@pytest.mark.parametrize(
    ("selector", "said"), [("1 +", "Syntax error"), ("device.driver", "neither true nor false")]
)
def test_a_selector_that_fails_is_told_with_its_class_where_no_node_serves_the_resource(selector, said):
    broken = replace(CLASS, selectors=(selector,))
    message = only_reason(planned(asking(1), class_=broken, types=(PLAIN, T4)))[1]
    assert f"DeviceClass {NVIDIA} serves it by devices: no known device meets {selector}" in message
    assert said in message
    assert placed(planned(asking(1), plugged(), class_=broken, types=(PLAIN, T4))) == {"plugged": 1}


def test_what_running_pods_have_by_devices_is_neither_counted_twice_nor_leaves_a_node_in_debt():
    """Three of four are held: one is left for a request, and the rest of the node for anybody."""
    held = [running(pod, "there") for pod in asking(3, name="held")]
    there = [gpu_node("there"), *published("there", 4, taken=(0, 1, 2)), *held]
    plan = planned(asking(2), pods(3, "100m", name="plain"), *there, types=(T4,))
    assert placed(plan)["there"] >= 1
    assert sorted(key for key, name in plan.placements.items() if "web" in key) in (
        ["default/web-0"],
        ["default/web-1"],
    )
    assert bought(plan) == [T4.name]
    # Its driver, or its device plugin, starts anew, and has said nothing yet.
    gone = [gpu_node("there"), *held]
    plan = planned(asking(2), pods(1, "100m", name="plain"), *gone, types=(T4_4,))
    assert placed(plan) == {"there": 2}
    assert bought(plan) == [T4_4.name]
    gone = [gpu_node("there", replace(PLAIN, name="g4dn.12xlarge")), *held]
    plan = planned(asking(1), pods(1, "100m", name="plain"), *gone, types=(A10,))
    assert plan.placements["default/plain-0"] == "there"


@pytest.mark.parametrize("of_it", [True, False])
def test_a_pod_that_is_about_to_be_bound_has_its_devices(of_it):
    """kube-scheduler has allocated them, and the pod is bound a moment later."""
    (pod,) = asking(1)
    allocation = Allocation(
        (AllocatedDevice(NVIDIA, "there", "gpu-0"),), (NodeSelectorTerm((needs(HOSTNAME, "In", "there"),)),)
    )
    claimed = ClaimedDevices((one(),))
    uid = pod.uid if of_it else "another"
    own = ResourceClaim("default", "web-0-extended-resources-x", claimed, allocation, serves_pod=uid)
    plan = planned([pod], own, gpu_node("there", T4), published("there", 1), types=(T4,))
    assert placed(plan) == ({"there": 1} if of_it else {})
    assert bought(plan) == ([] if of_it else [T4.name])


def test_a_resource_may_be_served_by_devices_that_all_nodes_reach():
    fabric = DeviceClass("fabric", ("device.driver == 'fabric.com'",), "example.com/link")
    everywhere = ResourceSlice(
        "s", "fabric.com", "p", devices=(Device("a"), Device("b")), access=NodeAccess(every=True)
    )
    plan = planned(
        asking(3, resource="example.com/link"), everywhere, gpu_node("there"), class_=fabric, types=(PLAIN,)
    )
    assert placed(plan) == {"there": 2}
    (refusal,) = plan.refusals
    assert "are all allocated" in str(refusal)


def test_containers_have_their_devices_apart():
    """Of a GPU that is shared, a container with two takes two, two containers with one may take the same."""
    shared = Device("gpu-0", (DeviceAttribute(f"{NVIDIA}/type", string="gpu"),), multiple=True)
    there = [gpu_node("there"), ResourceSlice("s", NVIDIA, "there", node_name="there", devices=(shared,))]
    (apart,) = asking(1, 2, name="apart")
    apart = replace(apart, extended_parts=((GPU, (1, 1)),))
    plan = planned(asking(1, 2), [apart], *there, types=(PLAIN,))
    assert placed(plan) == {"there": 1}
    assert [refusal.pod for refusal in plan.refusals] == ["default/web-0"]


def test_a_class_that_serves_no_resource_by_name_changes_nothing():
    things = [asking(5), pods(3), plugged(kind=T4), gpu_node("there"), *published("there", 4)]
    without = replace(CLASS, extended_resource="")
    assert planned(*things, class_=without) == planned_with(*things, classes=())


REQUESTS = st.tuples(st.integers(1, 4), st.sampled_from([1, 1, 2, 4]), st.booleans())


@settings(deadline=None)
@given(
    st.lists(REQUESTS, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([T4, T4_4]), st.integers(0, 4), st.booleans()), max_size=3),
    st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
)
def test_no_node_is_given_more_than_it_has_of_gpus_however_they_are_asked_for(groups, there, packing):
    waiting, wanted, asked, nodes, free = [], [], {}, [], {}
    for number, (count, each, claims) in enumerate(groups):
        name = f"app{number}"
        if claims:
            own = replace(claiming(1)[0].shape.resource_claims[0], template=name)
            waiting += claiming(count, "100m", (own,), name=name)
            wanted.append(template(one(count=each), name=name))
        else:
            waiting += asking(count, each, name=name)
        asked |= {f"default/{name}-{at}": each for at in range(count)}
    for number, (kind, held, by_plugin) in enumerate(there):
        name, has = f"n{number}", 4 if kind is T4_4 else 1
        taken = min(held, has)
        if by_plugin:
            nodes += [plugged(name, kind, own="plugins")]
            nodes += [running(pod, name) for pod in asking(1, taken, name=f"held{number}") if taken]
        else:
            nodes += [gpu_node(name, kind, own="drivers"), *published(name, has, taken=range(taken))]
            nodes += [running(pod, name) for pod in asking(1, taken, name=f"held{number}") if taken]
        free[name] = has - taken
    plan = planned(*waiting, *wanted, *nodes, types=(PLAIN, T4, T4_4, A100), packing=packing)
    for name, number in free.items():
        mine = [asked[key] for key, place in plan.placements.items() if place == name]
        assert sum(mine) <= number
    for name, (_, _, by_plugin) in zip(free, there, strict=True):
        if by_plugin:
            assert not any(
                groups[int(key.partition("app")[2].partition("-")[0])][2]
                for key, place in plan.placements.items()
                if place == name
            )
    has = {T4.name: 1, T4_4.name: 4, A100.name: 8}
    for new in plan.new_nodes:
        for alternative in new.alternatives:
            assert sum(asked[key] for key in new.pods) <= has[alternative.instance_type]
    assert not plan.refusals
    assert len(plan.placements) + sum(len(new.pods) for new in plan.new_nodes) == len(asked)


@pytest.mark.parametrize("requested", [True, False])
def test_devices_that_others_have_of_a_node_that_boots_are_not_counted_again(requested):
    """Its claim has them all still: it knows of no device that is published."""
    there = gpu_node("there")
    labels = {**there.labels, "karpenter.sh/initialized": "false"}
    there = replace(there, labels=labels, provider_id="aws:///z1/i-c")
    made = claim(
        "c",
        T4_4.name,
        provider_id="aws:///z1/i-c",
        labels={INSTANCE_TYPE: T4_4.name},
        allocatable=T4_4.allocatable,
        node_name="there",
    )
    waiting = [asking(1)] if requested else [claiming(1, "100m"), template(one())]
    seen = cluster(*waiting, there, made, published("there", 4, taken=range(4)), classes=[CLASS])
    seen = replace(
        seen, node_names=Map({made.provider_id: "there"}), claim_names=Map({made.provider_id: "c"})
    )
    plan = solve(seen, dict.fromkeys(seen.pools, (T4_4,)), Policy())
    assert bought(plan) == [T4_4.name]
