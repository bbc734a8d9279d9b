"""What `kubectl get` and `kubectl explain` work with: columns, short names, categories, subresources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from nodeless.api.kinds import (
    ALL,
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PROVISIONER,
    Kind,
)
from nodeless.api.writing import write_claim
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import Reference
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner

pytestmark = pytest.mark.cluster

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
CLAIM = NodeClaim(
    "default",
    pool=Reference("NodePool", "default", "u-1"),
    node_class=Reference("EC2NodeClass", "default"),
    labels={
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
        "karpenter.sh/capacity-type": "spot",
    },
)
#: Kind, object, its status, and what kubectl shows: column to cell; `wide` ones come with -o wide.
VIEWS: list[tuple[Kind, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (PROVISIONER, provisioner(), {}, {}, {}),
    (AWS_NODE_TEMPLATE, node_template(), {}, {}, {}),
    (
        NODE_POOL,
        node_pool(weight=7),
        {"nodes": 3, "resources": {"cpu": "6", "memory": "24Gi"}, "conditions": [READY]},
        {"NodeClass": "default", "Nodes": "3", "Ready": "True"},
        {"Weight": 7, "CPU": "6", "Memory": "24Gi"},
    ),
    (
        EC2_NODE_CLASS,
        ec2_node_class(role="nodes", instanceProfile=None),
        {"conditions": [READY]},
        {"Ready": "True"},
        {"Role": "nodes"},
    ),
    (
        NODE_CLAIM,
        write_claim(CLAIM),
        {
            "nodeName": "node-1",
            "providerID": "aws:///us-east-1a/i-1",
            "imageID": "ami-1",
            "conditions": [READY],
        },
        {"Type": "m5.large", "Capacity": "spot", "Zone": "us-east-1a", "Node": "node-1", "Ready": "True"},
        {
            "ImageID": "ami-1",
            "ID": "aws:///us-east-1a/i-1",
            "NodePool": "default",
            "NodeClass": "default",
            "Drifted": None,
        },
    ),
    (
        NODE_OVERLAY,
        {
            "apiVersion": NODE_OVERLAY.api_version,
            "kind": NODE_OVERLAY.kind,
            "metadata": {"name": "default"},
            "spec": {"requirements": [], "price": "0.1", "weight": 7},
        },
        {"conditions": [READY]},
        {"Ready": "True"},
        {"Weight": 7},
    ),
]
IDS = [view[0].kind for view in VIEWS]


@pytest.fixture(autouse=True)
def clean(api: KubernetesApi, definitions: None) -> Iterator[None]:
    yield
    for kind in ALL:
        path = kind.path("default")
        if api.find(path) is not None:
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


@pytest.mark.parametrize(("kind", "manifest", "status", "shown", "wide"), VIEWS, ids=IDS)
def test_1_1_the_columns_of_kubectl_get(
    api: KubernetesApi,
    kind: Kind,
    manifest: dict[str, Any],
    status: dict[str, Any],
    shown: dict[str, Any],
    wide: dict[str, Any],
) -> None:
    api.create(manifest)
    if status:
        api.patch(kind.path("default"), {"status": status}, subresource="status")

    table = api.connection.exchange("GET", kind.path(), accept=TABLE).content

    columns = [(column["name"], column["priority"]) for column in table["columnDefinitions"]]
    (row,) = (row for row in table["rows"] if row["object"]["metadata"]["name"] == "default")
    cells = dict(zip([name for name, _ in columns], row["cells"], strict=True))
    age = [] if kind in (PROVISIONER, AWS_NODE_TEMPLATE) else ["Age"]
    first = [name for name, priority in columns if not priority]
    if age:
        assert first == ["Name", *shown, "Age"]
    else:
        assert first[0] == "Name"
    assert {name: cells[name] for name in shown} == shown
    assert {name: cells.get(name) for name in wide} == wide
    assert [name for name, priority in columns if priority] == [*wide]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_1_1_names_and_subresources(api: KubernetesApi, kind: Kind) -> None:
    served = {each["name"]: each for each in api.get(f"/apis/{kind.api_version}")["resources"]}

    main = served[kind.plural]
    assert (main["kind"], main["singularName"], main["namespaced"]) == (kind.kind, kind.singular, False)
    assert main["categories"] == ["karpenter"]
    short = {EC2_NODE_CLASS: ["ec2nc", "ec2ncs"], NODE_OVERLAY: ["overlays"]}
    assert main.get("shortNames", []) == short.get(kind, [])
    below = {name.partition("/")[2] for name in served if name.startswith(f"{kind.plural}/")}
    assert below == {"status"} | ({"scale"} if kind is NODE_POOL else set())


def test_1_1_status_and_spec_are_written_apart(api: KubernetesApi) -> None:
    path = PROVISIONER.path("default")
    api.create(provisioner() | {"status": {"resources": {"cpu": "1"}}})
    assert "status" not in api.get(path)

    stored = api.patch(
        path, {"spec": {"weight": 5}, "status": {"resources": {"cpu": "2"}}}, subresource="status"
    )

    assert stored["status"] == {"resources": {"cpu": "2"}}
    assert "weight" not in stored["spec"]
    assert stored["metadata"]["generation"] == 1


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_every_field_can_be_explained(api: KubernetesApi, kind: Kind) -> None:
    """`kubectl explain` reads the served OpenAPI document."""
    # Published a moment after the kind is served.
    document = api.wait(
        f"/openapi/v3/apis/{kind.api_version}",
        lambda found: found is not None and kind.kind in str(found),
        what=f"{kind.kind} to be explained",
    )
    (schema,) = (
        each
        for name, each in document["components"]["schemas"].items()
        if name.rpartition(".")[2] == kind.kind
    )

    assert schema["description"]
    assert schema["properties"]["spec"]["properties"]
    assert all(member.get("description") for member in schema["properties"]["spec"]["properties"].values())
