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
