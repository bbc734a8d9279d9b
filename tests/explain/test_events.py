"""Messages of events stay short and name the one thing that failed."""

from nodeless.explain import failed_scheduling, nominated, placed, waits
from nodeless.model.labels import ZONE
from nodeless.model.plan import PoolRefusal, Refusal
from nodeless.model.pools import Reference
from tests.scheduling.factories import instance_type, needs, plan, pods, term


def refusal(*reasons, message=""):
    reported = tuple(PoolRefusal(Reference("Provisioner", name), code, text) for name, code, text in reasons)
    return Refusal("default/web-0", "NoPoolFits", reported, message)


def test_a_pod_on_a_new_node_is_told_which():
    (new,) = plan(pods(1)).new_nodes
    assert nominated("default-abcde", new) == (
        "Pod should schedule on default-abcde, a new node of Provisioner/default: medium or similar, spot, "
        "in z1 or another allowed zone, 0.5295 USD/h, the cheapest of 4 types that hold its 1 pod; "
        "next: large 1.0590; next: xlarge 2.1180; next: 2xlarge 4.2360"
    )


def test_a_pod_on_an_existing_node_is_told_which():
    assert placed("ip-10-0-1-2") == "Pod should schedule on ip-10-0-1-2, which has room"


def test_a_pod_that_waits_for_others_to_terminate_is_told_so():
    assert waits("ip-10-0-1-2", 30.0) == (
        "Pod should schedule on ip-10-0-1-2 once the pods that terminate there are gone; "
        "a node is launched for it if it still waits after 30 s"
    )


def test_a_wait_of_less_than_a_second_is_told_as_it_is():
    assert waits("ip-10-0-1-2", 0.5).endswith("if it still waits after 0.5 s")


def test_what_a_pod_gave_up_is_told_with_its_place():
    wish = preferring("z9")
    made = plan(pods(1, preferred_terms=wish))
    (lost,) = made.relaxed_preferences().values()
    reported = nominated("default-abcde", made.new_nodes[0], lost).splitlines()
    assert reported[1:] == [
        "relaxed: preferred node affinity topology.kubernetes.io/zone In [z9] (weight 5): "
        "no pool can make such a node"
    ]
    assert placed("n1", lost).endswith(reported[1])
    assert len(placed("n1", lost * 99)) == 1024


def preferring(zone):
    return ((5, term(needs(ZONE, "In", zone))),)


def test_one_pool_gives_one_line():
    text = failed_scheduling(refusal(("default", "TaintNotTolerated", "taint a:NoSchedule is not tolerated")))
    assert text == "No capacity for this pod: Provisioner/default: taint a:NoSchedule is not tolerated"


def test_several_pools_give_a_line_each_and_many_are_counted():
    text = failed_scheduling(refusal(*((f"p{i}", "LimitsExceeded", "used up") for i in range(9))))
    lines = text.splitlines()
    assert lines[0] == "No pool can make a node for this pod:"
    assert lines[1] == "Provisioner/p0: used up"
    assert lines[-1] == "and 4 other pools (LimitsExceeded)"
    assert len(lines) == 7


def test_a_refusal_of_its_own_is_told_as_it_is():
    assert failed_scheduling(refusal(message="no pool exists")) == "No capacity for this pod: no pool exists"


def test_six_hundred_types_never_make_a_long_message():
    types = tuple(instance_type(f"t{i}", 4, 4) for i in range(600))
    (refused,) = plan(pods(1, "1000"), types=types).refusals
    text = failed_scheduling(refused)
    assert len(text.splitlines()) == 1
    assert len(text) < 300
    assert "cpu: 1000 requested" in text
