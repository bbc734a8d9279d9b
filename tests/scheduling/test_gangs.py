"""Gangs: pods that are planned together or not at all."""

import random
import sys
from dataclasses import replace

import pytest
from immutables import Map

from nodeless.model.gangs import GangSize
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    GANG_SIZE,
    GANG_TOPOLOGY,
    LEADER_WORKER_SIZE,
    RESERVED,
    ZONE,
)
from nodeless.model.plan import RefusalCode
from nodeless.model.pods import Owner
from nodeless.model.requirements import Requirements
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.pods.gang_domains import MOST_GANGS
from nodeless.scheduling.pods.gangs import GROUP_LABELS, MOST_PODS, POD_GROUP_LABELS
from tests.scheduling.factories import FAMILY, NOW, needs, node, pods, pool, snapshot

BOTH = pytest.mark.parametrize("packing", [LOWEST_PRICE, FEWEST_NODES])


def a_gang(number, size=None, name="train", cpu="1", came=NOW, **fields):
    job = (Owner("batch/v1", "Job", name, controller=True),)
    said = {GANG_SIZE: str(number if size is None else size)}
    made = pods(number, cpu, name=name, **fields)
    return [replace(pod, annotations=said, owners=job, created_at=came) for pod in made]


def running_member(pod, on):
    return replace(pod, node_name=on, phase="Running", unschedulable=False)


def planned(seen, **policy):
    return solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(**policy))


def launched(plan):
    return {key for new in plan.new_nodes for key in new.pods}


def messages(plan):
    return {str(refusal) for refusal in plan.refusals}


@BOTH
@pytest.mark.parametrize("number", [1, 7, 64])
def test_a_gang_that_can_be_had_is_planned_as_pods_are(packing, number):
    gang = a_gang(number)
    alone = [replace(pod, annotations={}) for pod in gang]
    assert planned(snapshot(pool(), gang), packing=packing) == planned(
        snapshot(pool(), alone), packing=packing
    )


def test_a_gang_of_512_pods_is_decided_in_one_pass():
    assert len(launched(planned(snapshot(pool(), a_gang(512))))) == 512


@BOTH
def test_a_gang_that_does_not_fit_whole_is_refused_whole_with_what_is_missing(packing):
    plan = planned(snapshot(pool(limits={"cpu": "8"}), a_gang(20)), packing=packing)
    assert not plan.new_nodes
    assert len(plan.refusals) == 20
    assert {refusal.code for refusal in plan.refusals} == {RefusalCode.GROUP_INCOMPLETE}
    (text,) = messages(plan)
    assert text.startswith("gang default/train: ")
    assert "of 20 pods fit; pod default/train-" in text
    assert "limit" in text


def test_one_member_that_fits_nowhere_keeps_the_whole_gang_from_being_bought():
    gang = a_gang(5, size=6)
    lost = replace(a_gang(1, size=6, cpu="900")[0], name="large", uid="large")
    plan = planned(snapshot(pool(), gang, pods(3, "1", name="web"), [lost]))
    assert launched(plan) == {f"default/web-{at}" for at in range(3)}
    (text,) = messages(plan)
    assert text.startswith("gang default/train: 5 of 6 pods fit; pod default/large: ")


@pytest.mark.parametrize(("there", "size"), [(1, 2), (3, 8), (511, 512)])
def test_members_that_do_not_exist_yet_are_waited_for(there, size):
    plan = planned(snapshot(pool(), a_gang(there, size)))
    assert not plan.new_nodes
    assert len(plan.refusals) == there
    (text,) = messages(plan)
    assert text.startswith(f"gang default/train: {there} of {size} pods exist")


def ending(pod, on):
    return replace(
        running_member(pod, on), name=f"former-{pod.name}", uid=f"f-{pod.uid}", deletion_timestamp=NOW
    )


def test_pods_that_terminate_are_no_members_as_those_of_a_job_that_is_created_anew():
    former = [ending(pod, "one") for pod in a_gang(4)]
    new = a_gang(4)
    plan = planned(snapshot(pool(), node("one"), former, new[:2]))
    assert not plan.new_nodes
    (text,) = messages(plan)
    assert text.startswith("gang default/train: 2 of 4 pods exist")
    assert len(launched(planned(snapshot(pool(), node("one"), former, new)))) == 4


def test_a_gang_that_is_created_anew_need_not_follow_the_pods_that_terminate():
    former = in_one([ending(pod, "one") for pod in a_gang(2)])
    types = sold_in("z1", "z2", factor={"z1": 9.0})
    plan = planned_with(snapshot(pool(), node("one", cpu="2"), former, in_one(a_gang(2))), types)
    assert zones_of(plan) == {"z2"}


def test_members_that_kube_scheduler_has_not_tried_are_waited_for():
    gang = a_gang(4)
    gang[0] = replace(gang[0], unschedulable=False)
    plan = planned(snapshot(pool(), gang))
    assert not plan.new_nodes
    (text,) = messages(plan)
    assert text.startswith("gang default/train: 3 of 4 pods run or lack capacity")


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_members_that_run_or_have_succeeded_count(phase):
    first, *others = a_gang(4)
    there = replace(running_member(first, "one"), phase=phase)
    plan = planned(snapshot(pool(), node("one", cpu="1"), there, others))
    assert launched(plan) | plan.placements.keys() == {pod.key for pod in others}


def test_members_that_failed_or_end_do_not_count():
    first, second, *others = a_gang(4)
    failed = replace(running_member(first, "one"), phase="Failed")
    plan = planned(snapshot(pool(), node("one", cpu="1"), failed, second, others))
    assert not plan.new_nodes
    assert next(iter(messages(plan))).startswith("gang default/train: 3 of 4 pods exist")


def test_room_that_exists_counts():
    plan = planned(snapshot(pool(limits={"cpu": "2"}), node("one", cpu="4"), a_gang(4)))
    assert not plan.refusals
    assert len(plan.placements) + len(launched(plan)) == 4


def test_pods_beyond_the_size_are_planned_one_by_one():
    tight = snapshot(pool(limits={"cpu": "8"}), a_gang(20, size=3))
    plan = planned(tight)
    assert 3 <= len(launched(plan)) < 20
    assert RefusalCode.GROUP_INCOMPLETE not in {refusal.code for refusal in plan.refusals}


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1.5", "9" * 400, str(MOST_PODS + 1)])
def test_absurd_sizes_are_refused_and_concern_the_gang_alone(text):
    plan = planned(snapshot(pool(), a_gang(3, size=text), pods(2, "1", name="web")))
    assert launched(plan) == {"default/web-0", "default/web-1"}
    (said,) = messages(plan)
    assert GANG_SIZE in said
    assert "hint: a whole number" in said


@pytest.mark.parametrize("label", GROUP_LABELS)
def test_pods_of_one_group_are_one_gang_whoever_made_them(label):
    gang = [
        replace(pod, labels={label: "blue"}, owners=(Owner("batch/v1", "Job", pod.name, controller=True),))
        for pod in a_gang(4)
    ]
    assert len(launched(planned(snapshot(pool(), gang)))) == 4
    elsewhere = [*gang[1:], replace(gang[0], namespace="other")]
    assert {text.split(" pods")[0] for text in messages(planned(snapshot(pool(), elsewhere)))} == {
        "gang default/blue: 3 of 4",
        "gang other/blue: 1 of 4",
    }


@pytest.mark.parametrize("seed", range(6))
def test_gangs_that_fit_are_launched_whole_whatever_the_others_are_and_in_which_order(seed):
    chance = random.Random(seed)
    sizes = {f"job-{at}": chance.randint(1, 9) for at in range(chance.randint(6, 10))}
    members = [pod for name, size in sizes.items() for pod in a_gang(size, name=name)]
    chance.shuffle(members)
    limit = max(20, sum(sizes.values()) // 2)
    plan = planned(snapshot(pool(limits={"cpu": str(limit)}), members))
    had = launched(plan)
    assert had
    for name, size in sizes.items():
        assert sum(key.startswith(f"default/{name}-") for key in had) in (0, size)
    assert len(had) + len(plan.refusals) == len(members)


def test_equal_gangs_that_share_too_little_room_do_not_keep_each_other_from_it():
    # Their pods take turns by name, so that none of them is whole at first.
    members = []
    for at in range(9):
        made = a_gang(5, name=f"job-{at}")
        members += [replace(pod, name=f"{i}-{at}", uid=f"{i}-{at}") for i, pod in enumerate(made)]
    plan = planned(snapshot(pool(limits={"cpu": "14"}), members))
    owners = {pod.key: pod.owners[0].name for pod in members}
    assert launched(plan)
    assert len(launched(plan)) % 5 == 0
    assert len({owners[key] for key in launched(plan)}) * 5 == len(launched(plan))


def said_by(kind, size, name="train", namespace="default", problem=""):
    return GangSize(kind, namespace, name, size, problem)


def with_sizes(seen, *sizes):
    return replace(seen, gang_sizes=Map({size.key: size for size in sizes}))


def unsaid(gang, **changes):
    return [replace(pod, annotations={}, **changes) for pod in gang]


@pytest.mark.parametrize("label", POD_GROUP_LABELS)
@pytest.mark.parametrize(("there", "refused"), [(2, 2), (3, 0), (5, 0)])
def test_the_least_members_of_a_pod_group_are_planned_together(label, there, refused):
    gang = unsaid(a_gang(there), labels={label: "blue"})
    plan = planned(with_sizes(snapshot(pool(), gang), said_by("PodGroup", 3, "blue")))
    assert len(plan.refusals) == refused
    assert len(launched(plan)) == there - refused
    assert messages(plan) <= {
        "gang default/blue: 2 of 3 pods exist; nothing is launched until all of them do",
    }


def test_pods_of_a_pod_group_that_is_not_known_are_planned_one_by_one():
    gang = unsaid(a_gang(2), labels={POD_GROUP_LABELS[0]: "blue"})
    seen = with_sizes(
        snapshot(pool(), gang), said_by("PodGroup", 3, "blue", "other"), said_by("PodGroup", 3, "red")
    )
    assert len(launched(planned(seen))) == 2


@pytest.mark.parametrize(("limit", "had"), [("40", 12), ("8", 0)])
def test_the_pods_of_a_job_that_asks_for_it_are_a_gang(limit, had):
    seen = snapshot(pool(limits={"cpu": limit}), unsaid(a_gang(12)), unsaid(a_gang(2, name="other")))
    plan = planned(with_sizes(seen, said_by("Job", 12)))
    assert sum(key.startswith("default/train") for key in launched(plan)) == had
    assert sum(key.startswith("default/other") for key in launched(plan)) == 2


def test_all_jobs_of_a_job_set_are_one_gang_of_its_size():
    made = [*a_gang(3, name="set-a-0"), *a_gang(3, name="set-b-0")]
    gang = unsaid(made, labels={"jobset.sigs.k8s.io/jobset-name": "set"})
    sizes = (said_by("JobSet", 6, "set"), said_by("Job", 3, "set-a-0"))
    assert len(launched(planned(with_sizes(snapshot(pool(), gang), *sizes)))) == 6
    assert not launched(planned(with_sizes(snapshot(pool(), gang[:5]), *sizes)))


def test_a_group_of_a_leader_worker_set_has_the_size_that_its_pods_bear():
    said = {GANG_SIZE: "owner", LEADER_WORKER_SIZE: "4"}
    groups = [
        replace(pod, annotations=said, labels={"leaderworkerset.sigs.k8s.io/group-key": key})
        for key, pods_of_it in (("one", a_gang(4, name="one")), ("two", a_gang(3, name="two")))
        for pod in pods_of_it
    ]
    plan = planned(snapshot(pool(), groups))
    assert launched(plan) == {f"default/one-{at}" for at in range(4)}
    assert {text.split(";")[0] for text in messages(plan)} == {"gang default/two: 3 of 4 pods exist"}


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((), "hint: give its Job or JobSet the label nodeless.dev/gang=true"),
        ((said_by("Job", 0, problem="spec.completions is 9"),), "Job default/train: spec.completions is 9"),
        ((said_by("Job", MOST_PODS + 1),), f"hint: a whole number from 1 to {MOST_PODS}"),
    ],
)
def test_a_gang_of_the_size_of_its_owner_waits_until_that_can_be_read(sizes, text):
    gang = [replace(pod, annotations={GANG_SIZE: "owner"}) for pod in a_gang(3)]
    plan = planned(with_sizes(snapshot(pool(), gang, pods(2, "1", name="web")), *sizes))
    assert launched(plan) == {"default/web-0", "default/web-1"}
    assert all(text in said for said in messages(plan))


def test_what_the_pods_say_counts_before_what_their_owner_says():
    seen = snapshot(pool(), a_gang(3, size=3))
    assert len(launched(planned(with_sizes(seen, said_by("Job", 9))))) == 3


def test_a_gang_that_waits_after_its_nodes_were_released_is_refused_with_that():
    paused = Map({"default/train": "it is planned again at noon"})
    seen = replace(snapshot(pool(), a_gang(4), pods(2, "1", name="web")), paused_gangs=paused)
    plan = planned(seen)
    assert launched(plan) == {"default/web-0", "default/web-1"}
    assert messages(plan) == {"gang default/train: it is planned again at noon"}


def in_one(gang, key=ZONE):
    return [replace(pod, annotations={**pod.annotations, GANG_TOPOLOGY: key}) for pod in gang]


def zones_of(plan):
    return {zone for new in plan.new_nodes for zone in new.requirements[ZONE].values}


def sold_in(*zones, factor=None):
    """The types, for sale in these zones only, at other prices where a factor is given for a zone."""

    def changed(offering):
        times = (factor or {}).get(offering.zone, 1.0)
        return replace(offering, available=offering.zone in zones, price=offering.price * times)

    return tuple(replace(kind, offerings=tuple(map(changed, kind.offerings))) for kind in FAMILY)


def planned_with(seen, types, **policy):
    return solve(seen, dict.fromkeys(seen.pools, types), Policy(**policy))


@BOTH
@pytest.mark.parametrize("number", [1, 5, 40])
def test_a_gang_is_kept_in_one_zone_the_cheapest_that_holds_it(packing, number):
    types = sold_in("z1", "z2", "z3", factor={"z1": 1.5, "z2": 1.1, "z3": 4.0})
    plan = planned_with(snapshot(pool(), in_one(a_gang(number))), types, packing=packing)
    assert len(launched(plan)) == number
    assert zones_of(plan) == {"z2"}


def test_a_zone_that_holds_a_part_only_is_not_taken_however_cheap_it_is():
    # Small nodes alone are left in the cheap zone, and one member does not fit on them.
    def in_z1(kind, offering):
        price = offering.price / 5 if offering.zone == "z1" else offering.price
        return replace(offering, available=offering.zone != "z1" or kind.name == FAMILY[0].name, price=price)

    types = tuple(
        replace(kind, offerings=tuple(in_z1(kind, each) for each in kind.offerings)) for kind in FAMILY
    )
    gang = a_gang(4, size=5, cpu="200m")
    large = replace(a_gang(1, size=5, cpu="6")[0], name="large", uid="large")
    plan = planned_with(snapshot(pool(), in_one([*gang, large])), types)
    assert len(launched(plan)) == 5
    (zone,) = zones_of(plan)
    assert zone != "z1"


def test_members_follow_those_that_run_whatever_that_costs():
    types = sold_in("z1", "z2", factor={"z1": 9.0})
    first, *others = in_one(a_gang(4))
    seen = snapshot(pool(), node("one", cpu="1"), running_member(first, "one"), others)
    plan = planned_with(seen, types)
    assert len(launched(plan)) == 3
    assert zones_of(plan) == {"z1"}


def test_a_gang_that_fits_in_no_zone_whole_is_refused_whole():
    seen = snapshot(pool(limits={"cpu": "8"}), in_one(a_gang(20)), pods(1, "1", name="web"))
    plan = planned(seen)
    assert launched(plan) <= {"default/web-0"}
    (text,) = {str(refusal) for refusal in plan.refusals if refusal.pod.startswith("default/train")}
    assert "of 20 pods fit in one topology.kubernetes.io/zone; pod default/train-" in text


def test_others_are_planned_as_if_the_gang_were_anywhere():
    types = sold_in("z1", "z2", factor={"z2": 2.0})
    chosen = replace(pods(1, "1", name="web")[0].shape, node_selector=((ZONE, "z2"),))
    web = [replace(pod, shape=chosen) for pod in pods(3, "1", name="web")]
    plan = planned_with(snapshot(pool(), in_one(a_gang(5)), web), types)
    assert len(launched(plan)) == 8
    where = {key: new.requirements[ZONE].values for new in plan.new_nodes for key in new.pods}
    assert {zone for key, zones in where.items() if "train" in key for zone in zones} == {"z1"}
    assert {zone for key, zones in where.items() if "web" in key for zone in zones} == {"z2"}


def test_several_gangs_may_be_in_several_zones_each_in_one():
    types = sold_in("z1", "z2", "z3")
    ones = [in_one(a_gang(6, name=f"job-{at}", came=NOW + at)) for at in range(3)]
    chosen = [replace(pod, shape=replace(pod.shape, node_selector=((ZONE, "z3"),))) for pod in ones[1]]
    plan = planned_with(snapshot(pool(), ones[0], chosen, ones[2]), types)
    assert len(launched(plan)) == 18
    for at in range(3):
        mine = [new for new in plan.new_nodes if any(f"job-{at}-" in key for key in new.pods)]
        assert len({zone for new in mine for zone in new.requirements[ZONE].values}) == 1
    assert zones_of(plan) >= {"z3"}


@pytest.mark.parametrize("key", ["example.com/rack", "karpenter.k8s.aws/placement-group-id"])
def test_a_label_that_nothing_has_keeps_the_gang_from_being_bought(key):
    plan = planned(snapshot(pool(), in_one(a_gang(3), key)))
    assert not plan.new_nodes
    (text,) = messages(plan)
    assert f"neither a node nor what is for sale has the label {key}" in text


@pytest.mark.parametrize("keys", [("", ""), (ZONE, "example.com/rack")])
def test_members_that_do_not_agree_on_the_label_are_refused_with_that(keys):
    first, second = a_gang(2)
    gang = [*in_one([first], keys[0]), *in_one([second], keys[1])]
    (text,) = messages(planned(snapshot(pool(), gang)))
    assert GANG_TOPOLOGY in text
    assert "hint: one label of nodes" in text


def test_a_gang_is_kept_in_one_reservation_that_has_as_many_instances_left():
    left = {"cr-few": 3, "cr-more": 8}
    (kind,) = (each for each in FAMILY if each.name == "large")
    reserved = tuple(
        Offering("z1", RESERVED, 0.001, reservation=name, remaining=number, reservation_type="default")
        for name, number in left.items()
    )
    types = (replace(kind, offerings=(*kind.offerings, *reserved)),)
    used = pool("default", needs(CAPACITY_TYPE, "In", RESERVED))
    gang = in_one(a_gang(5, cpu="3"), CAPACITY_RESERVATION_ID)
    plan = planned_with(snapshot(used, gang), types)
    assert len(plan.new_nodes) == 5
    assert {new.alternatives[0].offering.reservation for new in plan.new_nodes} == {"cr-more"}


def test_a_gang_is_kept_in_the_placement_group_of_one_pool():
    group = "karpenter.k8s.aws/placement-group-id"
    pools = {name: pool(name=name, limits={"cpu": cpu}) for name, cpu in (("few", "3"), ("more", "99"))}

    def types_of(name):
        return tuple(
            replace(kind, requirements=Requirements([*kind.requirements.values(), needs(group, "In", name)]))
            for kind in FAMILY
        )

    seen = snapshot(*pools.values(), in_one(a_gang(6), group))
    catalog = {given.key: types_of(f"pg-{name}") for name, given in pools.items()}
    plan = solve(seen, catalog, Policy())
    assert len(launched(plan)) == 6
    assert {new.pool.name for new in plan.new_nodes} == {"more"}


@pytest.mark.parametrize(("free", "had"), [((1, 2, 3), True), ((2, 1, 4), True), ((2, 2, 2), False)])
def test_a_gang_is_kept_under_one_network_node_of_ec2_where_nodes_are_known_to_be(free, had):
    layer = "topology.k8s.aws/network-node-layer-3"
    nodes = [
        node(f"n{number}-{at}", cpu="2", labels={layer: f"nn-{number}"})
        for number, some in enumerate(free)
        for at in range(some)
    ]
    plan = planned(snapshot(pool(), *nodes, in_one(a_gang(3, cpu="1500m"), layer)))
    assert not plan.new_nodes
    places = {place.partition("-")[0] for place in plan.placements.values()}
    assert places == ({f"n{free.index(max(free))}"} if had else set())


BOX = 0.05


def boxes_for(pods, launches):
    """How many time boxes the plans that one pass makes may use for their searches, all together."""
    given = []

    def look(frame, event, _argument):
        if event == "call" and frame.f_code.co_name == "cheapest_with_commitments":
            given.append(frame.f_locals["policy"].time_box)

    sys.setprofile(look)
    try:
        plan = planned(snapshot(pool(), pods), time_box=BOX)
    finally:
        sys.setprofile(None)
    assert len(launched(plan)) == launches
    return sum(given) / BOX


def test_the_domains_of_gangs_are_compared_without_a_search_for_each():
    gangs = [in_one(a_gang(2, name=f"job-{at}")) for at in range(5)]
    assert boxes_for(gangs, 10) == 2


def test_gangs_that_never_fit_are_found_without_a_whole_search_for_each():
    never = [a_gang(2, name=f"never-{at}", cpu="4000", came=NOW + 1 + at) for at in range(10)]
    # The first plan and the last one, and a sixteenth for each that is made to leave one out or try it again.
    assert 2 < boxes_for([*a_gang(2), *never], 2) < 4


def test_of_very_many_gangs_some_have_their_turn_later():
    number = MOST_GANGS + 2
    members = [in_one(a_gang(2, name=f"job-{at:02}", came=NOW + at)) for at in range(number)]
    plan = planned(snapshot(pool(), members))
    assert len(launched(plan)) == 2 * MOST_GANGS
    oldest = {f"default/job-{at:02}-{i}" for at in range(MOST_GANGS // 2) for i in range(2)}
    assert launched(plan) >= oldest
    assert all("other gangs are looked at first" in text for text in messages(plan))


def test_old_gangs_that_never_fit_do_not_keep_all_turns_for_themselves():
    number = 2 * MOST_GANGS
    never = [in_one(a_gang(2, name=f"huge-{at}", cpu="900", came=NOW + at)) for at in range(number)]
    seen = snapshot(pool(), never, in_one(a_gang(2, came=NOW + number)))
    later = (planned(seen, now=NOW + 10 * at) for at in range(50))
    assert any(launched(plan) == {"default/train-0", "default/train-1"} for plan in later)


@pytest.mark.parametrize("runs", [True, False])
def test_a_member_that_selects_another_domain_than_the_others_keeps_the_gang_from_being_bought(runs):
    def selecting(pod, zone):
        return replace(pod, shape=replace(pod.shape, node_selector=((ZONE, zone),)))

    first, second, third = in_one(a_gang(3))
    first = running_member(first, "one") if runs else selecting(first, "z1")
    plan = planned(snapshot(pool(), node("one", cpu="1"), first, selecting(second, "z2"), third))
    assert not plan.new_nodes
    (text,) = messages(plan)
    assert f"of 3 pods fit in one {ZONE}; pod default/train-" in text
    assert "contradicts itself" in text
