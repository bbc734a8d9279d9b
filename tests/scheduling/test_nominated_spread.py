"""Which pods are not to be nominated to their node together; `test_pod_nominations` asks the scheduler."""

from dataclasses import replace

import pytest

from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.scheduling.pods.nominated_spread import kept_from_their_node
from nodeless.scheduling.pods.selecting import Namespaces
from tests.scheduling.factories import pods, snapshot, spread


def kept(*batches):
    some = [pod for batch in batches for pod in batch]
    found = kept_from_their_node(iter(some), Namespaces(snapshot(some)))
    return sorted(key.removeprefix("default/") for key in found)


def web(number, *rules, name="web", **labels):
    return pods(number, "1", name=name, labels={"app": "web", **labels}, spread=rules)


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
@pytest.mark.parametrize(("number", "skew", "expected"), [(1, 1, 0), (2, 1, 2), (2, 2, 0), (3, 2, 3)])
def test_pods_of_a_hard_spread_are_kept_from_their_node_where_they_are_more_than_its_skew(
    key, number, skew, expected
):
    assert len(kept(web(number, spread(key, skew=skew)))) == expected


def test_pods_without_hard_rules_are_not():
    assert kept(web(3), web(3, spread(ZONE, soft=True), name="soft")) == []


def test_pods_count_that_have_no_rule_themselves_and_are_not_kept():
    plain = pods(1, "1", name="plain", labels={"app": "web"})
    assert kept(plain, web(1, spread(ZONE))) == ["web-0"]
    assert kept(pods(5, "1", name="other", labels={"app": "other"}), web(1, spread(ZONE))) == []


def test_pods_of_other_namespaces_do_not_count():
    elsewhere = [replace(pod, namespace="elsewhere") for pod in web(1, spread(ZONE))]
    assert kept(elsewhere, web(1, spread(ZONE))) == []


def test_pods_of_other_values_of_a_match_label_key_do_not_count():
    rule = spread(ZONE, match_label_keys=("version",))
    assert kept(web(1, rule, name="old", version="1"), web(1, rule, version="2")) == []
    assert kept(web(2, rule, name="old", version="1"), web(1, rule, version="2")) == ["old-0", "old-1"]


def test_a_rule_that_does_not_count_its_own_pod_counts_the_others():
    others = web(2, name="others")
    watcher = pods(1, "1", name="watcher", labels={"app": "watcher"}, spread=(spread(ZONE),))
    assert kept(others[:1], watcher) == []
    assert kept(others, watcher) == ["watcher-0"]


def test_one_rule_of_several_is_enough():
    assert len(kept(web(2, spread(ZONE, skew=5), spread(HOSTNAME, skew=1)))) == 2
