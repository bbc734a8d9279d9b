"""Consolidation goes by the prices of NodeOverlays, and looks anew when others count."""

from __future__ import annotations

from nodeless.disruption.commands import begin
from nodeless.disruption.consolidation_state import is_unchanged
from nodeless.launch.overlays import laid_over
from nodeless.model import events
from nodeless.model.instructions import CreateClaim
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, PRICE_OVERLAY_APPLIED
from nodeless.model.overlays import NodeOverlay
from nodeless.model.requirements import Requirements
from nodeless.model.snapshot import Snapshot
from nodeless.state import apply
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, NOW, needs

POOL = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", ON_DEMAND)]))
CHEAP = NodeOverlay("cheap", requirements=Requirements([needs(INSTANCE_TYPE, "In", "2xlarge")]), price=0.01)


def test_a_node_is_replaced_by_a_type_that_an_overlay_makes_cheaper_and_its_claim_says_so():
    seen = cluster(POOL, node_of(POOL, "a", "small"), on("a", cpu="500m"))
    types = laid_over([CHEAP], POOL, FAMILY)
    assert not decide(seen).commands

    command = only_command(decide(seen, types))

    (replacement,) = command.replacements
    assert (command.claims, replacement.instance_type) == (("a",), "2xlarge")
    made = begin(command, seen, dict(seen.pools), NOW, catalog={POOL.key: types})
    (create,) = [each for each in made if isinstance(each, CreateClaim)]
    assert create.claim.annotations[PRICE_OVERLAY_APPLIED] == "true"


def test_other_overlays_make_another_look_worth_it_and_their_conditions_do_not():
    before = Snapshot()

    applied = apply(before, events.OverlaysApplied(("cheap",)))
    # Of the same name, and of another price.
    again = apply(applied, events.OverlaysApplied((CHEAP.name, *())))
    seen = apply(applied, events.NodeOverlaySeen(CHEAP))

    assert not is_unchanged(before, applied)
    assert not is_unchanged(applied, again)
    assert is_unchanged(applied, seen)
