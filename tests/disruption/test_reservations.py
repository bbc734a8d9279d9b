"""Capacity that is paid for already: nodes move into it, and out of it for nothing."""

from dataclasses import replace

import pytest

from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_RESERVATION_ID, CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from nodeless.model.requirements import Requirements
from tests.disruption.world import a_provisioner, cluster, decide, node_of, on, only_command
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
