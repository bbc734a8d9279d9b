"""What a controller was refused fails its test, on the real API server."""

from __future__ import annotations

import pytest

from localenv.control_plane import ControlPlane
from localenv.kubernetes import ApiError, KubernetesApi
from localenv.rbac import Call, read_calls
from tests.rights import USER, as_the_controller, nothing_refused

pytestmark = pytest.mark.cluster


@pytest.fixture
def controller(control_plane: ControlPlane, namespace: str) -> KubernetesApi:
    """A client with the controller's rights."""
    return KubernetesApi.from_kubeconfig(as_the_controller(control_plane, namespace))


def test_what_is_granted_passes(control_plane: ControlPlane, controller: KubernetesApi) -> None:
    with nothing_refused(control_plane):
        controller.list("/api/v1/nodes")


def test_what_is_refused_is_named(
    control_plane: ControlPlane, controller: KubernetesApi, namespace: str
) -> None:
    call = Call("", "secrets", "get", namespace, "other")
    with pytest.raises(AssertionError, match=f"refused .*: {call}"), nothing_refused(control_plane):
        with pytest.raises(ApiError):
            controller.get(f"/api/v1/namespaces/{namespace}/secrets/other")
        controller.wait(lambda: call in read_calls(control_plane.audit_log, USER), what="the log to have it")


def test_another_config_map_than_those_that_are_named_is_out_of_reach(
    control_plane: ControlPlane, controller: KubernetesApi, namespace: str
) -> None:
    configs = f"/api/v1/namespaces/{namespace}/configmaps"
    with nothing_refused(control_plane):
        controller.list(configs, field_selector="metadata.name=karpenter-global-settings")
    with pytest.raises(ApiError, match="forbidden"):
        controller.list(configs)
