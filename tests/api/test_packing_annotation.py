"""A pool says by annotation how its nodes are chosen, in both API generations."""

from __future__ import annotations

import pytest

from nodeless.api.reading import read_pool
from nodeless.api.validation import validate
from tests.api.manifests import node_pool, provisioner

KINDS = pytest.mark.parametrize("make", [provisioner, node_pool])


def annotated(make, packing):
    manifest = make()
    manifest["metadata"]["annotations"] = {"nodeless.dev/packing": packing}
    return manifest


@KINDS
def test_a_pool_without_the_annotation_leaves_the_choice_to_the_settings(make):
    assert read_pool(make())[0].packing is None


@KINDS
@pytest.mark.parametrize("packing", ["lowest-price", "fewest-nodes"])
def test_a_pool_carries_the_packing_of_its_annotation(make, packing):
    manifest = annotated(make, packing)
    assert validate(manifest) == []
    assert read_pool(manifest)[0].packing == packing


@KINDS
def test_an_unknown_packing_is_refused_at_its_path_with_a_hint(make):
    (fault,) = validate(annotated(make, "cheapest"))
    assert str(fault) == (
        'metadata.annotations["nodeless.dev/packing"]: "cheapest" is not a packing; '
        "hint: use lowest-price or fewest-nodes"
    )


@KINDS
def test_an_update_that_only_changes_the_annotation_is_checked(make):
    assert validate(annotated(make, "cheapest"), old=make())
    assert validate(annotated(make, "cheapest"), old=annotated(make, "cheapest")) == []
