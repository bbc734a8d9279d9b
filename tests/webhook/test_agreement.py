"""`nodeless validate` and the API server with our webhook: one verdict, whatever the object.

NODELESS_EXAMPLES says how many random objects are asked about (600 unless told; the whole run is 10000).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from localenv.kubernetes import KubernetesApi
from nodeless.api.validation import validate
from tests.api.documents import documents
from tests.webhook.asking import asked_to_create
from tests.webhook.conftest import Serving

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

#: Asked at once, over connections that stay open: a dry run takes milliseconds, and most of them are waiting.
BATCH = 20
EXAMPLES = int(os.environ.get("NODELESS_EXAMPLES", "600"))


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@settings(
    deadline=None,
    max_examples=max(1, EXAMPLES // BATCH),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(manifests=some.lists(documents(), min_size=BATCH, max_size=BATCH))
def test_the_api_server_with_the_webhook_and_validate_agree(
    api: KubernetesApi, admission: Serving, workers: ThreadPoolExecutor, manifests: list[dict[str, Any]]
) -> None:
    refusals = workers.map(lambda manifest: asked_to_create(api, manifest).refusal, manifests)

    for manifest, refusal in zip(manifests, refusals, strict=True):
        faults = [str(fault) for fault in validate(manifest) if not fault.warning]
        assert bool(faults) == bool(refusal), (manifest, faults, refusal)
