"""Log lines of a pass follow its stages."""

from nodeless.explain import computed, found_pods, launching, refused, reused
from nodeless.model.plan import Plan
from tests.scheduling.factories import FAMILY, instance_type, node, plan, pods


def test_the_pods_found():
    assert (found_pods(1), found_pods(10)) == ("found 1 provisionable pod", "found 10 provisionable pods")


def test_the_packing_with_its_first_five_types_and_the_count_of_others():
    types = tuple(instance_type(f"t{i}", 16, 16, price=1.0 + i) for i in range(9))
    assert computed(plan(pods(10), types=types)) == (
        "computed 1 node for 10 pods with instance type options t0, t1, t2, t3, t4 and 4 others",
    )


def test_equal_nodes_share_a_line():
    only = (instance_type("single", 4, 4, pods=1),)
    assert computed(plan(pods(3), types=only)) == (
        "computed 3 nodes for 3 pods with instance type options single",
    )


def test_nothing_is_said_of_what_was_not_done():
    assert computed(Plan()) == ()
    assert reused(Plan()) is None
    assert refused(()) == ()


def test_pods_that_find_room():
    assert reused(plan(pods(2), node("one"))) == "2 pods should schedule on 1 node with room (one)"


def test_pods_with_the_same_reason_share_a_line():
    lines = refused(plan(pods(7, "1000"), types=FAMILY).refusals)
    assert len(lines) == 1
    assert lines[0].startswith(
        "could not plan 7 pods (default/web-0, default/web-1, default/web-2, default/web-3, default/web-4 "
        "and 2 others): No capacity for this pod: Provisioner/default: cpu: 1000 requested"
    )


def test_a_launch_names_pods_requests_and_types():
    (new,) = plan(pods(5, "1", "1Gi")).new_nodes
    assert launching(new) == (
        "launching a node of Provisioner/default with 5 pods requesting cpu 5, memory 5Gi, pods 5 "
        "from types xlarge, 2xlarge"
    )
