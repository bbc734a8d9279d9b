"""The watcher of invariants sees what it is there for, however an instance says whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.invariants import (
    CLAIM_TAG,
    COLLECTED_SECONDS,
    GROUP_TAG,
    REASON,
    REPLACES,
    SLACK_SECONDS,
    Invariants,
)

OF_A_CLAIM, OF_A_GROUP = {CLAIM_TAG: "web"}, {GROUP_TAG: "web"}
LATE = COLLECTED_SECONDS + SLACK_SECONDS + 1


def an_instance(name: str, tags: dict[str, str], kind: str = "m5.large") -> dict[str, Any]:
    return {
        "InstanceId": f"i-{name}",
        "InstanceType": kind,
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def a_claim(instance: str = "", **annotations: str) -> dict[str, Any]:
    status = {"providerID": f"aws:///us-east-1a/i-{instance}"} if instance else {}
    notes = {REPLACES: annotations["replaces"], REASON: "Underutilized"} if annotations else {}
    return {"metadata": {"annotations": notes}, "status": status}


@pytest.mark.parametrize("tags", [OF_A_CLAIM, OF_A_GROUP], ids=["by a claim", "by a launch group"])
def test_an_instance_that_no_claim_names_is_a_leak_after_a_while(tags: dict[str, str]) -> None:
    seen, instances = Invariants(60.0), [an_instance("kept", tags), an_instance("lost", tags)]
    claims = {"other": a_claim("kept")}
    seen.see(0.0, instances, claims)
    assert not seen.found.broken
    seen.see(LATE, instances, claims)
    assert seen.found.broken == ["instance i-lost lives without a claim"]


def test_an_instance_that_outlives_its_claim_is_a_leak() -> None:
    seen, instances = Invariants(60.0), [an_instance("a", OF_A_GROUP)]
    for now, claims in ((0.0, {"web": a_claim("a")}), (LATE, {}), (2 * LATE, {})):
        assert not seen.found.broken
        seen.see(now, instances, claims)
    assert seen.found.broken == ["instance i-a lives without a claim"]


def test_an_instance_of_somebody_else_is_none() -> None:
    seen, instances = Invariants(60.0), [an_instance("a", {"Name": "somebody's own"})]
    seen.see(0.0, instances, {})
    seen.see(LATE, instances, {})
    assert not seen.found.broken


def test_a_claim_with_two_instances_is_seen_whichever_of_them_it_names() -> None:
    seen = Invariants(60.0)
    seen.see(0.0, [an_instance("a", OF_A_CLAIM), an_instance("b", OF_A_CLAIM)], {"web": a_claim("a")})
    assert seen.found.broken == ["claim web has 2 instances"]


def test_a_claim_that_names_another_instance_than_before_has_two() -> None:
    """Launched in a group, and launched again after a crash."""
    seen, instances = Invariants(60.0), [an_instance("a", OF_A_GROUP), an_instance("b", OF_A_GROUP)]
    seen.see(0.0, instances, {"web": a_claim("a")})
    assert not seen.found.broken
    seen.see(1.0, instances, {"web": a_claim("b")})
    assert seen.found.broken == ["claim web has 2 instances"]


@pytest.mark.parametrize("tags", [{}, OF_A_GROUP], ids=["launched alone", "launched in a group"])
def test_a_move_that_costs_more_is_seen(tags: dict[str, str]) -> None:
    seen = Invariants(60.0)
    old = an_instance("old", tags or {CLAIM_TAG: "old"})
    new = an_instance("new", tags or {CLAIM_TAG: "new"}, "m5.xlarge")
    seen.see(0.0, [old, new], {"old": a_claim("old"), "new": a_claim("new", replaces="old")})
    assert seen.found.worst_command is not None
    assert seen.found.worst_command > 0
    assert len(seen.found.broken) == 1
    assert "the move of old to new" in seen.found.broken[0]
