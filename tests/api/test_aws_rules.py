"""Every rule for node templates and inline providers, as `validate` applies it."""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.validation import validate
from tests.api.aws_rows import ACCEPTED, REFUSED, disk


@pytest.mark.parametrize(("manifest", "paths"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_broken_rule_is_named_at_its_field(manifest: dict[str, Any], paths: list[str]) -> None:
    errors = [error for error in validate(manifest) if not error.warning]

    assert sorted({error.path for error in errors}) == sorted(paths)


@pytest.mark.parametrize("manifest", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_rules_allow_is_accepted(manifest: dict[str, Any]) -> None:
    assert validate(manifest) == []


def test_a_bare_number_as_volume_size_is_explained() -> None:
    (error,) = validate(disk(volumeSize=100))

    assert str(error) == (
        "spec.blockDeviceMappings[0].ebs.volumeSize: 100 must be from 1G to 64T; "
        "hint: a bare number is bytes; did you mean 100Gi?"
    )
