"""Which changes of a network that stands are refused, and what is said to do instead."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_nodeless.network_moves import (
    StandingNetwork,
    read_network,
    require_same_range,
    require_same_zones,
)

RANGE = "10.0.0.0/16"
ZONES = [f"us-east-1{letter}" for letter in "abcdef"]
#: A network in an environment, and one that a program declares by itself.
PARENTS = ["nodeless:index:Environment$nodeless:index:Network", "nodeless:index:Network"]


def urn(types: str, name: str) -> str:
    return f"urn:pulumi:dev::shop::{types}::{name}"


def resources(
    parent: str, name: str, zones: list[str], cidr: str = RANGE, held: int = 2
) -> dict[str, dict[str, Any]]:
    """A network and a cluster as the engine tells them; the cluster has subnets in the first zones."""
    vpc, subnet, cluster = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:eks/cluster:Cluster"
    reported = {urn(f"{parent}${vpc}", f"{name}-vpc"): {"type": vpc, "outputs": {"cidrBlock": cidr}}}
    for index, zone in enumerate(zones):
        for role in ("private", "public"):
            key = urn(f"{parent}${subnet}", f"{name}-{role}-{index}")
            arn = f"arn:aws:ec2:us-east-1:123456789012:subnet/subnet-{name}-{role}-{index}"
            reported[key] = {"type": subnet, "outputs": {"availabilityZone": zone, "arn": arn}}
    given = [f"subnet-{name}-{role}-{index}" for role in ("public", "private") for index in range(held)]
    outputs = {"name": "demo", "vpcConfig": {"subnetIds": given}}
    reported[urn(f"{parent}${cluster}", "cluster")] = {"type": cluster, "outputs": outputs}
    return reported


@pytest.mark.parametrize("parent", PARENTS)
def test_a_network_is_found_again_beside_others(parent: str) -> None:
    reported = {
        **resources("nodeless:index:Elsewhere$nodeless:index:Network", "network", ZONES[3:], "10.9.0.0/16"),
        **resources(parent, "other", ZONES[3:], "10.9.0.0/16"),
        **resources(parent, "network", ZONES[:3]),
    }
    found = read_network(reported, urn(parent, "network"), "network")
    assert found == StandingNetwork(RANGE, dict(enumerate(ZONES[:3])), {"demo": frozenset({0, 1})})


@pytest.mark.parametrize("parent", PARENTS)
def test_of_a_network_that_was_never_made_nothing_is_known_and_nothing_refused(parent: str) -> None:
    for reported in ({}, resources("nodeless:index:Elsewhere", "network", ZONES)):
        found = read_network(reported, urn(parent, "network"), "network")
        assert (found.cidr, found.zones) == ("", {})
        assert require_same_range("10.9.0.0/16", "demo", found) == "10.9.0.0/16"
        assert require_same_zones(ZONES[3:], RANGE, "demo", found) == ZONES[3:]


def test_another_range_is_refused_as_long_as_the_cluster_is_the_same() -> None:
    standing = StandingNetwork(RANGE, {}, {"demo": frozenset()})
    assert require_same_range(RANGE, "demo", standing) == RANGE
    assert require_same_range("10.9.0.0/16", "next", standing) == "10.9.0.0/16"
    with pytest.raises(pulumi.RunError) as reported:
        require_same_range("10.9.0.0/16", "demo", standing)
    for part in ("demo", RANGE, "10.9.0.0/16", "vpcCidr", "hint: set 10.0.0.0/16 again"):
        assert part in str(reported.value)


@given(
    old=st.lists(st.sampled_from(ZONES), min_size=2, max_size=6, unique=True),
    new=st.lists(st.sampled_from(ZONES), min_size=2, max_size=6, unique=True),
)
def test_zones_are_taken_if_and_only_if_no_subnet_would_move(old: list[str], new: list[str]) -> None:
    standing = StandingNetwork(RANGE, dict(enumerate(old)), {"demo": frozenset({0, 1})})
    common = min(len(old), len(new))
    if old[:common] == new[:common]:
        assert require_same_zones(new, RANGE, "demo", standing) == new
        return
    with pytest.raises(pulumi.RunError, match="availabilityZones") as reported:
        require_same_zones(new, RANGE, "demo", standing)
    position = next(i for i in range(common) if old[i] != new[i])
    said = str(reported.value)
    assert f"zone {position + 1} are in {old[position]} and cannot move to {new[position]}" in said
    # What it says to do is itself taken.
    kept = old[:position] if position >= 2 else old[: position + 1]
    assert ", ".join(kept) in said
    if len(kept) >= 2:
        assert require_same_zones(kept, RANGE, "demo", standing) == kept


def test_in_another_vpc_zones_are_free() -> None:
    standing = StandingNetwork(RANGE, dict(enumerate(ZONES[:3])), {"demo": frozenset({0, 1, 2})})
    assert require_same_zones(ZONES[3:], "10.9.0.0/16", "demo", standing) == ZONES[3:]


def test_a_zone_in_which_the_cluster_has_subnets_stays_and_further_ones_come_and_go() -> None:
    """Clusters of earlier stacks have subnets in every zone; EKS takes none away."""
    standing = StandingNetwork(RANGE, dict(enumerate(ZONES[:4])), {"demo": frozenset({0, 1, 2})})
    for zones in (ZONES[:3], ZONES[:5]):
        assert require_same_zones(zones, RANGE, "demo", standing) == zones
    assert require_same_zones(ZONES[:2], RANGE, "other", standing) == ZONES[:2]
    for zones in (ZONES[:2], [*ZONES[:2], ZONES[3]]):
        with pytest.raises(pulumi.RunError) as reported:
            require_same_zones(zones, RANGE, "demo", standing)
        assert ", ".join(ZONES[:3]) in str(reported.value)
        assert "at the beginning" in str(reported.value)
    with pytest.raises(pulumi.RunError, match="EKS keeps a cluster in its zones"):
        require_same_zones(ZONES[:2], RANGE, "demo", standing)
