"""For how long a pod keeps its node from being disrupted, and what is said of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import format_time
from nodeless.disruption import DisruptionPolicy
from nodeless.disruption.requeue import next_requeue_at
from nodeless.model.instructions import EvictPod, PublishEvent
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.nodeclaim import ClaimView, step
from nodeless.state.protection import protected_until, protection, unreadable_protection
from tests.disruption.world import BORN, a_node_pool, a_provisioner, cluster, decide, node_of, on
from tests.scheduling.factories import NOW

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def long_job(name="a", span="2h", **fields):
    return [replace(pod, annotations={DO_NOT_DISRUPT: span}) for pod in on(name, **fields)]


@given(st.integers(1, 500), st.sampled_from(sorted(UNITS)), st.floats(0, 10**6), st.floats(-(10**7), 10**7))
def test_a_duration_is_a_deadline_from_the_start_of_the_pod(number, unit, since_start, anything):
    (pod,) = long_job(span=f"{number}{unit}")
    until = BORN + number * UNITS[unit]
    assert protected_until(pod) == until
    said = protection(pod, BORN + since_start)
    assert bool(said) == (BORN + since_start < until)
    assert not said or said.endswith(f"until {format_time(until)}")
    assert protection(replace(pod, started_at=None), anything), "its time begins only as it starts"


@pytest.mark.parametrize(
    ("span", "hours"), [("1.5h", 1.5), ("0.5h", 0.5), ("+90m", 1.5), ("1h0.5m30s", 61 / 60)]
)
def test_a_duration_is_written_as_go_reads_it(span, hours):
    (pod,) = long_job(span=span)
    assert protection(pod, BORN + hours * 3600 - 1)
    assert not protection(pod, BORN + hours * 3600)
    assert unreadable_protection(pod) is None


@pytest.mark.parametrize("value", ["true", "false", "-10m", "10 minutes", "0s", "Never", ""])
def test_other_values_have_no_deadline(value):
    (pod,) = long_job(span=value)
    assert protected_until(pod) is None
    assert bool(protection(pod, NOW)) == (value == "true")


def drifted(pool):
    condition = Condition(DRIFTED, "True", "AMIDrift", "", BORN)
    claim, node = node_of(pool, "a")
    return [replace(claim, conditions=(*claim.conditions, condition)), node]


def consolidated_at(now):
    pool = a_node_pool()
    return decide(cluster(pool, node_of(pool, "a"), long_job(cpu="100m")), now=now), "a"


def replaced_at(pool, now, **policy):
    return decide(cluster(pool, drifted(pool), long_job()), now=now, **policy), "a"


WAYS = {
    "consolidation": consolidated_at,
    "drift of a NodePool": lambda now: replaced_at(a_node_pool(), now),
    "drift of a Provisioner": lambda now: replaced_at(a_provisioner(), now, drift_of_provisioners=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_deadline_holds_off_every_voluntary_disruption_and_no_longer(way):
    end = BORN + 2 * 3600
    decisions, name = WAYS[way](end - 1)
    verdict = decisions.verdicts[name]
    assert verdict.code == "PodProtected"
    assert f"until {format_time(end)}" in verdict.message
    decisions, name = WAYS[way](end)
    assert decisions.commands[0].claims == (name,)


def test_the_drain_of_a_node_that_has_expired_waits_for_the_deadline():
    pool = a_node_pool()
    claim, node = node_of(pool, "a", deletion_timestamp=BORN, node={"deletion_timestamp": BORN})
    (pod,) = long_job()
    end = BORN + 2 * 3600

    def asked(now):
        return step(ClaimView(claim, node, (pod,)), now).instructions

    assert not [each for each in asked(end - 1) if isinstance(each, EvictPod)]
    (said,) = [
        each.message
        for each in asked(end - 1)
        if isinstance(each, PublishEvent) and each.reason == "FailedDraining"
    ]
    assert f"until {format_time(end)}" in said
    assert [each.name for each in asked(end) if isinstance(each, EvictPod)] == [pod.name]


def test_the_end_of_the_deadline_wakes_a_cluster_in_which_nothing_changes():
    pool = a_node_pool()
    seen = cluster(pool, node_of(pool, "a"), long_job())
    assert next_requeue_at(seen, DisruptionPolicy(), NOW) == BORN + 2 * 3600
