"""Given the JSON of a PodDisruptionBudget, does the model say what the eviction API does?"""

import json

import pytest

from nodeless.kube.disruption import decode_budget


@pytest.mark.parametrize(
    ("spec", "always"),
    [
        ({}, False),
        ({"unhealthyPodEvictionPolicy": None}, False),
        ({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, False),
        ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, True),
        ({"unhealthyPodEvictionPolicy": "of a later Kubernetes"}, False),
    ],
)
def test_a_budget_says_whether_pods_that_are_not_ready_are_always_evicted(spec, always):
    document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"maxUnavailable": 0, **spec}}
    key, (seen,) = decode_budget(json.dumps(document).encode())
    assert key == "shop/web"
    assert seen.budget.always_evicts_unhealthy == always


@pytest.mark.parametrize(
    ("spec", "blocking"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": "100%"}, True),
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": "50%"}, False),
        ({"minAvailable": 0}, False),
        ({"minAvailable": "99%"}, False),
        ({}, False),
    ],
)
def test_a_budget_says_whether_it_never_allows_an_eviction(spec, blocking):
    document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    _, (seen,) = decode_budget(json.dumps(document).encode())
    assert seen.budget.fully_blocking == blocking
