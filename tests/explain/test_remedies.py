"""What would help, in a pod's event."""

from nodeless.explain.events import LONGEST, failed_scheduling
from nodeless.model.plan import PoolRefusal, Refusal
from nodeless.model.pools import Reference

POOL = Reference("NodePool", "default")


def test_the_event_ends_with_what_would_help() -> None:
    refusal = Refusal("a/b", "TaintNotTolerated", (PoolRefusal(POOL, "TaintNotTolerated", "taint x"),))

    assert failed_scheduling(refusal, ["tolerate x", "drop y"]) == (
        "No capacity for this pod: NodePool/default: taint x\nwould fit: tolerate x; or: drop y"
    )


def test_a_long_reason_gives_way_to_what_would_help() -> None:
    refusal = Refusal("a/b", "X", (), "because " * 300)
    message = failed_scheduling(refusal, ["raise the limit"])

    assert len(message) == LONGEST
    assert message.endswith("...\nwould fit: raise the limit")
