"""What would give a refused pod its place: the smallest change, and it is true."""

import pytest

from nodeless.model.labels import CAPACITY_TYPE, ZONE
from nodeless.model.pods import HostPort
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy, solve
from nodeless.scheduling.diagnostics.changes import Trial
from nodeless.scheduling.diagnostics.counterfactual import remedies
from tests.scheduling.factories import (
    FAMILY,
    beside,
    daemon,
    instance_type,
    needs,
    pods,
    pool,
    snapshot,
    spread,
    term,
)

ARM = instance_type("arm", 4, 16, arch="arm64", labels=(needs("kubernetes.io/arch", "In", "arm64"),))


def told(*things, types=FAMILY, wider=()):
    """The remedies for all refused pods of a plan."""
    seen = snapshot(*things)
    catalog = dict.fromkeys(seen.pools, types)
    refusals = solve(seen, catalog, Policy(time_box=0)).refusals
    assert refusals
    more = dict.fromkeys(seen.pools, (*types, *wider))
    return [str(each) for each in remedies(Trial(seen, catalog), Policy(), refusals, wider=more)]


@pytest.mark.parametrize(
    ("things", "remedy"),
    [
        ((pods(1), pool(taints=(Taint("team", "NoSchedule", "a"),))), "tolerate team=a:NoSchedule to use "),
        ((pods(1, "16.2"), pool()), "request cpu 15900m instead of 16200m (300m less)"),
        (
            (pods(1, "15.9"), pool(), daemon("agent", cpu="200m")),
            "request cpu 15700m instead of 15900m (200m less)",
        ),
        (
            (pods(1, selector={ZONE: "z3"}), pool("default", needs(ZONE, "In", "z1", "z2"))),
            "let Provisioner/default allow topology.kubernetes.io/zone z3",
        ),
        (
            (pods(1, selector={"tier": "web"}), pool()),
            "let Provisioner/default have the label tier=web",
        ),
        (
            (pods(1, required_terms=(term(needs(CAPACITY_TYPE, "In", "reserved")),)), pool()),
            "drop karpenter.sh/capacity-type In [reserved] from the pod",
        ),
        (
            (pods(3, "3.5"), pool(limits={"cpu": "4"})),
            "raise the limit of Provisioner/default on cpu from 4 to ",
        ),
        (
            (
                pods(1, host_ports=(HostPort("", 80, "TCP"),)),
                pool(),
                daemon(host_ports=(HostPort("", 80, "TCP"),)),
            ),
            "use no host port",
        ),
        (
            (pods(4, anti_affinity=(beside(ZONE),)), pool()),
            "let the pod anti-affinity over topology.kubernetes.io/zone be preferred instead of required",
        ),
        (
            (pods(1, affinity=(beside(ZONE, "other"),)), pool()),
            "let the pod affinity over topology.kubernetes.io/zone be preferred instead of required",
        ),
        (
            (pods(2, selector={ZONE: "z1"}, spread=(spread(ZONE, min_domains=2),)), pool()),
            "let the spread over topology.kubernetes.io/zone be ScheduleAnyway",
        ),
    ],
)
def test_the_change_that_helps_is_told(things, remedy):
    found = told(*things)

    assert any(each.startswith(remedy) for each in found), found


def test_a_type_that_the_pool_does_not_allow_is_named_with_its_price():
    gpu = instance_type(
        "g4", 8, 32, price=0.5, labels=(needs("family", "In", "g"),), **{"nvidia.com/gpu": "1"}
    )
    small = tuple(instance_type(f"m{n}", n, n, labels=(needs("family", "In", "m"),)) for n in (2, 4))
    found = told(
        pods(1, extra={"nvidia.com/gpu": "1"}),
        pool("default", needs("family", "In", "m")),
        types=small,
        wider=(gpu,),
    )

    assert found == ["let Provisioner/default allow family g (for example g4, 0.2500 USD/h)"]


def test_the_largest_request_that_fits_does_and_one_step_more_does_not():
    (remedy,) = told(pods(1, "64"), pool())
    assert remedy.startswith("request cpu 15900m instead of 64 ")
    for cpu, refused in (("15900m", False), ("15910m", True)):
        seen = snapshot(pods(1, cpu), pool())
        assert bool(solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy()).refusals) == refused


def test_a_change_that_helps_some_of_the_pods_says_how_many():
    tainted = pool(taints=(Taint("team", "NoSchedule"),), limits={"cpu": "2"})

    assert told(pods(5), tainted) == [
        "tolerate team:NoSchedule to use Provisioner/default (places 1 of 5 pods)"
    ]


def test_where_nothing_helps_nothing_is_told():
    assert told(pods(1, "64", "999Gi"), pool()) == []


def test_without_pools_there_is_nothing_to_change():
    assert told(pods(1)) == []


def test_it_is_the_same_whoever_asks():
    things = (pods(2, "64"), pool(taints=(Taint("team", "NoSchedule"),)), pool("other", limits={"cpu": "1"}))

    assert told(*things) == told(*reversed(things))
