"""An object that was read and written back is the object that the user wrote.

Unknown fields where the schema keeps them, the spelling of quantities, and the order of members as far as the
API server keeps it (it sorts members; lists stay).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL, PROVISIONER
from nodeless.api.reading import read_node_class, read_pool
from tests.api.manifests import ec2_node_class, inline, node_pool, provisioner, requirement
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

SPELLINGS = {
    "cpu": 1000,
    "memory": "1024Mi",
    "ephemeral-storage": "1e3",
    "pods": "0.5k",
    "example.com/x": "01",
}
DISK = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "1024Gi"}}]


def written() -> list[tuple[Any, dict[str, Any]]]:
    """Objects whose spelling a careless reader would change."""
    keys = [requirement(key, "Exists") for key in ("zeta", "beta.kubernetes.io/arch", "alpha")]
    every = [*keys, requirement("kubernetes.io/os", "In", "linux")]
    every += [requirement("karpenter.sh/capacity-type", "In", "spot", "on-demand")]
    every += [requirement("beta.kubernetes.io/instance-type", "NotIn", "m5.large")]
    old = inline(tags={"b": "2", "a": "1"}, blockDeviceMappings=DISK)
    old["spec"] |= {"requirements": every, "limits": {"resources": SPELLINGS}}
    old["spec"]["kubeletConfiguration"] = {"kubeReserved": {"cpu": "0.1", "memory": "100Mi"}}
    new = node_pool(template={"requirements": every, "expireAfter": "90m"}, limits=SPELLINGS)
    return [(PROVISIONER, old), (NODE_POOL, new)]


@pytest.fixture(autouse=True)
def clean(api: KubernetesApi, definitions: None) -> Iterator[None]:
    yield
    for kind in (PROVISIONER, NODE_POOL, EC2_NODE_CLASS):
        path = kind.path("default")
        if api.find(path) is not None:
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


@pytest.mark.parametrize(("kind", "manifest"), written(), ids=["v1alpha5", "v1"])
def test_admission_and_our_own_writes_change_no_word_of_a_spec(
    api: KubernetesApi, serving: Serving, kind: Any, manifest: dict[str, Any]
) -> None:
    manifest["metadata"]["annotations"] = {"note": "kept", "example.com/Note": ""}
    path = kind.path("default")
    created = api.create(manifest)
    spec = json.dumps(created["spec"])
    for name, value in manifest["spec"].items():
        stored = created["spec"][name]
        if name in ("disruption", "template"):
            stored = {**stored, "spec": {**stored["spec"]}}
        assert json.dumps(stored, sort_keys=True) == json.dumps(value, sort_keys=True)

    api.patch(path, {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    api.patch(path, {"status": {"resources": {"cpu": "1500m"}}}, subresource="status")
    after = api.get(path)

    assert json.dumps(after["spec"]) == spec
    assert after["metadata"]["generation"] == 1
    assert after["metadata"]["annotations"] == manifest["metadata"]["annotations"]
    assert read_pool(after)[0].limits == read_pool(created)[0].limits
    replaced = api.replace(after)
    assert json.dumps(replaced["spec"]) == spec
    assert replaced["metadata"]["generation"] == 1


def test_unknown_fields_are_kept_where_the_schema_keeps_them(api: KubernetesApi) -> None:
    """Stored while no webhook was asked: inside `spec.provider`, which the schema leaves free."""
    manifest = inline()
    manifest["spec"]["provider"]["fromTheFuture"] = {"b": [1, {"a": "1000m"}], "a": None}
    api.create(manifest)
    path = PROVISIONER.path("default")

    api.patch(path, {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    api.patch(path, {"status": {"resources": {"cpu": "1"}}}, subresource="status")

    assert api.get(path)["spec"]["provider"]["fromTheFuture"]["b"] == [1, {"a": "1000m"}]


def test_a_members_null_is_as_good_as_none(api: KubernetesApi, serving: Serving) -> None:
    manifest = ec2_node_class(tags={"a": None, "b": "c"}, userData=None)
    manifest["spec"]["detailedMonitoring"] = None

    stored = api.create(manifest)

    assert stored["spec"]["tags"] == {"b": "c"}
    assert "detailedMonitoring" not in stored["spec"]
    assert read_node_class(manifest).tags == read_node_class(stored).tags == (("b", "c"),)


def test_the_defaults_are_all_that_admission_adds(api: KubernetesApi, serving: Serving) -> None:
    """Two managers: what a user applies again leaves the object as it is."""
    manifest = provisioner(
        limits={"resources": SPELLINGS}, requirements=[requirement("team", "In", "b", "a")]
    )
    first = api.apply(manifest, field_manager="kubectl")
    again = api.apply(manifest, field_manager="kubectl")

    assert again["spec"] == first["spec"]
    assert again["metadata"]["generation"] == first["metadata"]["generation"] == 1
    given = dict(first["spec"])
    assert given.pop("requirements")[:1] == manifest["spec"].pop("requirements")
    assert json.dumps(given, sort_keys=True) == json.dumps(manifest["spec"], sort_keys=True)
