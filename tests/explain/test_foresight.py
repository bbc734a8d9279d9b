"""What a changed pool would do to the nodes that stand, told before it is applied."""

from dataclasses import replace

import pytest

from nodeless.explain.decisions import Situation
from nodeless.explain.drift_preview import CloudObservations, preview_drift, without_pools, without_pools_of
from nodeless.model import events
from nodeless.model.labels import INSTANCE_TYPE, ON_DEMAND, OWNER
from nodeless.model.requirements import Requirements
from nodeless.model.taints import Taint
from nodeless.nodeclaim.drift import Selected
from nodeless.scheduling import Policy
from nodeless.state import apply
from nodeless.state.static_fields import digests
from tests.disruption.world import a_node_pool, a_provisioner, cluster, node_of, on
from tests.factories import an_instance
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_node_pool()
DEAR = needs(INSTANCE_TYPE, "In", "2xlarge", "large")
CHEAP = needs(INSTANCE_TYPE, "In", "large")


def situation(snapshot):
    return Situation(snapshot, dict.fromkeys(snapshot.pools, FAMILY), Policy(), NOW)


def with_pool(before, pool):
    return replace(before, snapshot=apply(before.snapshot, events.PoolSeen(pool)))


def standing(pool, name="a", kind="2xlarge"):
    return node_of(pool, name, kind, annotations=digests(pool, None))


def test_a_change_that_nodes_do_not_bear_moves_their_pods_and_tells_the_cost():
    pool = replace(POOL, requirements=Requirements([DEAR]))
    before = situation(cluster(pool, standing(pool), standing(pool, "b", "large"), on("a", 2)))

    reported = preview_drift(before, with_pool(before, replace(pool, requirements=Requirements([CHEAP]))))

    (node,) = reported.drifting
    assert (node.node, node.reason, node.pods, node.replaced) == ("node-a", "RequirementsDrifted", 2, True)
    prices = {
        kind.name: offering.price
        for kind in FAMILY
        for offering in kind.offerings
        if offering.capacity_type == ON_DEMAND
    }
    assert reported.before == pytest.approx(prices["2xlarge"] + prices["large"])
    assert reported.difference < 0
    assert reported.unplaced == ()
    assert reported.to_json()["costPerMonth"]["difference"] == pytest.approx(reported.difference * 730)
    text = list(reported.lines())
    assert text[0].startswith("1 node would be replaced and 2 pods move: label ")
    assert text[-1].startswith("cost ")
    assert text[-1].endswith("USD a month")


def test_what_nodes_are_made_with_counts_and_other_fields_do_not():
    before = situation(cluster(POOL, standing(POOL), on("a")))
    tainted = replace(POOL, taints=(Taint("team", "search", "NoSchedule"),))
    reported = preview_drift(before, with_pool(before, tainted))
    assert [each.reason for each in reported.drifting] == ["NodePoolDrifted"]
    assert [len(each.pods) for each in reported.unplaced] == [1], "nothing tolerates the new taint"

    same = preview_drift(before, with_pool(before, replace(POOL, weight=50)))
    assert same.drifting == same.launches == ()
    assert same.difference == 0
    assert next(same.lines()) == "no node would drift"


def test_a_node_that_drifts_already_is_no_news():
    before = situation(cluster(POOL, node_of(POOL, "a", "2xlarge", annotations=digests(POOL, None)), on("a")))
    drifted = with_pool(before, replace(POOL, labels={"team": "web"}))
    assert preview_drift(drifted, with_pool(drifted, replace(POOL, labels={"team": "shop"}))).drifting == ()


def test_a_node_that_has_drifted_ends_with_its_pool_all_the_same():
    before = situation(cluster(POOL, node_of(POOL, "a", "2xlarge", annotations=digests(POOL, None)), on("a")))
    drifted = with_pool(before, replace(POOL, labels={"team": "web"}))
    after = replace(drifted, snapshot=without_pools([POOL.key], drifted.snapshot))
    assert [(each.node, each.reason) for each in preview_drift(drifted, after).drifting] == [
        ("node-a", "PoolRemoved")
    ]


@pytest.mark.parametrize("kind", [a_node_pool, a_provisioner])
def test_the_nodes_of_a_pool_that_leaves_end_and_their_pods_move(kind):
    owned = {OWNER: "shop/prod/pools"}
    leaving, staying = kind("leaving", own_annotations=owned), kind("staying", own_annotations=owned)
    before = situation(cluster([leaving, staying], standing(leaving), standing(staying, "b"), on("a", 2)))

    others = without_pools_of("shop/dev/pools", before.snapshot)
    assert preview_drift(before, replace(before, snapshot=others)).drifting == ()
    after = replace(before, snapshot=without_pools_of("shop/prod/pools", before.snapshot))
    reported = preview_drift(before, with_pool(after, staying))

    assert [(each.node, each.pods, each.replaced) for each in reported.drifting] == [("node-a", 2, True)]
    assert reported.difference < 0, "the pods fit on the other node"
    lines = list(reported.lines())
    assert lines[0] == (
        f"1 node would end and 2 pods move: {leaving.key} is removed [PoolRemoved]: node-a (2xlarge)"
    )


def test_pools_are_taken_away_by_name_or_by_uid_and_uids_of_others_are_passed_over():
    staying, going = a_node_pool("staying"), a_node_pool("going")
    marked = replace(going, reference=replace(going.reference, uid="u-1"))
    snapshot = cluster([staying, marked])
    for named in ([str(going.key)], ["u-1", "u-of-another-cluster"]):
        assert [*without_pools(named, snapshot).pools] == [staying.key]
    with pytest.raises(KeyError, match="NodePool/gone"):
        without_pools(["NodePool/gone"], snapshot)


def test_a_pool_that_is_being_deleted_already_is_no_news():
    gone = replace(POOL, deletion_timestamp=NOW)
    before = situation(cluster(gone, standing(gone), on("a")))
    after = replace(before, snapshot=apply(before.snapshot, events.PoolGone(gone.key)))
    assert preview_drift(before, after).drifting == ()


@pytest.mark.parametrize("enabled", [False, True])
def test_nodes_of_provisioners_are_replaced_only_where_drift_is_turned_on(enabled):
    pool = a_provisioner(requirements=Requirements([DEAR]))
    before = situation(cluster(pool, standing(pool), on("a")))
    after = with_pool(before, replace(pool, requirements=Requirements([CHEAP])))

    reported = preview_drift(before, after, provisioners_drift=enabled)

    assert [each.replaced for each in reported.drifting] == [enabled]
    assert bool(reported.launches) == enabled
    assert ("would drift and stay" in next(reported.lines())) != enabled


def test_nodes_that_drift_and_stay_cost_what_they_cost_now():
    pool = a_provisioner(requirements=Requirements([DEAR]))
    before = situation(cluster(pool, standing(pool), on("a")))
    after = with_pool(before, replace(pool, requirements=Requirements([CHEAP])))
    sold = tuple(kind for kind in FAMILY if kind.name == "large")

    reported = preview_drift(before, replace(after, catalog={pool.key: sold}))

    assert [each.replaced for each in reported.drifting] == [False]
    assert reported.before > 0
    assert reported.difference == pytest.approx(0)
    assert reported.unpriced == ()


def test_nodes_without_a_price_are_named():
    before = situation(cluster(POOL, standing(POOL), standing(POOL, "b", "large"), on("a")))
    cheap = tuple(kind for kind in FAMILY if kind.name == "large")
    before = replace(before, catalog={POOL.key: cheap})

    reported = preview_drift(before, before)

    assert reported.difference == 0
    assert "the price of 1 node is not known, and in neither cost: node-a" in list(reported.lines())
    assert reported.to_json()["unpriced"] == ["node-a"]


def test_another_image_is_found_by_what_the_cloud_says():
    before = situation(cluster(POOL, standing(POOL), on("a")))
    key = str(POOL.node_class)
    old = {key: Selected(frozenset(), frozenset(), (("ami-1", Requirements()),))}
    new = {key: Selected(frozenset(), frozenset(), (("ami-2", Requirements()),))}
    (claim,) = before.snapshot.claims.values()
    instance = an_instance("a", provider_id=claim.provider_id, image_id="ami-1")

    reported = preview_drift(before, before, CloudObservations(old, new, {instance.provider_id: instance}))

    assert [each.reason for each in reported.drifting] == ["AMIDrift"]
    assert "ami-1 is not selected" in next(reported.lines())


def test_the_same_change_is_told_in_the_same_words():
    pool = replace(POOL, requirements=Requirements([DEAR]))
    before = situation(cluster(pool, standing(pool), standing(pool, "c"), on("a", 2), on("c")))
    after = with_pool(before, replace(pool, requirements=Requirements([CHEAP])))
    assert list(preview_drift(before, after).lines()) == list(preview_drift(before, after).lines())
