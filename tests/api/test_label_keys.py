"""Which label keys a pool may use."""

from __future__ import annotations

import pytest

from nodeless.api.requirement_rules import is_restricted
from nodeless.api.suggestions import well_known_counterpart
from tests.api.provisioner_rows import KEY_VERDICTS


@pytest.mark.parametrize(("key", "restricted"), KEY_VERDICTS)
def test_domains_of_kubernetes_and_karpenter_are_restricted(key: str, restricted: bool) -> None:
    assert is_restricted(key) is restricted


TWINS = [
    ("node.k8s.aws/instance-type", "node.kubernetes.io/instance-type"),
    ("instance-type", "node.kubernetes.io/instance-type"),
    ("karpenter.sh/capacity-typ", "karpenter.sh/capacity-type"),
    ("karpenter.k8s.aws/instance-catgory", "karpenter.k8s.aws/instance-category"),
    ("node.kubernetes.io/instance-type", ""),
    ("beta.kubernetes.io/arch", ""),
    ("example.com/team", ""),
    ("topology.k8s.aws/zone-id", ""),
]


@pytest.mark.parametrize(("key", "twin"), TWINS)
def test_an_unknown_key_is_traced_to_the_well_known_one_that_was_meant(key: str, twin: str) -> None:
    assert well_known_counterpart(key) == twin
