"""Capacity that is paid for already: nodes move into it, and out of it for nothing."""

from dataclasses import replace

import pytest

from nodeless.api.times import format_time
from nodeless.model.disruption import DisruptionReason, VerdictCode
from nodeless.model.instance_types import Offering
from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    INSTANCE_ENDS,
    ON_DEMAND,
    RESERVED,
    SPOT,
)
from nodeless.model.nodes import DRIFTED, INITIALIZED_CONDITION, Condition
from nodeless.model.requirements import Requirements
from tests.disruption.world import NOW, a_node_pool, a_provisioner, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import FAMILY, needs

EITHER = Requirements([needs(CAPACITY_TYPE, "In", RESERVED, ON_DEMAND)])
POOL = a_provisioner(requirements=EITHER)


def sold(remaining, share=1e-7):
    """The family with a reservation of the type of the nodes here, of which so much is left."""
    return tuple(
        replace(
            kind,
            offerings=(
                *kind.offerings,
                Offering(
                    "z1",
                    RESERVED,
                    kind.offerings[-1].price * share,
                    remaining > 0,
                    "cr-1",
                    remaining,
                    "default",
                ),
            ),
        )
        if kind.name == "large"
        else kind
        for kind in FAMILY
    )


@pytest.mark.parametrize("share", [1e-7, 0.0])
def test_a_node_that_is_bought_moves_into_a_reservation_that_has_room(share):
    seen = cluster(POOL, node_of(POOL, "a"), on("a", number=3))
    command = only_command(decide(seen, sold(1, share)))
    (node,) = command.replacements
    assert node.requirements[CAPACITY_TYPE].values == {RESERVED}
    assert node.requirements[CAPACITY_RESERVATION_ID].values == {"cr-1"}


def test_a_node_stays_where_the_reservation_is_full():
    assert not decide(cluster(POOL, node_of(POOL, "a"), on("a", number=3)), sold(0)).commands


def test_a_reserved_node_is_left_for_nothing_cheaper_since_nothing_is():
    wide = a_provisioner(requirements=Requirements([needs(CAPACITY_TYPE, "In", RESERVED, SPOT, ON_DEMAND)]))
    held = node_of(wide, "a", capacity_type=RESERVED, labels={CAPACITY_RESERVATION_ID: "cr-1"})
    assert not decide(cluster(wide, held, on("a", number=3)), sold(0)).commands


RESERVED_ALONE = Requirements([needs(CAPACITY_TYPE, "In", RESERVED)])
DRIFTED_FIRST = frozenset({DisruptionReason.DRIFTED})


def drifted_in_its_slot(pool):
    """A drifted node that holds a slot of the reservation."""
    drift = Condition(DRIFTED, "True", "NodePoolDrifted", "", NOW - 100)
    up = Condition(INITIALIZED_CONDITION, "True", INITIALIZED_CONDITION, "", NOW - 3600)
    labels = {CAPACITY_RESERVATION_ID: "cr-1"}
    return node_of(
        pool, "a", capacity_type=RESERVED, labels=labels, node={"labels": labels}, conditions=(up, drift)
    )


@pytest.mark.parametrize("fields", [{}, {"replicas": 1}], ids=["dynamic", "static"])
def test_where_its_own_slot_alone_can_hold_its_replacement_a_drifted_node_ends_first_if_that_is_allowed(
    fields,
):
    pool = a_node_pool(requirements=RESERVED_ALONE, consolidation_enabled=False, **fields)
    seen = cluster(pool, drifted_in_its_slot(pool), on("a", number=3))
    waits = decide(seen, sold(0))
    assert not waits.commands
    assert waits.verdicts["a"].code == VerdictCode.NO_REPLACEMENT
    command = only_command(decide(seen, sold(0), terminate_first=DRIFTED_FIRST))
    assert (command.reason, command.claims, command.replacements) == ("Drifted", ("a",), ())


def test_a_drifted_node_is_replaced_before_it_ends_where_a_slot_is_left():
    pool = a_node_pool(requirements=RESERVED_ALONE, consolidation_enabled=False)
    seen = cluster(pool, drifted_in_its_slot(pool), on("a", number=3))
    assert len(only_command(decide(seen, sold(1), terminate_first=DRIFTED_FIRST)).replacements) == 1


def test_a_drifted_node_does_not_end_first_where_that_is_allowed_for_broken_ones_alone():
    pool = a_node_pool(requirements=RESERVED_ALONE, consolidation_enabled=False)
    seen = cluster(pool, drifted_in_its_slot(pool), on("a", number=3))
    assert not decide(seen, sold(0), terminate_first=frozenset({DisruptionReason.UNHEALTHY})).commands


@pytest.mark.parametrize(("hours", "moves"), [(1, False), (1.9, False), (2, True), (24, True)])
def test_no_pod_moves_to_a_node_whose_capacity_block_ends_soon(hours, moves):
    ends = {INSTANCE_ENDS: format_time(NOW + hours * 3600)}
    block = node_of(POOL, "b", capacity_type=RESERVED, annotations=ends)
    seen = cluster(POOL, node_of(POOL, "a"), on("a"), block, on("b"))
    commands = decide(seen, sold(0)).commands
    alone = [command.claims for command in commands if not command.replacements]
    assert (("a",) in alone) == moves
