"""Claims whose spans and annotations hold any number: each step of theirs can be taken and written."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.reading import read_any_claim
from nodeless.api.times import format_time
from nodeless.api.writing import claim_status
from nodeless.disruption.budgets import active, limit
from nodeless.model.instructions import AnnotateClaim, DeletePod
from nodeless.model.labels import DO_NOT_DISRUPT, DRAIN_GRACE, NOT_BEFORE, REBOOTS, TERMINATION_TIMESTAMP
from nodeless.model.pools import Budget
from nodeless.nodeclaim import ClaimView, step
from nodeless.state.protection import protection
from tests.disruption.world import a_provisioner, node_of, on

NOW = 1_700_000_000.0
POOL = a_provisioner()
DIGITS = st.integers(0, 10**30).map(str) | st.just("9" * 5000) | st.just("0")
SPANS = st.builds(lambda number, unit: number + unit, DIGITS, st.sampled_from("smh")) | st.just("Never")
TIMES = (
    st.sampled_from(
        ["0000-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"]
    )
    | st.floats().map(format_time)
    | st.text(max_size=30)
)


def a_claim(draw):
    """A NodeClaim as the API server would keep it."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "a",
            "uid": "u",
            "resourceVersion": "1",
            "creationTimestamp": "2023-11-01T00:00:00Z",
            "deletionTimestamp": "2023-11-14T22:13:00Z",
            "finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.sh/nodepool": "default"},
            "annotations": {
                DRAIN_GRACE: draw(DIGITS | st.text(max_size=5)),
                TERMINATION_TIMESTAMP: draw(TIMES),
                NOT_BEFORE: draw(TIMES),
                REBOOTS: draw(TIMES),
            },
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": draw(
                st.lists(
                    st.fixed_dictionaries(
                        {"key": st.just("a"), "operator": st.sampled_from(["Gt", "Lt", "In", "Exists"])},
                        optional={"values": st.lists(DIGITS, max_size=2)},
                    ),
                    max_size=2,
                )
            ),
            "expireAfter": draw(SPANS),
            "terminationGracePeriod": draw(SPANS.filter(lambda span: span != "Never")),
        },
        "status": {"providerID": "aws:///z1/i-1"},
    }


@given(st.data())
def test_a_claim_with_any_spans_ends(data):
    manifest = a_claim(data.draw)
    claim = read_any_claim(manifest)
    assert (claim.name, claim.provider_id, claim.deletion_timestamp is not None) == (
        "a",
        "aws:///z1/i-1",
        True,
    )
    _, node = node_of(POOL, "a", "small")
    grace = data.draw(st.integers(-(2**63), 2**63 - 1))
    (pod,) = on("a", cpu="1")
    pod = replace(pod, grace_period_seconds=grace, annotations={DO_NOT_DISRUPT: data.draw(SPANS)})
    protection(replace(pod, started_at=NOW), NOW)
    for leaving in (None, 0.0, NOW - 1):
        view = ClaimView(claim, replace(node, deletion_timestamp=leaving), pods=(pod,))
        decided = step(view, NOW)
        assert decided.instructions
        for instruction in decided.instructions:
            if isinstance(instruction, DeletePod):
                assert 1 <= instruction.grace_seconds < 2**63
            if isinstance(instruction, AnnotateClaim):
                json.dumps(dict(instruction.annotations))
    json.dumps(claim_status(claim))


@given(DIGITS, st.sampled_from(["", "%"]), st.integers(0, 1000), st.integers(0, 2**63))
def test_a_budget_of_any_number_and_duration_can_be_judged(number, percent, nodes, duration):
    budget = Budget(number + percent, schedule="0 0 31 2 *", duration=duration)
    assert limit(budget, nodes) >= 0
    assert not active(budget, NOW)
    assert active(replace(budget, schedule="* * * * *", duration=max(duration, 60)), NOW)
