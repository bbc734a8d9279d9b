"""A pod that has asked to grow beyond its node holds room that nobody else gets, and breaks no plan."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.pods import PendingResize
from tests.scheduling.factories import node, plan, pods, running


@given(grown=st.integers(1, 64), waiting=st.integers(1, 5), room=st.integers(1, 32))
def test_pods_that_wait_get_the_room_that_a_resize_leaves(grown, waiting, room):
    (pod,) = pods(1, str(grown), name="db")
    waits = PendingResize("Deferred", pod.shape.requests, (("cpu", 1000), ("pods", 1)))
    found = plan(replace(running(pod, "n1"), resize=waits), node("n1", str(room)), pods(waiting), types=())
    assert len(found.placements) == min(waiting, max(room - grown, 0))
