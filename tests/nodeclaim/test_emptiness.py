"""Given `ttlSecondsAfterEmpty: 30`, when does a node end?"""

import pytest

from nodeless.api.times import format_time
from nodeless.model.instructions import DeleteClaim, PublishEvent, UpdateNode
from nodeless.model.labels import EMPTINESS_TIMESTAMP, LAUNCHED_FOR_GANG, PAUSE
from nodeless.nodeclaim import ClaimView, step
from tests.factories import DAEMON, NOW, a_node, a_pod, a_pool, an_initialized_claim

CLAIM = an_initialized_claim()
POOL = a_pool(ttl_seconds_after_empty=30)


def instructions(node=None, pods=(), pool=POOL, now=NOW, **fields):
    view = ClaimView(CLAIM, node or a_node(), tuple(pods), pool, **fields)
    return step(view, now)


def marked(at=NOW):
    return a_node(annotations={EMPTINESS_TIMESTAMP: format_time(at)})


def test_nd_04_a_node_without_pods_is_marked_with_the_time():
    (update,) = instructions().instructions
    assert isinstance(update, UpdateNode)
    assert update.annotations == {EMPTINESS_TIMESTAMP: format_time(NOW)}
    assert update.stage == "added TTL to empty node"


def test_nd_06_daemons_static_pods_and_finished_pods_do_not_keep_a_node():
    pods = [a_pod("aws-node", owners=DAEMON), a_pod("done", phase="Succeeded"), a_pod("static", mirror=True)]
    assert len(instructions(pods=pods).instructions) == 1


def test_a_terminating_pod_keeps_it():
    assert instructions(pods=[a_pod(deletion_timestamp=NOW)]).instructions == ()


def test_dn_22_a_node_that_keeps_room_for_a_buffer_is_not_empty():
    assert instructions(buffered=True).instructions == ()
    (update,) = instructions(node=marked(), buffered=True).instructions
    assert update.annotations == {EMPTINESS_TIMESTAMP: None}


def test_a_node_that_waits_for_the_rest_of_a_gang_is_not_empty():
    claim = an_initialized_claim(annotations={LAUNCHED_FOR_GANG: "default/train"})
    (update,) = step(ClaimView(claim, marked(), (), POOL), NOW + 900).instructions
    assert update.annotations == {EMPTINESS_TIMESTAMP: None}


def test_nd_07_a_node_on_which_pods_are_expected_is_left_alone():
    outcome = instructions(nominated_until=NOW + 20)
    assert outcome.instructions == ()
    assert outcome.again_at == NOW + 20


def test_nd_06_work_takes_the_mark_away():
    (update,) = instructions(marked(), [a_pod()]).instructions
    assert update.annotations == {EMPTINESS_TIMESTAMP: None}


def test_em_01_nothing_ends_before_the_ttl():
    outcome = instructions(marked(), now=NOW + 29)
    assert outcome.instructions == ()
    assert outcome.again_at == NOW + 30


def test_em_01_the_claim_is_deleted_after_the_ttl_with_an_event_that_says_why():
    event, deletion = instructions(marked(), now=NOW + 30).instructions
    assert isinstance(event, PublishEvent)
    assert "empty for 30 s" in event.message
    assert deletion == DeleteClaim("claim:default-abcde", "default-abcde", "emptiness")


def test_em_02_all_nodes_whose_time_is_up_end_at_the_same_moment():
    ended = []
    for name in ("a", "b", "c"):
        node = a_node(name, annotations={EMPTINESS_TIMESTAMP: format_time(NOW)})
        seen = step(ClaimView(an_initialized_claim(name), node, (), POOL), NOW + 30).instructions
        ended += [each.name for each in seen if isinstance(each, DeleteClaim)]
    assert ended == ["a", "b", "c"]


def test_an_unreadable_mark_counts_as_elapsed():
    node = a_node(annotations={EMPTINESS_TIMESTAMP: "yesterday"})
    assert isinstance(instructions(node).instructions[-1], DeleteClaim)


def test_without_the_setting_nodes_stay():
    assert instructions(pool=a_pool()).instructions == ()
    (update,) = instructions(marked(), pool=a_pool()).instructions
    assert update.annotations == {EMPTINESS_TIMESTAMP: None}


@pytest.mark.parametrize("braked", ["node", "pool", ""])
def test_an_empty_node_stays_while_disruption_is_paused(braked):
    def paused(subject):
        return {PAUSE: "true"} if subject == braked else {PAUSE: "false"}

    pool = a_pool(ttl_seconds_after_empty=30, own_annotations=paused("pool"))
    node = a_node(annotations={EMPTINESS_TIMESTAMP: format_time(NOW), **paused("node")})
    found = instructions(node, pool=pool, now=NOW + 31).instructions
    assert any(isinstance(each, DeleteClaim) for each in found) == (not braked)
