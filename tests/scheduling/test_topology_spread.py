"""Topology spread: the acceptance rows TP-01 to TP-26, each with its identifier."""

from dataclasses import replace

import pytest

from nodeless.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    NODE_NAME,
    ON_DEMAND,
    PROVISIONER_NAME,
    SPOT,
    ZONE,
)
from nodeless.model.pods import NodeSelectorTerm
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from tests.scheduling.acceptance.catalogs import a_type
from tests.scheduling.factories import (
    LabelSelector,
    domains,
    needs,
    node,
    pods,
    running,
    selecting,
    spread,
    term,
)
from tests.scheduling.passes import (
    after_pass,
    skew,
    template,
    waiting,
    with_more,
    without,
)

EMPTY = Snapshot()
ZONES = (spread(ZONE),)
HOSTS = (spread(HOSTNAME),)


def in_zones(*zones, name="default", **fields):
    return template(name, needs(ZONE, "In", *zones), **fields)


def test_tp_01_an_unknown_topology_key_keeps_only_its_own_pod_pending():
    seen = after_pass(EMPTY, pods(1, name="odd", spread=(spread("unknown", "odd"),)), pods(1))
    assert waiting(seen) == ["odd-0"]


@pytest.mark.parametrize(
    "selector", [selecting(app="web"), LabelSelector(match_expressions=(("app", "In", ("web",)),))]
)
def test_tp_02_four_pods_go_to_three_zones(selector):
    seen = after_pass(EMPTY, pods(4, spread=(spread(ZONE, selector=selector),)))
    assert skew(seen, ZONE) == (1, 1, 2)


def test_tp_03_only_the_zones_of_the_template_are_balanced():
    seen = after_pass(EMPTY, in_zones("z1", "z2"), pods(4, spread=ZONES))
    assert domains(seen, ZONE) == {"z1": 2, "z2": 2}


def test_tp_04_a_zone_that_only_an_existing_node_has_holds_the_others_back():
    seen = after_pass(EMPTY, in_zones("z3"), pods(1, "1100m", name="old", labels={"app": "web"}))
    seen = after_pass(seen, in_zones("z1", "z2"), pods(6, "1100m", spread=ZONES))
    assert domains(seen, ZONE) == {"z1": 2, "z2": 2, "z3": 1}
    assert len(waiting(seen)) == 2


def test_tp_05_a_zone_left_by_the_template_counts_as_well():
    seen = after_pass(
        EMPTY, in_zones("z1"), pods(1, "1100m", name="old", labels={"app": "web"}, spread=ZONES)
    )
    seen = after_pass(seen, in_zones("z2", "z3"), pods(10, "1100m", spread=ZONES))
    assert domains(seen, ZONE) == {"z1": 1, "z2": 2, "z3": 2}


def test_tp_06_zones_that_lost_their_pods_are_filled_first():
    seen = after_pass(EMPTY, pods(9, "1100m", spread=ZONES))
    assert skew(seen, ZONE) == (3, 3, 3)
    gone = [key for key, pod in seen.pods.items() if seen.nodes[pod.node_name].zone != "z1"]
    more = [replace(pod, name=f"more-{i}") for i, pod in enumerate(pods(3, "1100m", spread=ZONES))]
    seen = after_pass(without(seen, *gone), more)
    assert domains(seen, ZONE)["z1"] == 3
    assert skew(seen, ZONE) == (1, 2, 3)


def test_tp_07_only_running_pods_of_the_namespace_on_nodes_with_the_label_count():
    nodes = [
        node("first"),
        node("second", labels={**node("second").labels, ZONE: "z2"}),
        node("nowhere", labels={PROVISIONER_NAME: "default"}),
    ]
    pod = pods(1, "0", labels={"app": "web"}, name="old")[0]

    def on(where, **fields):
        name = fields.pop("name", f"old-{len(fields)}-{where}")
        return replace(running(replace(pod, name=name), where), **fields)

    counted = [on("first", name="a"), on("first", name="b"), on("second", name="c")]
    ignored = [
        on("first", name="unlabeled", labels={}),
        on("first", name="terminating", deletion_timestamp=1.0),
        on("first", name="failed", phase="Failed"),
        on("first", name="succeeded", phase="Succeeded"),
        on("first", name="elsewhere", namespace="other"),
        on("nowhere", name="without-zone"),
        replace(pod, name="pending", unschedulable=False),
    ]
    before = with_more(EMPTY, template(), nodes, counted)
    seen = after_pass(before, ignored, pods(2, name="new", labels={"app": "web"}, spread=ZONES))
    places = [seen.nodes[pod.node_name].zone for pod in seen.pods.values() if pod.name.startswith("new")]
    assert len(places) == 2
    assert "z3" in places
    assert set(places) <= {"z2", "z3"}


def test_tp_08_pods_that_their_own_constraint_does_not_select_share_a_node():
    seen = after_pass(EMPTY, pods(5, "100m", spread=(spread(HOSTNAME, "nobody"),)))
    assert skew(seen, HOSTNAME) == (5,)


def test_tp_09_a_spread_over_hosts_takes_a_node_for_each():
    assert skew(after_pass(EMPTY, pods(4, spread=HOSTS)), HOSTNAME) == (1, 1, 1, 1)


def test_tp_10_two_workloads_that_spread_over_hosts_share_them():
    both = [pods(2, "100m", name=app, spread=(spread(HOSTNAME, app),)) for app in ("one", "two")]
    seen = after_pass(EMPTY, both)
    assert len(seen.nodes) == 2
    assert skew(seen, HOSTNAME, "one") == skew(seen, HOSTNAME, "two") == (1, 1)


def test_tp_11_capacity_types_are_balanced():
    assert domains(after_pass(EMPTY, pods(4, spread=(spread(CAPACITY_TYPE),))), CAPACITY_TYPE) == {
        SPOT: 2,
        ON_DEMAND: 2,
    }


@pytest.mark.parametrize(("soft", "expected"), [(False, 2), (True, 5)])
def test_tp_12_a_capacity_type_out_of_reach_holds_back_what_must_be_spread(soft, expected):
    only_spot = template("default", needs(CAPACITY_TYPE, "In", SPOT))
    only_on_demand = template("default", needs(CAPACITY_TYPE, "In", ON_DEMAND))
    seen = after_pass(EMPTY, only_spot, pods(1, "1100m", name="old", labels={"app": "web"}))
    more = pods(5, "1100m", spread=(spread(CAPACITY_TYPE, soft=soft),))
    seen = after_pass(seen, only_on_demand, more)
    assert domains(seen, CAPACITY_TYPE) == {SPOT: 1, ON_DEMAND: expected}


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        pytest.param(CAPACITY_TYPE, ON_DEMAND, SPOT, id="TP-13"),
        pytest.param(ARCH, "amd64", "arm64", id="TP-14"),
    ],
)
def test_tp_13_and_14_a_domain_that_only_exists_counts(key, first, second):
    label = {"app": "web"}
    pinned = template("default", needs(key, "In", first))
    seen = after_pass(EMPTY, pinned, pods(1, "2", name="old", labels=label))
    full = running(pods(1, "1500m", name="filler")[0], next(iter(seen.nodes)))
    seen = after_pass(with_more(seen, full), template("default", needs(key, "In", second)))
    seen = after_pass(seen, pods(5, "2", spread=(spread(key),)))
    assert domains(seen, key) == {first: 1, second: 2}


def test_tp_15_a_label_of_the_templates_gives_a_ratio_of_capacity_types():
    share = "example.com/share"
    pools = [
        template("spot", needs(CAPACITY_TYPE, "In", SPOT), needs(share, "In", "2", "3", "4", "5")),
        template("on-demand", needs(CAPACITY_TYPE, "In", ON_DEMAND), needs(share, "In", "1")),
    ]
    seen = after_pass(EMPTY, pools, pods(20, spread=(spread(share),)))
    assert skew(seen, share) == (4, 4, 4, 4, 4)
    assert domains(seen, CAPACITY_TYPE) == {SPOT: 16, ON_DEMAND: 4}


def test_tp_16_a_zone_whose_limit_is_used_up_stays_a_domain():
    pools = [in_zones("z1", "z2"), in_zones("z3", name="closed", limits={"cpu": "0"})]
    constraints = (spread(ZONE), spread(HOSTNAME, soft=True))
    seen = after_pass(EMPTY, pools, pods(10, spread=constraints))
    assert domains(seen, ZONE) == {"z1": 1, "z2": 1}


def test_tp_17_node_selectors_decide_where_the_constraint_would_forbid():
    wanted = [
        pods(number, selector={ZONE: zone}, name=f"in-{zone}", labels={"app": "web"}, spread=ZONES)
        for zone, number in (("z1", 5), ("z2", 10))
    ]
    assert domains(after_pass(EMPTY, wanted), ZONE) == {"z1": 5, "z2": 10}


def either(*zones):
    return (term(needs(ZONE, "In", *zones)),)


def test_tp_18_only_the_zones_that_the_pod_allows_are_balanced():
    seen = after_pass(EMPTY, pods(10, required_terms=either("z1", "z2"), spread=ZONES))
    assert domains(seen, ZONE) == {"z1": 5, "z2": 5}


def test_tp_19_each_pod_is_balanced_among_the_zones_that_it_allows():
    def batch(number, name, *zones):
        terms = either(*zones) if zones else ()
        return pods(number, name=name, labels={"app": "web"}, required_terms=terms, spread=ZONES)

    seen = after_pass(EMPTY, batch(6, "first", "z1", "z2"))
    assert domains(seen, ZONE) == {"z1": 3, "z2": 3}
    seen = after_pass(seen, batch(1, "second", "z2", "z3"))
    assert domains(seen, ZONE) == {"z1": 3, "z2": 3, "z3": 1}
    seen = after_pass(seen, batch(5, "third"))
    assert domains(seen, ZONE) == {"z1": 4, "z2": 4, "z3": 4}


def test_tp_20_zones_of_two_templates_are_balanced_together():
    pools = [in_zones("z1", name="one"), in_zones("z2", "z3", name="two")]
    assert skew(after_pass(EMPTY, pools, pods(10, spread=ZONES)), ZONE) == (3, 3, 4)


THREE = (spread(CAPACITY_TYPE), spread(ZONE, skew=2), spread(HOSTNAME, skew=3))


def within_three_limits(seen):
    kinds, zones = domains(seen, CAPACITY_TYPE), domains(seen, ZONE)
    assert max(kinds.values()) - min(kinds.get(kind, 0) for kind in (SPOT, ON_DEMAND)) <= 1
    assert max(zones.values()) - min(zones.get(zone, 0) for zone in ("z1", "z2", "z3")) <= 2
    assert max(skew(seen, HOSTNAME)) <= 3


@pytest.mark.parametrize("batches", [(3, 6, 9, 12, 15), (1, 1, 1, 1, 1), (30,), (2, 7)])
def test_tp_21_three_constraints_at_once_hold_from_batch_to_batch(batches):
    seen = EMPTY
    for batch, number in enumerate(batches):
        more = pods(number, "100m", name=f"b{batch}", labels={"app": "web"}, spread=THREE)
        seen = after_pass(seen, more)
        within_three_limits(seen)


@pytest.mark.parametrize("number", [1, 2, 5, 13, 40])
def test_tp_21_three_constraints_at_once_leave_no_pod_of_one_batch_pending(number):
    seen = after_pass(EMPTY, pods(number, "100m", spread=THREE))
    within_three_limits(seen)
    assert not waiting(seen)


def test_tp_22_with_fewer_domains_than_asked_for_the_minimum_is_zero():
    seen = after_pass(EMPTY, in_zones("z1", "z2"), pods(3, spread=(spread(ZONE, min_domains=3),)))
    assert domains(seen, ZONE) == {"z1": 1, "z2": 1}
    assert len(waiting(seen)) == 1


def test_tp_23_with_enough_domains_the_minimum_is_counted():
    assert skew(after_pass(EMPTY, pods(11, spread=(spread(ZONE, min_domains=3),))), ZONE) == (3, 4, 4)


def test_tp_24_the_values_of_match_label_keys_are_spread_apart():
    constraints = (spread(HOSTNAME, match_label_keys=("revision",)),)
    wanted = [
        pods(2, "100m", name=value, labels={"app": "web", "revision": value}, spread=constraints)
        for value in ("a", "b")
    ]
    assert skew(after_pass(EMPTY, wanted), HOSTNAME) == (2, 2)


def test_tp_24_a_match_label_key_that_pods_lack_is_ignored():
    constraints = (spread(HOSTNAME, match_label_keys=("revision",)),)
    assert skew(after_pass(EMPTY, pods(4, "100m", spread=constraints)), HOSTNAME) == (1, 1, 1, 1)


RACK = "example.com/rack"


@pytest.mark.parametrize(
    ("alternative", "expected"),
    [
        pytest.param(NodeSelectorTerm(()), {"z1": 2, "z2": 2}, id="asks-for-nothing"),
        pytest.param(
            NodeSelectorTerm((), True, (needs(NODE_NAME, "In", "gone"),)),
            {"z1": 2, "z2": 2},
            id="a-lost-node",
        ),
        pytest.param(
            NodeSelectorTerm((), True, (needs(NODE_NAME, "In", "third"),)), {"z1": 1, "z2": 1}, id="a-node"
        ),
    ],
)
def test_an_alternative_of_node_affinity_opens_no_zone_that_no_node_of_it_is_in(alternative, expected):
    full = node("third", "0", labels={ZONE: "z3"}, provider_id="")
    asked = (alternative, term(needs(ZONE, "In", "z1", "z2")))
    seen = after_pass(EMPTY, full, template(), pods(4, "100m", required_terms=asked, spread=ZONES))
    assert domains(seen, ZONE) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Ignore", 1), ("Honor", 5)])
def test_tp_25_nodes_with_taints_are_domains_unless_the_constraint_honors_taints(policy, expected):
    foreign = [
        node(rack, labels={RACK: rack}, provider_id="", taints=(Taint("taken", "NoSchedule"),))
        for rack in ("foo", "bar")
    ]
    own = template("default", labels={RACK: "baz"})
    constraints = (spread(RACK, node_taints_policy=policy),)
    seen = after_pass(EMPTY, foreign, own, pods(5, "100m", spread=constraints))
    assert domains(seen, RACK) == {"baz": expected}


@pytest.mark.parametrize(("policy", "expected"), [("Ignore", 1), ("Honor", 5)])
def test_tp_26_nodes_that_the_selector_excludes_are_domains_if_affinity_is_ignored(policy, expected):
    foreign = [node(rack, labels={RACK: rack, "team": "theirs"}, provider_id="") for rack in ("foo", "bar")]
    own = template("default", labels={RACK: "baz", "team": "ours"})
    constraints = (spread(RACK, node_affinity_policy=policy),)
    seen = after_pass(EMPTY, foreign, own, pods(5, "100m", selector={"team": "ours"}, spread=constraints))
    assert domains(seen, RACK) == {"baz": expected}


def test_a_type_without_spot_in_a_zone_is_no_obstacle_to_both_constraints():
    types = (a_type("default", sold=(("z1", SPOT), ("z2", ON_DEMAND))),)
    constraints = (spread(ZONE), spread(CAPACITY_TYPE))
    seen = after_pass(EMPTY, pods(6, "100m", spread=constraints), types=types)
    assert skew(seen, ZONE) == skew(seen, CAPACITY_TYPE) == (3, 3)


def test_pods_on_a_node_that_may_take_no_part_raise_no_minimum():
    somewhere = pods(1, "2500m", name="somewhere", labels={"app": "web"}, selector={CAPACITY_TYPE: ON_DEMAND})
    in_z1 = pods(2, "2", selector={ZONE: "z1"}, spread=(spread(CAPACITY_TYPE),))
    seen = after_pass(EMPTY, somewhere, in_z1, types=(a_type("default"),))
    kinds = [
        seen.nodes[pod.node_name].capacity_type
        for pod in seen.pods.values()
        if pod.node_name and pod.name.startswith("web")
    ]
    assert len(kinds) == len(set(kinds))


def test_a_domain_whose_nodes_would_lack_another_constraints_label_plays_no_part():
    racked = node("racked", labels={RACK: "r1", ARCH: "amd64"}, provider_id="")
    old = [running(pod, "racked") for pod in pods(2, "100m", name="old", labels={"app": "web"})]
    constraints = (spread(RACK, "nobody"), spread(ARCH))
    seen = after_pass(EMPTY, racked, old, pods(1, "100m", spread=constraints))
    assert not waiting(seen)
