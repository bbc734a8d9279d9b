"""Beside what v0.27's rules would do: no dearer in the end, and no more evictions for what is saved."""

import pytest

from nodeless.disruption.policy import DisruptionPolicy
from tests.disruption.drawn_clusters import CLUSTERS, TYPES, a_cluster, compared
from tests.disruption.replay import bound_of
from tests.disruption.rules_of_v27 import consolidate
from tests.disruption.world import a_budget, a_provisioner, cluster, node_of, on, only_command
from tests.scheduling.factories import FAMILY, NOW

pytestmark = pytest.mark.long


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("seed", "name"), list(enumerate(CLUSTERS)), ids=[name.replace(" ", "-") for name in CLUSTERS]
)
def test_ours_saves_at_least_as_much_with_no_more_evictions_for_it(seed, name):
    ours, theirs = compared(seed, name)
    assert ours.still
    assert theirs.still
    # Any saving is enough for those rules to replace nodes, ours leave less than this alone.
    assert ours.price_after * (1 - DisruptionPolicy().least_saving) <= theirs.price_after
    assert ours.evictions * theirs.saving <= theirs.evictions * ours.saving + 1e-9
    assert bound_of(a_cluster(seed, **CLUSTERS[name]), TYPES) <= ours.price_after + 1e-6


def test_the_model_of_the_rules_ends_empty_nodes_first():
    pool = a_provisioner()
    seen = cluster(pool, node_of(pool, "a"), node_of(pool, "b"), on("b"))
    assert only_command(consolidate(seen, FAMILY, NOW)).claims == ("a",)


def test_the_model_of_the_rules_merges_the_largest_prefix_that_one_node_can_replace():
    pool = a_provisioner()
    nodes = [node_of(pool, name, "2xlarge") for name in "abc"]
    seen = cluster(pool, nodes, [on(name, cpu="500m") for name in "abc"])
    command = only_command(consolidate(seen, FAMILY, NOW))
    assert command.claims == ("a", "b", "c")
    assert len(command.replacements) == 1


def test_the_model_of_the_rules_touches_no_node_whose_budget_allows_nothing():
    pool = a_provisioner()
    seen = cluster(pool, a_budget("guarded"), node_of(pool, "a", "2xlarge"), on("a", app="guarded"))
    assert not consolidate(seen, FAMILY, NOW).commands
