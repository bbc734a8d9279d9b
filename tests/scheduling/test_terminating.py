"""Room of pods that terminate counts as free when it is so before a new node could be there."""

import random
from dataclasses import replace

import pytest
from immutables import Map

from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation
from nodeless.model.labels import GANG_SIZE, HOSTNAME, PROVISIONER_NAME, ZONE
from nodeless.model.nodes import REBOOTING, Condition
from nodeless.model.pods import HostPort, Owner, PodResourceClaim
from nodeless.model.resources import total
from nodeless.scheduling import FEWEST_NODES, Policy, solve
from nodeless.scheduling.capacity.terminating import (
    soon_gone,
    waiting,
    with_room_to_come,
)
from tests.scheduling.factories import (
    DEFAULT,
    FAMILY,
    NOW,
    beside,
    claim,
    node,
    plan,
    pods,
    pool,
    running,
    snapshot,
    spread,
)

(NEW,) = pods(1, "3", name="new")
READY = {"ready": True}
LONGEST = Policy().termination_wait


def terminating(pod, after=25, **fields):
    """A pod whose grace period ends so many seconds from now."""
    return replace(pod, **{"deletion_timestamp": NOW + after, **fields})


def owned(kind):
    return {"owners": (Owner("apps/v1", kind, "web", controller=True),)}


def an_old_pod(after=25, shape=None, **fields):
    (pod,) = pods(1, "3", name="old", **(shape or {}))
    return terminating(running(pod, "n1"), after, **fields)


def a_home(*things):
    """Where the plan puts the new pod once room that is to come counts."""
    seen = snapshot(NEW, pool(), *things)
    claim_names = Map({one.provider_id: name for name, one in seen.claims.items()})
    seen, _ = with_room_to_come(replace(seen, claim_names=claim_names), NOW, LONGEST)
    made = solve(seen, {DEFAULT: FAMILY}, Policy(packing=FEWEST_NODES))
    return "a new node" if made.new_nodes else made.placements[NEW.key]


@pytest.mark.parametrize(
    ("what", "fields", "home"),
    [
        ("its grace period ends in a moment", {"after": 25}, "n1"),
        ("the longest that is waited for", {"after": LONGEST}, "n1"),
        ("longer than a node takes", {"after": LONGEST + 1}, "a new node"),
        ("it is over, and the kubelet is at it", {"after": -5}, "n1"),
        ("it is over, and the pod is still there", {"after": -6}, "a new node"),
        ("of a ReplicaSet: its successor is there already", owned("ReplicaSet"), "n1"),
        ("of a StatefulSet: its successor will want it", owned("StatefulSet"), "a new node"),
        ("of a DaemonSet", owned("DaemonSet"), "a new node"),
        ("a static pod", {"mirror": True}, "a new node"),
        ("its volume is free later", {"shape": {"claims": ("data",)}}, "a new node"),
        ("so is one made for it", {"shape": {"ephemeral_volumes": (("data", None),)}}, "a new node"),
        ("so is its device", {"shape": {"resource_claims": (PodResourceClaim("gpu", "one"),)}}, "a new node"),
        ("its port is no amount", {"shape": {"host_ports": (HostPort("", 443, "TCP"),)}}, "a new node"),
        ("of a gang, which it is still part of", {"annotations": {GANG_SIZE: "2"}}, "a new node"),
        ("it does not terminate", {"deletion_timestamp": None}, "a new node"),
    ],
)
def test_whose_room_is_counted(what, fields, home):
    assert a_home(an_old_pod(**fields), node("n1", **READY)) == home, what


@pytest.mark.parametrize(
    ("longest", "after", "counts"), [(0, 0, False), (0, -3, False), (90, 90, True), (5, 6, False)]
)
def test_how_long_pods_wait_is_a_setting_and_with_zero_none_does(longest, after, counts):
    seen = snapshot(an_old_pod(after), node("n1", **READY))
    assert bool(soon_gone(seen, NOW, longest)) == counts


def test_without_it_a_node_would_be_launched():
    assert plan(NEW, an_old_pod(), node("n1", **READY)).new_nodes


def test_room_that_kube_scheduler_made_for_a_pod_by_preemption_is_that_pods():
    (preempting,) = pods(1, "3", name="preempting")
    by = replace(preempting, nominated_node_name="n1")
    elsewhere = replace(preempting, nominated_node_name="n2")
    assert a_home(an_old_pod(), by, node("n1", **READY)) == "a new node"
    assert a_home(an_old_pod(), elsewhere, node("n1", **READY)) == "n1"


@pytest.mark.parametrize(
    ("what", "nodes"),
    [
        ("is not ready", [node("n1")]),
        ("is being removed", [node("n1", deletion_timestamp=NOW, **READY)]),
        ("is not initialized", [node("n1", labels={PROVISIONER_NAME: "default", ZONE: "z1"}, **READY)]),
        (
            "reboots, which takes longer",
            [
                node("n1", **READY),
                claim(
                    "n1-claim",
                    provider_id="aws:///z1/i-n1",
                    conditions=(Condition(REBOOTING, "True", "Requested", "", NOW),),
                ),
            ],
        ),
    ],
)
def test_room_on_a_node_that_takes_no_pods_is_none(what, nodes):
    assert a_home(an_old_pod(), *nodes) == "a new node", what


def test_a_pod_of_which_no_node_is_known_frees_nothing():
    assert not soon_gone(snapshot(an_old_pod()), NOW, LONGEST)


def test_the_others_stay_where_they_are():
    (other,) = pods(1, "1", name="other")
    seen = snapshot(an_old_pod(), running(other, "n1"), node("n1", **READY), node("n2", **READY), pool())
    left, nodes = with_room_to_come(seen, NOW, LONGEST)
    assert nodes == {"n1"}
    assert left == snapshot(running(other, "n1"), node("n1", **READY), node("n2", **READY), pool())
    alone, _ = with_room_to_come(snapshot(an_old_pod(), node("n1", **READY)), NOW, LONGEST)
    assert alone == snapshot(node("n1", **READY))


@pytest.mark.parametrize("seed", range(20))
def test_who_has_room_now_does_not_wait_and_who_waits_has_none(seed):
    """On drawn nodes: those that wait, and no others, have no room until the terminating pods are gone."""
    drawn = random.Random(seed)
    each = [pods(1, str(drawn.randint(1, 4)), name=f"p{number}")[0] for number in range(12)]
    ends = [terminating(running(pod, "n1")) for pod in each[:3]]
    stays = [running(pod, "n1") for pod in each[3:5]]
    asks = [replace(pod, priority=drawn.randint(0, 2)) for pod in each[5:]]
    seen = snapshot(ends, stays, asks, node("n1", str(drawn.randint(12, 24)), **READY), pool())
    freed, nodes = with_room_to_come(seen, NOW, LONGEST)
    placements = solve(freed, {DEFAULT: FAMILY}, Policy(packing=FEWEST_NODES)).placements
    waits = waiting(seen, nodes, placements)
    assert waits.items() <= placements.items()
    used = total(pod.requests for pod in (*ends, *stays))["cpu"]
    free = seen.nodes["n1"].allocatable["cpu"] - used
    now = [seen.pods[key].requests["cpu"] for key in placements.keys() - waits.keys()]
    assert sum(now) <= max(free, 0)
    if waits:
        assert min(seen.pods[key].requests["cpu"] for key in waits) > free - sum(now)


def test_the_pods_that_kube_scheduler_tries_first_get_the_room_that_is_free():
    low, high, elsewhere, spare = (pods(1, "1", name=name)[0] for name in ("a", "b", "c", "d"))
    spare = replace(spare, shape=replace(spare.shape, placeholder=True), priority=3)
    asks = [low, replace(high, priority=1), replace(running(elsewhere, "n2"), priority=2), spare]
    seen = snapshot(an_old_pod(), asks, node("n2", **READY), node("n1", "4", **READY))
    assert waiting(seen, ["n1"], {pod.key: "n1" for pod in asks}).keys() == {
        pod.key for pod in (low, elsewhere, spare)
    }
    more = snapshot(an_old_pod(), asks, node("n2", **READY), node("n1", "5", **READY))
    assert waiting(more, ["n1"], {pod.key: "n1" for pod in asks}).keys() == {elsewhere.key, spare.key}


def test_a_pod_that_has_ended_uses_no_room():
    ended = replace(running(pods(1, "4", name="ended")[0], "n1"), phase="Succeeded")
    small = pods(1, "1", name="small")[0]
    seen = snapshot(an_old_pod(), ended, small, node("n1", "4", **READY))
    assert not waiting(seen, ["n1"], {small.key: "n1"})


class TestWhy:
    def said_of(self, *things, **choices):
        situation = Situation(snapshot(pool(), *things), {DEFAULT: FAMILY}, Policy(**choices), NOW)
        return answer(situation, situation.plan(), NEW.key).lines

    def test_it_says_what_such_a_pod_waits_for(self):
        assert self.said_of(NEW, an_old_pod(), node("n1", **READY)) == (
            "lands on n1, once the pods that terminate there are gone",
            "is planned without their room after 30 s",
        )

    def test_it_says_so_where_no_pool_could_make_a_node(self):
        things = (NEW, an_old_pod(), node("n1", **READY))
        situation = Situation(snapshot(*things), {}, Policy(), NOW)
        assert "terminate" in answer(situation, situation.plan(), NEW.key).lines[0]

    def test_it_speaks_of_no_others_where_there_is_room(self):
        (small,) = pods(1, "1", name="other")
        lines = self.said_of(NEW, terminating(running(small, "n1")), node("n1", **READY))
        assert lines[0] == "lands on n1, which has room"

    def test_it_speaks_of_a_node_where_that_is_sooner_there(self):
        assert "new node" in self.said_of(NEW, an_old_pod(after=60), node("n1", **READY))[0]

    def test_it_follows_the_setting(self):
        things = (NEW, an_old_pod(after=60), node("n1", **READY))
        assert self.said_of(*things, termination_wait=60.0)[1] == ("is planned without their room after 60 s")
        assert "new node" in self.said_of(*things, termination_wait=0.0)[0]


@pytest.mark.parametrize(
    ("after", "wait", "home"),
    [
        (25, 30.0, "n1"),
        (3600, 30.0, "a new node"),
        (-6, 30.0, "a new node"),
        (25, 0.0, "a new node"),
        (3600, 7200.0, "n1"),
    ],
)
@pytest.mark.parametrize("who", ["both", "the one that ends", "the new one"])
def test_a_pod_that_takes_long_to_end_keeps_those_off_its_node_that_must_be_apart(after, wait, home, who):
    """Until it is gone kube-scheduler counts it for anti-affinity, and the new pod would wait as long."""
    apart = {"anti_affinity": (beside(HOSTNAME),)}
    (old,) = pods(1, name="old", labels={"app": "web"}, **(apart if who != "the new one" else {}))
    (new,) = pods(1, **(apart if who != "the one that ends" else {}))
    seen = snapshot(terminating(running(old, "n1"), after), node("n1", **READY), new, pool())
    made = solve(seen, {DEFAULT: FAMILY}, Policy(packing=FEWEST_NODES, termination_wait=wait).at(NOW))
    assert ("a new node" if made.new_nodes else made.placements[new.key]) == home


def test_a_pod_that_takes_long_to_end_counts_for_no_spread_and_nobody_follows_it():
    """For topology spread as in kube-scheduler; who follows it would be alone when it has ended."""
    (old,) = pods(1, name="old", labels={"app": "web"})
    ending = terminating(running(old, "n1"), 3600)
    on_hosts = pods(1, spread=(spread(HOSTNAME),))
    policy = Policy(packing=FEWEST_NODES).at(NOW)
    made = plan(ending, node("n1", **READY), on_hosts, policy=policy)
    assert made.placements == {"default/web-0": "n1"}
    follower = pods(1, name="follower", affinity=(beside(HOSTNAME),))
    assert not plan(ending, node("n1", **READY), follower, policy=policy).placements
