"""Given an EC2NodeClass, what was made for it goes after its last claim and before the object."""

from dataclasses import replace

import pytest

from nodeless.model.events import ClaimSeen, NodeClassSeen
from nodeless.model.instructions import (
    AddFinalizer,
    CleanUpNodeClass,
    DeleteInstanceProfiles,
    DeleteLaunchTemplates,
    PublishEvent,
    ReleaseGuard,
    RemoveFinalizer,
    TerminateEverything,
)
from nodeless.model.labels import NODE_CLASS_FINALIZER
from nodeless.model.pools import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NodeClass, Reference
from nodeless.model.snapshot import Snapshot
from nodeless.nodeclaim import step_node_class, step_teardown
from nodeless.state import PoolUnusable, apply, usable
from tests.factories import NOW, a_launched_claim, a_pool

OWN = NodeClass(Reference(EC2_NODE_CLASS, "own", "uid-1"), role="nodes", finalizers=(NODE_CLASS_FINALIZER,))
DELETED = replace(OWN, deletion_timestamp=NOW)


def claims(*names):
    snapshot = Snapshot()
    for name in names:
        snapshot = apply(snapshot, ClaimSeen(replace(a_launched_claim(name), node_class=OWN.reference)))
    return snapshot


def test_a_living_class_is_protected_once_and_a_template_never():
    unprotected = replace(OWN, finalizers=("somebody/else",))
    (added,) = step_node_class(Snapshot(), unprotected)
    assert added == AddFinalizer(OWN.key, EC2_NODE_CLASS, "own", NODE_CLASS_FINALIZER)
    assert step_node_class(Snapshot(), OWN) == ()
    assert step_node_class(replace(Snapshot(), teardown=True), unprotected) == ()
    for deleted in (None, NOW):
        template = NodeClass(Reference(AWS_NODE_TEMPLATE, "own"), deletion_timestamp=deleted)
        assert step_node_class(Snapshot(), template) == ()


def test_a_deleted_class_waits_for_its_claims_and_names_them():
    (told,) = step_node_class(claims("d", "a", "c", "b"), DELETED)
    assert isinstance(told, PublishEvent)
    assert told.message == "waits for the end of a, b, c, 1 more"
    others = apply(Snapshot(), ClaimSeen(a_launched_claim("other")))
    assert [type(each) for each in step_node_class(others, DELETED)] == [CleanUpNodeClass, RemoveFinalizer]
    assert step_node_class(Snapshot(), replace(DELETED, finalizers=())) == ()


def test_teardown_cleans_up_after_every_class_before_the_guard_goes():
    snapshot = apply(Snapshot(), NodeClassSeen(OWN))
    assert [type(each) for each in step_teardown(snapshot)] == [
        TerminateEverything,
        DeleteLaunchTemplates,
        CleanUpNodeClass,
        RemoveFinalizer,
        DeleteInstanceProfiles,
        ReleaseGuard,
    ]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_class_that_is_being_deleted_makes_no_more_nodes(deleted):
    pool = replace(a_pool(), node_class=OWN.reference)
    snapshot = apply(Snapshot(), NodeClassSeen(DELETED if deleted else OWN))
    snapshot = replace(snapshot, pools={pool.key: pool})
    if deleted:
        with pytest.raises(PoolUnusable, match="is being deleted; hint"):
            usable(snapshot, pool.reference, pool.node_class)
    else:
        assert usable(snapshot, pool.reference, pool.node_class)[1] == OWN
