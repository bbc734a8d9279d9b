"""Pods that save their work before they are evicted are shown with the moment, wherever one looks."""

from dataclasses import replace

from nodeless.api.times import format_time
from nodeless.explain.answers import answer
from nodeless.explain.decisions import Situation
from nodeless.explain.overview import overview
from nodeless.model.labels import CHECKPOINT_GRACE, INSTANCE_ENDS
from nodeless.scheduling import Policy
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import FAMILY, NOW


def draining(told=NOW - 60, now=NOW, **claim):
    pool = a_node_pool()
    gone = {"deletion_timestamp": NOW - 60}
    held = node_of(pool, "a", node=gone, **gone, **claim)
    (pod,) = on("a")
    asking = {"annotations": {CHECKPOINT_GRACE: "10m"}, "checkpoint_requested_at": told}
    seen = cluster(pool, held, replace(pod, **asking))
    return Situation(seen, {pool.key: FAMILY}, Policy(time_box=0.0), now)


def texts(situation):
    plan = situation.plan()
    (row,) = overview(situation).rows
    said = [*answer(situation, plan, "pod/app-a-0-a").lines]
    said += [*answer(situation, plan, "node/node-a").lines, row.message]
    return [text for text in said if "save its work" in text]


def test_node_and_overview_say_until_when():
    until = format_time(NOW + 540)
    (of_pod, of_node, of_row) = texts(draining())
    assert of_pod == of_node
    assert of_node == f"pod default/app-a-0-a may save its work until {until}"
    assert of_row == f"it is being drained or terminated; {of_node}"


def test_the_end_of_the_instance_comes_first():
    ends = {INSTANCE_ENDS: format_time(NOW + 100)}
    assert format_time(NOW + 70) in texts(draining(annotations=ends))[0]


def test_nothing_is_said_of_a_time_that_is_over_or_of_an_earlier_drain():
    assert texts(draining(now=NOW + 540)) == []
    assert texts(draining(told=NOW - 3600)) == []
