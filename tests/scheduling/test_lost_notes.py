"""What is planned is found again though claims tell nobody's name: nothing is bought twice."""

from random import Random

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import ARCH, HOSTNAME, ON_DEMAND, ZONE
from nodeless.model.pods import HostPort
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.scheduling.factories import beside, instance_type, needs, pods, pool, term
from tests.scheduling.many_passes import World

TYPES = (
    instance_type("m4", 4, 16, price=0.2),
    instance_type("m8", 8, 32, price=0.4),
    instance_type("arm", 4, 16, arch="arm64", offerings=(Offering("z3", ON_DEMAND, 0.5),)),
)
ARM = (term(needs(ARCH, "In", "arm64")),)


def world(packing: str, seed: int) -> World:
    """A cluster in which every pass is the first one of a process, and claims do not name their pods."""
    made = World(
        {"Provisioner/one": pool("one")}, TYPES, packing, Random(seed), noted=False, remembered=False
    )
    made.now += seed  # Other names of claims, and so another order of them.
    return made


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
@pytest.mark.parametrize("seed", range(6))
def test_pods_that_may_go_anywhere_leave_claims_to_those_that_have_no_other(packing, seed):
    cluster = world(packing, seed)
    cluster.add(pods(3, "3", name="anywhere"))
    cluster.look()
    cluster.add(pods(3, "2500m", name="arm", required_terms=ARM))
    cluster.look()
    bought = cluster.bought
    for _ in range(3):
        cluster.look()
    assert cluster.bought == bought
    cluster.settle(as_planned=True)
    assert cluster.bought == bought
    assert not cluster.pending


@pytest.mark.parametrize("seed", range(6))
def test_what_was_bought_for_one_kind_holds_it_though_another_kind_comes_first_by_size(seed):
    cluster = world(FEWEST_NODES, seed)
    small = pods(2, "2", name="small", required_terms=(term(needs(ZONE, "In", "z3")),))
    cluster.add(small)
    cluster.look()
    cluster.add(pods(4, "3", name="large"))
    cluster.look()
    bought = cluster.bought
    cluster.settle(as_planned=True)
    assert cluster.bought == bought
    assert not cluster.pending


@pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
def test_groups_are_found_again_on_the_claims_that_were_made_for_them(packing):
    cluster = world(packing, 0)
    cluster.types = (*TYPES, instance_type("m64", 64, 256, price=3.2))
    cluster.add(pods(3, "1500m", name="lead", labels={"app": "lead"}))
    follower = {"affinity": (beside(HOSTNAME, "lead"),), "host_ports": (HostPort("", 80, "TCP"),)}
    cluster.add(pods(3, "3", name="follow", **follower))
    cluster.look()
    cluster.add(pods(3, "60", name="large", labels={"app": "lead"}, host_ports=(HostPort("", 80, "TCP"),)))
    cluster.look()
    bought = cluster.bought
    cluster.settle(as_planned=True)
    assert cluster.bought == bought
    assert not cluster.pending
