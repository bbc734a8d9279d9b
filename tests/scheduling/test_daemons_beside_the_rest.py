"""Rules that select a DaemonSet's pods, with the rest of scheduling: messages, simulation, labels, bounds."""

from dataclasses import replace

import pytest

from nodeless.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_NAME,
    ON_DEMAND,
    PROVISIONER_NAME,
    ZONE,
)
from nodeless.model.pods import Owner, PodAffinityTerm
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.beside_daemons import APART, BOOTING, EVERYWHERE, NEAR, planned
from tests.scheduling.factories import (
    beside,
    claim,
    daemon,
    needs,
    node,
    pods,
    pool,
    running,
    selecting,
    term,
)

BOTH = pytest.mark.parametrize("packing", [FEWEST_NODES, LOWEST_PRICE])
OWNED = {PROVISIONER_NAME: "default"}


@BOTH
def test_a_daemon_of_another_zone_does_not_close_the_zone_of_the_pod(packing):
    flying = claim("flying", "2xlarge", labels=OWNED)
    elsewhere = pods(1, "9", selector={ZONE: "z1"}, anti_affinity=(beside(ZONE, "agent"),))
    assert not planned(packing, daemon("agent", "100m", selector={ZONE: "z2"}), flying, elsewhere).refusals


@BOTH
def test_a_node_that_is_up_takes_the_pod_before_a_daemon_comes_to_a_claim_in_its_zone(packing):
    up, flying = node("here", labels={**BOOTING, INITIALIZED: "true"}), claim("flying", "large", labels=OWNED)
    far = pods(1, "1", anti_affinity=(beside(ZONE, "agent"),))
    assert planned(packing, daemon("agent", "100m"), up, flying, far).placements == {"default/web-0": "here"}


@BOTH
def test_pods_beside_the_daemons_of_new_nodes_are_bound_there(packing):
    assert not planned(packing, daemon("agent", "100m"), pods(6, "1", **NEAR), as_bound=True).spill


def test_a_node_with_a_pod_beside_a_daemon_is_replaced_by_a_cheaper_one():
    own = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
    owner = Owner("apps/v1", "DaemonSet", "agent", controller=True)
    agent = [replace(pod, owners=(owner,)) for pod in on("a", 1, "100m", "0", app="agent")]
    web = on("a", cpu="500m", shape=NEAR)
    seen = cluster(own, daemon("agent", "100m"), node_of(own, "a", "medium"), agent, web)
    assert [new.instance_type for new in only_command(decide(seen)).replacements] == ["small"]


@BOTH
def test_a_label_that_the_template_bears_no_more_is_not_expected(packing):
    old = running(pods(1, "100m", name="agent")[0], "here", daemon_set="agent")
    old = replace(old, labels={"app": "agent", "role": "x"})
    far = PodAffinityTerm(HOSTNAME, selecting(role="x"))
    result = planned(packing, node("here"), old, daemon("agent", "100m"), pods(1, "5", anti_affinity=(far,)))
    assert not result.refusals


@BOTH
def test_a_pod_is_not_refused_for_combinations_that_were_not_tried(packing):
    p, q, s, team = (f"example.com/{name}" for name in ("p", "q", "s", "team"))
    role = {"role": "agent"}
    agents = [
        daemon(f"z{i}", "1m", labels=role, selector={f"example.com/f{i}": "x", f"example.com/g{i}": "x"})
        for i in range(8)
    ]
    for name, asked in (
        ("a", (needs(p, "In", "x"), needs(q, "In", "x"))),
        ("b", (needs(p, "NotIn", "x"), needs(s, "NotIn", "x"))),
        ("c", (needs(s, "In", "x"), needs(p, "NotIn", "x"))),
    ):
        agents.append(daemon(name, "1m", labels=role, required_terms=(term(*asked),)))
    own = pool(
        "default",
        *(needs(key, "In", "x", "y") for key in (p, q, s)),
        *(needs(f"example.com/{letter}{i}", "In", "x", "y") for letter in "fg" for i in range(8)),
        needs(team, "In", *(f"t{i}" for i in range(40))),
    )
    far = (PodAffinityTerm(HOSTNAME, selecting(role="agent")),)
    teams = [pods(1, "1", name=f"w{i}", selector={team: f"t{i}"}, anti_affinity=far) for i in range(40)]
    assert not planned(packing, own, agents, teams).refusals


@BOTH
def test_a_refusal_beside_a_daemon_names_the_rule_that_leaves_no_node(packing):
    alone = pods(5, "1", anti_affinity=(beside(ZONE, "web"),), **NEAR)
    result = planned(packing, daemon("agent", "100m"), alone)
    assert len(result.new_nodes) == 3
    assert {refusal.code for refusal in result.refusals} == {"PodAntiAffinity"}


@BOTH
def test_a_refusal_beside_a_daemon_says_that_its_nodes_are_too_small(packing):
    small = daemon("agent", "100m", selector={INSTANCE_TYPE: "small"})
    (refused,) = planned(packing, small, pods(1, "3", **NEAR)).refusals
    assert refused.code == "InsufficientResources"


@BOTH
def test_a_daemon_comes_to_a_booting_node_with_a_taint_of_its_condition(packing):
    pressed = (Taint("node.kubernetes.io/memory-pressure", "NoSchedule"),)
    booting = node("here", labels=BOOTING, taints=pressed)
    for rules, expected in ((NEAR, {"default/web-0": "here"}), (APART, {})):
        web = pods(1, "1", tolerations=EVERYWHERE, **rules)
        assert planned(packing, daemon("agent", "100m"), booting, web).placements == expected


@BOTH
def test_a_daemon_comes_to_the_booting_node_that_it_names(packing):
    named = daemon("agent", "100m", required_terms=(term(needs(NODE_NAME, "In", "here")),))
    assert not planned(packing, named, node("here", labels=BOOTING), pods(1, "1", **APART)).placements
