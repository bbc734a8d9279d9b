"""The same real things that the tests of the rooms use: control plane, local AWS, processes, the webhook."""

from tests.controllers.conftest import (
    aws,
    definitions,
    network,
    on_cluster,
    replicas,
    scene,
)
from tests.webhook.conftest import admission

__all__ = [
    "admission",
    "aws",
    "definitions",
    "network",
    "on_cluster",
    "replicas",
    "scene",
]
