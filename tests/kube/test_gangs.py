"""How many pods PodGroups, Jobs and JobSets ask to run together, as the API server has them."""

import json

import pytest

from nodeless.kube.gangs import watched_gang_sizes
from nodeless.model import events
from nodeless.model.gangs import GangSize

ASKS = {"nodeless.dev/gang": "true"}


def heard(kind, spec, labels=ASKS):
    """What an object leads to."""
    watched = next(each for each in watched_gang_sizes() if each.name == kind)
    metadata = {"name": "train", "namespace": "shop", "labels": labels}
    key, (event,) = watched.decode(json.dumps({"metadata": metadata, "spec": spec}).encode())
    assert key.endswith("/shop/train")
    return event


def jobs(replicas=None, parallelism=None, completions=None, **more):
    given = {"parallelism": parallelism, "completions": completions}
    spec = {name: value for name, value in given.items() if value is not None}
    made = {"name": "workers", "template": {"spec": spec}, **more}
    return made if replicas is None else {**made, "replicas": replicas}


@pytest.mark.parametrize("number", [1, 8, 4096])
def test_a_pod_group_says_its_least_members(number):
    assert heard("podgroups", {"minMember": number}, {}) == events.GangSizeSeen(
        GangSize("PodGroup", "shop", "train", number)
    )


@pytest.mark.parametrize("spec", [{}, {"minMember": 0}, {"minMember": -3}])
def test_a_pod_group_without_least_members_is_no_gang(spec):
    assert heard("podgroups", spec) == events.GangSizeGone("PodGroup/shop/train")


def test_a_job_that_says_no_numbers_has_one_pod():
    assert heard("jobs", {}).size.size == 1


@pytest.mark.parametrize("number", [1, 8])
def test_a_job_whose_pods_all_run_at_once_is_a_gang_on_request(number):
    spec = {"completions": number, "parallelism": number}
    assert heard("jobs", spec) == events.GangSizeSeen(GangSize("Job", "shop", "train", number))
    for labels in ({}, {"nodeless.dev/gang": "false"}):
        assert heard("jobs", spec, labels) == events.GangSizeGone("Job/shop/train")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"completions": 8, "parallelism": 2}, "spec.completions is 8, spec.parallelism 2"),
        ({"parallelism": 8}, "spec.completions is not set, spec.parallelism 8"),
        ({"completions": 3}, "spec.completions is 3, spec.parallelism 1"),
        ({"completions": 0}, "spec.completions is 0, spec.parallelism 1"),
    ],
)
def test_a_job_whose_pods_do_not_run_all_at_once_says_why_it_is_none(spec, text):
    said = heard("jobs", spec).size
    assert said.size == 0
    assert text in said.problem
    assert "hint: " in said.problem


@pytest.mark.parametrize(
    ("replicated", "size"),
    [
        ([jobs()], 1),
        ([jobs(4, 8, 8)], 32),
        ([jobs(1), jobs(3, 5, 5), jobs(0, 7, 7)], 16),
    ],
)
def test_a_job_set_has_the_pods_of_all_its_jobs(replicated, size):
    assert heard("jobsets", {"replicatedJobs": replicated}) == events.GangSizeSeen(
        GangSize("JobSet", "shop", "train", size)
    )
    assert heard("jobsets", {"replicatedJobs": replicated}, {}) == events.GangSizeGone("JobSet/shop/train")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicatedJobs": [jobs(2, 4, 9)]}, "spec.replicatedJobs[0].template.spec.completions is 9"),
        (
            {"replicatedJobs": [jobs(), jobs(dependsOn=[{"name": "driver", "status": "Ready"}])]},
            "spec.replicatedJobs[1].dependsOn has Jobs start one after another",
        ),
        (
            {"replicatedJobs": [jobs()], "startupPolicy": {"startupPolicyOrder": "InOrder"}},
            "spec.startupPolicy has Jobs start one after another",
        ),
    ],
)
def test_a_job_set_that_does_not_start_at_once_says_why_it_is_no_gang(spec, text):
    said = heard("jobsets", spec).size
    assert said.size == 0
    assert text in said.problem
