"""The same real things that the tests of the rooms use: control plane, local AWS, processes, the webhook."""

from tests.admission.conftest import admission
from tests.app.conftest import (
    aws,
    aws_process,
    definitions,
    network,
    on_cluster,
    replicas,
    scene,
)

__all__ = [
    "admission",
    "aws",
    "aws_process",
    "definitions",
    "network",
    "on_cluster",
    "replicas",
    "scene",
]
