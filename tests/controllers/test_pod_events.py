"""Given pods that come to a node and leave it, which moments does `consolidateAfter` count from?"""

from dataclasses import replace

import pytest

from nodeless.controllers.nodeclaim.pod_events import PodEvents
from nodeless.model.events import ClaimSeen, NodeSeen
from nodeless.model.pools import Reference
from nodeless.model.snapshot import Snapshot
from nodeless.state.applying import apply
from tests.factories import DAEMON, NOW, a_launched_claim, a_node, a_pending_pod, a_pod

CLAIM, NODE = a_launched_claim(pool=Reference("NodePool", "default")), a_node()
PENDING = a_pending_pod()
RUNNING = a_pod(node_name=NODE.name, phase="Running")
READY, FINISHED = replace(RUNNING, ready=True), replace(RUNNING, phase="Succeeded")
DELETED = replace(RUNNING, deletion_timestamp=NOW + 30)
DELETED_AND_FINISHED = replace(DELETED, phase="Succeeded")
GONE = None
SNAPSHOT = apply(apply(Snapshot(), ClaimSeen(CLAIM)), NodeSeen(NODE))


def counts(before, after):
    """Whether the change of a pod is an event of its node's claim."""
    events = PodEvents()
    if after is GONE:
        events.note_gone(before, SNAPSHOT)
    else:
        events.observe(after, before, SNAPSHOT)
    return events.to_write(CLAIM, NOW)[0] is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(PENDING, RUNNING, id="comes"),
        pytest.param(RUNNING, FINISHED, id="finishes"),
        pytest.param(RUNNING, DELETED, id="is deleted"),
        pytest.param(RUNNING, GONE, id="is deleted without a grace period"),
    ],
)
def test_a_pod_that_comes_or_leaves_counts(before, after):
    assert counts(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(RUNNING, READY, id="becomes ready"),
        pytest.param(DELETED, DELETED_AND_FINISHED, id="ends after it was deleted"),
        pytest.param(DELETED, GONE, id="is gone after it was deleted"),
        pytest.param(FINISHED, replace(FINISHED, deletion_timestamp=NOW), id="is deleted after its end"),
        pytest.param(FINISHED, GONE, id="is gone after its end"),
        pytest.param(None, RUNNING, id="is met for the first time"),
        pytest.param(replace(RUNNING, owners=DAEMON), replace(DELETED, owners=DAEMON), id="is a daemon's"),
    ],
)
def test_nothing_else_counts(before, after):
    assert not counts(before, after)
