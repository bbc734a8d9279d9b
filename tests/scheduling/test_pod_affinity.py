"""Pod affinity and anti-affinity: the acceptance rows AF-01 to AF-17, each with its identifier."""

from itertools import permutations

import pytest

from nodeless.model.labels import ARCH, HOSTNAME, ZONE
from nodeless.model.namespaces import Namespace
from nodeless.model.pods import LabelSelector, PodAffinityTerm
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.pods.selecting import NAMESPACE_NAME
from tests.scheduling.acceptance.catalogs import a_type
from tests.scheduling.factories import beside, claim_for, domains, needs, pods, selecting, spread, term
from tests.scheduling.passes import after_pass, planned, skew, template, waiting, with_more

EMPTY = Snapshot()
ZONES = ("z1", "z2", "z3")
MATES = PodAffinityTerm(HOSTNAME, selecting(team="x"))


def pinned(zone, **fields):
    return pods(1, name=f"in-{zone}", labels={"app": "x"}, selector={ZONE: zone}, **fields)


def namespaces(labels):
    return [Namespace(name, own) for name, own in labels.items()]


def expressing(key, operator, *values):
    return LabelSelector(match_expressions=((key, operator, values),))


def node_of(seen, name, namespace="default"):
    return seen.pods[f"{namespace}/{name}"].node_name


def test_af_01_a_pod_finds_its_target_among_spread_pods():
    seen = after_pass(
        EMPTY,
        pods(10, "100m", spread=(spread(HOSTNAME),)),
        pods(1, "100m", name="target"),
        pods(1, "100m", name="friend", affinity=(beside(HOSTNAME, "target"),)),
    )
    assert not waiting(seen)
    assert node_of(seen, "friend-0") == node_of(seen, "target-0")


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize("zone", [None, "z3"])
def test_af_02_pods_that_want_each_other_share_one_domain(key, zone):
    terms = (term(needs(ZONE, "In", zone)),) if zone else ()
    seen = after_pass(EMPTY, pods(3, "100m", affinity=(beside(key),), required_terms=terms))
    assert skew(seen, key) == (3,)
    assert zone is None or domains(seen, ZONE) == {"z3": 3}


def test_af_03_what_does_not_fit_beside_the_others_waits():
    seen = after_pass(EMPTY, pods(10, "100m", affinity=(beside(HOSTNAME),)))
    assert skew(seen, HOSTNAME) == (5,)
    assert len(waiting(seen)) == 5


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("passes", [1, 2])
def test_af_04_a_pod_avoids_another_whichever_comes_first(order, passes):
    known = {
        "a": pods(1, "100m", name="a"),
        "b": pods(1, "100m", name="b", anti_affinity=(beside(HOSTNAME, "a"),)),
    }
    batches = [[known[name]] for name in order] if passes == 2 else [[known[name] for name in order]]
    seen = EMPTY
    for batch in batches:
        seen = after_pass(seen, batch)
    assert not waiting(seen)
    assert node_of(seen, "a-0") != node_of(seen, "b-0")


def test_af_05_a_pod_that_avoids_every_zone_in_use_waits():
    loner = pods(1, name="loner", anti_affinity=(beside(ZONE, "x"),))
    assert waiting(after_pass(EMPTY, [pinned(zone) for zone in ZONES], loner)) == ["loner-0"]


def carriers(weight=None):
    mark_unavailable = (beside(ZONE, "web", weight=weight),)
    return [pinned(zone, anti_affinity=mark_unavailable) for zone in ZONES]


def test_af_06_pods_that_avoid_another_keep_it_out():
    assert waiting(after_pass(EMPTY, carriers(), pods(1))) == ["web-0"]


def test_af_07_pods_that_run_keep_it_out_too():
    seen = after_pass(EMPTY, carriers())
    assert not waiting(seen)
    assert waiting(after_pass(seen, pods(1))) == ["web-0"]


@pytest.mark.parametrize("passes", [1, 2])
def test_af_08_what_is_only_preferred_keeps_nobody_out(passes):
    seen = after_pass(EMPTY, carriers(weight=10)) if passes == 2 else EMPTY
    more = [pods(1)] if passes == 2 else [carriers(weight=10), pods(1)]
    assert not waiting(after_pass(seen, more))


def test_af_09_a_pod_avoids_an_architecture():
    seen = after_pass(
        EMPTY,
        pods(1, "2", name="target", selector={ARCH: "arm64"}),
        pods(1, "1", name="loner", anti_affinity=(beside(ARCH, "target"),)),
    )
    labels = {name: seen.nodes[node_of(seen, name)].labels[ARCH] for name in ("target-0", "loner-0")}
    assert labels == {"target-0": "arm64", "loner-0": "amd64"}


def test_af_10_pods_that_avoid_each_other_get_all_zones_in_one_pass_and_no_more():
    seen = after_pass(EMPTY, pods(3, anti_affinity=(beside(ZONE),)))
    assert skew(seen, ZONE) == (1, 1, 1)
    fourth = pods(1, name="fourth", labels={"app": "web"}, anti_affinity=(beside(ZONE),))
    seen = after_pass(seen, fourth)
    assert waiting(seen) == ["fourth-0"]


@pytest.mark.parametrize("passes", [2, 3])
def test_af_10_one_pass_after_the_other_never_puts_two_in_a_zone(passes):
    seen = EMPTY
    for number in range(passes + 2):
        more = pods(1, name=f"p{number}", labels={"app": "web"}, anti_affinity=(beside(ZONE),))
        seen = after_pass(seen, more)
        assert skew(seen, ZONE) == (1,) * min(number + 1, 3)


def test_af_11_pods_follow_a_target_of_the_same_batch_into_its_zone():
    seen = after_pass(
        EMPTY,
        pods(1, name="target", labels={"app": "web"}, selector={ZONE: "z1"}),
        pods(10, name="friend", labels={"app": "web"}, affinity=(beside(ZONE),)),
    )
    assert domains(seen, ZONE) == {"z1": 11}


@pytest.mark.parametrize("order", tuple(permutations(("db", "web", "cache", "ui"))))
def test_af_12_a_chain_is_placed_in_one_pass_in_any_order(order):
    wants = {"web": "db", "cache": "web", "ui": "cache"}
    batch = [
        pods(1, "100m", name=name, affinity=(beside(HOSTNAME, wants[name]),) if name in wants else ())
        for name in order
    ]
    seen = after_pass(EMPTY, batch)
    assert not waiting(seen)
    assert len(seen.nodes) == 1


def test_af_13_affinity_to_nobody_keeps_pods_pending():
    result = planned(with_more(EMPTY, template(), pods(10, affinity=(beside(ZONE, "nobody"),))))
    assert not result.new_nodes
    assert {refusal.code for refusal in result.refusals} == {"PodAffinity"}


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        pytest.param({}, ["friend-0"], id="AF-14"),
        pytest.param({"namespace_selector": LabelSelector()}, [], id="AF-15"),
        pytest.param({"namespaces": ("other",)}, [], id="listed"),
        pytest.param({"namespaces": ("third",)}, ["friend-0"], id="not-listed"),
    ],
)
def test_af_14_and_15_namespaces_decide_who_is_meant(scope, left):
    seen = after_pass(
        EMPTY,
        pods(1, "100m", name="target", namespace="other"),
        pods(1, "100m", name="friend", affinity=(beside(HOSTNAME, "target", **scope),)),
    )
    assert waiting(seen) == left
    assert left or node_of(seen, "friend-0") == node_of(seen, "target-0", "other")


TEAM_A = LabelSelector((("team", "a"),))
LABELS = {"other": {"team": "a"}, "third": {"team": "b"}, "default": {}}


@pytest.mark.parametrize(
    ("selector", "labels", "left"),
    [
        pytest.param(TEAM_A, LABELS, [], id="labeled-so"),
        pytest.param(TEAM_A, {**LABELS, "other": {"team": "b"}}, ["friend-0"], id="labeled-otherwise"),
        pytest.param(TEAM_A, {}, ["friend-0"], id="nothing-known"),
        pytest.param(expressing("team", "DoesNotExist"), {}, [], id="without-the-label"),
        pytest.param(expressing("team", "NotIn", "a"), LABELS, ["friend-0"], id="all-but"),
        pytest.param(expressing(NAMESPACE_NAME, "In", "other"), {}, [], id="by-name"),
    ],
)
def test_affinity_means_the_pods_of_namespaces_with_such_labels(selector, labels, left):
    seen = after_pass(
        with_more(EMPTY, namespaces(labels)),
        pods(1, "100m", name="target", namespace="other"),
        pods(1, "100m", name="friend", affinity=(beside(HOSTNAME, "target", namespace_selector=selector),)),
    )
    assert waiting(seen) == left
    assert left or node_of(seen, "friend-0") == node_of(seen, "target-0", "other")


@pytest.mark.parametrize("theirs", [False, True], ids=["its-own-term", "a-term-of-the-other"])
@pytest.mark.parametrize(("labels", "apart"), [(LABELS, True), ({**LABELS, "other": {"team": "b"}}, False)])
def test_anti_affinity_keeps_off_namespaces_with_such_labels_alone(labels, apart, theirs):
    """A term of a pod that runs keeps others off as well; what it means follows the labels of today."""
    shy = {"anti_affinity": (beside(HOSTNAME, "target", namespace_selector=TEAM_A),)}
    there, comes = ({}, shy) if not theirs else (shy, {})
    names = ("target", "shy") if not theirs else ("shy", "target")
    spaces = ("other", "default") if not theirs else ("default", "other")
    runs = pods(1, "100m", name=names[0], namespace=spaces[0], **there)
    seen = after_pass(with_more(EMPTY, namespaces(labels)), runs)
    seen = after_pass(seen, pods(1, "100m", name=names[1], namespace=spaces[1], **comes))
    assert not waiting(seen)
    assert len(seen.nodes) == (2 if apart else 1)


def test_af_16_empty_lists_of_terms_ask_for_nothing():
    assert not waiting(after_pass(EMPTY, pods(2, affinity=(), anti_affinity=())))


def test_af_17_a_second_pass_before_anything_is_bound_plans_the_same_node():
    before = with_more(EMPTY, template(), pods(2, "100m", affinity=(beside(ZONE),)))
    (new,) = planned(before).new_nodes
    again = planned(with_more(before, claim_for(new)))
    assert not again.new_nodes
    assert set(again.placements.values()) == {"default-aaaaa"}


def test_two_groups_that_want_each_other_are_placed_together():
    seen = after_pass(
        EMPTY,
        pods(2, "100m", name="left", labels={"team": "x"}, affinity=(MATES,)),
        pods(2, "100m", name="right", labels={"team": "x"}, affinity=(MATES,)),
    )
    assert not waiting(seen)
    assert len(seen.nodes) == 1


def test_a_group_goes_where_the_largest_part_of_it_fits():
    types = (a_type("few", pods=2), a_type("many", 8, "16Gi", pods=20))
    seen = after_pass(EMPTY, pods(8, "500m", affinity=(beside(HOSTNAME),)), types=types)
    assert not waiting(seen)
    assert skew(seen, HOSTNAME) == (8,)


def test_pods_that_want_one_host_and_shun_each_others_zone_are_placed_once():
    both = {"affinity": (beside(HOSTNAME),), "anti_affinity": (beside(ZONE),)}
    seen = after_pass(EMPTY, pods(3, "100m", **both))
    assert skew(seen, ZONE) == (1,)
    assert len(waiting(seen)) == 2


def test_a_group_starts_on_an_open_node_when_no_limit_allows_a_larger_one():
    types = (a_type("default"),)
    own = template(limits={"cpu": "4"})
    first = pods(1, "2500m", name="first")
    seen = after_pass(EMPTY, own, first, pods(2, affinity=(beside(HOSTNAME),)), types=types)
    assert skew(seen, HOSTNAME) == (1,)


GROUPS = {
    "hosts": (pods(7, "100m", affinity=(beside(HOSTNAME),)), 1),
    "zone": (pods(3, "3", affinity=(beside(ZONE),)), 3),
    "zone, hosts apart": (pods(3, "100m", affinity=(beside(ZONE),), anti_affinity=(beside(HOSTNAME),)), 3),
    "host, zones apart": (pods(2, "100m", affinity=(beside(HOSTNAME),), anti_affinity=(beside(ZONE),)), 1),
}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_whose_nodes_are_on_their_way_gets_no_more_of_them(group):
    wanted, nodes = GROUPS[group]
    types = (a_type("default"),)
    before = with_more(EMPTY, template(), wanted)
    first = planned(before, types)
    assert len(first.new_nodes) == nodes
    claims = [claim_for(new, name=f"default-{i}") for i, new in enumerate(first.new_nodes)]
    second = planned(with_more(before, claims), types)
    assert not second.new_nodes
    assert set(second.placements.values()) == {claim.name for claim in claims}
