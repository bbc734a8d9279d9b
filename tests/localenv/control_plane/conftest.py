"""What listens where the control plane sends its traffic to Services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localenv.control_plane import ControlPlane
from tests.localenv.control_plane.connect_proxy import ConnectProxy


@pytest.fixture
def connect_proxy(control_plane: ControlPlane) -> Iterator[ConnectProxy]:
    with ConnectProxy(control_plane.kubeconfig.parent / "proxy") as proxy:
        yield proxy
