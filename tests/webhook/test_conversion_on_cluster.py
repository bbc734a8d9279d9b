"""What `nodeless convert` writes is taken by the API server as it stands (server-side dry run, 9.7)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from localenv.kubernetes import KubernetesApi
from nodeless.api.conversion import convert_to_v1
from nodeless.api.conversion_back import convert_to_v1alpha5
from nodeless.api.validation import validate
from tests.api import aws_rows, generation_one, provisioner_rows, test_conversion
from tests.api.documents import documents
from tests.api.manifests import node_template, provisioner
from tests.api.test_conversion import CONTEXT, ENDS, SPECS
from tests.webhook.asking import asked_to_create
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

LEGAL = [*provisioner_rows.ACCEPTED, *aws_rows.ACCEPTED]
LEGAL += [(f"v1 {row}", manifest) for row, manifest, path in generation_one.CASES if not path]


def refusals(api: KubernetesApi, manifests: list[dict[str, Any]]) -> list[str]:
    """What the API server says to converted objects; an object of a generated name gets one."""
    told = []
    for manifest in manifests:
        manifest["metadata"].setdefault("name", "named")
        told.append(asked_to_create(api, manifest).refusal)
    return [text for text in told if text]


def test_every_row_of_the_conversion_has_a_test() -> None:
    names = {found for name in dir(test_conversion) for found in re.findall(r"c_(\d+)(?=_)", name)}

    assert names >= {str(number) for number in range(1, 21)}


@pytest.mark.parametrize("manifest", [row[1] for row in LEGAL], ids=[row[0] for row in LEGAL])
def test_a_legal_object_is_converted_whole_or_the_loss_is_listed(
    api: KubernetesApi, admission: Serving, manifest: dict[str, Any]
) -> None:
    for made in (convert_to_v1([manifest], CONTEXT), convert_to_v1alpha5([manifest])):
        assert made.losses or refusals(api, made.manifests) == []


@settings(deadline=None, max_examples=40)
@given(SPECS, ENDS)
def test_a_converted_pool_is_taken_and_so_is_the_way_back(
    api: KubernetesApi, admission: Serving, spec: dict[str, Any], ends: dict[str, Any]
) -> None:
    made = convert_to_v1([node_template(), provisioner(**(spec | ends))], CONTEXT)

    assert made.losses == []
    assert refusals(api, made.manifests) == []
    assert refusals(api, convert_to_v1alpha5(made.manifests).manifests) == []


@settings(deadline=None, max_examples=150)
@given(some.lists(documents(), min_size=1, max_size=2))
def test_whatever_is_valid_is_converted_or_its_loss_is_listed(
    api: KubernetesApi, admission: Serving, manifests: list[dict[str, Any]]
) -> None:
    valid = [each for each in manifests if not validate(each)]
    for each in valid:
        for made in (convert_to_v1([each], CONTEXT), convert_to_v1alpha5([each])):
            assert made.losses or refusals(api, made.manifests) == [], each


def test_the_examples_are_converted(api: KubernetesApi, admission: Serving) -> None:

    folder = Path(__file__).parents[2] / "examples" / "nodeless"
    given = [
        yaml.safe_load((folder / name).read_text()) for name in ("provisioner.yaml", "awsnodetemplate.yaml")
    ]
    made = convert_to_v1(given, CONTEXT)

    assert made.losses == []
    assert refusals(api, made.manifests) == []
