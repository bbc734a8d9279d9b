"""What the change of each configuration key does, on the real engine: docs/configuration.md is held to it.

All keys are changed in previews of one environment, as few as tell the keys apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local.aws import LocalAws
from infra.local.control_plane import ControlPlane
from infra.local.kubernetes_api import KubernetesApi
from tests.local_pulumi.configuration_changes import (
    DECLARED,
    PAGE,
    STACKS,
    Case,
    Previews,
    batches,
    page,
    recorded,
)
from tests.local_pulumi.test_infra_program import guard_let_go

#: A key of the provider: another region is another environment.
OF_PROVIDERS = {"aws:region"}
#: Another cluster's name makes nearly everything anew; its list is recorded and not compared.
COMPARED = batches(case for case in recorded() if case.key != "clusterName")


@pytest.fixture(scope="module")
def previews(
    tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane, aws_server: LocalAws
) -> Iterator[Previews]:
    aws_server.reset()
    made = Previews(tmp_path_factory.mktemp("configured"), control_plane, aws_server)
    api = control_plane.client()
    made.stand(api)
    yield made
    with guard_let_go(api):
        made.stack(STACKS["defaults"]).destroy()
    api.close()


def test_every_key_that_is_declared_has_a_line() -> None:
    assert {case.key for case in recorded()} == DECLARED.keys() - OF_PROVIDERS


def test_the_page_says_what_was_recorded() -> None:
    assert PAGE.read_text() == page(recorded()), "hint: python -m tests.local_pulumi.configuration_changes"


def test_previews_tell_the_changed_keys_apart() -> None:
    made = batches(recorded())
    for batch in made:
        names = [name for case in batch for name in case.names]
        assert len(names) == len({*names})
        assert len({case.of for case in batch}) == 1
    assert sum(map(len, made)) == len(recorded())


@pytest.mark.cluster
@pytest.mark.parametrize("batch", COMPARED, ids=lambda each: "+".join(case.key for case in each))
def test_each_key_changes_what_its_line_says_and_nothing_else(
    previews: Previews, api: KubernetesApi, batch: list[Case]
) -> None:
    previews.change_to(api, batch[0].of)
    told = previews.of({**STACKS[batch[0].of], **{case.key: case.to for case in batch}})
    assert told == _together(batch), "hint: python -m tests.local_pulumi.configuration_changes KEY"


def _together(batch: list[Case]) -> dict[str, list[str]]:
    joined: dict[str, list[str]] = {}
    for case in batch:
        for operation, names in case.steps.items():
            joined[operation] = sorted([*joined.get(operation, []), *names])
    return dict(sorted(joined.items()))
