"""Every rule for Provisioners, as `validate` applies it: each fault at its field, with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.validation import validate
from tests.api.manifests import provisioner, requirement
from tests.api.provisioner_rows import ACCEPTED, REFUSED, TAINT, required


@pytest.mark.parametrize(("manifest", "paths"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_broken_rule_is_named_at_its_field(manifest: dict[str, Any], paths: list[str]) -> None:
    errors = [error for error in validate(manifest) if not error.warning]

    assert sorted({error.path for error in errors}) == sorted(paths)
    assert all(error.message for error in errors)


@pytest.mark.parametrize("manifest", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_rules_allow_is_accepted(manifest: dict[str, Any]) -> None:
    assert validate(manifest) == []


def test_all_faults_come_at_once() -> None:
    manifest = provisioner(
        weight=0,
        ttlSecondsUntilExpired=-1,
        labels={"a b": "x y"},
        requirements=[requirement("team", "in", "x"), requirement("karpenter.sh/foo", "Gt", "x")],
    )

    assert [error.path for error in validate(manifest)] == [
        'spec.labels["a b"]',
        'spec.labels["a b"]',
        "spec.requirements[0].operator",
        "spec.requirements[1].key",
        "spec.requirements[1].values[0]",
        "spec.ttlSecondsUntilExpired",
        "spec.weight",
    ]


HINTS = [
    ("operator in the wrong case", required("team", "in", "x"), "did you mean In?"),
    ("operator left out", required("team", None, "x"), "values are given, so In is probably meant"),
    ("effect", provisioner(taints=[TAINT | {"effect": "noschedule"}]), "did you mean NoSchedule?"),
    ("member", provisioner(requirement=[]), "did you mean requirements?"),
    ("number in quotes", provisioner(weight="10"), "write it without quotes: 10"),
    ("boolean taint", provisioner(taints=[TAINT | {"value": True}]), 'put it in quotes: "true"'),
    (
        "near miss of a well-known key",
        required("karpenter.sh/capacity-typ", "In", "spot"),
        "did you mean karpenter.sh/capacity-type?",
    ),
    ("blank", required(" team", "In", "x"), "remove the blanks: team"),
]


@pytest.mark.parametrize(("manifest", "hint"), [row[1:] for row in HINTS], ids=[row[0] for row in HINTS])
def test_the_fault_says_what_was_probably_meant(manifest: dict[str, Any], hint: str) -> None:
    (error,) = validate(manifest)

    assert error.hint.startswith(hint)
    assert str(error).endswith(f"; hint: {error.hint}")
