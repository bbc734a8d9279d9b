"""Every rule of the v1 kinds, as `nodeless validate` and the webhook apply it to a manifest."""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.validation import validate
from tests.api.generation_one import CASES, IDS


@pytest.mark.parametrize(("row", "manifest", "path"), CASES, ids=IDS)
def test_rule(row: str, manifest: dict[str, Any], path: str) -> None:
    faults = [fault for fault in validate(manifest) if not fault.warning]

    if not path:
        assert faults == []
    else:
        assert [fault for fault in faults if fault.path.startswith(path)], [str(fault) for fault in faults]
