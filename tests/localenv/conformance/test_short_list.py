"""A few of Karpenter's own specs, as published, on the whole environment."""

from pathlib import Path

import pytest

from localenv.conformance.short import SHORT_LIST, run_short_list, select_specs
from localenv.conformance.specs import Outcome, Spec, SuiteFailed
from localenv.progress import silent


@pytest.mark.environment
@pytest.mark.drawn("environments of their own")
@pytest.mark.long
# Suites that are not built yet are built first, from modules that are fetched.
@pytest.mark.timeout(1800)
def test_the_short_list_of_karpenters_specs_passes(tmp_path: Path) -> None:
    results = run_short_list(tmp_path, silent)
    assert {spec.suite for spec in results} == SHORT_LIST.keys()
    assert {spec.name: result for spec, result in results.items() if result.outcome != Outcome.PASS} == {}


def test_a_spec_that_a_new_version_lacks_is_named() -> None:
    specs = [Spec("drift", "Drift", "should drift")]
    assert select_specs(specs, ["should drift"]) == specs
    with pytest.raises(SuiteFailed, match="should sink"):
        select_specs(specs, ["should drift", "should sink"])
