"""Gangs: pods that are planned together or not at all."""

import random
from dataclasses import replace

import pytest

from nodeless.model.labels import GANG_SIZE
from nodeless.model.plan import RefusalCode
from nodeless.model.pods import Owner
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from nodeless.scheduling.pods.gangs import GROUP_LABELS, MOST_PODS
from tests.scheduling.factories import FAMILY, NOW, node, pods, pool, snapshot

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
