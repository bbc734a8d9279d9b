"""Pods that claim GPUs in the whole environment, as the guide on devices says it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from localenv import device_drivers
from tests.environment.user import User

pytestmark = pytest.mark.environment
GUIDE = Path(__file__).parents[2] / "docs/guides/devices.md"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
GPUS = ["g6.12xlarge", "g6e.12xlarge", "p4d.24xlarge"]


@pytest.fixture
def drivers(user: User) -> Iterator[None]:
    """The drivers' daemons and classes, until the user's nodes are gone."""
    device_drivers.install(user.api)
    yield
    device_drivers.remove(user.api)


def test_the_deployment_of_the_guide_runs_with_the_gpus_that_it_claims(user: User, drivers: None) -> None:
    """Two GPUs of more than 40Gi for each of six pods: L40S, twelve of them."""
    first = GUIDE.read_text().partition("```yaml\n")[2].partition("```")[0]
    template, deployment = yaml.safe_load_all(first)
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": GPUS}
    capacity = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    user.pool(requirements=[types, capacity])
    for manifest in (template, deployment):
        manifest["metadata"]["namespace"] = user.namespace
    for manifest in (template, deployment):
        user.api.create(manifest)

    nodes = user.runs("llm", 6, timeout=180)

    claims = user.api.list(CLAIMS.format(user.namespace))
    results = [result for claim in claims for result in claim["status"]["allocation"]["devices"]["results"]]
    had = {(result["pool"], result["device"]) for result in results}
    assert (len(claims), len(had)) == (6, 12)
    assert {pool for pool, _ in had} == nodes
    labels = [user.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"] for node in nodes]
    assert {each["node.kubernetes.io/instance-type"] for each in labels} == {"g6e.12xlarge"}
